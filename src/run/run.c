/*
 * run.c
 *		The runs of a version, whatever they are stored in.
 */
#include "base/compat.h"

#include "leaf/leaf.h"
#include "miscadmin.h"
#include "run/run.h"
#include "tree/descend.h"
#include "utils/rel.h"

typedef struct LevelFetch
{
	HybIndex   *ix;
	int			limit;
	bool		backward;
	HybFetched *batch;
	HybDescent	descent;
	HybBuf		at_key;			/* of the fence that the fetch goes on at */
	HybLeaf		leaf;
} LevelFetch;

/* Does the open leaf have a hint that the row is dead? */
static bool
is_killed(const LevelFetch *fetch, int item)
{
	const uint8 *hints = hyb_leaf_hints(fetch->descent.page);

	return hints != NULL && (hints[item >> 3] & (1 << (item & 7))) != 0;
}

/*
 * Items [from, to) of the open leaf, but for tombstones.  False where the limit
 * ends that.
 */
static bool
add_level_items(LevelFetch *fetch, int from, int to)
{
	const HybKeyDesc *desc = fetch->ix->desc;
	HybFetched *batch = fetch->batch;
	HybLeaf    *leaf = &fetch->leaf;
	int			row = from < to ? hyb_leaf_row_of_item(leaf, from) : 0;

	for (; from < to; row++)
	{
		int			end = Min(hyb_leaf_row_start(leaf, row + 1), to);
		uint32		off = batch->keys.len;
		uint32		keylen;

		hyb_key_join(desc, hyb_leaf_row(leaf, row), desc->natts, &batch->keys);
		keylen = hyb_key_length(desc, batch->keys.data + off,
								batch->keys.len - off);
		for (; from < end; from++)
		{
			HybFetchedItem *item;

			if (hyb_leaf_is_tombstone(leaf, from))
				continue;
			if (batch->nitems >= fetch->limit)
				return false;
			item = hyb_fetched_add(batch);
			hyb_leaf_tids(leaf, from, 1, &item->tid);
			item->killed = is_killed(fetch, from);
			item->key_off = off;
			item->len = batch->keys.len - off;
			item->keylen = keylen;
			item->ref.generation = 0;
			item->ref.block = fetch->descent.block;
			item->ref.offset = from;
		}
	}
	return true;
}

/* The same from the last one on, in descending order. */
static bool
add_items_backward(LevelFetch *fetch, int from, int to)
{
	while (to > from)
	{
		if (hyb_leaf_is_tombstone(&fetch->leaf, --to))
			continue;
		if (!add_level_items(fetch, to, to + 1))
			return false;
	}
	return true;
}

/* The entries of a level; lo and hi are cuts, as for hyb_leaf_search. */
static bool
fetch_level(LevelFetch *fetch, const HybVersion *version, int level,
			const HybPos *lo, const HybPos *hi)
{
	HybIndex   *ix = fetch->ix;
	bool		backward = fetch->backward;
	HybDescent *descent = &fetch->descent;
	HybPos		at = backward ? *hi : *lo;
	HybSought	sought = {
		.level = level,
		.pos = &at,
		.backward = backward,
		.want_fence = true
	};

	while (hyb_static_descend(ix, version, &sought, descent))
	{
		int			row;
		int			from = 0;
		int			to;
		bool		last = backward ?
			hyb_pos_compare(ix->desc, &descent->fence, lo) <= 0 :
			hyb_pos_compare(ix->desc, &descent->fence, hi) >= 0;

		hyb_leaf_open(&fetch->leaf, ix->desc, descent->page, ix->rel,
					  descent->block);
		if (!backward || (last && !HYB_POS_MIN(lo)))
			from = hyb_leaf_search(&fetch->leaf, backward ? lo : &at, &row);
		to = fetch->leaf.nitems;
		if (backward || (last && !HYB_POS_MAX(hi)))
			to = hyb_leaf_search(&fetch->leaf, backward ? &at : hi, &row);
		fetch->batch->complete = backward ?
			add_items_backward(fetch, from, to) : add_level_items(fetch, from, to);
		hyb_descent_release(descent);
		if (last || !fetch->batch->complete)
			return true;
		hyb_pos_copy(&at, &fetch->at_key, &descent->fence);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

bool
hyb_run_fetch(HybIndex *ix, const HybVersion *version, int run,
			  const HybFetch *fetch, HybFetched *batch)
{
	LevelFetch	level = {
		.ix = ix,
		.limit = fetch->limit,
		.backward = fetch->backward,
		.batch = batch
	};
	HybPos		above = hyb_pos_above(fetch->lo);
	bool		current = true;

	Assert(fetch->point_hash == 0);
	/* level 0 has prefixes of keys then */
	Assert(run != 0 || !ix->desc->truncated);
	if (run >= HYB_MAX_LEVELS)
	{
		HybFetch	dynamic = *fetch;

		dynamic.which = (run != HYB_RUN_ACTIVE ? HYB_FETCH_FROZEN : 0) |
			(run != HYB_RUN_FROZEN ? HYB_FETCH_ACTIVE : 0);
		return hyb_log_fetch(ix, version, &dynamic, batch);
	}
	batch->nitems = 0;
	batch->keys.len = 0;
	batch->complete = true;
	if (run < version->nlevels && version->levels[run].height > 0)
		current = fetch_level(&level, version, run, &above, fetch->hi);
	hyb_leaf_close(&level.leaf);
	hyb_buf_free(&level.descent.fence_key);
	hyb_buf_free(&level.descent.copy);
	hyb_buf_free(&level.at_key);
	return current && hyb_version_is_current(ix, version);
}

bool
hyb_run_holds(HybIndex *ix, const HybVersion *version, int run, const HybPos *pos,
			  bool *holds)
{
	HybPos		low = hyb_pos_below(pos);
	HybPos		high = hyb_pos_above(pos);
	HybFetch	fetch = {.lo = &low,.hi = &high,.limit = 1};
	HybFetched	batch = {0};
	bool		current = hyb_run_fetch(ix, version, run, &fetch, &batch);

	*holds = current && batch.nitems > 0;
	hyb_fetched_free(&batch);
	return current;
}

/* Order of the next entries of two runs. */
static int
compare_sources(const HybIndex *ix, const HybRunSource *a, const HybRunSource *b)
{
	HybPos		at = hyb_fetched_pos(ix, &a->batch, &a->batch.items[a->next]);
	HybPos		other = hyb_fetched_pos(ix, &b->batch, &b->batch.items[b->next]);

	return hyb_pos_compare(ix->desc, &at, &other);
}

bool
hyb_runs_peek(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
			  HybRuns *runs)
{
	HybRunSource *first = NULL;

	if (runs->first != NULL)
		return true;
	for (int i = runs->oldest; i <= version->nlevels; i++)
	{
		HybRunSource *source = &runs->sources[i];

		if (source->next == source->batch.nitems && !source->batch.complete)
		{
			MemoryContext old_context = MemoryContextSwitchTo(runs->context);
			bool		current = hyb_run_fetch(ix, version,
												i < version->nlevels ? i : HYB_RUN_LOG,
												fetch, &source->batch);

			MemoryContextSwitchTo(old_context);
			source->next = 0;
			if (!current)
			{
				hyb_runs_reset(runs);
				return false;
			}
		}
		if (source->next < source->batch.nitems &&
			(first == NULL ||
			 (compare_sources(ix, source, first) < 0) != fetch->backward))
			first = source;
	}
	runs->first = first;
	return true;
}

void
hyb_runs_reset(HybRuns *runs)
{
	for (int i = 0; i < lengthof(runs->sources); i++)
	{
		HybRunSource *source = &runs->sources[i];

		source->next = source->batch.nitems = 0;
		source->batch.complete = false;
	}
	runs->first = NULL;
}

void
hyb_runs_free(HybRuns *runs)
{
	for (int i = 0; i < lengthof(runs->sources); i++)
		hyb_fetched_free(&runs->sources[i].batch);
}
