/*
 * descend.c
 *		Reading the trees of static levels.
 *
 * A descent locks one page at a time.  Pages never change while a version names
 * them; a stamp that does not match tells that the version is no longer current.
 * Where comparisons are not pure (key/pure.h) each page is copied, and what is
 * compared is the copy, with nothing locked.
 */
#include "base/compat.h"

#include "filter/filter.h"
#include "miscadmin.h"
#include "shared/index_cache.h"
#include "storage/bufmgr.h"
#include "store/inner.h"
#include "store/meta.h"
#include "tree/descend.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A page was not what a pointer to it said.  That is an error if the version is
 * still current: the page is damaged, and trying again would never end.
 */
static void
check_stale(const HybIndex *ix, const HybVersion *version, BlockNumber block)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	bool		current = meta->version == version->version;

	UnlockReleaseBuffer(metabuf);
	if (current)
		hyb_corrupted(ix->rel, block,
					  "This is not the page that the index's root or an internal node points to.");
}

/* ---- copies of roots ---- */

/*
 * A backend copies the root of a level, if it is an internal node, when it meets
 * it for the second time.  The copy is good as long as versions have this root.
 *
 * Only indexes with pure comparisons have copies: other comparisons may open other
 * indexes, which may evict the copy that a search is using.
 */
typedef struct RootCache
{
	uint64		stamp;			/* of the root met last, 0: none was met */
	BlockNumber block;			/* of that root */
	int16		copy;			/* 0, or 1 + the number of its copy */
} RootCache;

typedef struct RootCaches
{
	RootCache	levels[HYB_MAX_LEVELS];
} RootCaches;

/*
 * A backend has ROOT_COPIES copies for all indexes.  A clock hand evicts: each use
 * raises a copy's count to ROOT_USES, each visit of the hand lowers it.  A new
 * root takes the place under the hand only if the count there is 0, so most
 * copies survive when more indexes than copies are used in turn.
 */
#define ROOT_COPIES		128
#define ROOT_USES		3

typedef struct RootCopy
{
	RootCache  *owner;			/* or NULL */
	int			uses;
	char	   *page;			/* BLCKSZ bytes in TopMemoryContext, or NULL */
} RootCopy;

static RootCopy root_copies[ROOT_COPIES];
static int	root_hand = 0;

static void
drop_copy(RootCache *cache)
{
	Assert(cache->copy >= 0 && cache->copy <= ROOT_COPIES);
	Assert(cache->copy == 0 || root_copies[cache->copy - 1].owner == cache);
	if (cache->copy != 0)
		root_copies[cache->copy - 1].owner = NULL;
	cache->copy = 0;
}

static void
release_roots(void *piece)
{
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
		drop_copy(&((RootCaches *) piece)->levels[i]);
}

/* Copy the root that was met. */
static void
make_copy(RootCache *cache, Page page)
{
	RootCopy   *copy = &root_copies[root_hand];

	if (cache->copy != 0)
		return;
	root_hand = (root_hand + 1) % ROOT_COPIES;
	if (copy->owner != NULL)
	{
		if (copy->uses-- > 0)
			return;
		drop_copy(copy->owner);
	}
	if (copy->page == NULL)
		copy->page = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
	memcpy(copy->page, page, BLCKSZ);
	Assert(copy->owner == NULL && cache->stamp == hyb_page_opaque(page)->stamp);
	copy->uses = 1;
	copy->owner = cache;
	cache->copy = copy - root_copies + 1;
}

static HybCachePiece root_piece = {
	.size = sizeof(RootCaches),
	.release = release_roots
};

void
hyb_static_init(void)
{
	hyb_cache_add_piece(&root_piece);
}

static inline RootCache *
root_cache(const HybIndex *ix, int level)
{
	Assert(level >= 0 && level < HYB_MAX_LEVELS);
	return &((RootCaches *) hyb_cache_piece(ix, &root_piece))->levels[level];
}

/* The copy, or NULL if the page has to be read. */
static inline Page
cached_root(const HybIndex *ix, int level, const HybRoot *root)
{
	const RootCache *cache;
	RootCopy   *copy;

	if (root->height <= 1 || ix->desc->pure != HYB_PURE)
		return NULL;
	cache = root_cache(ix, level);
	if (cache->copy == 0 || cache->block != root->block ||
		cache->stamp != root->stamp)
		return NULL;
	copy = &root_copies[cache->copy - 1];
	Assert(copy->owner == cache && hyb_page_opaque((Page) copy->page)->stamp == root->stamp);
	copy->uses = ROOT_USES;
	return (Page) copy->page;
}

/* A root was read, and checked. */
static void
note_root(const HybIndex *ix, int level, const HybChild *root, Page page)
{
	RootCache  *cache = root_cache(ix, level);

	if (cache->block == root->block && cache->stamp == root->stamp)
	{
		make_copy(cache, page);
		return;
	}
	drop_copy(cache);
	cache->block = root->block;
	cache->stamp = root->stamp;
}

/* ---- descents ---- */

/*
 * Read and lock a page at this height above the leaves.  Returns false if it is
 * not what the pointer to it said.
 */
static inline bool
read_node(const HybIndex *ix, const HybVersion *version, const HybChild *at,
		  int height, BlockNumber from, Buffer *buf)
{
	*buf = hyb_page_lock(ix, at->block, from, BUFFER_LOCK_SHARE,
						 height == 0 ? HYB_PAGE_LEAF : HYB_PAGE_INNER, at->stamp);
	if (!BufferIsValid(*buf))
	{
		check_stale(ix, version, at->block);
		return false;
	}
	if (height > 0 && hyb_page_opaque(BufferGetPage(*buf))->level != height)
		hyb_corrupted(ix->rel, at->block, "An internal node has the wrong level.");
	return true;
}

/*
 * What is searched of a locked page: the page, or else a copy, and then nothing is
 * locked any more and only a leaf stays pinned.
 */
static inline Page
page_to_search(const HybIndex *ix, int height, Buffer *buf, HybDescent *descent)
{
	Page		page = BufferGetPage(*buf);

	if (likely(ix->desc->pure == HYB_PURE))
		return page;
	descent->copy.len = 0;
	hyb_buf_append(&descent->copy, page, BLCKSZ);
	LockBuffer(*buf, BUFFER_LOCK_UNLOCK);
	if (height > 0)
	{
		ReleaseBuffer(*buf);
		*buf = InvalidBuffer;
	}
	return (Page) descent->copy.data;
}

/*
 * Go from a node, in block at->block, to the child that the position leads to,
 * and set the fence if the node has it.
 */
static inline void
follow_child(const HybIndex *ix, Page page, const HybSought *sought,
			 HybChild *at, HybDescent *descent)
{
	BlockNumber block = at->block;
	int			i = hyb_inner_search(ix->desc, page, sought->pos,
									 sought->backward, ix->rel, block);
	bool		last = i + 1 == hyb_inner_count(page);
	bool		fence = sought->want_fence && (sought->backward ? i > 0 : !last);

	descent->last &= last;
	if (fence && !sought->backward)
	{
		hyb_inner_get(page, i + 1, at, ix->rel, block);
		hyb_pos_copy(&descent->fence, &descent->fence_key, &at->low);
	}
	hyb_inner_get(page, i, at, ix->rel, block);
	if (fence && sought->backward)
		hyb_pos_copy(&descent->fence, &descent->fence_key, &at->low);
}

/*
 * Scans go on at a fence.  A damaged one that does not lie beyond the position
 * would make them loop.
 */
static inline void
check_fence(const HybIndex *ix, const HybSought *sought,
			const HybDescent *descent)
{
	int			cmp = hyb_pos_compare(ix->desc, &descent->fence, sought->pos);

	if (sought->backward ? cmp > -1 : cmp < 1)
	{
		if (BufferIsValid(descent->buf))
			hyb_descent_release(descent);
		hyb_corrupted(ix->rel, descent->block,
					  "The separators around this leaf do not enclose the position that they led here from.");
	}
}

#ifdef USE_ASSERT_CHECKING
/* Is there a tree of the version to descend in? */
static void
sought_assert_valid(const HybVersion *version, const HybSought *sought)
{
	hyb_version_assert_valid(version);
	Assert(sought->level >= 0 && sought->level < version->nlevels);
	Assert(version->levels[sought->level].height > 0);
	Assert(sought->bound == NULL || !sought->only_fence);
}
#else
#define sought_assert_valid(version, sought) ((void) (sought))
#endif

bool
hyb_static_descend(const HybIndex *ix, const HybVersion *version,
				   const HybSought *sought, HybDescent *descent)
{
	HybChild	at;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	const HybRoot *root = &version->levels[sought->level];
	int			height = (int) root->height - 1;	/* of the page at hand */
	Page		page;

	sought_assert_valid(version, sought);
	hyb_desc_prepare_page(ix->desc);
	at.block = root->block;
	at.stamp = root->stamp;
	descent->buf = InvalidBuffer;
	descent->probed = false;
	descent->skipped = false;
	descent->last = true;
	memset(&descent->fence, 0, sizeof(HybPos));
	descent->fence.tie = sought->backward ? HYB_BEFORE : HYB_AFTER;
	page = cached_root(ix, sought->level, root);
	for (;;)
	{
		Buffer		buf = InvalidBuffer;

		if (page == NULL)
		{
			if (!read_node(ix, version, &at, height, from, &buf))
				return false;
			page = page_to_search(ix, height, &buf, descent);
			if (height == 0)
			{
				descent->buf = buf;
				descent->page = page;
				break;
			}
			if (from == HYB_METAPAGE_BLKNO && ix->desc->pure == HYB_PURE)
				note_root(ix, sought->level, &at, page);
		}
		from = at.block;
		follow_child(ix, page, sought, &at, descent);
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		page = NULL;
		HYB_POINT("descend");
		height--;
		if (height == 0 && sought->only_fence)
			break;
		if (height == 0 && sought->bound != NULL &&
			BlockNumberIsValid(at.filter_block))
		{
			/* the caller finds out whether the version is still current */
			HybFilterAnswer answer =
				hyb_filter_probe(ix, &at,
								 sought->backward ? sought->bound : sought->pos,
								 sought->backward ? sought->pos : sought->bound);

			descent->probed = answer != HYB_ANSWER_UNKNOWN;
			descent->skipped = answer == HYB_ANSWER_NO;
			if (descent->skipped)
				break;
		}
	}
	descent->block = at.block;
	descent->stamp = at.stamp;
	Assert(BufferIsValid(descent->buf) || sought->only_fence || descent->skipped);
	Assert(!descent->skipped || descent->probed);
	if (sought->backward ? !HYB_POS_MIN(&descent->fence) :
		!HYB_POS_MAX(&descent->fence))
		check_fence(ix, sought, descent);
	return true;
}

bool
hyb_target_of_pos(const HybIndex *ix, const HybVersion *version, const HybPos *pos,
				  bool backward, BlockNumber *target)
{
	const HybRoot *root = &version->levels[0];
	HybDescent	descent = {0};
	HybSought	sought = {
		.level = 0,
		.pos = pos,
		.backward = backward,
		.only_fence = true
	};

	if (root->height <= 1)
	{
		*target = root->height == 0 ? HYB_TARGET_NO_LEAF :
			hyb_target_of_leaf(root->block, root->stamp);
		return true;
	}
	if (!hyb_static_descend(ix, version, &sought, &descent))
		return false;
	hyb_buf_free(&descent.copy);
	Assert(!BufferIsValid(descent.buf));
	*target = hyb_target_of_leaf(descent.block, descent.stamp);
	return true;
}

/* ---- how full leaves are ---- */

/* Leaves of a sample; an index with up to SMALL_LEAVES is read whole. */
#define SAMPLE_LEAVES		64
#define SMALL_LEAVES		256

/* Samples that are tried while merges replace versions. */
#define SAMPLE_TRIES		10

typedef struct FillSample
{
	const HybIndex *ix;
	double		weight;			/* of the leaves seen */
	double		filled;			/* the same times their fill */
} FillSample;

/*
 * Look at about `most` leaves of a subtree.  Each internal node divides that
 * number among as many of its children, at equal distances.  A chosen child
 * stands for its neighbours too, so its leaves weigh more.  Returns false if a
 * page is not what its parent said.
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
 * A level's share of the sample, in an index of `leaves`.  Returns false if the
 * version is no longer current.
 */
static bool
sample_level(FillSample *sample, const HybLevel *level, uint64 leaves)
{
	int			height = hyb_root_height(sample->ix, &level->root);
	uint64		most = leaves <= SMALL_LEAVES ? level->leaf_pages :
		(SAMPLE_LEAVES * level->leaf_pages + leaves - 1) / leaves;

	return height == 0 ||
		sample_subtree(sample, level->root.block, level->root.stamp, height - 1,
					   most, (double) level->leaf_pages);
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
