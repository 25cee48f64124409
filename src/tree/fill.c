/*
 * fill.c
 *		How full the leaves are.
 *
 * No counter of the bytes in leaves is kept, so some leaves are looked at,
 * spread evenly over the tree: each internal node divides what it may look at
 * among as many of its children, at equal distances.  A child that was chosen
 * stands for its neighbours too, and its leaves weigh more accordingly.
 */
#include "base/compat.h"

#include "leaf/leaf.h"
#include "miscadmin.h"
#include "store/inner.h"
#include "store/meta.h"
#include "tree/fill.h"
#include "tree/update.h"

/* Leaves of a sample, and of an index that is looked at as a whole. */
#define SAMPLE_LEAVES		64
#define SMALL_LEAVES		256

/* Samples that merges may spoil. */
#define SAMPLE_TRIES		10

typedef struct FillSample
{
	const HybIndex *ix;
	double		weight;			/* of the leaves seen */
	double		filled;			/* the same times their fill */
} FillSample;

/*
 * Look at about `most` leaves of a subtree.  Returns false if a page is not
 * what its parent said.
 */
static bool
sample_subtree(FillSample *sample, BlockNumber block, uint64 stamp, int level,
			   uint64 most, double weight)
{
	const HybIndex *ix = sample->ix;
	char	   *copy;
	uint64		n;
	uint64		chosen;
	bool		current = true;

	Assert(level >= 0 && level < HYB_MAX_HEIGHT && weight > 0);
	CHECK_FOR_INTERRUPTS();
	if (level == 0)
	{
		Buffer		buf = hyb_page_lock(ix, block, InvalidBlockNumber,
										BUFFER_LOCK_SHARE, HYB_PAGE_LEAF, stamp);

		if (!BufferIsValid(buf))
			return false;
		sample->weight += weight;
		sample->filled += weight * hyb_leaf_fill(BufferGetPage(buf));
		UnlockReleaseBuffer(buf);
		return true;
	}
	copy = palloc(BLCKSZ);
	if (!hyb_page_copy(ix, block, InvalidBlockNumber, HYB_PAGE_INNER, stamp,
					   copy))
	{
		pfree(copy);
		return false;
	}

	n = hyb_inner_count((Page) copy);
	chosen = Min(n, Max(most, 1));
	for (uint64 i = 0; i < chosen && current; i++)
	{
		HybChild	child;

		hyb_inner_get((Page) copy, (int) ((2 * i + 1) * n / (2 * chosen)),
					  &child, ix->rel, block);
		current = sample_subtree(sample, child.block, child.stamp, level - 1,
								 most / chosen,
								 weight * (double) n / (double) chosen);
	}
	pfree(copy);
	return current;
}

/*
 * A level of an index of so many leaves, which gets its share of the sample.
 * False if the version is no longer current.
 */
static bool
sample_level(FillSample *sample, const HybLevel *level, uint64 leaves)
{
	uint64		most = leaves <= SMALL_LEAVES ? level->leaf_pages :
		(SAMPLE_LEAVES * level->leaf_pages + leaves - 1) / leaves;

	if (level->root.height == 0)
		return true;
	if (level->root.height > HYB_MAX_HEIGHT)
		hyb_corrupted(sample->ix->rel, HYB_METAPAGE_BLKNO,
					  "The tree's height is out of range.");
	return sample_subtree(sample, level->root.block, level->root.stamp,
						  (int) level->root.height - 1, most,
						  (double) level->leaf_pages);
}

bool
hyb_static_fill(const HybIndex *ix, double *fill)
{
	for (int try = 0; try < SAMPLE_TRIES; try++)
	{
		FillSample	sample = {.ix = ix};
		HybMetaPage meta;
		uint64		leaves;
		bool		current = true;

		hyb_meta_copy(ix, &meta);
		leaves = hyb_meta_static(&meta).leaf_pages;
		if (leaves == 0)
			return false;
		for (int i = 0; i < meta.nlevels && current; i++)
			current = sample_level(&sample, &meta.levels[i], leaves);
		if (current)
		{
			*fill = sample.filled / sample.weight;
			return true;
		}
	}
	return false;
}
