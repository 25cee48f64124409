/*
 * match.c
 *		Indexes of partitions and children that are like an index above them.
 *
 * The server links a partition's index to that of the partitioned table.  Nothing
 * links those of inheritance children: they are found by their definition.
 */
#include "base/compat.h"

#include "access/attmap.h"
#include "ddl/match.h"
#include "utils/fmgroids.h"

/* Returns the operator families that the index would have. */
static Oid *
families_of(Relation index, Oid access_method)
{
	int			nkeys = index->rd_index->indnkeyatts;
	oidvector  *classes;
	Oid		   *families;

	if (index->rd_rel->relam == access_method)
		return index->rd_opfamily;
	classes = hyb_index_classes(index);
	families = palloc(sizeof(Oid) * nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		Oid			class = hyb_twin_class(classes->values[i], access_method);

		families[i] = OidIsValid(class) ? get_opclass_family(class) : InvalidOid;
	}
	return families;
}

/* Runs functions of expressions and predicates as the owner. */
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

HybDefinition
hyb_definition_of(Relation index)
{
	HybDefinition definition;

	definition.info = index_info(index);
	definition.collations = index->rd_indcollation;
	definition.families = index->rd_opfamily;
	definition.table = index->rd_index->indrelid;
	definition.is_constraint =
		OidIsValid(get_index_constraint(RelationGetRelid(index)));
	return definition;
}

/* Returns true if the table has the columns of the parent, with their types. */
static bool
has_columns_of(TupleDesc table, TupleDesc parent)
{
	for (int i = 0; i < parent->natts; i++)
	{
		Form_pg_attribute wanted = TupleDescAttr(parent, i);
		bool		found = wanted->attisdropped;

		for (int j = 0; j < table->natts && !found; j++)
		{
			Form_pg_attribute column = TupleDescAttr(table, j);

			found = !column->attisdropped &&
				strcmp(NameStr(column->attname), NameStr(wanted->attname)) == 0 &&
				column->atttypid == wanted->atttypid &&
				column->atttypmod == wanted->atttypmod;
		}
		if (!found)
			return false;
	}
	return true;
}

bool
hyb_matches(Relation index, Relation table, const HybDefinition *above)
{
	Relation	parent = relation_open(above->table, NoLock);
	bool		result = false;

	if (has_columns_of(RelationGetDescr(table), RelationGetDescr(parent)) &&
		(!above->is_constraint ||
		 OidIsValid(get_index_constraint(RelationGetRelid(index)))))
	{
		IndexInfo  *info = index_info(index);

		info->ii_Am = above->info->ii_Am;
		result = CompareIndexInfo(info, above->info, index->rd_indcollation,
								  above->collations,
								  families_of(index, info->ii_Am),
								  above->families,
								  HYB_ATTRMAP_BY_NAME(RelationGetDescr(table),
													  RelationGetDescr(parent)));
	}
	relation_close(parent, NoLock);
	return result;
}

/* ---- inheritance children ---- */

bool
hyb_goes_with(Oid child, Oid parent)
{
	return hyb_owner_of(child) == hyb_owner_of(parent) &&
		(get_rel_persistence(child) != RELPERSISTENCE_TEMP ||
		 get_rel_persistence(parent) == RELPERSISTENCE_TEMP);
}

/*
 * Returns true if the index of the table corresponds to the one above.  What an
 * interrupted conversion has left, here or there, is invalid.
 */
static bool
corresponds(Relation index, Relation table, Relation above)
{
	HybDefinition definition = hyb_definition_of(above);

	return index->rd_index->indisvalid && above->rd_index->indisvalid &&
		index->rd_rel->relowner == above->rd_rel->relowner &&
		index->rd_index->indisprimary == above->rd_index->indisprimary &&
		OidIsValid(get_index_constraint(RelationGetRelid(index))) ==
		definition.is_constraint &&
		hyb_matches(index, table, &definition) &&
		memcmp(index->rd_indoption, above->rd_indoption,
			   sizeof(int16) * above->rd_index->indnkeyatts) == 0;
}

/* Returns the table's index that corresponds to the one above. */
static Oid
index_below(Oid relid, Relation above)
{
	Relation	table = relation_open(relid, NoLock);
	Oid			result = InvalidOid;
	ListCell   *lc;

	Assert(CheckRelationLockedByMe(table, ShareUpdateExclusiveLock, true));
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;

		if (OidIsValid(result) ||
			!hyb_index_is_of(lfirst_oid(lc), above->rd_rel->relam))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		if (corresponds(index, table, above))
			result = lfirst_oid(lc);
		index_close(index, AccessShareLock);
	}
	relation_close(table, NoLock);
	return result;
}

List *
hyb_indexes_below(Oid indexoid, const List *tables)
{
	Relation	above = index_open(indexoid, AccessShareLock);
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, above->rd_rel->relkind == RELKIND_INDEX ? tables : NIL)
	{
		Oid			index = lfirst_oid(lc) == above->rd_index->indrelid ?
			InvalidOid : index_below(lfirst_oid(lc), above);

		if (OidIsValid(index))
			indexes = lappend_oid(indexes, index);
	}
	index_close(above, AccessShareLock);
	return indexes;
}

/* Returns the parents whose indexes those of the table go with. */
static List *
parents_of(Oid relid)
{
	Relation	pg_inherits = table_open(InheritsRelationId, AccessShareLock);
	List	   *parents = NIL;
	ListCell   *lc;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
		parents = lappend_oid(parents, ((Form_pg_inherits) GETSTRUCT(row))->inhparent);
	systable_endscan(scan);
	table_close(pg_inherits, AccessShareLock);
	foreach(lc, parents)
		if (!hyb_goes_with(relid, lfirst_oid(lc)))
		parents = foreach_delete_current(parents, lc);
	return parents;
}

/* Returns the parent's index that the one of the table corresponds to. */
static Oid
index_of_parent(Relation index, Relation table, Oid parent, Oid access_method)
{
	Relation	above_table = try_relation_open(parent, AccessShareLock);
	Oid			result = InvalidOid;
	ListCell   *lc;

	if (above_table == NULL)
		return InvalidOid;
	foreach(lc, RelationGetIndexList(above_table))
	{
		Relation	above;

		if (OidIsValid(result) || !hyb_index_is_of(lfirst_oid(lc), access_method))
			continue;
		above = index_open(lfirst_oid(lc), AccessShareLock);
		if (corresponds(index, table, above))
			result = lfirst_oid(lc);
		index_close(above, AccessShareLock);
	}
	relation_close(above_table, AccessShareLock);
	return result;
}

Oid
hyb_index_above(Oid indexoid, Oid access_method)
{
	Oid			relid = IndexGetRelation(indexoid, true);
	List	   *parents = get_rel_relispartition(relid) ? NIL : parents_of(relid);
	Relation	table = parents == NIL ? NULL :
		try_relation_open(relid, AccessShareLock);
	Relation	index = table == NULL ? NULL :
		try_relation_open(indexoid, AccessShareLock);
	Oid			result = InvalidOid;
	ListCell   *lc;

	foreach(lc, index == NULL ? NIL : parents)
		if (!OidIsValid(result))
		result = index_of_parent(index, table, lfirst_oid(lc), access_method);
	if (index != NULL)
		relation_close(index, AccessShareLock);
	if (table != NULL)
		relation_close(table, AccessShareLock);
	return result;
}

/* Returns true for the index of such a constraint. */
static bool
has_columns(Oid indexoid, bool primary, List *keys, List *included)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	List	   *names = list_concat_copy(keys, included);
	Form_pg_index form;
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	same = form->indisunique && form->indisprimary == primary &&
		form->indnkeyatts == list_length(keys) &&
		form->indnatts == list_length(names);
	for (int i = 0; same && i < form->indnatts; i++)
		same = get_attnum(form->indrelid, strVal(list_nth(names, i))) ==
			form->indkey.values[i];
	ReleaseSysCache(tuple);
	return same;
}

Oid
hyb_constraint_index_above(Oid relid, bool primary, List *keys, List *included)
{
	ListCell   *lc;
	ListCell   *row;

	foreach(lc, parents_of(relid))
		foreach(row, hyb_index_rows(Anum_pg_index_indrelid, lfirst_oid(lc), NULL))
	{
		Oid			index = ((Form_pg_index) lfirst(row))->indexrelid;

		if (has_columns(index, primary, keys, included) &&
			OidIsValid(get_index_constraint(index)))
			return index;
	}
	return InvalidOid;
}
