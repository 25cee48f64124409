/*
 * scan_keys.c
 *		From scan keys to what bounds a range of the index, and qualifiers.
 *
 * The keys on each column are first reduced to one HybScanColumn.  Leading
 * columns with equality (a constant, IS NULL, or an array) make the prefix of
 * both ends of the range, the first column with a weaker condition may narrow
 * it further, and everything on later columns is checked entry by entry.  As
 * in nbtree's preprocessing (access/nbtree/nbtutils.c), contradictory keys
 * make an empty scan.
 *
 * Bounds are kept in index order: on a DESC column `<` gives a lower bound.
 * Constants of another type of the operator family are turned into values of
 * the column's type where the codec can (HybCodec.convert); where it cannot,
 * or not exactly, the key's own operator decides.
 *
 * All memory but the growable buffers and the qualifiers comes from
 * key_context, which is reset at each rescan.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "base/memory.h"
#include "catalog/pg_type.h"
#include "key/key.h"
#include "scan/scan.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Qualifiers that there is room for once there is one. */
#define FIRST_QUALS	4

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

/*
 * The values of the column's type that a constant equals whose place is known
 * only roughly: how many, or -1.
 */
static int
equal_constants(const HybColumn *col, Oid subtype, Datum value, Datum *equal)
{
	return col->codec != NULL && col->codec->equals != NULL ?
		col->codec->equals(subtype, value, equal) : -1;
}

/* Encode a value of a column to the constants. */
HybScanConst
hyb_encode_constant(HybScan *so, int column, Datum value, bool isnull)
{
	HybScanConst c;

	c.off = so->constants.len;
	hyb_key_encode_column(&so->ix->desc->cols[column], value, isnull,
						  &so->constants);
	c.len = so->constants.len - c.off;
	return c;
}

/*
 * A column encoding as a value.  Points into the buffer of constants, so it
 * holds only until the next constant is added.
 */
void
hyb_constant_value(const HybScan *so, int column, const HybScanConst *c,
				   HybValue *val)
{
	const uint8 *p = so->constants.data + c->off;

	if (hyb_parse_column(&so->ix->desc->cols[column], p, p + c->len,
						 val) == NULL)
		elog(ERROR, "malformed scan key constant");
}

int
hyb_compare_constants(const HybScan *so, int column, const HybScanConst *a,
					  const HybScanConst *b)
{
	HybValue	va;
	HybValue	vb;

	Assert(a->off + a->len <= so->constants.len && b->off + b->len <= so->constants.len);
	/* both ends of an equality are one constant */
	if (a->off == b->off)
		return 0;
	hyb_constant_value(so, column, a, &va);
	hyb_constant_value(so, column, b, &vb);
	return hyb_value_compare(&so->ix->desc->cols[column], &va, &vb);
}

HybScanQual *
hyb_add_qual(HybScan *so, HybScanQualKind kind, int column)
{
	HybScanQual *qual;

	if (so->nquals >= so->quals_alloc)
	{
		so->quals_alloc = Max(so->quals_alloc * 2, FIRST_QUALS);
		so->quals = hyb_grow(so->context, so->quals, so->quals_alloc,
							 sizeof(HybScanQual));
	}
	qual = &so->quals[so->nquals++];
	memset(qual, 0, sizeof(HybScanQual));
	qual->kind = kind;
	qual->column = column;
	return qual;
}

/* The column is at or above a constant, or below it, in index order. */
void
hyb_tighten(HybScan *so, int column, bool upper, HybScanConst c, bool strict)
{
	HybScanColumn *sc = &so->columns[column];
	HybScanBound *bound = upper ? &sc->upper : &sc->lower;

	if (bound->set)
	{
		int			cmp = hyb_compare_constants(so, column, &c, &bound->value);

		if ((upper ? cmp > 0 : cmp < 0) || (cmp == 0 && !strict))
			return;
	}
	Assert(c.len <= HYB_MAX_CONSTANT_SIZE && bound->more == 0);
	bound->set = true;
	bound->strict = strict;
	bound->value = c;
}

/* The column is equal to a value of its type. */
static inline void
note_equal(HybScanColumn *sc, const HybColumn *col, Datum value)
{
	if (hyb_column_is_encoded(col) && !col->codec->blank_padded)
	{
		sc->has_equal = true;
		sc->equal = value;
	}
}

/*
 * The column compares like `strategy` to the value, which is of the column's
 * type.  Returns false, nothing done, if the value is too long for a bound.
 */
static bool
add_comparison(HybScan *so, int column, StrategyNumber strategy, Datum value)
{
	const HybColumn *col = &so->ix->desc->cols[column];
	bool		strict = false;
	HybScanConst c = hyb_encode_constant(so, column, value, false);

	if (unlikely(c.len > HYB_MAX_CONSTANT_SIZE))
		return false;

	switch (strategy)
	{
		case BTLessStrategyNumber:
		case BTGreaterStrategyNumber:
			strict = true;
			/* FALLTHROUGH */
		case BTLessEqualStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			hyb_tighten(so, column,
						(strategy <= BTLessEqualStrategyNumber) != col->desc, c,
						strict);
			break;
		case BTEqualStrategyNumber:
			hyb_tighten(so, column, false, c, false);
			hyb_tighten(so, column, true, c, false);
			note_equal(&so->columns[column], col, value);
			break;
		default:
			elog(ERROR, "unrecognized strategy number: %d", strategy);
	}
	return true;
}

/* A key with one constant that is not NULL. */
static void
process_scalar(HybScan *so, ScanKey key, int column)
{
	const HybColumn *col = &so->ix->desc->cols[column];
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
			if (add_comparison(so, column, strategy, lo))
				break;
			if (strategy == BTEqualStrategyNumber &&
				col->compare != HYB_COMPARE_PROC)
				so->empty = true;	/* equal values would have equal length */
			else
				hyb_add_qual(so, HYB_QUAL_FUNCTION, column)->key = key;
			break;
		case HYB_CONSTANT_BESIDE:
			if (!less && !greater)
			{
				so->empty = true;
				break;
			}
			/* FALLTHROUGH */
		case HYB_CONSTANT_BETWEEN:
			if (strategy == BTEqualStrategyNumber)
			{
				Datum		equal[HYB_MAX_EQUALS];
				int			n = equal_constants(col, key->sk_subtype,
												key->sk_argument, equal);

				if (n == 0)
					so->empty = true;
				if (n == 0 ||
					(n == 1 && add_comparison(so, column, strategy, equal[0])))
					break;
			}
			/* what is equal lies between hi and lo, which overlap */
			if (!greater)
				(void) add_comparison(so, column, BTLessEqualStrategyNumber,
									  lo);
			if (!less)
				(void) add_comparison(so, column, BTGreaterEqualStrategyNumber,
									  hi);
			hyb_add_qual(so, HYB_QUAL_FUNCTION, column)->key = key;
			break;
		case HYB_CONSTANT_BELOW:
			if (!greater)
				so->empty = true;
			break;
		case HYB_CONSTANT_ABOVE:
			if (!less)
				so->empty = true;
			break;
		case HYB_CONSTANT_UNKNOWN:
			hyb_add_qual(so, HYB_QUAL_FUNCTION, column)->key = key;
			break;
	}
}

/*
 * Sort the elements of an array key, as values of the column.  With equality,
 * an element becomes the values that equal it, none or several.  The result is
 * NULL where these cannot be told, with other strategies for elements that
 * have no exact value, and if one is too long.
 */
static HybScanArray *
make_array(const HybColumn *col, Oid subtype, StrategyNumber strategy,
		   const Datum *elems, int nelems)
{
	HybScanArray *array = hyb_array_create(col, nelems);

	for (int i = 0; i < nelems; i++)
	{
		Datum		lo;
		Datum		hi;
		Datum		equal[HYB_MAX_EQUALS];
		HybConstantPlace conversion = hyb_place_constant(col, subtype, elems[i],
														 &lo, &hi);

		if (conversion == HYB_CONSTANT_EXACT)
		{
			if (!hyb_array_add(col, array, lo))
				return NULL;
			continue;
		}
		if (strategy != BTEqualStrategyNumber ||
			conversion == HYB_CONSTANT_UNKNOWN)
			return NULL;
		if (conversion == HYB_CONSTANT_BETWEEN)
		{
			int			n = equal_constants(col, subtype, elems[i], equal);

			if (n < 0)
				return NULL;
			for (int j = 0; j < n; j++)
				if (!hyb_array_add(col, array, equal[j]))
					return NULL;
		}
	}
	hyb_array_sort(col, array);
	return array;
}

/*
 * Bounds for an array of which not every place is known exactly: what compares
 * so to one element lies on that side of the farthest.  Nothing is done if one
 * could be anywhere.
 */
static void
bound_array(HybScan *so, ScanKey key, int column, const Datum *elems,
			int nelems)
{
	const HybColumn *col = &so->ix->desc->cols[column];
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
		(void) add_comparison(so, column, BTLessEqualStrategyNumber, greatest);
	if (strategy >= BTEqualStrategyNumber)
		(void) add_comparison(so, column, BTGreaterEqualStrategyNumber, least);
}

/* A key with an array that is not NULL: column op ANY (array). */
static void
process_array(HybScan *so, ScanKey key, int column)
{
	const HybColumn *col = &so->ix->desc->cols[column];
	HybScanColumn *sc = &so->columns[column];
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
		so->empty = true;
		return;
	}

	pfree(nulls);
	array = make_array(col, key->sk_subtype, key->sk_strategy, elems, n);
	if (array == NULL)
	{
		HybScanQual *qual;

		bound_array(so, key, column, elems, n);
		qual = hyb_add_qual(so, HYB_QUAL_FUNCTION_ARRAY, column);
		qual->key = key;
		qual->elems = elems;
		qual->nelems = n;
		return;
	}

	/* the elements point into the argument; the array has its own */
	pfree(elems);
	if ((Pointer) arg != DatumGetPointer(key->sk_argument))
		pfree(arg);
	if (array->nelems == 0)
		so->empty = true;
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
		(void) add_comparison(so, column, key->sk_strategy,
							  hyb_value_decode(col, &val));
	}
}

static void
process_key(HybScan *so, ScanKey key)
{
	int			column = key->sk_attno - 1;
	HybScanColumn *sc;

	if (column < 0 || column >= so->ix->desc->nkeys)
		elog(ERROR, "scan key on attribute %d of index \"%s\"",
			 key->sk_attno, RelationGetRelationName(so->ix->rel));

	sc = &so->columns[column];
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
		so->empty = true;		/* all operators are strict */
	else if (key->sk_flags & SK_SEARCHARRAY)
		process_array(so, key, column);
	else
		process_scalar(so, key, column);
}

/*
 * Settle what the conditions on one column mean together.  Returns false if
 * nothing satisfies them.
 */
static bool
settle_column(HybScan *so, int column)
{
	const HybColumn *col = &so->ix->desc->cols[column];
	HybScanColumn *sc = &so->columns[column];

	if (sc->isnull)
		return !sc->notnull;

	if (sc->lower.set && sc->upper.set)
	{
		int			cmp = hyb_compare_constants(so, column, &sc->lower.value, &sc->upper.value);

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
			hyb_constant_value(so, column, &sc->lower.value, &bound);
			from = hyb_array_search(col, array, &bound, &equal);
			if (equal && sc->lower.strict)
				from++;
		}
		if (sc->upper.set)
		{
			hyb_constant_value(so, column, &sc->upper.value, &bound);
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
is_bound_to_value(const HybScan *so, int column)
{
	const HybScanColumn *sc = &so->columns[column];

	if (sc->isnull || sc->array != NULL)
		return true;
	return sc->lower.set && sc->upper.set &&
		(sc->lower.value.off == sc->upper.value.off ||
		 hyb_compare_constants(so, column, &sc->lower.value, &sc->upper.value) == 0);
}

/* Is it, and neither NULL nor an array? */
static bool
has_one_value(const HybScan *so, int column)
{
	const HybScanColumn *sc = &so->columns[column];

	return sc->used && !sc->isnull && sc->array == NULL &&
		is_bound_to_value(so, column);
}

/* Qualifiers for a column that the range does not cover. */
static void
qualify_column(HybScan *so, int column)
{
	const HybScanColumn *sc = &so->columns[column];

	Assert(column >= so->nprefix && !(sc->isnull && sc->notnull));
	if (sc->isnull)
		hyb_add_qual(so, HYB_QUAL_NULL, column);
	else if (sc->array != NULL)
		hyb_add_qual(so, HYB_QUAL_ARRAY, column)->array = sc->array;
	else
	{
		if (sc->lower.set)
			hyb_constant_value(so, column, &sc->lower.value,
							   &hyb_add_qual(so, sc->lower.strict ?
											 HYB_QUAL_LOWER_STRICT :
											 HYB_QUAL_LOWER, column)->val);
		if (sc->upper.set)
			hyb_constant_value(so, column, &sc->upper.value,
							   &hyb_add_qual(so, sc->upper.strict ?
											 HYB_QUAL_UPPER_STRICT :
											 HYB_QUAL_UPPER, column)->val);
		if (!sc->lower.set && !sc->upper.set)
			hyb_add_qual(so, HYB_QUAL_NOT_NULL, column);
	}
}

/*
 * Is a key's value of the column's type, and passed by value?  Then it is
 * encoded as it is, without memory but the scan's buffers.
 */
static inline bool
is_plain_value(const HybColumn *col, const ScanKeyData *key)
{
	return col->codec != NULL && col->attbyval &&
		(!OidIsValid(key->sk_subtype) || key->sk_subtype == col->opcintype);
}

/* Can processing the keys allocate memory? */
static bool
keys_take_memory(const HybScan *so)
{
	const HybKeyDesc *desc = so->ix->desc;
	IndexScanDesc scan = so->scan;

	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		const ScanKeyData *key = &scan->keyData[i];

		if (key->sk_attno < 1 || key->sk_attno > desc->nkeys)
			return true;		/* process_key complains */
		if (hyb_is_row_key(key))
			return true;
		if ((key->sk_flags & SK_SEARCHARRAY) ||
			!is_plain_value(&desc->cols[key->sk_attno - 1], key))
			return true;
	}
	return false;
}

/* What the keys say about each column; so->empty if nothing satisfies them. */
static void
process_keys(HybScan *so)
{
	for (int i = 0; i < so->scan->numberOfKeys && !so->empty; i++)
	{
		ScanKey		key = &so->scan->keyData[i];

		if (unlikely(hyb_is_row_key(key)))
		{
			hyb_row_process(so, key);
			i += hyb_row_keys(key, so->scan->numberOfKeys - i) - 1;
		}
		else
			process_key(so, key);
	}
	for (int i = 0; i < so->ix->desc->nkeys && !so->empty; i++)
	{
		if (so->columns[i].used && !settle_column(so, i))
			so->empty = true;
		else if (so->nrows > 0 && has_one_value(so, i) &&
				 !hyb_rows_reduce(so, i))
			so->empty = true;
	}
}

/*
 * The keys of most scans: equalities on the first columns, one each in their
 * order, with values of the columns' types that are passed by value.  Done is
 * what all of the below would do.  Returns false, nothing done, if there are
 * other keys.
 */
static bool
process_equalities(HybScan *so)
{
	const HybKeyDesc *desc = so->ix->desc;
	IndexScanDesc scan = so->scan;
	int			n = scan->numberOfKeys;

	if (n > desc->nkeys)
		return false;
	for (int i = 0; i < n; i++)
	{
		const ScanKeyData *key = &scan->keyData[i];

		if (key->sk_flags != 0 || key->sk_attno != i + 1 ||
			key->sk_strategy != BTEqualStrategyNumber ||
			!is_plain_value(&desc->cols[i], key))
			return false;
	}
	for (int i = 0; i < n; i++)
	{
		Datum		value = scan->keyData[i].sk_argument;
		HybScanColumn *sc = &so->columns[i];
		HybScanConst c = hyb_encode_constant(so, i, value, false);

		sc->used = true;
		sc->notnull = true;
		sc->lower.set = true;
		sc->lower.value = c;
		sc->upper = sc->lower;
		note_equal(sc, &desc->cols[i], value);
		so->prefix[i].array = NULL;
		so->prefix[i].elem = 0;
		so->prefix[i].value = c;
	}
	so->nprefix = n;
	so->point = n == desc->nkeys;
	Assert(so->constants.len <= HYB_MAX_BOUND_SIZE);
	return true;
}

/*
 * Process the scan keys.  Leaves so->empty set if nothing can match; else the
 * range is built by hyb_scan_arrays_first.
 */
void
hyb_scan_preprocess(HybScan *so)
{
	int			nkeys = so->ix->desc->nkeys;
	MemoryContext old;
	uint32		size = 0;
	int			column;

	so->empty = false;
	so->nquals = 0;
	so->nrows = 0;
	so->nprefix = 0;
	so->narrays = 0;
	so->has_range = false;
	so->hop_last = -1;
	so->constants.len = 0;
	memset(so->columns, 0, nkeys * sizeof(HybScanColumn));
	if (process_equalities(so))
		return;

	if (so->key_context != NULL)
		MemoryContextReset(so->key_context);
	else if (keys_take_memory(so))
		so->key_context = AllocSetContextCreate(so->context,
												"hybrid scan keys",
												ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(so->key_context != NULL ? so->key_context :
								so->context);

	process_keys(so);
	if (so->empty)
	{
		MemoryContextSwitchTo(old);
		return;
	}

	for (column = 0; column < nkeys; column++)
	{
		HybScanColumn *sc = &so->columns[column];
		HybScanPrefix *prefix = &so->prefix[column];

		if (!sc->used || !is_bound_to_value(so, column))
			break;
		if (sc->array == NULL && sc->isnull)
			sc->lower.value = hyb_encode_constant(so, column, (Datum) 0, true);
		size += sc->array ? sc->array->maxlen : sc->lower.value.len;
		if (size > HYB_MAX_BOUND_SIZE)
			break;
		prefix->array = sc->array;
		prefix->elem = 0;
		prefix->value = sc->lower.value;
		if (sc->array != NULL)
			so->narrays++;
		so->nprefix++;
	}
	so->point = (so->nprefix == nkeys);
	if (column < nkeys && so->columns[column].used &&
		size <= HYB_MAX_BOUND_SIZE - HYB_MAX_CONSTANT_SIZE)
	{
		so->has_range = true;
		column++;
	}
	for (; column < nkeys; column++)
	{
		if (so->columns[column].used)
		{
			qualify_column(so, column);
			so->hop_last = so->ix->desc->truncated ? -1 : column;
		}
	}
	Assert(size <= HYB_MAX_BOUND_SIZE || !so->has_range);
	if (so->nrows > 0)
		hyb_rows_settle(so, size);
	MemoryContextSwitchTo(old);
}
