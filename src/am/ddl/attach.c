/*
 * attach.c
 *		Unique indexes of partitions that are to be attached to one of the
 *		partitioned table get the access method of that.
 *
 * The server attaches only indexes of the same access method
 * (CompareIndexInfo, catalog/index.c), and makes new ones where there are none:
 * but a table has one primary key only, and before PostgreSQL 18 partitioned
 * tables have btree ones.
 */
#include "compat.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "am/ddl/attach.h"
#include "am/ddl/convert.h"
#include "am/ddl/owner.h"
#include "am/ddl/twin.h"
#include "am/index_method.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "merge/as_owner.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * A unique index that stands for all rows and for columns.  Expressions are not
 * looked at: simplifying them would run their owner's functions as this user.
 */
bool
hyb_index_is_plain_unique(Relation index)
{
	HeapTuple	tuple = index->rd_indextuple;

	return index->rd_index->indisunique && index->rd_index->indisvalid &&
		heap_attisnull(tuple, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
}

/* The names (String) of the key columns of an index; NIL if one is none. */
static List *
column_names(Relation index)
{
	List	   *names = NIL;

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		char	   *name = get_attname(index->rd_index->indrelid,
									   index->rd_index->indkey.values[i], true);

		if (name == NULL)
			return NIL;
		names = lappend(names, makeString(name));
	}
	return names;
}

/*
 * Has the index, which is of a partition, these key columns, and does it belong
 * to a constraint, if only such can be attached?
 */
static bool
can_attach(Relation index, List *names, bool to_constraint)
{
	return hyb_index_is_plain_unique(index) &&
		(!to_constraint ||
		 OidIsValid(get_index_constraint(RelationGetRelid(index)))) &&
		names != NIL && equal(column_names(index), names);
}

/*
 * Whoever makes an index of a partitioned table makes those of partitions, to
 * whomever they belong.
 */
static void
convert_to_attach(Oid index, Oid access_method)
{
	HybCaller	caller;

	ereport(NOTICE,
			(errmsg("index \"%s\" becomes one of access method \"%s\"",
					get_rel_name(index), get_am_name(access_method)),
			 errdetail("It is attached to an index of that access method.")));
	hyb_become_owner(&caller, hyb_owner_of(index));
	hyb_convert_now(index, access_method);
	hyb_become_caller(&caller);
}

static bool
is_owned(Oid relid, const void *arg)
{
	return hyb_owns(relid);
}

/*
 * ALTER TABLE ... ATTACH PARTITION: unique indexes of the partition that have a
 * counterpart of the other access method only become like that.
 */
static void
before_attach_table(Oid relid, const RangeVar *name, Oid hybrid)
{
	Oid			partition = hyb_lock_allowed(name, AccessExclusiveLock,
											 is_owned, NULL);
	Relation	parent;
	Relation	table;
	List	   *found = NIL;
	ListCell   *of_table;
	ListCell   *of_parent;

	if (!OidIsValid(partition))
		return;
	parent = relation_open(relid, NoLock);
	table = relation_open(partition, NoLock);
	foreach(of_table, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(of_table), AccessShareLock);
		Oid			other = index->rd_rel->relam == hybrid ? BTREE_AM_OID :
			index->rd_rel->relam == BTREE_AM_OID ? hybrid : InvalidOid;
		bool		wanted = false;
		bool		fits = !hyb_index_is_plain_unique(index);

		foreach(of_parent, RelationGetIndexList(parent))
		{
			Relation	above = index_open(lfirst_oid(of_parent),
										   AccessShareLock);

			if (above->rd_index->indisunique &&
				can_attach(index, column_names(above),
						   OidIsValid(get_index_constraint(RelationGetRelid(above)))))
			{
				wanted |= above->rd_rel->relam == other;
				fits |= above->rd_rel->relam == index->rd_rel->relam;
			}
			index_close(above, NoLock);
		}
		if (wanted && !fits)
			found = lappend_oid(found, lfirst_oid(of_table));
		index_close(index, NoLock);
	}
	relation_close(table, NoLock);
	relation_close(parent, NoLock);
	foreach(of_table, found)
		convert_to_attach(lfirst_oid(of_table),
						  hyb_index_is_of(lfirst_oid(of_table), hybrid) ? BTREE_AM_OID : hybrid);
}

/*
 * Indexes of the access method `am` of a partition that a new index of these
 * columns could have attached, were they of its access method.  A lock that is
 * stronger than AccessShareLock is kept.
 */
static List *
indexes_to_attach(Oid partition, LOCKMODE lockmode, Oid am, List *columns,
				  bool to_constraint)
{
	Relation	table = try_relation_open(partition, lockmode);
	List	   *found = NIL;
	ListCell   *lc;

	if (table == NULL)
		return NIL;
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;

		if (!hyb_index_is_of(lfirst_oid(lc), am))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		if (!index->rd_rel->relispartition &&
			can_attach(index, columns, to_constraint))
			found = lappend_oid(found, lfirst_oid(lc));
		index_close(index, AccessShareLock);
	}
	relation_close(table, lockmode == AccessShareLock ? lockmode : NoLock);
	return found;
}

/*
 * `to_constraint`: the new index is that of a constraint.
 *
 * The server locks the partitions afterwards, as strongly as the statement needs.
 * A lock that we kept until then would make a deadlock with a transaction that has
 * read a partition and goes on to write to it.  So we look without keeping one,
 * and look again under that of the conversion where there is something to convert.
 */
static void
attach_unique_above(Oid relid, List *columns, bool is_hybrid,
					bool to_constraint)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);
	Oid			am = is_hybrid ? hybrid : BTREE_AM_OID;
	Oid			other = is_hybrid ? BTREE_AM_OID : hybrid;
	ListCell   *lc;

	if (!OidIsValid(hybrid) ||
		get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		Oid			partition = lfirst_oid(lc);
		ListCell   *of_found;

		if (partition == relid ||
			indexes_to_attach(partition, AccessShareLock, other, columns,
							  to_constraint) == NIL)
			continue;
		foreach(of_found, indexes_to_attach(partition, ShareRowExclusiveLock,
											other, columns, to_constraint))
			convert_to_attach(lfirst_oid(of_found), am);
	}
}

void
hyb_attach_index_above(const IndexStmt *stmt)
{
	List	   *columns = NIL;
	Oid			relid;
	ListCell   *lc;

	if (!stmt->unique || !stmt->relation->inh || stmt->whereClause != NULL)
		return;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(relid) ||
		get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, stmt->indexParams)
	{
		char	   *name = lfirst_node(IndexElem, lc)->name;

		if (name == NULL)
			return;
		columns = lappend(columns, makeString(name));
	}
	relid = RangeVarGetRelidExtended(stmt->relation, ShareLock, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	attach_unique_above(relid, columns,
						strcmp(stmt->accessMethod, "hybrid") == 0,
						stmt->isconstraint);
}

void
hyb_attach_constraints_above(const AlterTableStmt *stmt, Oid relid)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Constraint *constraint;

		if (cmd->subtype != AT_AddConstraint || !stmt->relation->inh)
			continue;
		constraint = castNode(Constraint, cmd->def);
		if ((constraint->contype == CONSTR_PRIMARY ||
			 constraint->contype == CONSTR_UNIQUE) &&
			constraint->indexname == NULL && !HYB_WITHOUT_OVERLAPS(constraint))
			attach_unique_above(relid, constraint->keys,
								constraint->access_method != NULL &&
								strcmp(constraint->access_method, "hybrid") == 0,
								true);
	}
}

/* Operator families that the index would have, of another access method. */
static Oid *
families_of(Relation index, Oid access_method)
{
	int			nkeys = index->rd_index->indnkeyatts;
	oidvector  *classes = (oidvector *)
		DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID,
											   index->rd_indextuple,
											   Anum_pg_index_indclass));
	Oid		   *families = palloc(sizeof(Oid) * nkeys);

	for (int i = 0; i < nkeys; i++)
	{
		Oid			class = hyb_twin_class(classes->values[i], access_method);

		families[i] = OidIsValid(class) ? get_opclass_family(class) : InvalidOid;
	}
	return families;
}

/* Simplifying expressions and predicates runs functions: as the owner. */
static IndexInfo *
index_info(Relation index)
{
	HybCaller	caller;
	IndexInfo  *info;

	hyb_become_owner(&caller, index->rd_rel->relowner);
	info = BuildIndexInfo(index);
	hyb_become_caller(&caller);
	return info;
}

/*
 * Would the server attach the index, were it of the access method of the other
 * one?  As ATExecAttachPartitionIdx (commands/tablecmds.c), by its comparison.
 */
static bool
matches(Relation index, Relation table, Relation parent, Relation parent_table)
{
	IndexInfo  *info;
	IndexInfo  *parent_info;

	if (OidIsValid(index_get_partition(table, RelationGetRelid(parent))) ||
		(OidIsValid(get_index_constraint(RelationGetRelid(parent))) &&
		 !OidIsValid(get_index_constraint(RelationGetRelid(index)))))
		return false;
	info = index_info(index);
	parent_info = index_info(parent);
	info->ii_Am = parent_info->ii_Am;
	return CompareIndexInfo(info, parent_info, index->rd_indcollation,
							parent->rd_indcollation,
							families_of(index, parent_info->ii_Am),
							parent->rd_opfamily,
							HYB_ATTRMAP_BY_NAME(RelationGetDescr(table),
												RelationGetDescr(parent_table)));
}

/*
 * ALTER INDEX ... ATTACH PARTITION: an index of the access method `from` becomes
 * one of `to`, which the index of the partitioned table is of.  The caller owns
 * the latter.  That is enough for an index of a partition, as for the server, and
 * for no other: the catalogs tell which it is before anything is locked.  The
 * server reports what is wrong.
 */
static void
before_attach_index(Oid parentoid, const RangeVar *name, Oid from, Oid to)
{
	Oid			parent_tableoid = IndexGetRelation(parentoid, true);
	Oid			indexoid = RangeVarGetRelid(name, NoLock, true);
	Oid			tableoid = IndexGetRelation(indexoid, true);
	Relation	parent_table;
	Relation	table;
	Relation	index = NULL;
	bool		match = false;

	if (!OidIsValid(tableoid) || !OidIsValid(parent_tableoid) ||
		!hyb_index_is_of(indexoid, from) ||
		get_rel_relispartition(indexoid) ||
		!list_member_oid(find_inheritance_children(parent_tableoid, NoLock),
						 tableoid))
		return;

	/*
	 * tables before indexes, and with the locks that the conversion begins
	 * with
	 */
	parent_table = relation_open(parent_tableoid, AccessShareLock);
	table = try_relation_open(tableoid, ShareRowExclusiveLock);
	if (table != NULL)
		index = try_relation_open(indexoid, ShareUpdateExclusiveLock);
	if (index != NULL && index->rd_rel->relam == from &&
		list_member_oid(find_inheritance_children(parent_tableoid, NoLock),
						tableoid))
	{
		Relation	parent = relation_open(parentoid, NoLock);

		match = matches(index, table, parent, parent_table);
		relation_close(parent, NoLock);
	}
	if (index != NULL)
		relation_close(index, NoLock);
	if (table != NULL)
		relation_close(table, NoLock);
	relation_close(parent_table, NoLock);
	if (match)
		convert_to_attach(indexoid, to);
}

void
hyb_attach_before(Oid relid, const RangeVar *name, Oid hybrid)
{
	char		kind = get_rel_relkind(relid);

	if (kind == RELKIND_PARTITIONED_TABLE)
		before_attach_table(relid, name, hybrid);
	else if (kind == RELKIND_PARTITIONED_INDEX && hyb_index_is_of(relid, hybrid))
		before_attach_index(relid, name, BTREE_AM_OID, hybrid);
	else if (kind == RELKIND_PARTITIONED_INDEX && hyb_index_is_of(relid, BTREE_AM_OID))
		before_attach_index(relid, name, hybrid, BTREE_AM_OID);
}
