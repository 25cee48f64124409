/*
 * scan_range.c
 *		The ranges that a scan reads, one after the other.
 *
 * An array with equality is an odometer wheel.  Its elements are visited in
 * index order, the last column's fastest, and each setting is a range of its
 * own.  So the output as a whole is ordered, in both directions.
 *
 * Where few of the settings exist, each range is a search for nothing.  So after
 * JUMP_AFTER empty ranges in a row the scan jumps.  It asks all runs for the
 * first key behind the range at hand (backward: below it), and goes on with the
 * first setting at that key or behind it.  Nothing lies in the ranges between.
 * The scan jumps on until a jump is not worth it.
 */
#include "base/compat.h"

#include "key/key.h"
#include "miscadmin.h"
#include "run/run.h"
#include "scan/scan.h"
#include "utils/memutils.h"

/* Empty ranges in a row, before a jump is tried. */
#define JUMP_AFTER			4

/*
 * A jump to the very next setting was not worth its search.  Then more empty
 * ranges are read before the next one, twice as many each time.
 */
#define JUMP_PAUSE			4
#define JUMP_PAUSE_MAX		64

/* ---- ranges ---- */

/* An end of the range at a bound of the range column, or beside its NULLs. */
static void
set_bound(const HybScanKeys *keys, const HybScanBound *bound, bool upper,
		  HybPos *pos, HybBuf *key)
{
	int			n = keys->nprefix;
	bool		inside = bound->set && !bound->strict;

	Assert(keys->has_range && n + 1 + bound->more <= keys->ix->desc->nkeys);
	Assert(bound->set || bound->more == 0);
	key->len = 0;
	hyb_buf_append(key, keys->prefix_key.data, keys->prefix_key.len);
	if (bound->set)
		hyb_buf_append(key, keys->constants.data + bound->value.off,
					   bound->value.len);
	else
		hyb_key_encode_column(&keys->ix->desc->cols[n], (Datum) 0, true, key);
	hyb_pos_set(pos, key, n + 1 + bound->more,
				inside == upper ? HYB_AFTER : HYB_BEFORE);
}

/*
 * Set start and end from the prefix columns, at the arrays' current elements,
 * and from the range column.
 */
static void
build_range(HybScanKeys *keys)
{
	HybKeyDesc *desc = keys->ix->desc;
	HybBuf	   *key = &keys->prefix_key;
	int			n = keys->nprefix;

	key->len = 0;
	for (int i = 0; i < n; i++)
	{
		const HybScanPrefix *prefix = &keys->prefix[i];
		const uint8 *bytes = keys->constants.data + prefix->value.off;
		uint32		len = prefix->value.len;

		if (prefix->array != NULL)
			bytes = hyb_array_encoding(prefix->array, prefix->elem, &len);
		hyb_buf_append(key, bytes, len);
	}
	hyb_pos_set(&keys->start, key, n, HYB_BEFORE);
	hyb_pos_set(&keys->end, key, n, HYB_AFTER);

	if (keys->has_range)
	{
		const HybColumn *col = &desc->cols[n];
		const HybScanColumn *sc = &keys->columns[n];

		if (sc->lower.set || col->nulls_first)
			set_bound(keys, &sc->lower, false, &keys->start, &keys->start_key);
		if (sc->upper.set || !col->nulls_first)
			set_bound(keys, &sc->upper, true, &keys->end, &keys->end_key);
	}

	keys->point_hash = keys->point ?
		hyb_key_point_hash(desc, key->data, key->len) : 0;
	Assert(!desc->all_mem || hyb_pos_compare(desc, &keys->start, &keys->end) <= 0);
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
first_elements(HybScanKeys *keys, int column, bool forward)
{
	for (int i = column; i < keys->nprefix; i++)
	{
		HybScanPrefix *prefix = &keys->prefix[i];

		if (prefix->array != NULL)
			prefix->elem = forward ? 0 : prefix->array->nelems - 1;
	}
}

void
hyb_scan_arrays_first(HybScanKeys *keys, bool forward)
{
	if (keys->narrays > 0)
		first_elements(keys, 0, forward);
	build_range(keys);
}

/*
 * Go on to the next setting of the arrays (backward: the previous one).
 * Returns false, nothing changed, if there is none.
 */
static bool
arrays_next(HybScanKeys *keys, bool forward)
{
	int			i = keys->nprefix - 1;

	if (keys->narrays == 0)
		return false;
	while (i >= 0 && !next_element(&keys->prefix[i], forward))
		i--;
	if (i < 0)
		return false;
	Assert(keys->prefix[i].array != NULL);
	first_elements(keys, i + 1, forward);
	build_range(keys);
	return true;
}

/*
 * Move a prefix column to its first value, in scan direction, at this one or
 * behind it.  Returns 0 if it is this one, > 0 if it comes behind, < 0 if there
 * is none.
 */
static int
seek_column(HybScanKeys *keys, int column, const HybValue *val, bool forward)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	HybScanPrefix *prefix = &keys->prefix[column];
	HybValue	constant;
	bool		equal;
	int			cmp;

	if (prefix->array == NULL)
	{
		(void) hyb_constant_value(keys, column, &prefix->value, &constant);
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

/*
 * Set the arrays to the first setting at or above the prefix columns of a key
 * (backward: to the last one at or below them).  Returns false if there is none; the
 * setting is then any.
 */
static bool
arrays_seek(HybScanKeys *keys, const HybValue *vals, bool forward)
{
	int			i;
	int			cmp = 0;

	for (i = 0; i < keys->nprefix && cmp == 0; i++)
		cmp = seek_column(keys, i, &vals[i], forward);

	/* no settings with these elements are left: move the array before */
	if (cmp < 0)
	{
		for (i -= 2; i >= 0 && !next_element(&keys->prefix[i], forward);)
			i--;
		if (i < 0)
			return false;
		i++;
	}
	first_elements(keys, i, forward);
	build_range(keys);
	return true;
}

void
hyb_scan_arrays_save(const HybScanKeys *keys, int *elems)
{
	if (keys->narrays == 0)
		return;
	for (int i = 0; i < keys->nprefix; i++)
		elems[i] = keys->prefix[i].elem;
}

void
hyb_scan_arrays_restore(HybScanKeys *keys, const int *elems)
{
	bool		changed = false;

	if (keys->narrays == 0)
		return;
	for (int i = 0; i < keys->nprefix; i++)
	{
		Assert(keys->prefix[i].array == NULL ||
			   (elems[i] >= 0 && elems[i] < keys->prefix[i].array->nelems));
		changed |= keys->prefix[i].elem != elems[i];
		keys->prefix[i].elem = elems[i];
	}
	if (changed)
		build_range(keys);
}

/* ---- jumps ---- */

/* The first key behind the range at hand; false if there is none. */
static bool
first_key_behind(HybScan *so, bool forward, HybBuf *key)
{
	HybPos		max = {.tie = HYB_AFTER};
	HybPos		min = {.tie = HYB_BEFORE};
	HybFetch	fetch = {
		.lo = forward ? &so->keys.end : &min,
		.hi = forward ? &max : &so->keys.start,
		.backward = !forward,
		.limit = 1
	};
	HybRuns		runs = {.context = so->context};
	HybVersion	version;
	const HybFetchedItem *item;
	bool		found;

	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(so->ix, &version);
	} while (!hyb_runs_peek(so->ix, &version, &fetch, &runs));
	item = hyb_runs_item(&runs);
	found = item != NULL;
	if (found)
		hyb_buf_append(key, hyb_runs_bytes(&runs, item), item->keylen);
	hyb_runs_free(&runs);
	return found;
}

/*
 * Is the setting further on than `elems`?  *near says that only the last array
 * has moved, by one.
 */
static bool
is_further(const HybScan *so, const int *elems, bool forward, bool *near)
{
	int			last = so->keys.nprefix - 1;

	Assert(so->keys.narrays > 0);
	while (so->keys.prefix[last].array == NULL)
		last--;
	for (int i = 0; i <= last; i++)
	{
		int			moved = so->keys.prefix[i].elem - elems[i];

		if (moved == 0)
			continue;
		if (!forward)
			moved = -moved;
		*near = i == last && moved == 1;
		return moved > 0;
	}
	return false;
}

static bool
jump(HybScan *so, bool forward, const int *elems)
{
	HybBuf		key = {0};
	bool		more;
	bool		near = false;

	Assert(so->keys.narrays > 0 && !so->mode.locks && !so->ix->desc->truncated);
	HYB_POINT("jump");
	more = first_key_behind(so, forward, &key);
	if (more)
	{
		if (hyb_key_split(so->ix->desc, key.data, key.len, so->keys.nprefix,
						  so->keys.vals) == 0)
			hyb_corrupted(so->ix->rel, HYB_METAPAGE_BLKNO,
						  "An entry is not well formed.");
		more = arrays_seek(&so->keys, so->keys.vals, forward);
	}
	hyb_buf_free(&key);
	if (!more)
	{
		hyb_scan_arrays_restore(&so->keys, elems);
		return false;
	}

	/* what comes next may have this very prefix, outside of the range */
	if (!is_further(so, elems, forward, &near))
	{
		hyb_scan_arrays_restore(&so->keys, elems);
		near = true;
		more = arrays_next(&so->keys, forward);
	}
	so->mode.jumping = !near;
	so->mode.jump_pause = near ?
		Min(Max(so->mode.jump_pause * 2, JUMP_PAUSE), JUMP_PAUSE_MAX) : 0;
	so->mode.empty_ranges = -so->mode.jump_pause;
	return more;
}

bool
hyb_scan_next_range(HybScan *so, bool forward, bool empty, const int *elems)
{
	if (so->keys.narrays == 0)
		return false;

	/*
	 * What comes next is not known where leaves do not keep keys; and each
	 * range is to be locked, also those without entries.
	 */
	if (empty && !so->ix->desc->truncated && !so->mode.locks)
		so->mode.empty_ranges++;
	else
		so->mode.empty_ranges = Min(so->mode.empty_ranges, 0);
	if (so->mode.jumping || so->mode.empty_ranges >= JUMP_AFTER)
		return jump(so, forward, elems);
	return arrays_next(&so->keys, forward);
}
