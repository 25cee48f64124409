/*
 * ddl_before_18.c
 *		DDL that takes btree indexes only before PostgreSQL 18.
 *
 * Foreign keys and REFRESH MATERIALIZED VIEW CONCURRENTLY look for btree indexes,
 * but never into them: a stand-in takes the place of the hybrid index meanwhile.
 * Unique indexes of partitioned tables, and on 17 those that a subscriber looks for
 * rows by, stay btree.  So do those that ALTER TABLE makes together with a foreign key
 * that references them, for nothing can stand in for an index that is still to come.
 *
 * Locks: a referenced table is locked as the statement will lock it, and only if
 * the caller may reference its columns.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_subscription_rel.h"
#include "server/before_18/ddl_before_18.h"
#include "utils/guc.h"

/* ---- what cannot be hybrid ---- */

/* Returns true if a subscription writes to the table, or to one above it. */
static bool
has_subscription(Oid table)
{
	List	   *tables = list_make1_oid(table);
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(rel, 0, NULL);
	HeapTuple	tuple;
	bool		found = false;

	if (get_rel_relispartition(table))
		tables = list_concat(tables, get_partition_ancestors(table));
	while (!found &&
		   (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		found = list_member_oid(tables,
								((Form_pg_subscription_rel) GETSTRUCT(tuple))->srrelid);
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

char *
hyb_before_18_needs_btree(Oid relid, bool unique, bool primary)
{
	if (HYB_SUBSCRIBER_NEEDS_BTREE && primary && has_subscription(relid))
		return _("Subscribers of this PostgreSQL version cannot find the rows to change through a hybrid primary key.");
	if (HYB_BEFORE_18 && unique && get_rel_relispartition(relid))
		return _("Before PostgreSQL 18, unique indexes of the partitioned table, to which it may be attached, can be of access method \"btree\" only.");
	if (HYB_BEFORE_18 && unique &&
		get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		return _("Before PostgreSQL 18, unique indexes of partitioned tables can be of access method \"btree\" only.");
	return NULL;
}

/* Returns true if a subscriber looks for rows by the primary key. */
static bool
identity_is_key(Relation index)
{
	Relation	table = table_open(index->rd_index->indrelid, NoLock);
	Oid			identity = RelationGetReplicaIndex(table);

	table_close(table, NoLock);
	return !OidIsValid(identity) || identity == RelationGetRelid(index);
}

bool
hyb_before_18_converts(Relation index, HybRefusal *refusal)
{
	Form_pg_index form = index->rd_index;
	char	   *name = RelationGetRelationName(index);

	if (HYB_BEFORE_18 && form->indisunique &&
		index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
	{
		refusal->message = psprintf(_("cannot convert unique index \"%s\" of a partitioned table"),
									name);
		refusal->detail = _("Before PostgreSQL 18, unique indexes of partitioned tables can be btree indexes only.");
		refusal->hint = _("Unique indexes of partitions that are attached to no index of the partitioned table can be hybrid ones.");
	}
	else if (HYB_SUBSCRIBER_NEEDS_BTREE && form->indisreplident)
	{
		refusal->message = psprintf(_("cannot convert index \"%s\", which is the replica identity of its table"),
									name);
		refusal->detail = _("A subscriber of this PostgreSQL version cannot find rows through a hybrid index.");
		refusal->hint = _("Use another index as replica identity, or REPLICA IDENTITY FULL.");
	}
	else if (HYB_SUBSCRIBER_NEEDS_BTREE && form->indisprimary &&
			 identity_is_key(index) && has_subscription(form->indrelid))
	{
		refusal->message = psprintf(_("cannot convert index \"%s\" of a table with a subscription"),
									name);
		refusal->detail = _("A subscriber of this PostgreSQL version cannot find rows through a hybrid index.");
		refusal->hint = _("Have another index be the replica identity of the table here.");
	}
	else
		return true;
	refusal->code = ERRCODE_FEATURE_NOT_SUPPORTED;
	return false;
}

/* Returns true if the setting names the library. */
static bool
preloads(const char *setting)
{
	return strstr(GetConfigOption(setting, false, false), "hybridindex") != NULL;
}

void
hyb_before_18_warn(const char *name)
{
	static TimestampTz told = 0;

	if (!HYB_BEFORE_18 || preloads("shared_preload_libraries") ||
		preloads("session_preload_libraries") ||
		preloads("local_preload_libraries") ||
		told == GetCurrentStatementStartTimestamp())
		return;
	told = GetCurrentStatementStartTimestamp();
	ereport(WARNING,
			(errmsg("sessions that have not loaded the library \"hybridindex\" may fail once in INSERT ... ON CONFLICT"),
			 errdetail("Before PostgreSQL 18 this concerns ON CONFLICT DO NOTHING without a target, and any ON CONFLICT while index \"%s\" is being converted.",
					   name),
			 errhint("Add \"hybridindex\" to \"session_preload_libraries\" before, and have applications connect again. For background workers, of subscriptions for example, add it to \"shared_preload_libraries\".")));
}

/* ---- foreign keys ---- */

/*
 * Returns true if the caller may make a foreign key that references these columns,
 * as the server's checkFkeyPermissions (commands/tablecmds.c).
 */
static bool
may_reference_columns(Oid relid, const List *attnums)
{
	ListCell   *lc;

	if (pg_class_aclcheck(relid, GetUserId(), ACL_REFERENCES) == ACLCHECK_OK)
		return true;
	foreach(lc, attnums)
		if (lfirst_int(lc) <= 0 ||
			pg_attribute_aclcheck(relid, lfirst_int(lc), GetUserId(),
								  ACL_REFERENCES) != ACLCHECK_OK)
		return false;
	return attnums != NIL;
}

static List *
primary_key_numbers(Oid relid)
{
	Oid			constraint;
	Bitmapset  *columns = get_primary_key_attnos(relid, false, &constraint);
	List	   *attnums = NIL;
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
		attnums = lappend_int(attnums,
							  column + FirstLowInvalidHeapAttributeNumber);
	return attnums;
}

/* For columns of these names, or for the primary key if there are none. */
static bool
may_reference(Oid relid, List *names)
{
	return may_reference_columns(relid, names != NIL ?
								 hyb_column_numbers(relid, names) :
								 primary_key_numbers(relid));
}

/*
 * Locks the table if the caller may reference these columns, before and after that.
 * Else returns InvalidOid without waiting, and leaves the error to the server.
 */
static Oid
lock_referenced(const RangeVar *name, List *columns)
{
	Oid			relid = RangeVarGetRelid(name, NoLock, true);

	if (!OidIsValid(relid) || !may_reference(relid, columns))
		return InvalidOid;
	LockRelationOid(relid, ShareRowExclusiveLock);
	if (RangeVarGetRelid(name, NoLock, true) == relid && may_reference(relid, columns))
		return relid;
	UnlockRelationOid(relid, ShareRowExclusiveLock);
	return InvalidOid;
}

/* Returns true if the key columns of the index are just these. */
static bool
has_just_columns(Relation index, List *attnums)
{
	int			nkeys = index->rd_index->indnkeyatts;

	for (int i = 0; i < nkeys; i++)
		if (!list_member_int(attnums, index->rd_index->indkey.values[i]))
			return false;
	return list_length(attnums) == nkeys;
}

void
hyb_before_18_foreign_key(HybStandIns *stand_ins, const Constraint *constraint,
						  Oid hybrid)
{
	Oid			relid;
	Relation	table;
	List	   *attnums;
	ListCell   *lc;

	if (!HYB_BEFORE_18 || constraint->pktable == NULL)
		return;
	relid = lock_referenced(constraint->pktable, constraint->pk_attrs);
	if (!OidIsValid(relid))
		return;
	table = relation_open(relid, NoLock);
	attnums = hyb_column_numbers(relid, constraint->pk_attrs);
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;
		bool		wanted;

		if (!hyb_index_is_of(lfirst_oid(lc), hybrid))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		wanted = hyb_index_is_plain_unique(index) &&
			(attnums == NIL ? index->rd_index->indisprimary :
			 has_just_columns(index, attnums));
		index_close(index, NoLock);
		if (wanted)
			hyb_stand_in_make(stand_ins, table, lfirst_oid(lc), false);
	}
	relation_close(table, NoLock);
}

char *
hyb_before_18_rebuilt(Relation index, List *attnums)
{
	Assert(!OidIsValid(get_index_constraint(RelationGetRelid(index))));
	if (!HYB_BEFORE_18 || !hyb_index_is_plain_unique(index) ||
		!hyb_index_has_column(index, attnums) ||
		get_index_ref_constraints(RelationGetRelid(index)) == NIL)
		return NULL;
	return _("Before PostgreSQL 18, a foreign key that ALTER TABLE makes again can reference a btree index only.");
}

/* Returns the index that a foreign key references. */
static Oid
referenced_index(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = ((Form_pg_constraint) GETSTRUCT(tuple))->conindid;
	ReleaseSysCache(tuple);
	return result;
}

/* Returns true if a column of the foreign key is changed, and the caller may. */
static bool
is_made_again(const ForeignKeyCacheInfo *key, List *attnums)
{
	List	   *referenced = NIL;
	bool		changes = false;

	for (int i = 0; i < key->nkeys; i++)
	{
		changes |= list_member_int(attnums, key->conkey[i]);
		referenced = lappend_int(referenced, key->confkey[i]);
	}
	return changes && may_reference_columns(key->confrelid, referenced);
}

/* Indexes that foreign keys of the table reference, where these are made again. */
static void
before_new_foreign_key(HybStandIns *stand_ins, Relation table, List *attnums,
					   Oid hybrid)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetFKeyList(table))
	{
		ForeignKeyCacheInfo *key = lfirst_node(ForeignKeyCacheInfo, lc);

		if (is_made_again(key, attnums))
			indexes = list_append_unique_oid(indexes,
											 referenced_index(key->conoid));
	}
	foreach(lc, indexes)
	{
		Oid			relid = OidIsValid(lfirst_oid(lc)) ?
			IndexGetRelation(lfirst_oid(lc), true) : InvalidOid;
		Relation	referenced;

		if (!OidIsValid(relid) || !hyb_index_is_of(lfirst_oid(lc), hybrid))
			continue;

		/* the lock with which the server drops the foreign key's triggers */
		referenced = table_open(relid, AccessExclusiveLock);
		hyb_stand_in_make(stand_ins, referenced, lfirst_oid(lc), false);
		table_close(referenced, NoLock);
	}
}

void
hyb_before_18_type_change(HybStandIns *stand_ins, List *relids, List *names,
						  Oid hybrid)
{
	ListCell   *lc;

	if (!HYB_BEFORE_18)
		return;
	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);

		before_new_foreign_key(stand_ins, table,
							   hyb_column_numbers(lfirst_oid(lc), names), hybrid);
		relation_close(table, NoLock);
	}
}

/* Returns true if the foreign key references the constraint, of these columns. */
static bool
is_referenced_by(const Constraint *key, Oid relid, const Constraint *constraint,
				 List *names)
{
	if (key->contype != CONSTR_FOREIGN || key->pktable == NULL ||
		RangeVarGetRelid(key->pktable, NoLock, true) != relid)
		return false;
	return key->pk_attrs == NIL ? constraint->contype == CONSTR_PRIMARY :
		list_difference(names, key->pk_attrs) == NIL &&
		list_difference(key->pk_attrs, names) == NIL;
}

char *
hyb_before_18_referenced(const AlterTableStmt *stmt, Oid relid,
						 const Constraint *constraint, List *names)
{
	ListCell   *lc;

	if (!HYB_BEFORE_18)
		return NULL;
	foreach(lc, hyb_added_constraints(stmt))
		if (is_referenced_by(lfirst_node(Constraint, lc), relid, constraint, names))
		return _("Before PostgreSQL 18, a foreign key of the same command can reference a btree index only.");
	return NULL;
}

/* ---- materialized views ---- */

/*
 * Returns the hybrid index that a refresh of the view can use; InvalidOid if a
 * btree index serves.  As ExecRefreshMatView (commands/matview.c), takes a
 * predicate that is always true for none.  To find out runs functions of the owner.
 */
static Oid
find_refresh_index(Relation view, Oid hybrid)
{
	Oid			found = InvalidOid;
	ListCell   *lc;

	Assert(CheckRelationLockedByMe(view, ExclusiveLock, true));
	foreach(lc, RelationGetIndexList(view))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		Oid			access_method = index->rd_rel->relam;
		bool		usable = index->rd_index->indisunique &&
			index->rd_index->indisvalid && index->rd_index->indimmediate &&
			RelationGetIndexExpressions(index) == NIL &&
			RelationGetIndexPredicate(index) == NIL;

		index_close(index, NoLock);
		if (usable && access_method == BTREE_AM_OID)
			return InvalidOid;
		if (usable && access_method == hybrid && !OidIsValid(found))
			found = lfirst_oid(lc);
	}
	return found;
}

void
hyb_before_18_refresh(HybStandIns *stand_ins, const RefreshMatViewStmt *stmt)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);
	HybCaller	caller;
	Oid			index;
	Relation	view;

	if (!HYB_BEFORE_18 || !stmt->concurrent || !OidIsValid(hybrid))
		return;
	view = relation_open(RangeVarGetRelidExtended(stmt->relation, ExclusiveLock,
												  0, HYB_MAY_REFRESH, NULL),
						 NoLock);
	if (view->rd_rel->relkind == RELKIND_MATVIEW)
	{
		hyb_become_owner(&caller, view->rd_rel->relowner);
		index = find_refresh_index(view, hybrid);
		if (OidIsValid(index))
			hyb_stand_in_make(stand_ins, view, index, true);
		hyb_become_caller(&caller);
	}
	relation_close(view, NoLock);
}
