/*
 * desc.c
 *		The description of one index's keys.
 */
#include "compat.h"

#include "access/genam.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "key/bytes.h"
#include "key/long_values.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* Ask the operator class of key column `attno` for its codec. */
static const HybCodec *
hyb_column_codec(Relation index, int attno, Datum *column_options)
{
	HybCodecRequest request;

	if (!OidIsValid(index_getprocid(index, attno, HYB_CODEC_PROC)))
		return NULL;

	request.typid = index->rd_opcintype[attno - 1];
	request.collation = index->rd_indcollation[attno - 1];
	request.typmod = TupleDescAttr(RelationGetDescr(index), attno - 1)->atttypmod;
	request.options = (Datum) 0;
	if (OidIsValid(index_getprocid(index, attno, HYB_OPTIONS_PROC)))
	{
		bytea	  **options = RelationGetIndexAttOptions(index, false);

		request.options = PointerGetDatum(options[attno - 1]);
	}
	*column_options = request.options;
	return (const HybCodec *)
		DatumGetPointer(FunctionCall1(index_getprocinfo(index, attno,
														HYB_CODEC_PROC),
									  PointerGetDatum(&request)));
}

/* Do equal values of comparator column `attno` always have equal bytes? */
static bool
hyb_column_equalimage(Relation index, int attno)
{
	if (!OidIsValid(index_getprocid(index, attno, HYB_EQUALIMAGE_PROC)))
		return false;
	return DatumGetBool(FunctionCall1Coll(index_getprocinfo(index, attno,
															HYB_EQUALIMAGE_PROC),
										  index->rd_indcollation[attno - 1],
										  ObjectIdGetDatum(index->rd_opcintype[attno - 1])));
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
	TypeCacheEntry *entry;

	type = getBaseType(type);
	if (OidIsValid(part = get_base_element_type(type)) ||
		OidIsValid(part = get_multirange_range(type)) ||
		OidIsValid(part = get_range_subtype(type)))
		return has_order(part);

	entry = lookup_type_cache(type, TYPECACHE_CMP_PROC | TYPECACHE_TUPDESC);
	for (int i = 0; entry->tupDesc != NULL && i < entry->tupDesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(entry->tupDesc, i);

		if (!att->attisdropped && !has_order(att->atttypid))
			return false;
	}
	return OidIsValid(entry->cmp_proc);
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
			(void) hyb_call_function(col->order_proc, col->collation,
									 values[i], values[i]);
	}
}

/* Form of a column that has no codec: the value's own bytes. */
static void
hyb_column_set_plain(HybColumn *col)
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
hyb_column_set_codec(HybColumn *col, const HybCodec *codec)
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
hyb_limit_plain_values(HybKeyDesc *desc)
{
	int			n = 0;

	for (int i = 0; i < desc->natts; i++)
		n += desc->cols[i].store == HYB_STORE_BYTES && desc->cols[i].width == 0;
	for (int i = 0; i < desc->natts; i++)
	{
		HybColumn  *col = &desc->cols[i];

		if (col->terminated)
		{
			col->plain = HYB_PLAIN_IN_ORDER / n;
			col->sortable = desc->all_mem ? 0 : HYB_SORTABLE_BYTES / n;
		}
		else if (hyb_has_length_word(col) && col->attlen == -1 &&
				 col->typid != OIDVECTOROID && col->typid != INT2VECTOROID)
			col->plain = Max(HYB_PLAIN_BYTES / n, HYB_PLAIN_LEAST);
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

	for (int i = 0; i < natts; i++)
	{
		HybColumn  *col = &desc->cols[i];
		Form_pg_attribute att = TupleDescAttr(desc->tupdesc, i);
		const HybCodec *codec;

		col->attlen = att->attlen;
		col->attbyval = att->attbyval;
		col->attalign = att->attalign;
		col->typid = att->atttypid;
		col->typmod = att->atttypmod;
		col->index_name = RelationGetRelationName(index);
		hyb_column_set_plain(col);
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

		codec = hyb_column_codec(index, i + 1, &col->options);
		if (codec != NULL)
		{
			hyb_column_set_codec(col, codec);
			desc->has_encoded |= codec->encode != NULL;
		}
		if (col->compare != HYB_COMPARE_MEM)
			desc->all_mem = false;
		if (col->compare == HYB_COMPARE_FLOAT ||
			(col->compare == HYB_COMPARE_PROC &&
			 !hyb_column_equalimage(index, i + 1)))
			desc->exact = false;
	}
	hyb_limit_plain_values(desc);
	return desc;
}
