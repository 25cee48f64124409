/*
 * twin.c
 *		The twin of an index.
 *
 * Two operator classes are counterparts if they have the same input type and, for
 * it, the same operators: these define the order.  So a btree class has its
 * counterparts in any schema and from any owner, and an encoded class
 * (text_hope_ops) has the btree class of the same order.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/reloptions.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "ddl/twin/twin.h"
#include "nodes/makefuncs.h"
#include "store/settings.h"
#include "utils/catcache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

/* The names of encoded classes end in this. */
#define ENCODED_SUFFIX	"_hope_ops"

/* Copies the name, with "_ops" in place of the suffix. */
static void
plain_name(NameData *plain, const char *name)
{
	size_t		length = strlen(name);
	size_t		suffix = strlen(ENCODED_SUFFIX);

	namestrcpy(plain, name);
	if (length > suffix &&
		strcmp(name + length - suffix, ENCODED_SUFFIX) == 0)
		strcpy(NameStr(*plain) + length - suffix, "_ops");
}

/* Returns how well a candidate of the same order fits: more is better. */
static int
likeness(Form_pg_opclass class, Form_pg_opclass candidate)
{
	NameData	plain;
	int			score = 0;

	plain_name(&plain, NameStr(class->opcname));
	if (strcmp(NameStr(plain), NameStr(candidate->opcname)) == 0)
		score += 4;
	if (class->opcdefault && candidate->opcdefault)
		score += 8;
	plain_name(&plain, NameStr(candidate->opcname));
	if (strcmp(NameStr(plain), NameStr(candidate->opcname)) == 0)
		score += 2;
	if (class->opcnamespace == candidate->opcnamespace)
		score += 1;
	return score;
}

/* The class of the same name, among our methods: they have the same ones. */
static Oid
namesake(Form_pg_opclass class, Oid access_method)
{
	return hyb_is_our_method(class->opcmethod) && hyb_is_our_method(access_method) ?
		GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(access_method),
						NameGetDatum(&class->opcname), ObjectIdGetDatum(class->opcnamespace)) :
		InvalidOid;
}

Oid
hyb_twin_class(Oid opclass, Oid access_method)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass class;
	CatCList   *candidates;
	Oid			best = InvalidOid;
	int			best_score = -1;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	best = class->opcmethod == access_method ? opclass : namesake(class, access_method);
	if (OidIsValid(best))
	{
		ReleaseSysCache(tuple);
		return best;
	}
	candidates = SearchSysCacheList1(CLAAMNAMENSP,
									 ObjectIdGetDatum(access_method));
	for (int i = 0; i < candidates->n_members; i++)
	{
		Form_pg_opclass candidate = (Form_pg_opclass)
			GETSTRUCT(&candidates->members[i]->tuple);
		int			score;

		if (candidate->opcintype != class->opcintype ||
			!hyb_same_operators(class->opcfamily, candidate->opcfamily,
								class->opcintype))
			continue;
		score = likeness(class, candidate);
		if (score > best_score ||
			(score == best_score && candidate->oid < best))
		{
			best = candidate->oid;
			best_score = score;
		}
	}
	ReleaseCatCacheList(candidates);
	ReleaseSysCache(tuple);
	return best;
}

char *
hyb_twin_incomparable(Oid opclass, Oid type)
{
	Oid			input = get_opclass_input_type(opclass);

	if ((input != RECORDOID && input != ANYARRAYOID) ||
		OidIsValid(lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc))
		return NULL;
	return psprintf(_("Access method \"hybrid\" compares each value, and parts of type %s have no order."),
					format_type_be(type));
}

void
hyb_refuse(const HybRefusal *refusal)
{
	ereport(ERROR,
			(errcode(refusal->code),
			 errmsg_internal("%s", refusal->message),
			 refusal->detail ? errdetail_internal("%s", refusal->detail) : 0,
			 refusal->hint ? errhint("%s", refusal->hint) : 0));
}

bool
hyb_twin_possible(Relation index, Oid access_method, HybRefusal *refusal)
{
	oidvector  *classes = hyb_index_classes(index);
	Oid			table = index->rd_index->indrelid;
	const char *method = get_am_name(access_method);
	bool		to_btree = access_method == BTREE_AM_OID;

	memset(refusal, 0, sizeof(HybRefusal));
	refusal->detail = to_btree ? NULL : hyb_not_heap(table);
	if (refusal->detail != NULL)
		refusal->hint = psprintf(_("Use ALTER TABLE %s SET ACCESS METHOD heap first."),
								 quote_qualified_identifier(get_namespace_name(get_rel_namespace(table)),
															get_rel_name(table)));
	else if (!to_btree)
		refusal->detail = hyb_table_needs_btree(table);
	for (int i = 0; i < classes->dim1 && refusal->detail == NULL; i++)
	{
		Oid			opclass = classes->values[i];
		Oid			type = get_opclass_input_type(opclass);

		if (OidIsValid(hyb_twin_class(opclass, access_method)))
		{
			if (!to_btree)
				refusal->detail =
					hyb_twin_incomparable(opclass,
										  TupleDescAttr(RelationGetDescr(index), i)->atttypid);
			continue;
		}
		refusal->detail = psprintf(_("Access method \"%s\" has no operator class for type %s that orders as class %s of column %d does."),
								   method, format_type_be(type),
								   generate_opclass_name(opclass), i + 1);
		refusal->hint = to_btree ?
			psprintf(_("Create an operator class of access method \"%s\" for type %s with the operators of that class."),
					 method, format_type_be(type)) :
			psprintf(_("Make one with SELECT %s(%s::regtype)."),
					 hyb_sql_function("hybrid_make_operator_classes"),
					 quote_literal_cstr(format_type_be_qualified(type)));
	}
	if (refusal->detail == NULL)
		return true;
	refusal->code = ERRCODE_FEATURE_NOT_SUPPORTED;
	refusal->message = psprintf(_("index \"%s\" cannot be of access method \"%s\""),
								RelationGetRelationName(index), method);
	return false;
}

Relation
hyb_twin_as_hybrid(Relation index)
{
	Oid			method = get_index_am_oid("hybrid", false);
	int			natts = RelationGetNumberOfAttributes(index);
	Relation	copy = palloc(sizeof(RelationData));
	oidvector  *classes = hyb_index_classes(index);
	int			nprocs;

	memcpy(copy, index, sizeof(RelationData));
	copy->rd_indam = GetIndexAmRoutineByAmId(method, false);
	nprocs = copy->rd_indam->amsupport;
	copy->rd_indexcxt = CurrentMemoryContext;
	copy->rd_opcoptions = NULL;
	copy->rd_amcache = NULL;
	copy->rd_options = NULL;	/* those are btree's */
	copy->rd_opfamily = palloc(natts * sizeof(Oid));
	copy->rd_opcintype = palloc(natts * sizeof(Oid));
	copy->rd_support = palloc0(natts * nprocs * sizeof(RegProcedure));
	copy->rd_supportinfo = palloc0(natts * nprocs * sizeof(FmgrInfo));
	copy->rd_att = CreateTupleDescCopy(RelationGetDescr(index));
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			class = hyb_twin_class(classes->values[i], method);
		Oid			family = get_opclass_family(class);
		Oid			type = get_opclass_input_type(class);
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

		copy->rd_opfamily[i] = family;
		copy->rd_opcintype[i] = type;
		for (int p = 0; p < nprocs; p++)
			copy->rd_support[i * nprocs + p] =
				get_opfamily_proc(family, type, type, p + 1);

		/* btree stores names as strings */
		if (att->atttypid == CSTRINGOID && type == NAMEOID)
			TupleDescInitEntry(copy->rd_att, i + 1, NameStr(att->attname),
							   NAMEOID, -1, 0);
	}
	return copy;
}

/* A node tree of the index's pg_index row, or NULL. */
static Node *
index_node(Relation index, AttrNumber attribute)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
										attribute, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(datum));
}

static bool
is_key_constraint(Relation index)
{
	return OidIsValid(get_index_constraint(RelationGetRelid(index))) &&
		!index->rd_index->indisexclusion;
}

/* Returns true if a btree index has such a storage parameter. */
static bool
is_btree_option(const DefElem *option)
{
	return strcmp(option->defname, "fillfactor") == 0 ||
		strcmp(option->defname, "deduplicate_items") == 0;
}

Datum
hyb_btree_options(Datum reloptions)
{
	List	   *kept = NIL;
	ListCell   *lc;

	if (reloptions == (Datum) 0)
		return reloptions;
	foreach(lc, untransformRelOptions(reloptions))
		if (is_btree_option(lfirst(lc)))
		kept = lappend(kept, lfirst(lc));
	return transformRelOptions((Datum) 0, kept, NULL, NULL, false, false);
}

static void
note_not_kept(Relation index, const char *option, const char *why)
{
	ereport(NOTICE,
			(errmsg("storage parameter \"%s\" of index \"%s\" is not kept",
					option, RelationGetRelationName(index)),
			 errdetail_internal("%s", why)));
}

Datum
hyb_twin_options(Relation index, Oid access_method)
{
	Datum		options = hyb_index_options(RelationGetRelid(index));
	ListCell   *lc;

	if (hyb_is_hot_method(access_method) && hyb_layout_option(index) == HYB_OPTION_TRIE)
	{
		note_not_kept(index, "layout", "An index of access method \"hybrid_hot\" cannot have layout \"trie\".");
		return hyb_layout_set(options, HYB_LAYOUT_NAME_COLUMNAR);
	}
	if (access_method != BTREE_AM_OID)
		return is_key_constraint(index) ? hyb_marker_set(options, true) : options;
	if (options == (Datum) 0)
		return options;
	foreach(lc, untransformRelOptions(hyb_marker_set(options, false)))
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (!is_btree_option(option))
			note_not_kept(index, option->defname, "Access method \"btree\" has no such parameter.");
	}
	return hyb_btree_options(options);
}

/* What a column of the twin has beyond its definition. */
typedef struct TwinColumns
{
	List	   *names;
	Oid		   *classes;
	Datum	   *class_options;	/* of a twin that has such a class, too */
	NullableDatum *targets;		/* of statistics */
} TwinColumns;

static void
twin_columns(Relation index, Oid access_method, TwinColumns *columns)
{
	int			natts = index->rd_index->indnatts;
	oidvector  *classes = hyb_index_classes(index);

	columns->names = NIL;
	columns->classes = palloc(sizeof(Oid) * natts);
	columns->class_options = palloc0(sizeof(Datum) * natts);
	columns->targets = palloc0(sizeof(NullableDatum) * natts);
	for (int i = 0; i < natts; i++)
	{
		Oid			relid = RelationGetRelid(index);
		HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid),
											Int16GetDatum(i + 1));

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for attribute %d of relation %u",
				 i + 1, relid);
		columns->targets[i].value =
			SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attstattarget,
							&columns->targets[i].isnull);
		ReleaseSysCache(tuple);
		columns->names = lappend(columns->names,
								 pstrdup(NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname)));
		if (i >= classes->dim1)
			continue;
		columns->classes[i] = hyb_twin_class(classes->values[i], access_method);
		Assert(OidIsValid(columns->classes[i]));
		if (hyb_is_our_method(index->rd_rel->relam) && hyb_is_our_method(access_method) &&
			equal(hyb_class_name(classes->values[i]), hyb_class_name(columns->classes[i])))
			columns->class_options[i] = get_attoptions(relid, i + 1);
		else if (get_attoptions(relid, i + 1) != (Datum) 0)
			ereport(NOTICE,
					(errmsg("operator class parameters of column %d of index \"%s\" are not kept",
							i + 1, RelationGetRelationName(index)),
					 errdetail("Operator class %s has none.",
							   generate_opclass_name(columns->classes[i]))));
	}
}

static IndexInfo *
twin_info(Relation index, Oid access_method, uint16 flags)
{
	Form_pg_index form = index->rd_index;
	bool		concurrent = (flags & INDEX_CREATE_CONCURRENT) != 0;
	Node	   *predicate = index_node(index, Anum_pg_index_indpred);
	IndexInfo  *info;

	info = makeIndexInfo(form->indnatts, form->indnkeyatts, access_method,
						 (List *) index_node(index, Anum_pg_index_indexprs),
						 make_ands_implicit((Expr *) predicate),
						 form->indisunique, form->indnullsnotdistinct,
						 !concurrent, concurrent HYB_INDEX_INFO_END);
	for (int i = 0; i < form->indnatts; i++)
		info->ii_IndexAttrNumbers[i] = form->indkey.values[i];
	return info;
}

Oid
hyb_twin_create(Relation table, Oid indexoid, Oid access_method,
				const char *name, uint16 flags, Datum reloptions)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	HybRefusal	refusal;
	IndexInfo  *info;
	TwinColumns columns;
	int2vector *order;
	Oid			twin;

	Assert(CheckRelationLockedByMe(table, ShareUpdateExclusiveLock, true));
	Assert(index->rd_rel->relam != access_method || access_method != BTREE_AM_OID);
	if (!hyb_twin_possible(index, access_method, &refusal))
		hyb_refuse(&refusal);
	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		flags |= INDEX_CREATE_PARTITIONED;
	order = (int2vector *)
		DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID,
											   index->rd_indextuple,
											   Anum_pg_index_indoption));
	info = twin_info(index, access_method, flags);
	twin_columns(index, access_method, &columns);
	twin = HYB_INDEX_CREATE(table, name, info,
							columns.names, access_method,
							index->rd_rel->reltablespace,
							index->rd_indcollation, columns.classes,
							columns.class_options, order->values,
							columns.targets, reloptions, flags);

	/* one that checks at once would refuse rows that are right at commit */
	if (!index->rd_index->indimmediate)
		hyb_index_stop_checking(twin, true);
	index_close(index, NoLock);
	return twin;
}

/* The index shall depend on its own operator classes, not on those of the other. */
static void
fix_dependencies(Oid indexoid, Oid other_oid)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	Relation	other = index_open(other_oid, AccessShareLock);
	oidvector  *own = hyb_index_classes(index);
	oidvector  *foreign = hyb_index_classes(other);
	ObjectAddresses *classes = new_object_addresses();
	List	   *gone = NIL;
	ListCell   *lc;
	ObjectAddress depender;

	Assert(own->dim1 == foreign->dim1);

	/* one command must not delete a row twice */
	for (int i = 0; i < foreign->dim1; i++)
		gone = list_append_unique_oid(gone, foreign->values[i]);
	foreach(lc, gone)
		deleteDependencyRecordsForSpecific(RelationRelationId, indexoid,
										   DEPENDENCY_NORMAL,
										   OperatorClassRelationId,
										   lfirst_oid(lc));
	for (int i = 0; i < own->dim1; i++)
	{
		ObjectAddress class;

		ObjectAddressSet(class, OperatorClassRelationId, own->values[i]);
		add_exact_object_address(&class, classes);
	}
	ObjectAddressSet(depender, RelationRelationId, indexoid);
	record_object_address_dependencies(&depender, classes, DEPENDENCY_NORMAL);
	free_object_addresses(classes);
	index_close(other, NoLock);
	index_close(index, NoLock);
}

void
hyb_twin_swapped(Oid twin, Oid index)
{
	CommandCounterIncrement();
	fix_dependencies(twin, index);
	fix_dependencies(index, twin);
	CommandCounterIncrement();
}
