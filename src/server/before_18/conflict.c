/*
 * conflict.c
 *		Lets INSERT ... ON CONFLICT look into our unique indexes before
 *		PostgreSQL 18.
 *
 * Until then the executor, opening the indexes of such a table, looks up by
 * itself how to find equal keys (BuildSpeculativeIndexInfo in
 * catalog/index.c), and takes every unique index for a btree.  But it opens
 * indexes only where nobody has: so they are opened here, between the start of
 * the executor and its first row, and equality is looked up in the index's own
 * operator families.
 *
 * Partitions that rows are routed to are opened when the first row of each comes
 * (conflict_route.c).
 *
 * The planner has opened an index that an ON CONFLICT clause names, and so has
 * loaded this library.  See hooks.c for the clause that names none.
 */
#include "base/compat.h"

#include "base/server.h"
#include "server/before_18/conflict_route.h"
#include "server/hooks.h"
#include "server/started.h"

#ifdef HYB_ON_CONFLICT_NEEDS_BTREE

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "tcop/pquery.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static ExecutorStart_hook_type previous_executor_start = NULL;
static bool hook_was_called = false;

/*
 * Partitioned tables without unique indexes of ours, so that the partitions are
 * not looked at for each statement; forgotten whenever a relation changes.
 */
static HTAB *plain_tables = NULL;
static bool plain_tables_stale = false;

static bool
is_unique_hybrid(Oid index, Oid hybrid)
{
	HeapTuple	tuple;
	bool		result;

	if (!hyb_index_is_of(index, hybrid))
		return false;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_index) GETSTRUCT(tuple))->indisunique;
	ReleaseSysCache(tuple);
	return result;
}

/* A unique index of ours, or InvalidOid.  None is opened. */
static Oid
find_unique_hybrid(Relation table, Oid hybrid)
{
	List	   *indexes;
	ListCell   *lc;
	Oid			found = InvalidOid;

	if (!table->rd_rel->relhasindex)
		return InvalidOid;
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
	{
		if (is_unique_hybrid(lfirst_oid(lc), hybrid))
		{
			found = lfirst_oid(lc);
			break;
		}
	}
	list_free(indexes);
	return found;
}

/*
 * What the executor would do with the first row.  It closes the indexes with
 * the table.
 */
static void
open_indexes(ResultRelInfo *result, Oid hybrid)
{
	ExecOpenIndices(result, false);
	hyb_conflict_look_up(result, hybrid);
}

static void
relation_has_changed(Datum arg, Oid relid)
{
	plain_tables_stale = true;
}

static bool
is_known_plain(Oid relid)
{
	if (plain_tables == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Oid)};

		plain_tables = hash_create("tables without unique hybrid indexes", 16,
								   &control, HASH_ELEM | HASH_BLOBS);
		CacheRegisterRelcacheCallback(relation_has_changed, (Datum) 0);
	}
	if (plain_tables_stale)
	{
		HASH_SEQ_STATUS status;
		Oid		   *entry;

		plain_tables_stale = false;
		hash_seq_init(&status, plain_tables);
		while ((entry = hash_seq_search(&status)) != NULL)
			hash_search(plain_tables, entry, HASH_REMOVE, NULL);
	}
	return hash_search(plain_tables, &relid, HASH_FIND, NULL) != NULL;
}

/*
 * The same of a table that is not locked, and shall not be: the statement may
 * have nothing to do with it, and would wait for whoever locks or drops it.
 */
static bool
catalog_has_unique_hybrid(Oid table, Oid hybrid)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1,
							  &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);

		found = form->indisunique && form->indislive &&
			hyb_index_is_of(form->indexrelid, hybrid);
	}
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return found;
}

/* Rows may be routed to any partition. */
static bool
has_unique_hybrid_below(Relation table, Oid hybrid)
{
	Oid			relid = RelationGetRelid(table);
	ListCell   *lc;

	if (is_known_plain(relid))
		return false;
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION &&
			catalog_has_unique_hybrid(lfirst_oid(lc), hybrid))
			return true;
	}

	/* if nothing has changed meanwhile */
	if (!plain_tables_stale)
		(void) hash_search(plain_tables, &relid, HASH_ENTER, NULL);
	return false;
}

static void
prepare_conflict(ModifyTableState *modify)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);

	if (!OidIsValid(hybrid))
		return;
	for (int i = 0; i < modify->mt_nrels; i++)
	{
		ResultRelInfo *result = &modify->resultRelInfo[i];
		Relation	table = result->ri_RelationDesc;

		if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		{
			if (has_unique_hybrid_below(table, hybrid))
				hyb_conflict_route(modify, hybrid);
		}
		else if (table->rd_rel->relkind == RELKIND_RELATION &&
				 result->ri_IndexRelationDescs == NULL &&
				 OidIsValid(find_unique_hybrid(table, hybrid)))
			open_indexes(result, hybrid);
	}
}

static void
conflict_executor_start(QueryDesc *query, int eflags)
{
	hook_was_called = true;
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	hyb_started_on_conflict(query, eflags, prepare_conflict);
}

static void
check_loaded(Plan *plan, List *rtable, Oid hybrid)
{
	ListCell   *lc;

	if (plan == NULL || !IsA(plan, ModifyTable) ||
		((ModifyTable *) plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	foreach(lc, ((ModifyTable *) plan)->resultRelations)
	{
		Relation	table = table_open(rt_fetch(lfirst_int(lc), rtable)->relid,
									   AccessShareLock);

		if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ?
			has_unique_hybrid_below(table, hybrid) :
			OidIsValid(find_unique_hybrid(table, hybrid)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg(HYB_LOADED_LATE),
					 errdetail(HYB_LOADED_LATE_DETAIL),
					 HYB_IS_WORKER ? errhint(HYB_LOADED_LATE_WORKER_HINT) :
					 errhint(HYB_LOADED_LATE_HINT)));
		table_close(table, AccessShareLock);
	}
}

/*
 * The executor is opening an index of the table.  Indexes are not opened here,
 * since one of them may be on its way into the relation cache.
 */
void
hyb_conflict_loaded(void)
{
	Oid			hybrid;
	ListCell   *lc;

	if (hook_was_called || ActivePortal == NULL || !IsTransactionState())
		return;
	hybrid = get_index_am_oid("hybrid", true);
	foreach(lc, ActivePortal->stmts)
	{
		PlannedStmt *stmt = lfirst_node(PlannedStmt, lc);
		ListCell   *subplan;

		if (!OidIsValid(hybrid) ||
			(stmt->commandType != CMD_INSERT && !stmt->hasModifyingCTE))
			continue;
		check_loaded(stmt->planTree, stmt->rtable, hybrid);
		foreach(subplan, stmt->subplans)
			check_loaded(lfirst(subplan), stmt->rtable, hybrid);
	}
}

void
hyb_conflict_init(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = conflict_executor_start;
}

#else

void
hyb_conflict_loaded(void)
{
}

void
hyb_conflict_init(void)
{
}

#endif							/* HYB_ON_CONFLICT_NEEDS_BTREE */
