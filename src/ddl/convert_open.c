/*
 * convert_open.c
 *		Which indexes can be converted, and the locks for it.
 */
#include "base/compat.h"

#include <ctype.h>

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "ddl/convert.h"
#include "ddl/subscription.h"
#include "ddl/twin.h"
#include "miscadmin.h"
#include "server/hooks.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* For messages.  A false that says why. */
static bool
refuse(HybConversion *conversion, int code, char *message)
{
	conversion->code = code;
	conversion->message = message;
	conversion->detail = NULL;
	conversion->hint = NULL;
	return false;
}

void
hyb_conversion_refuse(const HybConversion *conversion)
{
	ereport(ERROR,
			(errcode(conversion->code),
			 errmsg_internal("%s", conversion->message),
			 conversion->detail ?
			 errdetail_internal("%s", conversion->detail) : 0,
			 conversion->hint ? errhint("%s", conversion->hint) : 0));
}

void
hyb_conversion_skip(const HybConversion *conversion)
{
	ereport(NOTICE,
			(errmsg("skipping index \"%s\": %s", conversion->name,
					conversion->message),
			 conversion->detail ?
			 errdetail_internal("%s", conversion->detail) : 0,
			 conversion->hint ? errhint("%s", conversion->hint) : 0));
}

void
hyb_conversion_already(const HybConversion *conversion)
{
	ereport(NOTICE,
			(errmsg("index \"%s\" is of access method \"%s\" already",
					conversion->name,
					get_am_name(conversion->access_method))));
}

void
hyb_conversion_done(const HybConversion *conversion)
{
	ereport(NOTICE,
			(errmsg("index \"%s\" is of access method \"%s\" now",
					conversion->name,
					get_am_name(conversion->access_method))));
}

/*
 * Is it an index that the caller may convert?  Without a lock on it, all of
 * this may change.
 */
static bool
check_identity(HybConversion *conversion, Oid indexoid, bool *exists)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Form_pg_class form;
	Oid			table;
	bool		ok = true;

	*exists = HeapTupleIsValid(tuple);
	if (!*exists)
		return refuse(conversion, ERRCODE_UNDEFINED_OBJECT,
					  psprintf(_("index with OID %u does not exist"), indexoid));
	form = (Form_pg_class) GETSTRUCT(tuple);
	table = IndexGetRelation(indexoid, true);
	conversion->name = pstrdup(NameStr(form->relname));
	conversion->schema = get_namespace_name(form->relnamespace);
	if (form->relkind != RELKIND_INDEX &&
		form->relkind != RELKIND_PARTITIONED_INDEX)
		ok = refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
					psprintf(_("\"%s\" is not an index"), conversion->name));
	else if (!has_privs_of_role(GetUserId(), form->relowner))
		ok = refuse(conversion, ERRCODE_INSUFFICIENT_PRIVILEGE,
					psprintf(_("must be owner of index %s"), conversion->name));
	else if (IsToastNamespace(form->relnamespace))
		ok = refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
					psprintf(_("cannot convert index \"%s\" of a TOAST table"),
							 conversion->name));
	else if (IsCatalogRelationOid(table))
		ok = refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
					psprintf(_("cannot convert index \"%s\" of a system catalog"),
							 conversion->name));
	else if (isOtherTempNamespace(form->relnamespace))
		ok = refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
					_("cannot convert temporary indexes of other sessions"));
	ReleaseSysCache(tuple);
	return ok;
}

/*
 * The index has gone while we waited for the lock: has another conversion
 * replaced it by one of the same name?
 */
static bool
was_converted(const HybConversion *conversion, Oid table)
{
	Oid			schema = get_namespace_oid(conversion->schema, true);
	Oid			successor = OidIsValid(schema) ?
		get_relname_relid(conversion->name, schema) : InvalidOid;

	return OidIsValid(successor) &&
		IndexGetRelation(successor, true) == table &&
		hyb_index_is_of(successor, conversion->access_method);
}

#ifdef HYB_NO_REPLICA_IDENTITY

/* The primary key is what rows are found by, if there is no replica identity. */
static bool
check_replication(HybConversion *conversion, Relation index)
{
	Form_pg_index form = index->rd_index;
	Relation	table;
	bool		identity_is_key;

	if (form->indisreplident)
	{
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("cannot convert index \"%s\", which is the replica identity of its table"),
						RelationGetRelationName(index)));
		conversion->detail = _("A subscriber of this version of PostgreSQL cannot find rows through a hybrid index.");
		conversion->hint = _("Use another index as replica identity, or REPLICA IDENTITY FULL.");
		return false;
	}
	if (!form->indisprimary)
		return true;
	table = table_open(form->indrelid, NoLock);
	identity_is_key = !OidIsValid(RelationGetReplicaIndex(table)) ||
		RelationGetReplicaIndex(table) == RelationGetRelid(index);
	table_close(table, NoLock);
	if (identity_is_key && hyb_has_subscription(form->indrelid))
	{
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("cannot convert index \"%s\" of a table with a subscription"),
						RelationGetRelationName(index)));
		conversion->detail = _("A subscriber of this version of PostgreSQL cannot find rows through a hybrid index.");
		conversion->hint = _("Have another index be the replica identity of the table here.");
		return false;
	}
	return true;
}

#else

static bool
check_replication(HybConversion *conversion, Relation index)
{
	return true;
}

#endif							/* HYB_NO_REPLICA_IDENTITY */

/* What holds for one index alone. */
static bool
check_part(HybConversion *conversion, Relation index)
{
	Form_pg_index form = index->rd_index;
	char	   *name = RelationGetRelationName(index);
	bool		to_btree = conversion->access_method == BTREE_AM_OID;
	HybTwinReason reason;

	if (index->rd_rel->relam != BTREE_AM_OID &&
		index->rd_rel->relam != hyb_convert_target(true))
	{
		refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
			   psprintf(_("index \"%s\" is of access method \"%s\""), name,
						get_am_name(index->rd_rel->relam)));
		conversion->detail = to_btree ?
			_("Only a hybrid index can be made a btree one.") :
			_("Only a btree index can be made a hybrid one.");
		return false;
	}
	if (!form->indisvalid)
	{
		refuse(conversion, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   psprintf(_("cannot convert invalid index \"%s\""), name));
		conversion->hint = _("Use REINDEX INDEX to make it valid, or DROP INDEX if an interrupted operation has left it.");
		return false;
	}
	if (form->indisexclusion && conversion->concurrently)
	{
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("cannot convert index \"%s\" of an exclusion constraint concurrently"),
						name));
		conversion->hint = psprintf(_("Use %s(), which locks the table."),
									hyb_sql_function(to_btree ? "hybrid_revert" : "hybrid_convert"));
		return false;
	}
	if (HYB_CONSTRAINTS_NEED_BTREE && !to_btree &&
		form->indisunique && index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
	{
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("cannot convert unique index \"%s\" of a partitioned table"),
						name));
		conversion->detail = _("Before PostgreSQL 18, unique indexes of partitioned tables can be btree indexes only.");
		conversion->hint = _("Unique indexes of partitions that are attached to no index of the partitioned table can be hybrid ones.");
		return false;
	}
	if (!to_btree && !check_replication(conversion, index))
		return false;
	if (!hyb_twin_possible(index, conversion->access_method, &reason))
	{
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("index \"%s\" cannot be of access method \"%s\""),
						name, get_am_name(conversion->access_method)));
		conversion->detail = reason.detail;
		conversion->hint = reason.hint;
		return false;
	}
	return true;
}

/* A partition's index goes with the one that it is attached to. */
static bool
check_alone(HybConversion *conversion, Oid indexoid)
{
	Oid			root;

	if (!get_rel_relispartition(indexoid))
		return true;
	root = llast_oid(get_partition_ancestors(indexoid));
	refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
		   psprintf(_("cannot convert index \"%s\" of a partition alone"),
					conversion->name));
	conversion->detail = psprintf(_("It is attached to index \"%s\" of the partitioned table."),
								  get_rel_name(root));
	conversion->hint = _("Convert that index, with all that are attached to it.");
	return false;
}

static void
add_part(HybConversion *conversion, Relation index)
{
	HybConvertPart *part = palloc0(sizeof(HybConvertPart));

	part->table = index->rd_index->indrelid;
	part->index = RelationGetRelid(index);
	part->stored = index->rd_rel->relkind == RELKIND_INDEX;
	conversion->unique |= index->rd_index->indisunique;

	/* simplifying them would run their owner's functions as this user */
	part->safe = heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs,
								NULL) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
	part->schema = get_namespace_name(index->rd_rel->relnamespace);
	conversion->parts = lappend(conversion->parts, part);
}

/* The index and those that are attached to it, by a caller that locks tables. */
static HybConvertStatus
add_parts(HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(conversion->index, ShareUpdateExclusiveLock,
									NULL))
	{
		Relation	index = index_open(lfirst_oid(lc), NoLock);
		bool		ok;

		if (index->rd_rel->relam == conversion->access_method)
		{
			index_close(index, NoLock);
			return HYB_CONVERT_ALREADY;
		}
		ok = check_part(conversion, index);
		if (ok)
			add_part(conversion, index);
		index_close(index, NoLock);
		if (!ok)
			return HYB_CONVERT_REFUSED;
	}
	return HYB_CONVERT_READY;
}

/*
 * Whoever has the lock may be waiting for all snapshots that are older than a
 * moment: the one that catalogs have been read with is let go of.
 */
static void
lock_without_snapshot(Oid relid, LOCKMODE lockmode)
{
	InvalidateCatalogSnapshot();
	LockRelationOid(relid, lockmode);
}

/*
 * The table, which is locked, and its partitions, after their parents.  What is
 * attached to a table that is locked does not change any more.
 */
static List *
lock_tables(Oid table, LOCKMODE lockmode)
{
	List	   *locked = list_make1_oid(table);

	for (;;)
	{
		List	   *tables = find_all_inheritors(table, NoLock, NULL);
		List	   *added = list_difference_oid(tables, locked);
		ListCell   *lc;

		if (added == NIL)
			return tables;
		foreach(lc, added)
			lock_without_snapshot(lfirst_oid(lc), lockmode);
		locked = list_concat(locked, added);
	}
}

HybConvertStatus
hyb_conversion_open(HybConversion *conversion, Oid index, Oid access_method,
					bool concurrently)
{
	LOCKMODE	lockmode = concurrently ? ShareUpdateExclusiveLock :
		ShareRowExclusiveLock;
	Oid			table;
	bool		exists;

	memset(conversion, 0, sizeof(*conversion));
	conversion->access_method = access_method;
	conversion->concurrently = concurrently;
	conversion->index = index;
	if (!check_identity(conversion, index, &exists))
		return HYB_CONVERT_REFUSED;

	/* the table first, as everybody does */
	table = IndexGetRelation(index, true);
	lock_without_snapshot(table, lockmode);
	if (!check_identity(conversion, index, &exists))
		return !exists && was_converted(conversion, table) ?
			HYB_CONVERT_ALREADY : HYB_CONVERT_REFUSED;
	conversion->tables = lock_tables(table, lockmode);
	lock_without_snapshot(index, ShareUpdateExclusiveLock);
	if (!check_alone(conversion, index))
		return HYB_CONVERT_REFUSED;
	return add_parts(conversion);
}

/* Is it `name`, perhaps cut short, with "_ccnew" or "_ccold" and a number? */
static bool
is_leftover_of(const char *candidate, const char *name)
{
	size_t		length = strlen(candidate);

	while (length > 0 && isdigit((unsigned char) candidate[length - 1]))
		length--;
	if (length <= 6 || (strncmp(candidate + length - 6, "_ccnew", 6) != 0 &&
						strncmp(candidate + length - 6, "_ccold", 6) != 0))
		return false;
	length -= 6;
	return strncmp(candidate, name, length) == 0 &&
		(name[length] == '\0' || strlen(candidate) >= NAMEDATALEN - 4);
}

/* The names of the invalid indexes that operations on the index have left. */
static List *
leftovers_of(const char *index, Oid table)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	List	   *names = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	/* the table's list of indexes lacks those that are dead */
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
		char	   *name = get_rel_name(form->indexrelid);

		if (!form->indisvalid && name != NULL && is_leftover_of(name, index))
			names = lappend(names, name);
	}
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return names;
}

static char *
drop_hint(const char *schema, const char *name)
{
	return psprintf(_("Use DROP INDEX %s."),
					quote_qualified_identifier(schema, name));
}

static void
tell_leftovers_of(const char *index, Oid table)
{
	char	   *schema = get_namespace_name(get_rel_namespace(table));
	ListCell   *lc;

	foreach(lc, leftovers_of(index, table))
		ereport(NOTICE,
				(errmsg("invalid index \"%s\" has been left by an operation on index \"%s\" that was interrupted",
						(char *) lfirst(lc), index),
				 errhint("%s", drop_hint(schema, lfirst(lc)))));
}

bool
hyb_conversion_is_unfinished(HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, conversion->parts)
	{
		const HybConvertPart *part = lfirst(lc);
		ListCell   *of_names;

		foreach(of_names, leftovers_of(get_rel_name(part->index), part->table))
		{
			char	   *name = lfirst(of_names);

			if (strstr(name, "_ccnew") == NULL)
				continue;
			refuse(conversion, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
				   psprintf(_("invalid index \"%s\" has been left by an operation on it that was interrupted"),
							name));
			conversion->hint = drop_hint(part->schema, name);
			return true;
		}
	}
	return false;
}

#ifdef HYB_ON_CONFLICT_NEEDS_BTREE

/* Does each new session load this library, as far as we can tell? */
static bool
is_preloaded(void)
{
	const char *libraries = GetConfigOption("session_preload_libraries", true,
											false);

	return hyb_preloaded ||
		(libraries != NULL && strstr(libraries, "hybridindex") != NULL);
}

/*
 * Sessions may come upon the index by a statement that has to have this library
 * when it starts (server/hooks.c).
 */
static void
warn_of_late_loading(const HybConversion *conversion)
{
	static TimestampTz told = 0;

	/* once a statement, which may convert many */
	if (conversion->access_method == BTREE_AM_OID ||
		!conversion->unique || is_preloaded() ||
		told == GetCurrentStatementStartTimestamp())
		return;
	told = GetCurrentStatementStartTimestamp();
	ereport(WARNING,
			(errmsg("sessions that have not loaded the library \"hybridindex\" may fail once in INSERT ... ON CONFLICT"),
			 errdetail("Before PostgreSQL 18 this concerns ON CONFLICT DO NOTHING without a target, and any ON CONFLICT while index \"%s\" is being converted.",
					   conversion->name),
			 errhint("Add \"hybridindex\" to \"session_preload_libraries\" before, and have applications connect again. For background workers, of subscriptions for example, add it to \"shared_preload_libraries\".")));
}

#else

static void
warn_of_late_loading(const HybConversion *conversion)
{
}

#endif							/* HYB_ON_CONFLICT_NEEDS_BTREE */

void
hyb_conversion_tell(const HybConversion *conversion)
{
	ListCell   *lc;

	/* it may have been replaced while we waited for the lock */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(conversion->index)))
		return;
	foreach(lc, find_all_inheritors(conversion->index, NoLock, NULL))
		tell_leftovers_of(get_rel_name(lfirst_oid(lc)),
						  IndexGetRelation(lfirst_oid(lc), false));
	if (conversion->parts != NIL)
		warn_of_late_loading(conversion);
}
