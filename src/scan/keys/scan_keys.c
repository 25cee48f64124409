/*
 * scan_keys.c
 *		From scan keys to the bounds of a range of the index, and qualifiers.
 *
 * First the keys on each column become one HybScanColumn.  Then the columns are
 * gone through in index order:
 *
 * - Leading columns with equality (a constant, IS NULL, or an array) make the
 *   prefix of both ends of the range.
 * - The first column with a weaker condition may narrow the range further.
 * - Conditions on later columns are checked entry by entry.
 *
 * As in nbtree's preprocessing (access/nbtree/nbtutils.c), contradictory keys
 * make an empty scan.  Bounds are kept in index order: on a DESC column `<` gives
 * a lower bound.
 *
 * All memory but the growable buffers and the qualifiers comes from key_context,
 * which is reset at each rescan.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "scan/keys/conditions.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Bytes of a string that a simple key may have: most e-mail addresses are shorter. */
#define SHORT_STRING		64

/*
 * The column compares like `strategy` to the value, which is of the column's
 * type.  Returns false, nothing done, if the value is too long for a bound.
 */
static bool
add_comparison(HybScanKeys *keys, int column, StrategyNumber strategy, Datum value)
{
	bool		strict = false;
	HybScanConst c = hyb_encode_constant(keys, column, value, false);

	if (unlikely(c.len > HYB_MAX_CONSTANT_SIZE))
		return false;

	switch (strategy)
	{
		case BTLessStrategyNumber:
		case BTGreaterStrategyNumber:
			strict = true;
			pg_fallthrough;
		case BTLessEqualStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			hyb_tighten(keys, column,
						(strategy <= BTLessEqualStrategyNumber) !=
						keys->ix->desc->cols[column].desc, c, strict);
			break;
		case BTEqualStrategyNumber:
			hyb_tighten(keys, column, false, c, false);
			hyb_tighten(keys, column, true, c, false);
			break;
		default:
			elog(ERROR, "unrecognized strategy number: %d", strategy);
	}
	return true;
}

/* A key with one constant that is not NULL. */
static void
process_scalar(HybScanKeys *keys, ScanKey key, int column)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	StrategyNumber strategy = key->sk_strategy;
	bool		less = (strategy == BTLessStrategyNumber ||
						strategy == BTLessEqualStrategyNumber);
	bool		greater = (strategy == BTGreaterStrategyNumber ||
						   strategy == BTGreaterEqualStrategyNumber);
	Datum		lo;
	Datum		hi;

	switch (hyb_place_constant(col, key->sk_subtype, key->sk_argument,
							   &lo, &hi))
	{
		case HYB_CONSTANT_EXACT:
			if (add_comparison(keys, column, strategy, lo))
				break;
			if (strategy == BTEqualStrategyNumber &&
				col->compare != HYB_COMPARE_PROC)
				keys->empty = true; /* equal values would have equal length */
			else
				hyb_add_function_qual(keys, key, &key->sk_argument, 1);
			break;
		case HYB_CONSTANT_BESIDE:
			if (!less && !greater)
			{
				keys->empty = true;
				break;
			}
			pg_fallthrough;
		case HYB_CONSTANT_BETWEEN:
			/* what is equal lies between hi and lo, which overlap */
			if (!greater)
				(void) add_comparison(keys, column, BTLessEqualStrategyNumber,
									  lo);
			if (!less)
				(void) add_comparison(keys, column, BTGreaterEqualStrategyNumber,
									  hi);
			hyb_add_function_qual(keys, key, &key->sk_argument, 1);
			break;
		case HYB_CONSTANT_BELOW:
			if (!greater)
				keys->empty = true;
			break;
		case HYB_CONSTANT_ABOVE:
			if (!less)
				keys->empty = true;
			break;
		case HYB_CONSTANT_UNKNOWN:
			hyb_add_function_qual(keys, key, &key->sk_argument, 1);
			break;
	}
}

/*
 * Sort the elements of an array key, as values of the column.  With equality,
 * elements that no value equals are left out.  The result is NULL if it is not known
 * which value equals an element, with other strategies if none does, and if one is too
 * long.
 */
static HybScanArray *
make_array(const HybColumn *col, Oid subtype, StrategyNumber strategy,
		   const Datum *elems, int nelems)
{
	HybScanArray *array = hyb_array_create(nelems);

	for (int i = 0; i < nelems; i++)
	{
		Datum		lo;
		Datum		hi;
		HybConstantPlace conversion = hyb_place_constant(col, subtype, elems[i],
														 &lo, &hi);

		if (conversion == HYB_CONSTANT_EXACT)
		{
			if (!hyb_array_add(col, array, lo))
				return NULL;
			continue;
		}
		if (strategy != BTEqualStrategyNumber ||
			conversion == HYB_CONSTANT_BETWEEN ||
			conversion == HYB_CONSTANT_UNKNOWN)
			return NULL;
	}
	hyb_array_sort(col, array);
	return array;
}

/*
 * Bound the column by an array whose places are not all known exactly: what is
 * below one element is below the greatest.  Nothing is done if the place of an
 * element is not known at all.
 */
static void
bound_array(HybScanKeys *keys, ScanKey key, int column, const Datum *elems,
			int nelems)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	StrategyNumber strategy = key->sk_strategy;
	Datum		greatest = (Datum) 0;
	Datum		least = (Datum) 0;

	for (int i = 0; i < nelems; i++)
	{
		Datum		lo;
		Datum		hi;

		switch (hyb_place_constant(col, key->sk_subtype, elems[i], &lo, &hi))
		{
			case HYB_CONSTANT_EXACT:
			case HYB_CONSTANT_BETWEEN:
			case HYB_CONSTANT_BESIDE:
				break;
			default:
				return;
		}
		if (i == 0 ||
			DatumGetInt32(FunctionCall2Coll(col->order_proc, col->collation,
											lo, greatest)) > 0)
			greatest = lo;
		if (i == 0 ||
			DatumGetInt32(FunctionCall2Coll(col->order_proc, col->collation,
											hi, least)) < 0)
			least = hi;
	}
	if (strategy <= BTEqualStrategyNumber)
		(void) add_comparison(keys, column, BTLessEqualStrategyNumber, greatest);
	if (strategy >= BTEqualStrategyNumber)
		(void) add_comparison(keys, column, BTGreaterEqualStrategyNumber, least);
}

/* A key with an array that is not NULL: column op ANY (array). */
static void
process_array(HybScanKeys *keys, ScanKey key, int column)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	HybScanColumn *sc = &keys->columns[column];
	ArrayType  *arg = DatumGetArrayTypeP(key->sk_argument);
	int16		elmlen;
	bool		elmbyval;
	char		elmalign;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;
	int			n = 0;
	HybScanArray *array;

	get_typlenbyvalalign(ARR_ELEMTYPE(arg), &elmlen, &elmbyval, &elmalign);
	deconstruct_array(arg, ARR_ELEMTYPE(arg), elmlen, elmbyval, elmalign,
					  &elems, &nulls, &nelems);
	for (int i = 0; i < nelems; i++)
	{
		if (!nulls[i])
			elems[n++] = elems[i];
	}
	if (n == 0)
	{
		keys->empty = true;
		return;
	}

	pfree(nulls);
	array = make_array(col, key->sk_subtype, key->sk_strategy, elems, n);
	if (array == NULL)
	{
		bound_array(keys, key, column, elems, n);
		hyb_add_function_qual(keys, key, elems, n);
		return;
	}

	/* the elements point into the argument; the array has its own */
	pfree(elems);
	if ((Pointer) arg != DatumGetPointer(key->sk_argument))
		pfree(arg);
	if (array->nelems == 0)
		keys->empty = true;
	else if (key->sk_strategy == BTEqualStrategyNumber)
	{
		if (sc->array == NULL)
			sc->array = array;
		else
			hyb_array_intersect(col, sc->array, array);
	}
	else
	{
		/* The weakest comparison decides: the greatest for < and <=. */
		bool		greatest = (key->sk_strategy == BTLessStrategyNumber ||
								key->sk_strategy == BTLessEqualStrategyNumber);
		int			i = (greatest != col->desc) ? array->nelems - 1 : 0;
		HybValue	val;

		hyb_array_value(col, array, i, &val);
		(void) add_comparison(keys, column, key->sk_strategy,
							  hyb_value_decode(col, &val));
	}
}

static void
process_key(HybScanKeys *keys, ScanKey key)
{
	int			column = key->sk_attno - 1;
	HybScanColumn *sc;

	if (column < 0 || column >= keys->ix->desc->nkeys)
		elog(ERROR, "scan key on attribute %d of index \"%s\"",
			 key->sk_attno, RelationGetRelationName(keys->ix->rel));

	sc = &keys->columns[column];
	sc->used = true;
	if (key->sk_flags & SK_SEARCHNULL)
	{
		sc->isnull = true;
		return;
	}
	sc->notnull = true;
	if (key->sk_flags & SK_SEARCHNOTNULL)
		return;

	if (key->sk_flags & SK_ISNULL)
		keys->empty = true;		/* all operators are strict */
	else if (key->sk_flags & SK_SEARCHARRAY)
		process_array(keys, key, column);
	else
		process_scalar(keys, key, column);
}

/*
 * Settle what the conditions on one column mean together.  Returns false if
 * nothing satisfies them.
 */
static bool
settle_column(HybScanKeys *keys, int column)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	HybScanColumn *sc = &keys->columns[column];

	if (sc->isnull)
		return !sc->notnull;

	if (sc->lower.set && sc->upper.set)
	{
		int			cmp = hyb_compare_constants(keys, column, &sc->lower.value, &sc->upper.value);

		if (cmp > 0 || (cmp == 0 && (sc->lower.strict || sc->upper.strict)))
			return false;
	}
	if (sc->array != NULL)
	{
		HybScanArray *array = sc->array;
		int			from = 0;
		int			to = array->nelems;
		HybValue	bound;
		bool		equal;

		if (sc->lower.set)
		{
			(void) hyb_constant_value(keys, column, &sc->lower.value, &bound);
			from = hyb_array_search(col, array, &bound, &equal);
			if (equal && sc->lower.strict)
				from++;
		}
		if (sc->upper.set)
		{
			(void) hyb_constant_value(keys, column, &sc->upper.value, &bound);
			to = hyb_array_search(col, array, &bound, &equal);
			if (equal && !sc->upper.strict)
				to++;
		}
		Assert(from >= 0 && to <= array->nelems);
		hyb_array_keep(array, from, to);
		sc->lower.set = false;
		sc->upper.set = false;
		return array->nelems > 0;
	}
	return true;
}

/* Is the column bound to one value (an array: to one at a time)? */
static bool
is_bound_to_value(const HybScanKeys *keys, int column)
{
	const HybScanColumn *sc = &keys->columns[column];

	if (sc->isnull || sc->array != NULL)
		return true;
	return sc->lower.set && sc->upper.set &&
		(sc->lower.value.off == sc->upper.value.off ||
		 hyb_compare_constants(keys, column, &sc->lower.value, &sc->upper.value) == 0);
}

/* Is it, and neither NULL nor an array? */
static bool
has_one_value(const HybScanKeys *keys, int column)
{
	const HybScanColumn *sc = &keys->columns[column];

	return sc->used && !sc->isnull && sc->array == NULL &&
		is_bound_to_value(keys, column);
}

/* A qualifier for a bound of a column, if there is one. */
static void
qualify_bound(HybScanKeys *keys, int column, const HybScanBound *bound,
			  HybScanQualKind kind)
{
	HybScanQual *qual;

	if (!bound->set)
		return;
	qual = hyb_add_qual(keys, kind, column);
	qual->strict = bound->strict;
	(void) hyb_constant_value(keys, column, &bound->value, &qual->val);
}

/* Qualifiers for a column that the range does not cover. */
static void
qualify_column(HybScanKeys *keys, int column)
{
	const HybScanColumn *sc = &keys->columns[column];

	Assert(column >= keys->nprefix && !(sc->isnull && sc->notnull));
	if (sc->isnull)
		hyb_add_qual(keys, HYB_QUAL_NULL, column);
	else if (sc->array != NULL)
		hyb_add_qual(keys, HYB_QUAL_ARRAY, column)->array = sc->array;
	else if (sc->lower.set || sc->upper.set)
	{
		qualify_bound(keys, column, &sc->lower, HYB_QUAL_LOWER);
		qualify_bound(keys, column, &sc->upper, HYB_QUAL_UPPER);
	}
	else
		hyb_add_qual(keys, HYB_QUAL_NOT_NULL, column);
}

/* What the keys say about each column; keys->empty if nothing satisfies them. */
static void
process_keys(HybScanKeys *keys)
{
	for (int i = 0; i < keys->ngiven && !keys->empty; i++)
	{
		ScanKey		key = &keys->given[i];

		if (unlikely((key->sk_flags & SK_ROW_HEADER) != 0 ||
					 key->sk_func.fn_oid == F_BTRECORDCMP))
		{
			hyb_row_process(keys, key);
			i += hyb_row_keys(key, keys->ngiven - i) - 1;
		}
		else
			process_key(keys, key);
	}
	for (int i = 0; i < keys->ix->desc->nkeys && !keys->empty; i++)
	{
		if (keys->columns[i].used && !settle_column(keys, i))
			keys->empty = true;
		else if (keys->nrows > 0 && has_one_value(keys, i) &&
				 !hyb_rows_reduce(keys, i))
			keys->empty = true;
	}
}

bool
hyb_key_is_simple(const HybKeyDesc *desc, int column, const ScanKeyData *key,
				  Datum *value)
{
	const HybColumn *col = &desc->cols[column];
	const struct varlena *string;
	Datum		high;

	if (key->sk_flags != 0 || key->sk_attno != column + 1 ||
		key->sk_strategy != BTEqualStrategyNumber || col->codec == NULL)
		return false;
	*value = key->sk_argument;
	/* literals are int4 where the column is int8 */
	if (OidIsValid(key->sk_subtype) && key->sk_subtype != col->opcintype)
		return col->attbyval && hyb_place_constant(col, key->sk_subtype, key->sk_argument,
												   value, &high) == HYB_CONSTANT_EXACT;
	if (col->attlen != -1)
		return col->attlen > 0;
	string = (const struct varlena *) DatumGetPointer(*value);
	return !VARATT_IS_EXTERNAL(string) && !VARATT_IS_COMPRESSED(string) &&
		VARSIZE_ANY_EXHDR(string) <= SHORT_STRING;
}

/*
 * The keys of most scans: simple ones for the first columns, one each in their
 * order.  This does what hyb_scan_preprocess would do.  Returns false, nothing done,
 * if there are other keys.
 */
static bool
process_equalities(HybScanKeys *keys)
{
	const HybKeyDesc *desc = keys->ix->desc;
	int			n = keys->ngiven;
	Datum		values[INDEX_MAX_KEYS];

	if (n > desc->nkeys)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (!hyb_key_is_simple(desc, i, &keys->given[i], &values[i]))
			return false;
	}
	for (int i = 0; i < n; i++)
	{
		HybScanColumn *sc = &keys->columns[i];
		HybScanConst c = hyb_encode_constant(keys, i, values[i], false);

		sc->used = true;
		sc->notnull = true;
		sc->lower.set = true;
		sc->lower.value = c;
		sc->upper = sc->lower;
		keys->prefix[i].array = NULL;
		keys->prefix[i].elem = 0;
		keys->prefix[i].value = c;
	}
	keys->nprefix = n;
	keys->point = n == desc->nkeys;
	Assert(keys->constants.len <= HYB_MAX_BOUND_SIZE);
	return true;
}

void
hyb_scan_preprocess(HybScanKeys *keys)
{
	int			nkeys = keys->ix->desc->nkeys;
	MemoryContext old;
	uint32		size = 0;
	int			column;

	keys->empty = false;
	keys->nquals = 0;
	keys->nrows = 0;
	keys->nprefix = 0;
	keys->narrays = 0;
	keys->has_range = false;
	keys->hop_last = -1;
	keys->constants.len = 0;
	memset(keys->columns, 0, nkeys * sizeof(HybScanColumn));
	if (process_equalities(keys))
		return;

	if (keys->context == NULL)
		keys->context = AllocSetContextCreate(keys->ix->context,
											  "hybrid scan keys",
											  ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(keys->context);
	old = MemoryContextSwitchTo(keys->context);

	process_keys(keys);
	if (keys->empty)
	{
		MemoryContextSwitchTo(old);
		return;
	}

	for (column = 0; column < nkeys; column++)
	{
		HybScanColumn *sc = &keys->columns[column];
		HybScanPrefix *prefix = &keys->prefix[column];

		if (!sc->used || !is_bound_to_value(keys, column))
			break;
		if (sc->array == NULL && sc->isnull)
			sc->lower.value = hyb_encode_constant(keys, column, (Datum) 0, true);
		size += sc->array ? sc->array->maxlen : sc->lower.value.len;
		if (size > HYB_MAX_BOUND_SIZE)
			break;
		prefix->array = sc->array;
		prefix->elem = 0;
		prefix->value = sc->lower.value;
		if (sc->array != NULL)
			keys->narrays++;
		keys->nprefix++;
	}
	keys->point = (keys->nprefix == nkeys);
	if (column < nkeys && keys->columns[column].used &&
		size <= HYB_MAX_BOUND_SIZE - HYB_MAX_CONSTANT_SIZE)
	{
		keys->has_range = true;
		column++;
	}
	for (; column < nkeys; column++)
	{
		if (keys->columns[column].used)
		{
			qualify_column(keys, column);
			keys->hop_last = keys->ix->desc->truncated ? -1 : column;
		}
	}
	Assert(size <= HYB_MAX_BOUND_SIZE || !keys->has_range);
	if (keys->nrows > 0)
		hyb_rows_settle(keys, size);
	MemoryContextSwitchTo(old);
}

#ifdef USE_ASSERT_CHECKING

static void
assert_constant(const HybScanKeys *keys, const HybScanConst *c)
{
	Assert(c->len > 0);
	Assert(c->off + c->len <= keys->constants.len);
}

static void
assert_bound(const HybScanKeys *keys, int column, const HybScanBound *bound)
{
	if (!bound->set)
		return;
	assert_constant(keys, &bound->value);
	Assert(bound->more >= 0);
	Assert(column + bound->more < keys->ix->desc->nkeys);
}

static void
assert_columns(const HybScanKeys *keys)
{
	const HybKeyDesc *desc = keys->ix->desc;
	int			narrays = 0;

	for (int i = 0; i < desc->nkeys; i++)
	{
		const HybScanColumn *sc = &keys->columns[i];

		assert_bound(keys, i, &sc->lower);
		assert_bound(keys, i, &sc->upper);
		Assert(sc->used || !(sc->lower.set || sc->upper.set || sc->array != NULL));
		Assert(!(sc->isnull && sc->notnull));
		/* a NULL satisfies no comparison */
		Assert(sc->notnull || !(sc->lower.set || sc->upper.set || sc->array != NULL));
	}
	for (int i = 0; i < keys->nprefix; i++)
	{
		const HybScanPrefix *prefix = &keys->prefix[i];

		if (prefix->array == NULL)
		{
			assert_constant(keys, &prefix->value);
			continue;
		}
		narrays++;
		Assert(prefix->elem >= 0 && prefix->elem < prefix->array->nelems);
	}
	Assert(narrays == keys->narrays);
}

void
hyb_keys_assert_valid(const HybScanKeys *keys)
{
	const HybKeyDesc *desc = keys->ix->desc;

	if (keys->empty)
		return;
	Assert(keys->nprefix >= 0 && keys->nprefix <= desc->nkeys);
	Assert(keys->point == (keys->nprefix == desc->nkeys));
	Assert(!keys->has_range || keys->nprefix < desc->nkeys);
	Assert(keys->point_hash == 0 || (keys->point && desc->exact));
	assert_columns(keys);
	Assert(keys->nquals >= 0 && keys->nquals <= keys->quals_alloc);
	for (int i = 0; i < keys->nquals; i++)
		Assert(keys->quals[i].column >= 0 && keys->quals[i].column < desc->nkeys);
	/* only columns behind the range's are hopped over */
	Assert(keys->hop_last < desc->nkeys);
	Assert(keys->hop_last < 0 || (keys->hop_last >= keys->nprefix && !desc->truncated));
	/* empty ranges were sorted out */
	Assert(!desc->all_mem || hyb_pos_compare(desc, &keys->start, &keys->end) <= 0);
}

#endif							/* USE_ASSERT_CHECKING */
