/*
 * scan_constant.c
 *		The constants of scan keys: where they lie among the values of a column, and
 *		the elements of arrays.
 *
 * A constant of another type of the operator family becomes a value of the
 * column's type if the codec can do that (HybCodec.cast).  Otherwise the
 * place of the constant is known roughly or not at all, and the key's own
 * operator decides.
 *
 * An array keeps its elements encoded as values of the column, sorted in index order,
 * without duplicates.  An array may have millions of elements, so nothing else is
 * kept of them.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "catalog/pg_type.h"
#include "key/key.h"
#include "scan/keys/conditions.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

HybConstantPlace
hyb_place_constant(const HybColumn *col, Oid subtype, Datum value,
				   Datum *lo, Datum *hi)
{
	HybCast		converted = {.exact = true};

	if (subtype == InvalidOid || subtype == col->opcintype)
	{
		*lo = *hi = value;
		return HYB_CONSTANT_EXACT;
	}
	if (col->codec == NULL)
	{
		/* The one pair of types without a codec */
		if (col->opcintype == TEXTOID && subtype == NAMEOID)
		{
			*lo = *hi = CStringGetTextDatum(NameStr(*DatumGetName(value)));
			return HYB_CONSTANT_EXACT;
		}
		if (col->opcintype == NAMEOID && subtype == TEXTOID)
		{
			text	   *t = DatumGetTextPP(value);
			Name		name;

			/* by its collation, a longer text may lie or be anywhere */
			if (VARSIZE_ANY_EXHDR(t) >= NAMEDATALEN)
				return HYB_CONSTANT_UNKNOWN;
			name = palloc0(NAMEDATALEN);
			memcpy(NameStr(*name), VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
			*lo = *hi = NameGetDatum(name);
			return HYB_CONSTANT_EXACT;
		}
		return HYB_CONSTANT_UNKNOWN;
	}
	if (col->codec->cast == NULL ||
		!col->codec->cast(subtype, value, &converted))
		return HYB_CONSTANT_UNKNOWN;
	if (converted.below_all)
		return HYB_CONSTANT_BELOW;
	if (converted.above_all)
		return HYB_CONSTANT_ABOVE;
	*lo = converted.lo;
	*hi = converted.hi;
	if (converted.exact)
		return HYB_CONSTANT_EXACT;

	/* Where lo and hi do not overlap the constant lies in the gap. */
	return DatumGetInt32(FunctionCall2Coll(col->order_proc, col->collation,
										   *lo, *hi)) < 0 ?
		HYB_CONSTANT_BESIDE : HYB_CONSTANT_BETWEEN;
}

const uint8 *
hyb_constant_value(const HybScanKeys *keys, int column, const HybScanConst *c,
				   HybValue *val)
{
	const uint8 *p = keys->constants.data + c->off;

	p = hyb_parse_column(&keys->ix->desc->cols[column], p, p + c->len, val);
	if (p == NULL)
		elog(ERROR, "malformed scan key constant");
	return p;
}

int
hyb_compare_constants(const HybScanKeys *keys, int column, const HybScanConst *a,
					  const HybScanConst *b)
{
	HybValue	va;
	HybValue	vb;

	Assert(a->off + a->len <= keys->constants.len && b->off + b->len <= keys->constants.len);
	/* both ends of an equality are one constant */
	if (a->off == b->off)
		return 0;
	(void) hyb_constant_value(keys, column, a, &va);
	(void) hyb_constant_value(keys, column, b, &vb);
	return hyb_value_compare(&keys->ix->desc->cols[column], &va, &vb);
}

void
hyb_tighten(HybScanKeys *keys, int column, bool upper, HybScanConst c, bool strict)
{
	HybScanColumn *sc = &keys->columns[column];
	HybScanBound *bound = upper ? &sc->upper : &sc->lower;

	if (bound->set)
	{
		int			cmp = hyb_compare_constants(keys, column, &c, &bound->value);

		if ((upper ? cmp > 0 : cmp < 0) || (cmp == 0 && !strict))
			return;
	}
	Assert(c.len <= HYB_MAX_CONSTANT_SIZE && bound->more == 0);
	bound->set = true;
	bound->strict = strict;
	bound->value = c;
}

/* ---- arrays ---- */

HybScanArray *
hyb_array_create(int nelems)
{
	HybScanArray *array = palloc0(sizeof(HybScanArray));

	array->alloc = Max(nelems, 1);
	array->elems = MemoryContextAllocHuge(CurrentMemoryContext,
										  (Size) array->alloc * sizeof(uint64));
	return array;
}

bool
hyb_array_add(const HybColumn *col, HybScanArray *array, Datum value)
{
	uint32		off = array->bytes.len;
	uint32		len;

	Assert(array->nelems < array->alloc);
	hyb_key_encode_column(col, value, false, &array->bytes);
	len = array->bytes.len - off;
	array->maxlen = Max(array->maxlen, len);
	array->elems[array->nelems++] = (uint64) off << 32 | len;
	return len <= HYB_MAX_CONSTANT_SIZE;
}

static inline void
element_value(const HybColumn *col, const HybScanArray *array, uint64 elem,
			  HybValue *val)
{
	const uint8 *p = array->bytes.data + (elem >> 32);

	if (hyb_parse_column(col, p, p + (uint32) elem, val) == NULL)
		elog(ERROR, "malformed scan key constant");
}

void
hyb_array_value(const HybColumn *col, const HybScanArray *array, int i,
				HybValue *val)
{
	Assert(i >= 0 && i < array->nelems);
	element_value(col, array, array->elems[i], val);
}

typedef struct SortArgument
{
	const HybColumn *col;
	const HybScanArray *array;
} SortArgument;

static int
compare_sorted(const void *a, const void *b, void *arg)
{
	const SortArgument *sort = arg;
	HybValue	va;
	HybValue	vb;

	element_value(sort->col, sort->array, *(const uint64 *) a, &va);
	element_value(sort->col, sort->array, *(const uint64 *) b, &vb);
	return hyb_value_compare(sort->col, &va, &vb);
}

static inline int
compare_elements(const HybColumn *col, const HybScanArray *a, int i,
				 const HybScanArray *b, int j)
{
	HybValue	va;
	HybValue	vb;

	hyb_array_value(col, a, i, &va);
	hyb_array_value(col, b, j, &vb);
	return hyb_value_compare(col, &va, &vb);
}

#ifdef USE_ASSERT_CHECKING

/* Elements of an array whose order is looked at. */
#define MOST_ELEMENTS	64

static void
array_assert_valid(const HybColumn *col, const HybScanArray *array)
{
	Assert(array->nelems >= 0 && array->nelems <= array->alloc);
	for (int i = 0; i < array->nelems; i++)
		Assert((array->elems[i] >> 32) + (uint32) array->elems[i] <= array->bytes.len &&
			   (uint32) array->elems[i] <= array->maxlen);
	if (col->compare == HYB_COMPARE_PROC)
		return;
	for (int i = 1; i < Min(array->nelems, MOST_ELEMENTS); i++)
	{
		HybValue	before;
		HybValue	val;

		hyb_array_value(col, array, i - 1, &before);
		hyb_array_value(col, array, i, &val);
		Assert(hyb_value_compare(col, &before, &val) < 0);
	}
}

#else
#define array_assert_valid(col, array) ((void) (array))
#endif

void
hyb_array_sort(const HybColumn *col, HybScanArray *array)
{
	SortArgument sort = {.col = col,.array = array};
	int			kept = 1;

	if (array->nelems < 2)
		return;
	qsort_arg(array->elems, array->nelems, sizeof(uint64), compare_sorted, &sort);
	for (int i = 1; i < array->nelems; i++)
		if (compare_elements(col, array, kept - 1, array, i) != 0)
			array->elems[kept++] = array->elems[i];
	array->nelems = kept;
	array_assert_valid(col, array);
}

void
hyb_array_intersect(const HybColumn *col, HybScanArray *array,
					const HybScanArray *other)
{
	int			kept = 0;
	int			j = 0;

	for (int i = 0; i < array->nelems && j < other->nelems;)
	{
		int			cmp = compare_elements(col, array, i, other, j);

		if (cmp == 0)
		{
			array->elems[kept++] = array->elems[i++];
			j++;
		}
		else if (cmp < 0)
			i++;
		else
			j++;
	}
	array->nelems = kept;
	array_assert_valid(col, array);
}

void
hyb_array_keep(HybScanArray *array, int from, int to)
{
	Assert(from >= 0 && to <= array->nelems);
	array->nelems = Max(to - from, 0);
	if (from > 0)
		memmove(array->elems, array->elems + from, array->nelems * sizeof(uint64));
}

int
hyb_array_search(const HybColumn *col, const HybScanArray *array,
				 const HybValue *val, bool *equal)
{
	int			low = 0;
	int			high = array->nelems;

	*equal = false;
	while (low < high)
	{
		int			mid = low + (high - low) / 2;
		HybValue	elem;
		int			cmp;

		hyb_array_value(col, array, mid, &elem);
		cmp = hyb_value_compare(col, &elem, val);
		if (cmp < 0)
			low = mid + 1;
		else
		{
			high = mid;
			*equal |= cmp == 0;
		}
	}
	Assert(!*equal || low < array->nelems);
	return low;
}
