/*
 * reindex.c
 *		REINDEX while the setting hybridindex.replace_btree is on.
 *
 * A btree index that can be a hybrid one is converted, which builds it: that is
 * all that REINDEX INDEX does then.  For a table, a schema or a database, what is
 * left is built anew by the server, index by index, since its own statement
 * would build again what was just built.  What cannot be converted stays btree,
 * which a NOTICE says.
 *
 * Transactions are as with ExecReindex (commands/indexcmds.c): one index or one
 * table is a part of the transaction at hand; concurrently, and for partitioned
 * ones, schemas and databases, each index has transactions of its own, and the
 * statement cannot be in a transaction block.  Indexes of partitions are
 * converted together with the one that they are attached to, in one transaction
 * if not concurrently, where the server takes one of them after the other.
 *
 * Where event triggers fire for REINDEX, those on ddl_command_start do so before
 * the first conversion: they may be there to forbid it.
 */
#include "compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "am/ddl/convert.h"
#include "am/ddl/reindex.h"
#include "am/ddl/replace.h"
#include "am/index_method.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* A statement at work. */
typedef struct Reindex
{
	const HybUtilityCall *call;
	ReindexStmt *stmt;
	bool		concurrently;
	bool		moves;			/* has TABLESPACE, so builds what is converted */
	bool		in_transactions;	/* begins transactions */
	Oid			object;			/* index, table or schema */
	MemoryContext context;		/* lasts longer than a transaction */
	List	   *converted;		/* OIDs of the indexes that are hybrid now */
} Reindex;

/*
 * Its options.  False if the server will refuse them: a name that does not
 * exist, say.
 */
static bool
read_options(Reindex *reindex)
{
	ListCell   *lc;

	foreach(lc, reindex->stmt->params)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "concurrently") == 0)
			reindex->concurrently = defGetBoolean(option);
		else if (strcmp(option->defname, "tablespace") == 0)
		{
			reindex->moves = true;
			if (!OidIsValid(get_tablespace_oid(defGetString(option), true)))
				return false;
		}
		else if (strcmp(option->defname, "verbose") != 0)
			return false;
	}
	return true;
}

/*
 * The object that the statement names.  False if none can be converted in it, or
 * if the server will refuse it, before anything is done.
 */
static bool
find_object(Reindex *reindex)
{
	ReindexStmt *stmt = reindex->stmt;
	char		relkind;

	switch (stmt->kind)
	{
		case REINDEX_OBJECT_INDEX:
		case REINDEX_OBJECT_TABLE:
			reindex->object = RangeVarGetRelid(stmt->relation, NoLock, true);
			relkind = get_rel_relkind(reindex->object);
			if (stmt->kind == REINDEX_OBJECT_INDEX ?
				relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX :
				relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW &&
				relkind != RELKIND_PARTITIONED_TABLE)
				return false;
			reindex->in_transactions = reindex->concurrently ||
				RELKIND_HAS_PARTITIONS(relkind);
			return HYB_OWNS_RELATION(reindex->object, GetUserId()) &&
				!hyb_is_schema_of_server(get_rel_namespace(reindex->object));
		case REINDEX_OBJECT_SCHEMA:
			reindex->in_transactions = true;
			reindex->object = get_namespace_oid(stmt->name, true);
			return OidIsValid(reindex->object) &&
				!hyb_is_schema_of_server(reindex->object) &&
				(HYB_OWNS_SCHEMA(reindex->object, GetUserId()) ||
				 HYB_MAINTAINS_ALL(GetUserId()));
		case REINDEX_OBJECT_DATABASE:
			reindex->in_transactions = true;
			return (stmt->name == NULL ||
					strcmp(stmt->name, get_database_name(MyDatabaseId)) == 0) &&
				(HYB_OWNS_DATABASE(MyDatabaseId, GetUserId()) ||
				 HYB_MAINTAINS_ALL(GetUserId()));
		default:
			return false;
	}
}

static List *
find_candidates(const Reindex *reindex)
{
	switch (reindex->stmt->kind)
	{
		case REINDEX_OBJECT_INDEX:
			return hyb_index_is_of(reindex->object, BTREE_AM_OID) ?
				list_make1_oid(reindex->object) : NIL;
		case REINDEX_OBJECT_TABLE:
			return hyb_table_indexes(reindex->object, BTREE_AM_OID);
		case REINDEX_OBJECT_SCHEMA:
			return hyb_schema_indexes(reindex->object, BTREE_AM_OID);
		default:
			return hyb_database_indexes(BTREE_AM_OID);
	}
}

/*
 * Is this transaction still reading a table, or has it triggers to fire there?
 * Building an index does not mind, replacing it would (CheckTableNotInUse).
 */
static bool
is_in_use(const HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, conversion->tables)
	{
		Relation	table = table_open(lfirst_oid(lc), NoLock);
		bool		in_use = table->rd_refcnt != 1 ||
			AfterTriggerPendingOnRel(RelationGetRelid(table));

		table_close(table, NoLock);
		if (in_use)
			return true;
	}
	return false;
}

static HybConvertStatus
convert_now(HybConversion *conversion, Oid index, Oid hybrid)
{
	HybConvertStatus status = hyb_conversion_open(conversion, index, hybrid,
												  false);

	if (status != HYB_CONVERT_READY)
		return status;
	if (is_in_use(conversion))
	{
		conversion->code = ERRCODE_OBJECT_IN_USE;
		conversion->message = _("its table is being used by active queries in this session, or has pending trigger events");
		return HYB_CONVERT_REFUSED;
	}
	hyb_conversion_tell(conversion);
	(void) hyb_conversion_now(conversion);
	return status;
}

static HybConvertStatus
convert_in_transaction(HybConversion *conversion, Oid index, Oid hybrid)
{
	HybConvertStatus status;

	hyb_convert_next_transaction();
	PushActiveSnapshot(GetTransactionSnapshot());
	status = convert_now(conversion, index, hybrid);
	PopActiveSnapshot();
	hyb_convert_next_transaction();
	return status;
}

static void
remember(Reindex *reindex, const HybConversion *conversion)
{
	MemoryContext old_context = MemoryContextSwitchTo(reindex->context);
	ListCell   *lc;

	foreach(lc, conversion->parts)
		reindex->converted = lappend_oid(reindex->converted,
										 ((HybConvertPart *) lfirst(lc))->twin);
	MemoryContextSwitchTo(old_context);
}

/* What belongs to others the server builds, or refuses, without our words. */
static void
report(Reindex *reindex, const HybConversion *conversion,
	   HybConvertStatus status)
{
	if (status == HYB_CONVERT_READY)
	{
		remember(reindex, conversion);
		hyb_conversion_done(conversion);
	}
	else if (status == HYB_CONVERT_REFUSED && conversion->name != NULL &&
			 conversion->code != ERRCODE_INSUFFICIENT_PRIVILEGE)
		ereport(NOTICE,
				(errmsg("index \"%s\" stays of access method \"btree\": %s",
						conversion->name, conversion->message),
				 conversion->detail ?
				 errdetail_internal("%s", conversion->detail) : 0));
}

static void
convert(Reindex *reindex, Oid index, Oid hybrid)
{
	HybConversion conversion;

	if (!reindex->in_transactions)
	{
		report(reindex, &conversion, convert_now(&conversion, index, hybrid));
		return;
	}
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed");
	report(reindex, &conversion, reindex->concurrently ?
		   hyb_convert_concurrently(&conversion, index, hybrid) :
		   convert_in_transaction(&conversion, index, hybrid));
	SPI_finish();
}

/* By the server, which wants a snapshot and may end the transaction. */
static void
run(const Reindex *reindex, ReindexStmt *stmt)
{
	MemoryContext old_context = MemoryContextSwitchTo(reindex->context);
	HybUtilityCall call = *reindex->call;
	bool		pushed = reindex->in_transactions;

	call.stmt = copyObject(call.stmt);
	call.stmt->utilityStmt = (Node *) copyObject(stmt);
	call.read_only_tree = false;
	call.completion = NULL;
	if (pushed)
		PushActiveSnapshot(GetTransactionSnapshot());
	hyb_utility_next(&call);
	if (pushed && ActiveSnapshotSet())
		PopActiveSnapshot();
	MemoryContextSwitchTo(old_context);
}

/* REINDEX TABLE passes over these two when it is done concurrently. */
static bool
is_passed_over(Oid indexoid)
{
	Relation	index = try_relation_open(indexoid, AccessShareLock);
	bool		passed_over = true;

	if (index == NULL)
		return true;
	if (!index->rd_index->indisvalid)
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("skipping reindex of invalid index \"%s.%s\"",
						get_namespace_name(RelationGetNamespace(index)),
						RelationGetRelationName(index)),
				 errhint("Use DROP INDEX or REINDEX INDEX.")));
	else if (index->rd_index->indisexclusion)
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot reindex exclusion constraint index \"%s.%s\" concurrently, skipping",
						get_namespace_name(RelationGetNamespace(index)),
						RelationGetRelationName(index))));
	else
		passed_over = false;
	relation_close(index, AccessShareLock);
	return passed_over;
}

static void
build_index(const Reindex *reindex, Oid index)
{
	ReindexStmt *stmt = copyObject(reindex->stmt);
	char	   *name = get_rel_name(index);

	/* no longer there: nothing to do */
	if (name == NULL || (reindex->concurrently && is_passed_over(index)))
		return;
	stmt->kind = REINDEX_OBJECT_INDEX;
	stmt->relation = makeRangeVar(get_namespace_name(get_rel_namespace(index)),
								  name, -1);
	run(reindex, stmt);
	if (reindex->in_transactions)
	{
		CommitTransactionCommand();
		StartTransactionCommand();
		MemoryContextSwitchTo(reindex->context);
	}
}

/* Those of a table and its TOAST table that have not been converted. */
static List *
others_of_table(const Reindex *reindex, Oid tableoid, List *others)
{
	Relation	table = try_relation_open(tableoid, AccessShareLock);
	Oid			toast;
	MemoryContext old_context;

	if (table == NULL)
		return others;
	toast = table->rd_rel->reltoastrelid;
	old_context = MemoryContextSwitchTo(reindex->context);
	others = list_concat(others,
						 list_difference_oid(RelationGetIndexList(table),
											 reindex->converted));
	MemoryContextSwitchTo(old_context);
	relation_close(table, AccessShareLock);
	return OidIsValid(toast) ? others_of_table(reindex, toast, others) : others;
}

/* Has storage, and is not of the server or of another session? */
static bool
is_table_of(const Reindex *reindex, Form_pg_class form)
{
	return (form->relkind == RELKIND_RELATION ||
			form->relkind == RELKIND_MATVIEW) &&
		(reindex->stmt->kind == REINDEX_OBJECT_DATABASE ?
		 !hyb_is_schema_of_server(form->relnamespace) :
		 form->relnamespace == reindex->object) &&
		!isOtherTempNamespace(form->relnamespace);
}

/*
 * Tables of the schema or database, in the order of their creation.  False if
 * they are not all the user's.
 */
static bool
find_tables(const Reindex *reindex, List **tables)
{
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(rel, 0, NULL);
	HeapTuple	tuple;
	bool		all_owned = true;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (!is_table_of(reindex, form))
			continue;
		all_owned &= HYB_OWNS_RELATION(form->oid, GetUserId());
		*tables = lappend_oid(*tables, form->oid);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	list_sort(*tables, list_oid_cmp);
	return all_owned;
}

/*
 * Indexes are built by name.  Who owns a table may not be allowed to use the
 * schema of its TOAST table, or of a partition.
 */
static bool
may_name(const List *indexes)
{
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Oid			schema = get_rel_namespace(lfirst_oid(lc));

		if (OidIsValid(schema) && !HYB_MAY_USE_SCHEMA(schema, GetUserId()))
			return false;
	}
	return true;
}

/* As a part of REINDEX DATABASE. */
static void
build_catalogs(const Reindex *reindex)
{
	ReindexStmt *stmt = copyObject(reindex->stmt);

	if (reindex->concurrently)
	{
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot reindex system catalogs concurrently, skipping all")));
		return;
	}
	stmt->kind = REINDEX_OBJECT_SYSTEM;
	run(reindex, stmt);
}

/*
 * What has not been converted.  Where that cannot be done index by index, the
 * statement is carried out as it stands.
 */
static void
build_others(const Reindex *reindex)
{
	List	   *tables = NIL;
	List	   *others = NIL;
	ListCell   *lc;

	if (reindex->stmt->kind == REINDEX_OBJECT_TABLE)
		tables = hyb_with_partitions(reindex->object, NoLock);
	else if (!find_tables(reindex, &tables))
	{
		run(reindex, reindex->stmt);
		return;
	}
	foreach(lc, tables)
		others = others_of_table(reindex, lfirst_oid(lc), others);
	if (!may_name(others))
	{
		run(reindex, reindex->stmt);
		return;
	}
	foreach(lc, others)
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_INDEX)
		build_index(reindex, lfirst_oid(lc));
	if (reindex->stmt->kind == REINDEX_OBJECT_DATABASE &&
		HYB_REINDEX_DATABASE_HAS_CATALOGS)
		build_catalogs(reindex);
}

/*
 * May it end transactions?  Where it may not, the server is to say so in its
 * own words.
 */
static bool
may_run(const Reindex *reindex)
{
	bool		top = reindex->call->context == PROCESS_UTILITY_TOPLEVEL;

	if (!reindex->in_transactions)
		return true;
	if (IsInTransactionBlock(top))
		return false;
	PreventInTransactionBlock(top, "REINDEX");
	return true;
}

bool
hyb_reindex(const HybUtilityCall *call)
{
	Reindex		reindex = {.call = call};
	Oid			hybrid = get_index_am_oid("hybrid", true);
	MemoryContext old_context;
	List	   *candidates;
	ListCell   *lc;
	bool		done;

	reindex.stmt = castNode(ReindexStmt, call->stmt->utilityStmt);
	if (!hyb_replaces_btree() || !OidIsValid(hybrid) || XactReadOnly ||
		RecoveryInProgress() || !read_options(&reindex) ||
		!find_object(&reindex) || !may_run(&reindex))
		return false;

	reindex.context = AllocSetContextCreate(PortalContext, "REINDEX",
											ALLOCSET_SMALL_SIZES);
	old_context = MemoryContextSwitchTo(reindex.context);
	candidates = find_candidates(&reindex);
	if (candidates != NIL && call->context != PROCESS_UTILITY_SUBCOMMAND)
		HYB_REINDEX_STARTS(call->stmt->utilityStmt);
	foreach(lc, candidates)
		convert(&reindex, lfirst_oid(lc), hybrid);

	done = reindex.converted != NIL && !reindex.moves;
	if (done && reindex.stmt->kind != REINDEX_OBJECT_INDEX)
		build_others(&reindex);
	if (!done && candidates != NIL && reindex.in_transactions)
	{
		/* the transaction that the caller began is over */
		run(&reindex, reindex.stmt);
		done = true;
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(reindex.context);
	return done;
}
