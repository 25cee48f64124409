/*
 * convert_many.c
 *		Converts the indexes of a table or schema, one after the other.
 *
 * An index that cannot be converted is skipped.  An error ends all, as in
 * REINDEX SCHEMA: a full disk or a cancelled statement would meet the next
 * index as well, and what an error leaves is for the user to see.  What has
 * been converted stays so, and the next call goes on.  It skips an index of which
 * an invalid twin is left, for the error may be one of that index alone.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "base/access.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "ddl/convert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct ConvertCandidate
{
	Oid			index;
	uint64		blocks;
} ConvertCandidate;

/* 0 if the index is locked or gone: only an order goes by it. */
static uint64
blocks_of_one(Oid indexoid)
{
	Relation	index = hyb_try_open(indexoid, AccessShareLock, NULL);
	uint64		blocks = 0;

	if (index == NULL)
		return 0;
	if (index->rd_rel->relkind == RELKIND_INDEX)
		blocks = RelationGetNumberOfBlocks(index);
	relation_close(index, AccessShareLock);
	return blocks;
}

static uint64
blocks_with_partitions(Oid index)
{
	uint64		blocks = 0;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(index, NoLock, NULL))
		blocks += blocks_of_one(lfirst_oid(lc));
	return blocks;
}

static int
larger_first(const ListCell *a, const ListCell *b)
{
	const ConvertCandidate *first = lfirst(a);
	const ConvertCandidate *second = lfirst(b);

	if (first->blocks != second->blocks)
		return first->blocks > second->blocks ? -1 : 1;
	return first->index < second->index ? -1 : 1;
}

/* An index of the access method that is attached to no other one. */
static bool
is_candidate(Form_pg_class form, Oid access_method)
{
	return (form->relkind == RELKIND_INDEX ||
			form->relkind == RELKIND_PARTITIONED_INDEX) &&
		form->relam == access_method && !form->relispartition &&
		!isOtherTempNamespace(form->relnamespace);
}

/*
 * What belongs to others is a candidate, too, for the user to be told that it is
 * skipped.  It is not opened.
 */
static List *
add_convert_candidate(List *candidates, Form_pg_class form)
{
	ConvertCandidate *candidate = palloc(sizeof(ConvertCandidate));

	candidate->index = form->oid;
	candidate->blocks = has_privs_of_role(GetUserId(), form->relowner) ?
		blocks_with_partitions(form->oid) : 0;
	return lappend(candidates, candidate);
}

static List *
sorted_indexes(List *candidates)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	list_sort(candidates, larger_first);
	foreach(lc, candidates)
		indexes = lappend_oid(indexes, ((ConvertCandidate *) lfirst(lc))->index);
	return indexes;
}

/* An error unless the caller may convert the table's indexes.  Locks nothing. */
static void
check_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", table)));
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind != RELKIND_RELATION &&
		form->relkind != RELKIND_PARTITIONED_TABLE &&
		form->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						NameStr(form->relname))));
	if (!has_privs_of_role(GetUserId(), form->relowner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   NameStr(form->relname));
	ReleaseSysCache(tuple);
}

static List *
add_indexes_of(List *candidates, Oid tableoid, Oid access_method)
{
	Relation	table = try_relation_open(tableoid, AccessShareLock);
	ListCell   *lc;

	if (table == NULL)
		return candidates;
	foreach(lc, RelationGetIndexList(table))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID,
											ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		if (is_candidate(form, access_method))
			candidates = add_convert_candidate(candidates, form);
		ReleaseSysCache(tuple);
	}
	relation_close(table, NoLock);
	return candidates;
}

/*
 * Partitions belong to a table; other children are tables of their own, as for
 * REINDEX TABLE.
 */
List *
hyb_table_indexes(Oid table, Oid access_method)
{
	List	   *candidates = NIL;
	List	   *tables;
	ListCell   *lc;

	check_table(table);
	LockRelationOid(table, AccessShareLock);
	tables = get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE ?
		find_all_inheritors(table, AccessShareLock, NULL) :
		list_make1_oid(table);
	foreach(lc, tables)
		candidates = add_indexes_of(candidates, lfirst_oid(lc), access_method);
	return sorted_indexes(candidates);
}

/*
 * Does the btree index belong to a table of an extension?  Such a table is its
 * extension's business, and a dump, which leaves it to the extension's script,
 * would forget that its keys were hybrid.
 */
static bool
is_of_extension(Form_pg_class form)
{
	Oid			extension =
		getExtensionOfObject(RelationRelationId,
							 IndexGetRelation(form->oid, true));

	if (!OidIsValid(extension))
		return false;
	ereport(NOTICE,
			(errmsg("index \"%s\" stays of access method \"btree\": its table belongs to extension \"%s\"",
					NameStr(form->relname), get_extension_name(extension))));
	return true;
}

static List *
indexes_of_schema(Oid schema, Oid access_method)
{
	List	   *candidates = NIL;
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	TableScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_relnamespace, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(schema));
	scan = table_beginscan_catalog(rel, 1, &key);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (is_candidate(form, access_method) &&
			(access_method != BTREE_AM_OID || !is_of_extension(form)))
			candidates = add_convert_candidate(candidates, form);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return sorted_indexes(candidates);
}

/* The schema is the caller's, as for REINDEX SCHEMA. */
List *
hyb_schema_indexes(Oid schema, Oid access_method)
{
	char	   *name = get_namespace_name(schema);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema with OID %u does not exist", schema)));
	if (!HYB_OWNS_SCHEMA(schema, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SCHEMA, name);
	if (IsCatalogNamespace(schema) || IsToastNamespace(schema))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert indexes of system schema \"%s\"",
						name)));
	return indexes_of_schema(schema, access_method);
}

void
hyb_convert_many(Oid object, List *(*candidates) (Oid object, Oid access_method),
				 bool to_hybrid)
{
	Oid			target = hyb_convert_target(to_hybrid);
	List	   *indexes = candidates(object, hyb_convert_target(!to_hybrid));
	ListCell   *lc;

	foreach(lc, indexes)
	{
		HybConversion conversion;

		switch (hyb_convert_concurrently(&conversion, lfirst_oid(lc), target,
										 false))
		{
			case HYB_CONVERT_REFUSED:
				/* no name: somebody has dropped it */
				if (conversion.name != NULL)
					hyb_conversion_skip(&conversion);
				break;
			case HYB_CONVERT_ALREADY:
				break;
			case HYB_CONVERT_READY:
				hyb_conversion_done(&conversion);
				break;
		}
	}
}
