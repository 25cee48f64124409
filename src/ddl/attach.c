/*
 * attach.c
 *		Converts indexes of partitions that are to be attached to an index of the
 *		other access method.
 *
 * The server attaches indexes of the same access method only (CompareIndexInfo,
 * catalog/index.c) and else makes new ones.  Those cost as much again, and a table
 * can have one primary key only.
 *
 * Locks: a partition's index is looked at without keeping a lock, and again under
 * the lock of the conversion.  The server locks partitions after us, as strongly as
 * the statement needs.  A lock kept until then could deadlock with a transaction
 * that has read a partition and goes on to write to it.
 */
#include "base/compat.h"

#include "catalog/partition.h"
#include "ddl/convert.h"
#include "ddl/match.h"
#include "ddl/statement.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_utilcmd.h"

/* Returns the first index of the access method that matches and is not attached. */
static Oid
find_match(Relation table, Oid access_method, const HybDefinition *above)
{
	Oid			result = InvalidOid;
	ListCell   *lc;

	Assert(CheckRelationLockedByMe(table, AccessShareLock, true));
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;

		if (!hyb_index_is_of(lfirst_oid(lc), access_method))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		if (!index->rd_rel->relispartition && index->rd_index->indisvalid &&
			hyb_matches(index, table, above))
			result = lfirst_oid(lc);
		index_close(index, AccessShareLock);
		if (OidIsValid(result))
			break;
	}
	return result;
}

/* Returns btree for hybrid, hybrid for btree, else InvalidOid. */
static Oid
other_method(Oid access_method)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);

	return access_method == hybrid ? BTREE_AM_OID :
		access_method == BTREE_AM_OID ? hybrid : InvalidOid;
}

/*
 * Returns the index of a partition that the server attaches only if it is converted;
 * InvalidOid if there is none, or one that it attaches as it is.
 */
static Oid
to_convert(Relation table, const HybDefinition *above)
{
	Oid			other = other_method(above->info->ii_Am);
	Oid			index = OidIsValid(other) ?
		find_match(table, other, above) : InvalidOid;

	return OidIsValid(index) &&
		!OidIsValid(find_match(table, above->info->ii_Am, above)) ?
		index : InvalidOid;
}

/* Acts as the owner of the partition, since the server, too, makes its index. */
static void
convert_to_attach(Oid index, Oid access_method)
{
	HybCaller	caller;

	ereport(NOTICE,
			(errmsg("index \"%s\" becomes one of access method \"%s\"",
					get_rel_name(index), get_am_name(access_method)),
			 errdetail("It is attached to an index of that access method.")));
	hyb_become_owner(&caller, hyb_owner_of(index));
	hyb_convert_now(index, access_method, NULL, false);
	hyb_become_caller(&caller);
}

/* Returns true if the parent has an index that the server attaches this one to. */
static bool
is_wanted_as_it_is(Relation table, Oid indexoid, Relation parent)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	bool		found = false;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(parent))
	{
		Relation	above;
		HybDefinition definition;

		if (found || !hyb_index_is_of(lfirst_oid(lc), index->rd_rel->relam))
			continue;
		above = index_open(lfirst_oid(lc), AccessShareLock);
		definition = hyb_definition_of(above);
		found = hyb_matches(index, table, &definition);
		index_close(above, NoLock);
	}
	index_close(index, AccessShareLock);
	return found;
}

/* Converts the indexes of a table that is to become a partition of the parent. */
static void
attach_indexes_of(Oid tableoid, Oid parentoid)
{
	Relation	parent = relation_open(parentoid, NoLock);
	List	   *indexes = list_copy(RelationGetIndexList(parent));
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	above = index_open(lfirst_oid(lc), AccessShareLock);
		HybDefinition definition = hyb_definition_of(above);
		Relation	table = relation_open(tableoid, NoLock);
		Oid			index = to_convert(table, &definition);

		Assert(CheckRelationLockedByMe(table, AccessExclusiveLock, true));
		if (OidIsValid(index) && is_wanted_as_it_is(table, index, parent))
			index = InvalidOid;
		relation_close(table, NoLock);
		index_close(above, NoLock);
		if (OidIsValid(index))
			convert_to_attach(index, definition.info->ii_Am);
	}
	relation_close(parent, NoLock);
}

/* ALTER TABLE ... ATTACH PARTITION */
static void
before_attach_table(Oid relid, const RangeVar *name)
{
	Oid			partition = RangeVarGetRelidExtended(name, AccessExclusiveLock,
													 RVR_MISSING_OK,
													 RangeVarCallbackOwnsRelation,
													 NULL);
	ListCell   *lc;

	if (!OidIsValid(partition))
		return;
	attach_indexes_of(partition, relid);
	if (get_rel_relkind(partition) != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, find_all_inheritors(partition, AccessExclusiveLock, NULL))
		if (lfirst_oid(lc) != partition)
		attach_indexes_of(lfirst_oid(lc), relid);
}

/* The same for a partition, which this locks. */
static Oid
to_convert_below(Oid partition, LOCKMODE lockmode, const HybDefinition *above)
{
	Relation	table = try_relation_open(partition, lockmode);
	Oid			index = InvalidOid;

	if (table == NULL)
		return InvalidOid;
	if (list_member_oid(get_partition_ancestors(partition), above->table))
		index = to_convert(table, above);
	relation_close(table, lockmode == AccessShareLock ? lockmode : NoLock);
	return index;
}

/* Converts what a new index of the partitioned table is to attach. */
static void
attach_above(const HybDefinition *above)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(above->table, NoLock, NULL))
	{
		Oid			index;

		if (lfirst_oid(lc) == above->table ||
			!OidIsValid(to_convert_below(lfirst_oid(lc), AccessShareLock, above)))
			continue;
		index = to_convert_below(lfirst_oid(lc), ShareRowExclusiveLock, above);
		if (OidIsValid(index))
			convert_to_attach(index, above->info->ii_Am);
	}
}

/* Adds column `i`; returns false if the server refuses it. */
static bool
define_column(HybDefinition *definition, int i, const IndexElem *element)
{
	Node	   *expression = element->expr;
	AttrNumber	attnum = element->name == NULL ? InvalidAttrNumber :
		get_attnum(definition->table, element->name);
	Oid			type;
	Oid			collation;
	int32		typmod;
	Oid			class;

	if (element->name != NULL)
	{
		if (attnum == InvalidAttrNumber)
			return false;
		get_atttypetypmodcoll(definition->table, attnum, &type, &typmod,
							  &collation);
	}
	else
	{
		type = exprType(expression);
		collation = exprCollation(expression);
		while (IsA(expression, CollateExpr))
			expression = (Node *) ((CollateExpr *) expression)->arg;
		if (IsA(expression, Var) &&
			((Var *) expression)->varattno != InvalidAttrNumber)
			attnum = ((Var *) expression)->varattno;
		else
			definition->info->ii_Expressions =
				lappend(definition->info->ii_Expressions, expression);
	}
	definition->info->ii_IndexAttrNumbers[i] = attnum;
	if (i >= definition->info->ii_NumIndexKeyAttrs)
		return true;
	if (element->collation != NIL)
		collation = get_collation_oid(element->collation, true);
	class = element->opclass == NIL ?
		GetDefaultOpClass(type, definition->info->ii_Am) :
		get_opclass_oid(definition->info->ii_Am, element->opclass, true);
	definition->collations[i] = collation;
	definition->families[i] = OidIsValid(class) ?
		get_opclass_family(class) : InvalidOid;
	return OidIsValid(class);
}

/* As BuildIndexInfo; runs functions of the owner. */
static void
simplify(HybDefinition *definition, Node *predicate)
{
	IndexInfo  *info = definition->info;
	HybCaller	caller;

	hyb_become_owner(&caller, hyb_owner_of(definition->table));
	info->ii_Expressions = (List *)
		eval_const_expressions(NULL, (Node *) info->ii_Expressions);
	predicate = eval_const_expressions(NULL, predicate);
	hyb_become_caller(&caller);
	info->ii_Predicate =
		make_ands_implicit(canonicalize_qual((Expr *) predicate, false));
	fix_opfuncids((Node *) info->ii_Expressions);
	fix_opfuncids((Node *) info->ii_Predicate);
}

/*
 * As DefineIndex (commands/indexcmds.c); returns false if that refuses it.  It could
 * do this in a subtransaction that is rolled back, but that leaves its mark: the table
 * is said to have had an index.
 */
static bool
define(HybDefinition *definition, IndexStmt *stmt, Oid relid, const char *source)
{
	IndexStmt  *analyzed = transformIndexStmt(relid, copyObject(stmt),
											  source ? source : "");
	List	   *columns = list_concat_copy(analyzed->indexParams,
										   analyzed->indexIncludingParams);
	int			natts = list_length(columns);
	Oid			access_method = get_index_am_oid(stmt->accessMethod, true);

	if (natts > INDEX_MAX_KEYS || !OidIsValid(other_method(access_method)))
		return false;
	definition->table = relid;
	definition->is_constraint = stmt->isconstraint;
	definition->collations = palloc0(sizeof(Oid) * natts);
	definition->families = palloc0(sizeof(Oid) * natts);
	definition->info = makeNode(IndexInfo);
	definition->info->ii_NumIndexAttrs = natts;
	definition->info->ii_NumIndexKeyAttrs = list_length(analyzed->indexParams);
	definition->info->ii_Unique = stmt->unique;
	definition->info->ii_NullsNotDistinct = stmt->nulls_not_distinct;
	definition->info->ii_Am = access_method;
	for (int i = 0; i < natts; i++)
		if (!define_column(definition, i, list_nth(columns, i)))
			return false;
	simplify(definition, analyzed->whereClause);
	return true;
}

/* Returns true if IF NOT EXISTS finds a relation of that name. */
static bool
exists(const IndexStmt *stmt, Oid relid)
{
	return stmt->if_not_exists && stmt->idxname != NULL &&
		OidIsValid(get_relname_relid(stmt->idxname,
									 get_rel_namespace(relid)));
}

void
hyb_attach_index_above(IndexStmt *stmt, const char *source)
{
	HybDefinition definition;
	Oid			relid;

	if (!stmt->relation->inh || stmt->concurrent || stmt->excludeOpNames != NIL)
		return;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(relid) ||
		get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	relid = RangeVarGetRelidExtended(stmt->relation, ShareLock, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	if (!exists(stmt, relid) && define(&definition, stmt, relid, source))
		attach_above(&definition);
}

/* Returns the statement of the index of a constraint of ALTER TABLE. */
static IndexStmt *
constraint_index(RangeVar *table, const Constraint *constraint)
{
	IndexStmt  *stmt = makeNode(IndexStmt);
	ListCell   *lc;

	stmt->relation = table;
	stmt->accessMethod = constraint->access_method != NULL ?
		constraint->access_method : DEFAULT_INDEX_TYPE;
	stmt->unique = true;
	stmt->isconstraint = true;
	stmt->nulls_not_distinct = constraint->nulls_not_distinct;
	stmt->transformed = true;
	foreach(lc, list_concat_copy(constraint->keys, constraint->including))
	{
		IndexElem  *element = makeNode(IndexElem);

		element->name = strVal(lfirst(lc));
		if (list_length(stmt->indexParams) < list_length(constraint->keys))
			stmt->indexParams = lappend(stmt->indexParams, element);
		else
			stmt->indexIncludingParams =
				lappend(stmt->indexIncludingParams, element);
	}
	return stmt;
}

void
hyb_attach_constraints_above(const AlterTableStmt *stmt, Oid relid)
{
	ListCell   *lc;

	if (!stmt->relation->inh ||
		get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Constraint *constraint;
		HybDefinition definition;

		if (cmd->subtype != AT_AddConstraint)
			continue;
		constraint = castNode(Constraint, cmd->def);
		if ((constraint->contype == CONSTR_PRIMARY ||
			 constraint->contype == CONSTR_UNIQUE) &&
			constraint->indexname == NULL && !HYB_WITHOUT_OVERLAPS(constraint) &&
			define(&definition, constraint_index(stmt->relation, constraint),
				   relid, NULL))
			attach_above(&definition);
	}
}

/*
 * ALTER INDEX ... ATTACH PARTITION: the index becomes one of access method `to`, as
 * the parent.  The caller owns the parent; like the server we ask for no more if the
 * index is one of a partition, which catalogs tell before anything is locked.  The
 * server reports what is wrong.
 */
static void
before_attach_index(Oid parentoid, const RangeVar *name, Oid to)
{
	Oid			parent_tableoid = IndexGetRelation(parentoid, true);
	Oid			indexoid = RangeVarGetRelid(name, NoLock, true);
	Oid			tableoid = IndexGetRelation(indexoid, true);
	Oid			from = other_method(to);
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

	/* in the order, and with the locks, of the conversion */
	parent_table = relation_open(parent_tableoid, AccessShareLock);
	table = try_relation_open(tableoid, ShareRowExclusiveLock);
	if (table != NULL)
		index = try_relation_open(indexoid, ShareUpdateExclusiveLock);
	if (index != NULL && index->rd_rel->relam == from &&
		list_member_oid(find_inheritance_children(parent_tableoid, NoLock),
						tableoid))
	{
		Relation	parent = relation_open(parentoid, NoLock);

		HybDefinition above = hyb_definition_of(parent);

		match = !OidIsValid(index_get_partition(table, parentoid)) &&
			hyb_matches(index, table, &above);
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
		before_attach_table(relid, name);
	else if (kind == RELKIND_PARTITIONED_INDEX && hyb_index_is_of(relid, hybrid))
		before_attach_index(relid, name, hybrid);
	else if (kind == RELKIND_PARTITIONED_INDEX &&
			 hyb_index_is_of(relid, BTREE_AM_OID))
		before_attach_index(relid, name, BTREE_AM_OID);
}
