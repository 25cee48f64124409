/*
 * desc.c
 *		The description of one index's keys.
 */
#include "base/compat.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "key/desc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Bytes of values that are stored as they are: of all terminated columns together,
 * of all columns with a length word, and what btree leaves alone at least
 */
#define PLAIN_IN_ORDER	640
#define PLAIN_COUNTED		2000
#define PLAIN_LEAST		508

/*
 * Bytes of all terminated columns of an index whose entries the server sorts as
 * index tuples, which may have 8191 bytes.
 */
#define SORTABLE_BYTES	5400

/* Is support function 4 of a class a codec function? */
static bool
is_codec_function(Oid function)
{
	Oid		   *types;
	int			n;
	bool		result;

	(void) get_func_signature(function, &types, &n);
	result = n == 1 && types[0] == INTERNALOID;
	pfree(types);
	return result;
}

/*
 * Ask the operator class of key column `attno` for its codec, or NULL, and
 * whether equal values have equal bytes without one.
 */
static const HybCodec *
column_codec(Relation index, int attno, Datum *column_options,
			 bool *equal_image)
{
	Oid			function = index_getprocid(index, attno, HYB_IMAGE_PROC);
	HybCodecRequest request = {
		.typid = index->rd_opcintype[attno - 1],
		.collation = index->rd_indcollation[attno - 1],
		.typmod = TupleDescAttr(RelationGetDescr(index), attno - 1)->atttypmod
	};
	Datum		argument = ObjectIdGetDatum(request.typid);

	*equal_image = false;
	if (!OidIsValid(function))
		return NULL;
	if (is_codec_function(function))
		argument = PointerGetDatum(&request);
	if (OidIsValid(index_getprocid(index, attno, HYB_OPTIONS_PROC)))
	{
		bytea	  **options = RelationGetIndexAttOptions(index, false);

		request.options = PointerGetDatum(options[attno - 1]);
	}
	*column_options = request.options;

	/* index_getprocinfo would keep 80 bytes for what is called once */
	*equal_image = DatumGetBool(OidFunctionCall1Coll(function,
													 request.collation,
													 argument));
	return request.codec;
}

/*
 * Can values of this type be compared, whatever they are?  The functions that
 * compare arrays, composites and ranges look for the functions of what is in
 * them when they meet it, so an operator class does not tell.
 */
static bool
has_order(Oid type)
{
	Oid			part;
	Oid			table;
	bool		ordered = true;
	HeapTuple	tuple;

	type = getBaseType(type);
	if (OidIsValid(part = get_base_element_type(type)) ||
		OidIsValid(part = get_multirange_range(type)) ||
		OidIsValid(part = get_range_subtype(type)))
		return has_order(part);

	/* the type cache would open the row type's table, which may be locked */
	table = get_typ_typrelid(type);
	if (!OidIsValid(table))
		return OidIsValid(lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc);
	for (int i = 1; ordered &&
		 HeapTupleIsValid(tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table),
												  Int16GetDatum(i))); i++)
	{
		Form_pg_attribute att = (Form_pg_attribute) GETSTRUCT(tuple);

		ordered = att->attisdropped || has_order(att->atttypid);
		ReleaseSysCache(tuple);
	}
	return ordered;
}

/* Classes for types that contain any others; those for one type know theirs. */
static bool
is_doubtful(const HybColumn *col)
{
	return (IsPolymorphicType(col->opcintype) || col->opcintype == RECORDOID) &&
		!has_order(col->typid);
}

void
hyb_key_compare_self(const HybKeyDesc *desc, const Datum *values,
					 const bool *isnull)
{
	for (int i = 0; i < desc->nkeys; i++)
	{
		const HybColumn *col = &desc->cols[i];

		if (col->doubtful && !isnull[i])
			(void) FunctionCall2Coll(col->order_proc, col->collation,
									 values[i], values[i]);
	}
}

/* Form of a column that has no codec: the value's own bytes. */
static void
set_plain(HybColumn *col)
{
	col->compare = HYB_COMPARE_PROC;
	col->terminated = false;
	if (col->attbyval)
	{
		col->store = HYB_STORE_INT;
		col->width = col->attlen;
	}
	else
	{
		col->store = HYB_STORE_BYTES;
		col->width = (col->attlen > 0 && col->attlen <= PG_UINT8_MAX) ?
			col->attlen : 0;
	}
}

static void
set_codec(HybColumn *col, const HybCodec *codec)
{
	/* What the key functions rely on; only a faulty codec can break it. */
	if (codec->compare == HYB_COMPARE_PROC ||
		(codec->store == HYB_STORE_INT &&
		 (codec->width < 1 || codec->width > 8)) ||
		(codec->store == HYB_STORE_BYTES &&
		 (codec->compare != HYB_COMPARE_MEM ||
		  (codec->width > 0) == codec->terminated)))
		elog(ERROR, "key codec \"%s\" is inconsistent", codec->name);

	col->codec = codec;
	col->store = codec->store;
	col->width = codec->width;
	col->terminated = codec->terminated;
	col->compare = codec->compare;
}

/*
 * How long values may be that are stored as they are: all of them together, as
 * long as those are, leave enough room for the rest of longer ones.  This is
 * part of the format, so nothing that ALTER could change goes in.  The two types
 * are those of the server whose functions expect values that are not
 * compressed, as a sort has them.
 */
static void
limit_plain_values(HybKeyDesc *desc)
{
	int			n = 0;

	for (int i = 0; i < desc->natts; i++)
		n += desc->cols[i].store == HYB_STORE_BYTES && desc->cols[i].width == 0;
	for (int i = 0; i < desc->natts; i++)
	{
		HybColumn  *col = &desc->cols[i];

		if (col->terminated)
		{
			col->plain = PLAIN_IN_ORDER / n;
			col->sortable = desc->all_mem ? 0 : SORTABLE_BYTES / n;
		}
		else if (hyb_has_length_word(col) && col->attlen == -1 &&
				 col->typid != OIDVECTOROID && col->typid != INT2VECTOROID)
			col->plain = Max(PLAIN_COUNTED / n, PLAIN_LEAST);
	}
}

HybKeyDesc *
hyb_key_desc_create(Relation index)
{
	int			natts = RelationGetNumberOfAttributes(index);
	HybKeyDesc *desc;

	HYB_ASSERT_NO_LWLOCK();
	desc = palloc0(hyb_key_desc_size(natts));
	desc->natts = natts;
	desc->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	desc->tupdesc = RelationGetDescr(index);
	desc->all_mem = true;
	desc->exact = true;
	desc->chains = HYB_IS_SUMMARIZING(index);
	desc->plain = desc->chains && heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);

	for (int i = 0; i < natts; i++)
	{
		HybColumn  *col = &desc->cols[i];
		Form_pg_attribute att = TupleDescAttr(desc->tupdesc, i);
		const HybCodec *codec;
		bool		equal_image;

		col->attlen = att->attlen;
		col->attbyval = att->attbyval;
		col->attalign = att->attalign;
		col->typid = att->atttypid;
		col->typmod = att->atttypmod;
		col->index_name = RelationGetRelationName(index);
		set_plain(col);
		if (i >= desc->nkeys)
			continue;

		col->desc = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
		col->nulls_first =
			(index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		col->opcintype = index->rd_opcintype[i];
		col->collation = index->rd_indcollation[i];
		col->order_proc = index_getprocinfo(index, i + 1, HYB_ORDER_PROC);

		col->doubtful = is_doubtful(col);
		desc->doubtful |= col->doubtful;

		codec = column_codec(index, i + 1, &col->options, &equal_image);
		if (codec != NULL)
		{
			set_codec(col, codec);
			desc->has_encoded |= codec->encode != NULL;
		}
		col->pure = col->compare != HYB_COMPARE_PROC ? HYB_PURE :
			hyb_pure_classify(col->order_proc->fn_oid, col->typid, &col->part,
							  &col->part_cmp);
		desc->pure = Max(desc->pure, col->pure);
		col->unread = col->compare == HYB_COMPARE_PROC && col->pure != HYB_IMPURE;
		desc->unread |= col->unread;
		if (col->compare != HYB_COMPARE_MEM)
			desc->all_mem = false;
		col->exact = col->compare != HYB_COMPARE_FLOAT &&
			(col->compare != HYB_COMPARE_PROC || equal_image);
		desc->exact &= col->exact;
	}
	limit_plain_values(desc);
	hyb_key_desc_assert_valid(desc);
	return desc;
}

void
hyb_desc_read_collations(HybKeyDesc *desc)
{
	for (int i = 0; i < desc->nkeys; i++)
	{
		HybColumn  *col = &desc->cols[i];

		if (col->unread)
			hyb_pure_read_collations(col->order_proc->fn_oid, col->collation, col->part);
		col->unread = false;
	}
	desc->unread = false;
}

void
hyb_desc_remember_parts(HybKeyDesc *desc)
{
	for (int i = 0; i < desc->nkeys; i++)
	{
		HybColumn  *col = &desc->cols[i];

		if (OidIsValid(col->part) &&
			!hyb_pure_remember(col->order_proc, col->collation, col->part, col->part_cmp))
		{
			col->part = InvalidOid;
			col->pure = desc->pure = HYB_IMPURE;
		}
	}
}

#ifdef USE_ASSERT_CHECKING
void
hyb_key_desc_assert_valid(const HybKeyDesc *desc)
{
	bool		all_mem = true;
	HybPure		pure = HYB_PURE;

	Assert(desc->nkeys >= 1 && desc->nkeys <= desc->natts);
	Assert(desc->natts <= INDEX_MAX_KEYS);
	for (int i = 0; i < desc->natts; i++)
	{
		const HybColumn *col = &desc->cols[i];

		Assert(col->store != HYB_STORE_INT || (col->width >= 1 && col->width <= 8));
		Assert(!col->terminated || (col->store == HYB_STORE_BYTES && col->width == 0));
		/* only bytes of any length may be too long */
		Assert(col->plain == 0 || (col->store == HYB_STORE_BYTES && col->width == 0));
		Assert(i < desc->nkeys || (col->codec == NULL && col->order_proc == NULL));
		Assert(i >= desc->nkeys || col->order_proc != NULL);
		if (i >= desc->nkeys)
			continue;
		all_mem &= col->compare == HYB_COMPARE_MEM;
		pure = Max(pure, col->pure);
		Assert(col->pure == HYB_PURE || col->compare == HYB_COMPARE_PROC);
		Assert(!OidIsValid(col->part) || col->pure == HYB_PURE_IN_PART);
	}
	Assert(desc->all_mem == all_mem && desc->pure == pure);
	/* memcmp of the encodings is an order, so equal keys have equal bytes */
	Assert(desc->exact || !all_mem);
}
#endif
