/*
 * scan_tuple.c
 *		The index tuples that an index-only scan returns.
 *
 * If all columns are integers, rows without NULLs differ in their values only.  The
 * tuples of up to HYB_WINDOW_ROWS rows of a leaf are then made once, and filled in
 * together, column by column: a window.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "key/key.h"
#include "mb/pg_wchar.h"
#include "scan/scan.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Is a value of the column a C string, or may it become longer as it is decoded? */
static inline bool
may_grow(const HybColumn *col)
{
	return col->attlen == -2 ||
		(col->attlen == -1 && col->codec != NULL && col->codec->decode != NULL);
}

void
hyb_tuple_init(HybScan *so)
{
	HybKeyDesc *desc = so->ix->desc;
	HybScanTuples *tuples = &so->tuples;
	bool		ints = true;
	Size		off = 0;

	Assert(so->scan->xs_want_itup && so->scan->xs_itupdesc->natts == desc->natts);
	tuples->context = AllocSetContextCreate(so->context, "hybrid scan tuple",
											ALLOCSET_SMALL_SIZES);
	tuples->values = palloc(desc->natts * sizeof(Datum));
	tuples->isnull = palloc(desc->natts * sizeof(bool));
	tuples->offsets = palloc(desc->natts * sizeof(uint16));
	for (int i = 0; i < desc->natts && ints; i++)
	{
		const HybColumn *col = &desc->cols[i];

		ints = col->store == HYB_STORE_INT && col->attbyval;
		off = att_align_nominal(off, col->attalign);
		tuples->offsets[i] = off;
		off += col->attlen;
	}
	if (!ints)
		return;
	off = MAXALIGN(off + MAXALIGN(sizeof(IndexTupleData)));
	Assert(off <= INDEX_SIZE_MASK);
	tuples->fixed = palloc0(off);
	tuples->fixed->t_info = off;
}

/* Bytes of a long value that are enough to estimate with */
#define ENOUGH_TO_ESTIMATE	2000

/*
 * The planner's question for a column's extreme values: an index tuple of the
 * first column only, compressed, or cut if that is not enough.
 */
static IndexTuple
form_first_value(HybScan *so)
{
	HybKeyDesc *desc = so->ix->desc;
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		isnull[INDEX_MAX_KEYS];

	memset(isnull, true, sizeof(isnull));
	isnull[0] = so->tuples.isnull[0];
	values[0] = so->tuples.values[0];
	if (!isnull[0] && desc->cols[0].attlen == -1)
	{
		struct varlena *plain = PG_DETOAST_DATUM_COPY(values[0]);
		Datum		shorter = toast_compress_datum(PointerGetDatum(plain),
												   TOAST_PGLZ_COMPRESSION);

		values[0] = PointerGetDatum(plain);
		if (DatumGetPointer(shorter) != NULL)
			values[0] = shorter;
		if (VARSIZE(DatumGetPointer(values[0])) > 2 * ENOUGH_TO_ESTIMATE)
		{
			int			len = desc->cols[0].opcintype == BYTEAOID ?
				ENOUGH_TO_ESTIMATE :
				pg_mbcliplen(VARDATA(plain), VARSIZE(plain) - VARHDRSZ,
							 ENOUGH_TO_ESTIMATE);

			SET_VARSIZE(plain, VARHDRSZ + len);
			values[0] = PointerGetDatum(plain);
		}
	}
	return index_form_tuple(so->scan->xs_itupdesc, values, isnull);
}

/*
 * An index tuple has no room for long values: a heap tuple, in the current
 * memory context, which is what the executor looks at first.
 */
static void
form_long_tuple(HybScan *so)
{
	so->scan->xs_hitup = heap_form_tuple(so->scan->xs_hitupdesc,
										 so->tuples.values, so->tuples.isnull);
	so->scan->xs_itup = IsMVCCSnapshot(so->scan->xs_snapshot) ? NULL :
		form_first_value(so);
}

/* Bytes from p up to an alignment are zero: what may be a padding byte is one. */
static inline char *
align_zeroed(char *data, char *p, char attalign)
{
	char	   *aligned = data + att_align_nominal(p - data, attalign);

	while (p < aligned)
		*p++ = 0;
	return p;
}

/*
 * A variable-length value of `len` bytes, as heap_fill_tuple would store it: with
 * a short header where that is possible.  Returns the byte after it.
 */
static inline char *
put_varlena(char *data, char *p, Form_pg_attribute att, const void *bytes,
			Size len)
{
	if (att->attstorage != TYPSTORAGE_PLAIN &&
		len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(p, len + VARHDRSZ_SHORT);
		p += VARHDRSZ_SHORT;
	}
	else
	{
		p = align_zeroed(data, p, att->attalign);
		SET_VARSIZE(p, len + VARHDRSZ);
		p += VARHDRSZ;
	}
	memcpy(p, bytes, len);
	return p + len;
}

/* A value that is not null behind those before it. */
static inline char *
put_value(HybScan *so, int i, const HybValue *val, char *data, char *p)
{
	const HybColumn *col = &so->ix->desc->cols[i];
	Form_pg_attribute att = TupleDescAttr(so->scan->xs_itupdesc, i);
	Datum		value;

	if (att->attlen == -1 && col->codec == NULL)
		return put_varlena(data, p, att, val->ptr, val->len);
	value = hyb_value_decode(col, val);
	if (att->attlen == -1)
		return put_varlena(data, p, att, VARDATA_ANY(DatumGetPointer(value)),
						   VARSIZE_ANY_EXHDR(DatumGetPointer(value)));
	p = align_zeroed(data, p, att->attalign);
	if (att->attbyval)
		store_att_byval(p, value, att->attlen);
	else
		memcpy(p, DatumGetPointer(value), att->attlen);
	return p + att->attlen;
}

/*
 * Form the tuple that index_form_tuple would make, but compress nothing, and make no
 * Datums of what is copied anyway.  Returns NULL if it might be too long.
 */
static IndexTuple
form_plain(HybScan *so, const HybValue *vals)
{
	HybKeyDesc *desc = so->ix->desc;
	IndexTuple	tuple = so->tuples.plain;
	IndexAttributeBitMapData nulls = {{0}};
	Size		len = MAXALIGN(sizeof(IndexTupleData) + sizeof(nulls));
	uint16		info = 0;
	char	   *data;
	char	   *p;

	for (int i = 0; i < desc->natts; i++)
	{
		const HybColumn *col = &desc->cols[i];

		if (may_grow(col))
			return NULL;
		len += MAXIMUM_ALIGNOF + VARHDRSZ +
			(col->attlen > 0 ? col->attlen : vals[i].isnull ? 0 : vals[i].len);
		if (col->attlen == -1)
			info |= INDEX_VAR_MASK;
		if (vals[i].isnull)
			info |= INDEX_NULL_MASK;
		else
			nulls.bits[i >> 3] |= 1 << (i & 7);
	}
	if (len > INDEX_SIZE_MASK)
		return NULL;
	if (tuple == NULL)
		so->tuples.plain = tuple =
			MemoryContextAlloc(so->context,
							   (info & INDEX_VAR_MASK) != 0 ? INDEX_SIZE_MASK + 1 : len);

	data = p = (char *) tuple + IndexInfoFindDataOffset(info);
	if ((info & INDEX_NULL_MASK) != 0)
		memcpy((char *) tuple + sizeof(IndexTupleData), &nulls, sizeof(nulls));
	for (int i = 0; i < desc->natts; i++)
		if (!vals[i].isnull)
			p = put_value(so, i, &vals[i], data, p);
	Assert((Size) (p - (char *) tuple) <= len);
	tuple->t_info = info | MAXALIGN(p - (char *) tuple);
	return tuple;
}

/* Is a value compressed, so that it may not fit an index tuple? */
static inline bool
has_long(HybScan *so, const HybValue *vals)
{
	HybKeyDesc *desc = so->ix->desc;

	for (int i = 0; i < desc->natts; i++)
		if (desc->cols[i].attlen == -1 && !vals[i].isnull &&
			(vals[i].ival != 0 || hyb_is_long(&desc->cols[i], vals[i].len)))
			return true;
	return false;
}

/* From the item's values one by one */
static void
form_one(HybScan *so, const HybScanItem *item)
{
	HybKeyDesc *desc = so->ix->desc;
	const HybValue *vals = hyb_batch_values(so, so->batch, item);
	bool		is_long = so->tuples.fixed == NULL && has_long(so, vals);
	IndexTuple	plain = NULL;
	MemoryContext old;

	so->scan->xs_hitup = NULL;
	MemoryContextReset(so->tuples.context);
	old = MemoryContextSwitchTo(so->tuples.context);
	if (likely(!is_long))
		so->scan->xs_itup = plain = form_plain(so, vals);
	if (plain == NULL)
	{
		for (int i = 0; i < desc->natts; i++)
		{
			so->tuples.isnull[i] = vals[i].isnull;
			so->tuples.values[i] = vals[i].isnull ? (Datum) 0 :
				hyb_value_decode(&desc->cols[i], &vals[i]);
		}
		if (is_long)
			form_long_tuple(so);
		else
			so->scan->xs_itup = index_form_tuple(so->scan->xs_itupdesc,
												 so->tuples.values,
												 so->tuples.isnull);
	}
	MemoryContextSwitchTo(old);
}

static void
create_window(HybScan *so, HybScanPart *part)
{
	Size		size = IndexTupleSize(so->tuples.fixed);
	HybScanWindow *w = MemoryContextAlloc(so->context, offsetof(HybScanWindow, tuples) +
										  HYB_WINDOW_ROWS * size);

	for (int r = 0; r < HYB_WINDOW_ROWS; r++)
		memcpy(w->tuples + r * size, so->tuples.fixed, size);
	w->n = 0;
	part->window = w;
}

/*
 * Form the tuples of some rows of the leaf that begin at a row, or, if that is
 * where a scan backward comes to, end there.  Windows grow while the scan goes
 * on, since it may need one row.
 */
static void
load_window(HybScan *so, HybScanPart *part, int row)
{
	HybKeyDesc *desc = so->ix->desc;
	Size		size = IndexTupleSize(so->tuples.fixed);
	HybScanWindow *w;
	bool		back;
	int			n;
	uint64		ints[HYB_WINDOW_ROWS];
	uint8		isnull[HYB_WINDOW_ROWS];
	Datum		values[HYB_WINDOW_ROWS];

	if (part->window == NULL)
		create_window(so, part);
	w = part->window;
	back = w->n > 0 && row == w->row - 1;
	n = Min(so->tuples.window_rows, back ? row + 1 : part->leaf.nrows - row);
	w->row = back ? row + 1 - n : row;
	Assert(n > 0 && n <= HYB_WINDOW_ROWS);
	Assert(w->row >= 0 && w->row <= row && row < w->row + n);
	Assert(w->row + n <= part->leaf.nrows);
	so->tuples.window_rows = Min(2 * so->tuples.window_rows, HYB_WINDOW_ROWS);
	w->n = n;
	memset(w->isnull, 0, w->n);
	for (int i = 0; i < desc->natts; i++)
	{
		Size		data = MAXALIGN(sizeof(IndexTupleData)) + so->tuples.offsets[i];

		hyb_leaf_ints(&part->leaf, i, w->row, w->n, ints, isnull);
		for (int r = 0; r < w->n; r++)
			w->isnull[r] |= isnull[r];
		hyb_ints_decode(&desc->cols[i], ints, w->n, values);
		for (int r = 0; r < w->n; r++)
			store_att_byval(w->tuples + r * size + data, values[r],
							desc->cols[i].attlen);
	}
}

/*
 * The tuple of an item from the window of its leaf; NULL if there is none: few
 * rows were asked for, the entry is a dynamic one, or a column is NULL.
 */
static inline IndexTuple
window_tuple(HybScan *so, const HybScanItem *item)
{
	HybScanPart *part = so->batch->parts[item->part];
	HybScanWindow *w = part->window;
	int			r;

	if (item->source < 0 || part->mode != HYB_STATIC_PAGE)
		return NULL;
	if (w == NULL || (uint32) (item->row - w->row) >= (uint32) w->n)
	{
		load_window(so, part, item->row);
		w = part->window;
	}
	r = item->row - w->row;
	Assert(r >= 0 && r < w->n);
	if (w->isnull[r])
		return NULL;
	return (IndexTuple) (w->tuples + r * IndexTupleSize(so->tuples.fixed));
}

void
hyb_tuple_form(HybScan *so, const HybScanItem *item)
{
	if (so->tuples.window_rows > 0)
	{
		IndexTuple	tuple = window_tuple(so, item);

		if (tuple != NULL)
		{
			so->scan->xs_hitup = NULL;
			so->scan->xs_itup = tuple;
			return;
		}
	}
	form_one(so, item);
}
