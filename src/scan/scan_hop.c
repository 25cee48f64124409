/*
 * scan_hop.c
 *		Hops over entries that the keys exclude: skip scans.
 *
 * A range is bounded by the leading columns that equal something, and by the
 * column after them.  Conditions on later columns exclude most of what lies in
 * the range if an earlier column is free: `b = 5` in an index on (a, b) wants one
 * entry of each a.  From any place the keys tell the first one that can qualify.
 * From (3, 9) that is behind all of a = 3, from (4, 2) it is (4, 5).  This needs
 * no knowledge of the index, so a hop leaves nothing out, whatever changes there.
 *
 * The scan hops where a batch ends, which costs nothing: the next leaf is found by
 * a descent anyway.  So a scan reads no leaf that it would not read without hops.
 * Within a leaf a hop is a search among the rows.  It is made as long as it saves
 * looking at many.
 *
 * A column without a bound has no first value to go to.  Behind a value of an
 * integer column comes the next integer.  In other columns the scan goes to
 * whatever is behind the value, and on from what it finds there.
 */
#include "base/compat.h"

#include "key/key.h"
#include "scan/batch.h"

/*
 * A hop over fewer rows of a leaf was not worth its search.  Then more rows are
 * looked at before the next one, twice as many each time.
 */
#define HOP_NEAR			16
#define HOP_PAUSE			8
#define HOP_PAUSE_MAX		256

/* Where a column has to go from a value. */
typedef enum HopStep
{
	HOP_STAY,					/* the value will do */
	HOP_TO,						/* to another value */
	HOP_PAST,					/* to any value that comes after it */
	HOP_NONE					/* no value after it will do */
} HopStep;

/* The encoding of a value that a column goes to. */
typedef struct HopTarget
{
	const uint8 *bytes;
	uint32		len;
	bool		past;			/* it goes on behind all its entries */
} HopTarget;

/* A place that is being put together in keys->hop_key. */
typedef struct HopPlace
{
	HybScanKeys *keys;
	bool		forward;
	int			ncols;
	bool		past;			/* behind all entries with these columns */
} HopPlace;

static inline const HybScanBound *
near_bound(const HybScanColumn *sc, bool forward)
{
	return forward ? &sc->lower : &sc->upper;
}

/*
 * Does a bound exclude its value of the column?  Where it has values of other
 * columns too, of a row comparison, it is the end of the range: here it counts
 * as a bound of its first column alone.
 */
static inline bool
excludes_value(const HybScanBound *bound)
{
	return bound->strict && bound->more == 0;
}

static inline void
bound_target(const HybScanKeys *keys, int column, const HybScanBound *bound,
			 HopTarget *target)
{
	HybValue	val;

	target->bytes = keys->constants.data + bound->value.off;
	target->len = bound->more == 0 ? bound->value.len :
		hyb_constant_value(keys, column, &bound->value, &val) - target->bytes;
	target->past = excludes_value(bound);
}

static inline void
null_target(const HybColumn *col, HopTarget *target)
{
	static const uint8 flags[] = {HYB_FLAG_NULL_FIRST, HYB_FLAG_NULL_LAST};

	target->bytes = &flags[col->nulls_first ? 0 : 1];
	target->len = 1;
	target->past = false;
}

static inline void
element_target(const HybScanArray *array, int i, HopTarget *target)
{
	target->bytes = hyb_array_encoding(array, i, &target->len);
	target->past = false;
}

/* Order of a value and a bound, in scan direction. */
static int
compare_bound(const HybScanKeys *keys, int column, const HybValue *val,
			  const HybScanBound *bound, bool forward)
{
	HybValue	constant;
	int			cmp;

	(void) hyb_constant_value(keys, column, &bound->value, &constant);
	cmp = hyb_value_compare(&keys->ix->desc->cols[column], val, &constant);
	return forward ? cmp : -cmp;
}

static HopStep
step_in_array(const HybColumn *col, const HybScanArray *array,
			  const HybValue *val, bool strict, bool forward, HopTarget *target)
{
	bool		equal;
	int			i = hyb_array_search(col, array, val, &equal);

	/* i is the first element at or above the value */
	if (equal && !strict)
		return HOP_STAY;
	if (!forward)
		i--;
	else if (equal)
		i++;
	Assert(i >= -1 && i <= array->nelems);
	if (i < 0 || i >= array->nelems)
		return HOP_NONE;
	element_target(array, i, target);
	return HOP_TO;
}

/*
 * From a value, or strictly from behind it, to the first one that the
 * conditions on the column allow.
 */
static HopStep
step_in_column(const HybScanKeys *keys, int column, const HybValue *val, bool strict,
			   bool forward, HopTarget *target)
{
	const HybColumn *col = &keys->ix->desc->cols[column];
	const HybScanColumn *sc = &keys->columns[column];
	const HybScanBound *near = near_bound(sc, forward);
	const HybScanBound *far = near_bound(sc, !forward);
	bool		nulls_near = col->nulls_first == forward;
	int			cmp;

	if (sc->isnull)
	{
		if (val->isnull)
			return strict ? HOP_NONE : HOP_STAY;
		if (nulls_near)
			return HOP_NONE;
		null_target(col, target);
		return HOP_TO;
	}
	if (sc->array != NULL)
		return step_in_array(col, sc->array, val, strict, forward, target);
	if (near->set)
	{
		cmp = compare_bound(keys, column, val, near, forward);
		if (cmp < 0 || (cmp == 0 && excludes_value(near)))
		{
			bound_target(keys, column, near, target);
			return HOP_TO;
		}
	}
	if (far->set)
	{
		cmp = compare_bound(keys, column, val, far, forward);
		if (cmp > 0 || (cmp == 0 && (excludes_value(far) || strict)))
			return HOP_NONE;
	}
	if (val->isnull && (sc->notnull || strict))
		return nulls_near ? HOP_PAST : HOP_NONE;
	return strict ? HOP_PAST : HOP_STAY;
}

/*
 * Append the value right behind this one, where the column has such a thing: it
 * need not be one that the type has.
 */
static bool
append_successor(const HybColumn *col, const HybValue *val, bool forward,
				 HybBuf *key)
{
	if (val->isnull || col->store != HYB_STORE_INT ||
		col->compare != HYB_COMPARE_MEM ||
		val->ival == (forward ? hyb_width_mask(col->width) : 0))
		return false;
	hyb_buf_reserve(key, 1 + sizeof(uint64));
	key->data[key->len++] = HYB_FLAG_VALUE;
	hyb_store_int(key->data + key->len, val->ival + (forward ? 1 : -1),
				  col->width);
	key->len += col->width;
	return true;
}

/* Another column of the place; false if it is too long for a position. */
static bool
append_target(HopPlace *place, const HopTarget *target)
{
	HybBuf	   *key = &place->keys->hop_key;

	Assert(!place->past && target->len > 0);
	Assert(place->ncols < place->keys->ix->desc->nkeys);
	if (key->len + target->len > HYB_MAX_BOUND_SIZE)
		return false;
	hyb_buf_append(key, target->bytes, target->len);
	place->ncols++;
	place->past = target->past;
	return true;
}

/* The first values of the columns that come next, as far as they are known. */
static void
append_first_values(HopPlace *place)
{
	const HybScanKeys *keys = place->keys;

	while (!place->past && place->ncols <= keys->hop_last)
	{
		const HybScanColumn *sc = &keys->columns[place->ncols];
		const HybScanBound *near = near_bound(sc, place->forward);
		HopTarget	target;

		if (sc->isnull)
			null_target(&keys->ix->desc->cols[place->ncols], &target);
		else if (sc->array != NULL)
			element_target(sc->array, place->forward ? 0 : sc->array->nelems - 1,
						   &target);
		else if (near->set)
			bound_target(keys, place->ncols, near, &target);
		else
			return;
		if (!append_target(place, &target))
			return;
	}
}

static void
place_pos(const HopPlace *place, HybPos *pos)
{
	Assert(place->ncols <= place->keys->ix->desc->nkeys);
	hyb_pos_set(pos, &place->keys->hop_key, place->ncols,
				place->past == place->forward ? HYB_AFTER : HYB_BEFORE);
}

static void
begin_place(HopPlace *place, HybScanKeys *keys, const HybValue *vals, int ncols,
			bool forward)
{
	place->keys = keys;
	place->forward = forward;
	place->ncols = ncols;
	place->past = false;
	keys->hop_key.len = 0;
	hyb_key_join(keys->ix->desc, vals, ncols, &keys->hop_key);
}

/*
 * The first place from the entries with these ncols column values on, or from
 * behind all of them, where an entry may qualify.
 */
static HopStep
find_hop_place(HybScanKeys *keys, const HybValue *vals, int ncols, bool past,
			   bool forward, HybPos *pos)
{
	HopPlace	place;
	HopTarget	target;
	HopStep		step = HOP_STAY;
	int			i;

	for (i = keys->nprefix; i < ncols && i <= keys->hop_last; i++)
	{
		step = step_in_column(keys, i, &vals[i], past && i == ncols - 1, forward,
							  &target);
		if (step != HOP_STAY)
			break;
	}
	while (step == HOP_NONE && --i >= keys->nprefix)
		step = step_in_column(keys, i, &vals[i], true, forward, &target);

	switch (step)
	{
		case HOP_STAY:
			if (past || i > keys->hop_last)
				return HOP_STAY;
			begin_place(&place, keys, vals, ncols, forward);
			break;
		case HOP_TO:
			begin_place(&place, keys, vals, i, forward);
			if (!append_target(&place, &target))
				return HOP_STAY;
			break;
		case HOP_PAST:
			begin_place(&place, keys, vals, i, forward);
			if (append_successor(&keys->ix->desc->cols[i], &vals[i], forward,
								 &keys->hop_key))
				place.ncols++;
			else
			{
				begin_place(&place, keys, vals, i + 1, forward);
				place.past = true;
			}
			break;
		case HOP_NONE:
			return HOP_NONE;
	}
	append_first_values(&place);
	if (step == HOP_STAY && place.ncols == ncols)
		return HOP_STAY;
	place_pos(&place, pos);
	return HOP_TO;
}

/*
 * The same from a position in the middle of a column's bytes: all that is known
 * of the column is on which side of it its bounds are.
 */
static HopStep
find_place_between(HybScanKeys *keys, const HybPos *from, int ncols, bool forward,
				   HybPos *pos)
{
	const HybKeyDesc *desc = keys->ix->desc;
	const HybScanColumn *sc = &keys->columns[ncols];
	const HybScanBound *far = near_bound(sc, !forward);
	HopPlace	place;
	int			cmp;

	for (int i = keys->nprefix; i < ncols; i++)
	{
		HopTarget	target;

		if (step_in_column(keys, i, &keys->vals[i], false, forward,
						   &target) != HOP_STAY)
			return find_hop_place(keys, keys->vals, ncols, false, forward, pos);
	}
	begin_place(&place, keys, keys->vals, ncols, forward);
	append_first_values(&place);
	if (place.ncols > ncols)
	{
		place_pos(&place, pos);
		cmp = hyb_pos_compare(desc, pos, from);
		if (forward ? cmp >= 0 : cmp <= 0)
			return HOP_TO;
	}
	if (far->set || sc->array != NULL)
	{
		HopTarget	target;

		if (sc->array != NULL)
			element_target(sc->array, forward ? sc->array->nelems - 1 : 0, &target);
		else
			bound_target(keys, ncols, far, &target);
		target.past = !target.past;
		begin_place(&place, keys, keys->vals, ncols, forward);
		if (!append_target(&place, &target))
			return HOP_STAY;
		place_pos(&place, pos);
		cmp = hyb_pos_compare(desc, pos, from);
		if (forward ? cmp <= 0 : cmp >= 0)
			return find_hop_place(keys, keys->vals, ncols, true, forward, pos);
	}
	return HOP_STAY;
}

bool
hyb_hop_edge(HybScanKeys *keys, HybScanEdge *edge, bool forward)
{
	const HybKeyDesc *desc = keys->ix->desc;
	const HybPos *from = hyb_edge_pos(keys, edge);
	const uint8 *p = from->key;
	const uint8 *end = p + from->len;
	bool		past = from->tie == (forward ? HYB_AFTER : HYB_BEFORE);
	int			ncols = 0;
	HybPos		to;
	HopStep		step;

	while (ncols < desc->nkeys && p < end)
	{
		const uint8 *next = hyb_parse_column(&desc->cols[ncols], p, end,
											 &keys->vals[ncols]);

		if (next == NULL)
			break;
		p = next;
		ncols++;
	}
	if (ncols < keys->nprefix || (past && ncols == 0))
		return false;
	if (p < end)
		step = ncols > keys->hop_last ?
			find_hop_place(keys, keys->vals, ncols, false, forward, &to) :
			find_place_between(keys, from, ncols, forward, &to);
	else
		step = find_hop_place(keys, keys->vals, ncols, past, forward, &to);
	if (step == HOP_TO)
	{
		int			cmp = hyb_pos_compare(desc, &to, forward ? &keys->end :
										  &keys->start);

		Assert(forward ? hyb_pos_compare(desc, &to, from) >= 0 :
			   hyb_pos_compare(desc, &to, from) <= 0);
		if (forward ? cmp >= 0 : cmp <= 0)
			step = HOP_NONE;
	}
	if (step == HOP_STAY || (step == HOP_NONE && edge->kind != HYB_EDGE_KEY))
		return false;
	if (step == HOP_NONE)
		hyb_edge_set(edge, forward ? HYB_EDGE_END : HYB_EDGE_START);
	else
		hyb_edge_set_pos(edge, &to);
	return true;
}

int
hyb_hop_rows(HybScanKeys *keys, HybScanMode *mode, HybScanPart *part, int *row)
{
	HybPos		pos;
	int			from = *row;
	int			item = part->last;

	Assert(part->mode == HYB_STATIC_PAGE && from >= 0 && from < part->leaf.nrows);
	switch (find_hop_place(keys, hyb_leaf_row(&part->leaf, from),
						   keys->ix->desc->nkeys, false, true, &pos))
	{
		case HOP_TO:
			item = hyb_leaf_search(&part->leaf, &pos, row);
			if (*row <= from)
				hyb_corrupted(keys->ix->rel, part->block,
							  "The rows of the leaf are out of order.");
			break;
		case HOP_NONE:
			*row = part->leaf.nrows;
			break;
		default:
			*row = from + 1;
			item = hyb_leaf_row_start(&part->leaf, from + 1);
			break;
	}
	if (*row - from >= HOP_NEAR)
		mode->hop_pause = 0;
	else
		mode->hop_pause = Min(Max(mode->hop_pause * 2, HOP_PAUSE), HOP_PAUSE_MAX);
	mode->hop_wait = mode->hop_pause;
	return Min(item, part->last);
}
