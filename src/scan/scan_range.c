/*
 * scan_range.c
 *		The ranges that a scan reads, one after the other; and its qualifiers.
 *
 * An array with equality is an odometer wheel: its elements are visited in
 * index order, the last column's fastest, and each setting is a range of its
 * own.  So the output as a whole is ordered, in both directions.
 */
#include "base/compat.h"

#include "key/key.h"
#include "scan/scan.h"
#include "utils/memutils.h"

/* An end of the range at a bound of the range column, or beside its NULLs. */
static void
set_bound(const HybScan *so, const HybScanBound *bound, bool upper,
		  HybPos *pos, HybBuf *key)
{
	int			n = so->nprefix;
	bool		inside = bound->set && !bound->strict;

	Assert(so->has_range && n + 1 + bound->more <= so->ix->desc->nkeys);
	Assert(bound->set || bound->more == 0);
	key->len = 0;
	hyb_buf_append(key, so->prefix_key.data, so->prefix_key.len);
	if (bound->set)
		hyb_buf_append(key, so->constants.data + bound->value.off,
					   bound->value.len);
	else
		hyb_key_encode_column(&so->ix->desc->cols[n], (Datum) 0, true, key);
	hyb_pos_set(pos, key, n + 1 + bound->more,
				inside == upper ? HYB_AFTER : HYB_BEFORE);
}

/* The element that a prefix column is at.  Most ranges have none. */
static pg_noinline void
append_element(const HybColumn *col, const HybScanPrefix *prefix, HybBuf *key)
{
	uint8		space[1 + sizeof(uint64)];
	uint32		len;
	const uint8 *bytes = hyb_array_encoding(col, prefix->array, prefix->elem,
											space, &len);

	hyb_buf_append(key, bytes, len);
}

/*
 * Set start and end from the prefix columns, at the arrays' current elements,
 * and from the range column.
 */
static void
build_range(HybScan *so)
{
	HybKeyDesc *desc = so->ix->desc;
	HybBuf	   *key = &so->prefix_key;
	int			n = so->nprefix;

	key->len = 0;
	for (int i = 0; i < n; i++)
	{
		const HybScanPrefix *prefix = &so->prefix[i];

		if (prefix->array != NULL)
			append_element(&desc->cols[i], prefix, key);
		else
			hyb_buf_append(key, so->constants.data + prefix->value.off,
						   prefix->value.len);
	}
	hyb_pos_set(&so->start, key, n, HYB_BEFORE);
	hyb_pos_set(&so->end, key, n, HYB_AFTER);

	if (so->has_range)
	{
		const HybColumn *col = &desc->cols[n];
		const HybScanColumn *sc = &so->columns[n];

		if (sc->lower.set || col->nulls_first)
			set_bound(so, &sc->lower, false, &so->start, &so->start_key);
		if (sc->upper.set || !col->nulls_first)
			set_bound(so, &sc->upper, true, &so->end, &so->end_key);
	}

	so->point_hash = so->point && desc->exact ?
		hyb_key_hash(key->data, key->len) : 0;
	Assert(!desc->all_mem || hyb_pos_compare(desc, &so->start, &so->end) <= 0);
}

/* ---- arrays ---- */

/* Go on to the next element of an array; false if there is none. */
static inline bool
next_element(HybScanPrefix *prefix, bool forward)
{
	if (prefix->array == NULL ||
		(forward ? prefix->elem + 1 >= prefix->array->nelems :
		 prefix->elem <= 0))
		return false;
	prefix->elem += forward ? 1 : -1;
	return true;
}

/* Start with the first elements from this column on. */
static inline void
first_elements(HybScan *so, int column, bool forward)
{
	for (int i = column; i < so->nprefix; i++)
	{
		HybScanPrefix *prefix = &so->prefix[i];

		if (prefix->array != NULL)
			prefix->elem = forward ? 0 : prefix->array->nelems - 1;
	}
}

/* Start with the first setting of the arrays (backward: the last). */
void
hyb_scan_arrays_first(HybScan *so, bool forward)
{
	if (so->narrays > 0)
		first_elements(so, 0, forward);
	build_range(so);
}

/*
 * Go on to the next setting of the arrays (backward: the previous one).
 * Returns false, nothing changed, if there is none.
 */
bool
hyb_scan_arrays_next(HybScan *so, bool forward)
{
	int			i = so->nprefix - 1;

	if (so->narrays == 0)
		return false;
	while (i >= 0 && !next_element(&so->prefix[i], forward))
		i--;
	if (i < 0)
		return false;
	Assert(so->prefix[i].array != NULL);
	first_elements(so, i + 1, forward);
	build_range(so);
	return true;
}

/*
 * Move a prefix column to its first value, in scan direction, at this one or
 * behind it.  Returns 0 if it is this one, > 0 if it comes behind, < 0 if there
 * is none.
 */
static int
seek_column(HybScan *so, int column, const HybValue *val, bool forward)
{
	const HybColumn *col = &so->ix->desc->cols[column];
	HybScanPrefix *prefix = &so->prefix[column];
	HybValue	constant;
	bool		equal;
	int			cmp;

	if (prefix->array == NULL)
	{
		hyb_constant_value(so, column, &prefix->value, &constant);
		cmp = hyb_value_compare(col, &constant, val);
		return forward ? cmp : -cmp;
	}
	prefix->elem = hyb_array_search(col, prefix->array, val, &equal);
	if (equal)
		return 0;
	if (!forward)
		prefix->elem--;
	return prefix->elem >= 0 && prefix->elem < prefix->array->nelems ? 1 : -1;
}

bool
hyb_scan_arrays_seek(HybScan *so, const HybValue *vals, bool forward)
{
	int			i;
	int			cmp = 0;

	for (i = 0; i < so->nprefix && cmp == 0; i++)
		cmp = seek_column(so, i, &vals[i], forward);

	/* no settings with these elements are left: move the array before */
	if (cmp < 0)
	{
		for (i -= 2; i >= 0 && !next_element(&so->prefix[i], forward);)
			i--;
		if (i < 0)
			return false;
		i++;
	}
	first_elements(so, i, forward);
	build_range(so);
	return true;
}

/* Elements of the current setting; `elems` has one place per key column. */
void
hyb_scan_arrays_save(const HybScan *so, int *elems)
{
	if (so->narrays == 0)
		return;
	for (int i = 0; i < so->nprefix; i++)
		elems[i] = so->prefix[i].elem;
}

void
hyb_scan_arrays_restore(HybScan *so, const int *elems)
{
	bool		changed = false;

	if (so->narrays == 0)
		return;
	for (int i = 0; i < so->nprefix; i++)
	{
		Assert(so->prefix[i].array == NULL ||
			   (elems[i] >= 0 && elems[i] < so->prefix[i].array->nelems));
		changed |= so->prefix[i].elem != elems[i];
		so->prefix[i].elem = elems[i];
	}
	if (changed)
		build_range(so);
}

/* ---- qualifiers ---- */

static bool
function_qual(HybScan *so, const HybColumn *col, const HybScanQual *qual,
			  const HybValue *val)
{
	ScanKey		key = qual->key;
	MemoryContext old = MemoryContextSwitchTo(so->qual_context);
	Datum		value = hyb_value_decode(col, val);
	bool		pass = false;

	if (qual->kind == HYB_QUAL_FUNCTION)
		pass = DatumGetBool(FunctionCall2Coll(&key->sk_func,
											  key->sk_collation,
											  value, key->sk_argument));
	for (int i = 0; i < qual->nelems && !pass; i++)
		pass = DatumGetBool(FunctionCall2Coll(&key->sk_func,
											  key->sk_collation,
											  value, qual->elems[i]));
	MemoryContextSwitchTo(old);
	return pass;
}

/* Does a row within the range satisfy the keys? */
bool
hyb_scan_qualifies(HybScan *so, const HybValue *vals)
{
	for (int i = 0; i < so->nquals; i++)
	{
		const HybScanQual *qual = &so->quals[i];
		const HybColumn *col = &so->ix->desc->cols[qual->column];
		const HybValue *val = &vals[qual->column];
		bool		pass = false;

		Assert(qual->column < so->ix->desc->nkeys);
		if (val->isnull || qual->kind == HYB_QUAL_NULL)
		{
			if (val->isnull && qual->kind == HYB_QUAL_NULL)
				continue;
			return false;
		}
		switch (qual->kind)
		{
			case HYB_QUAL_NULL:
				break;
			case HYB_QUAL_NOT_NULL:
				pass = true;
				break;
			case HYB_QUAL_LOWER:
				pass = hyb_value_compare(col, val, &qual->val) >= 0;
				break;
			case HYB_QUAL_LOWER_STRICT:
				pass = hyb_value_compare(col, val, &qual->val) > 0;
				break;
			case HYB_QUAL_UPPER:
				pass = hyb_value_compare(col, val, &qual->val) <= 0;
				break;
			case HYB_QUAL_UPPER_STRICT:
				pass = hyb_value_compare(col, val, &qual->val) < 0;
				break;
			case HYB_QUAL_ARRAY:
				(void) hyb_array_search(col, qual->array, val, &pass);
				break;
			case HYB_QUAL_ROW:
				pass = hyb_row_qualifies(so, qual->row, vals);
				break;
			case HYB_QUAL_FUNCTION:
			case HYB_QUAL_FUNCTION_ARRAY:
				pass = function_qual(so, col, qual, val);
				break;
		}
		if (!pass)
			return false;
	}
	return true;
}
