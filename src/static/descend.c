/*
 * descend.c
 *		Descent from the root of a static level to a leaf.
 */
#include "compat.h"

#include "dynamic/slot.h"
#include "page/meta.h"
#include "static/descend.h"
#include "static/filter.h"
#include "utils/memutils.h"
#include "utils/rel.h"

void
hyb_check_stale(const HybIndex *ix, const HybVersion *version, BlockNumber block)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	bool		current = meta->version == version->version;

	UnlockReleaseBuffer(metabuf);
	if (current)
		hyb_corrupted(ix->rel, block,
					  "This is not the page that the index's root or an internal node points to.");
}

/*
 * A backend's copy of a level's root, if that is an internal node.  A node
 * never changes, so the copy is good for as long as versions have this root.
 * Made when a root is met for the second time.
 *
 * Comparison functions may open other indexes, for which the copy may have to
 * go, so only indexes ordered by memcmp have one.
 */
typedef struct RootCache
{
	BlockNumber block;			/* root met last */
	uint64		stamp;			/* its stamp, 0: none was met */
	bool		valid;			/* `page` is a copy of it */
	char	   *page;			/* BLCKSZ bytes in TopMemoryContext, or NULL */
} RootCache;

/* Of each level. */
typedef struct RootCaches
{
	RootCache	levels[HYB_MAX_LEVELS];
} RootCaches;

static void
release_roots(void *piece)
{
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
		if (((RootCaches *) piece)->levels[i].page != NULL)
			pfree(((RootCaches *) piece)->levels[i].page);
}

static HybSlotPiece root_piece = {
	.size = sizeof(RootCaches),
	.release = release_roots
};

void
hyb_static_init(void)
{
	hyb_slot_add_piece(&root_piece);
}

static inline RootCache *
root_cache(const HybIndex *ix, int level)
{
	return &((RootCaches *) hyb_slot_piece(ix, &root_piece))->levels[level];
}

/* The copy, or NULL if the page has to be read. */
static inline Page
cached_root(const HybIndex *ix, int level, const HybRoot *root)
{
	const RootCache *cache;

	if (root->height <= 1 || !ix->desc->all_mem)
		return NULL;
	cache = root_cache(ix, level);
	if (cache->valid && cache->block == root->block &&
		cache->stamp == root->stamp)
		return (Page) cache->page;
	return NULL;
}

/* A root was read, and checked. */
static void
note_root(const HybIndex *ix, int level, const HybChild *root, Page page)
{
	RootCache  *cache = root_cache(ix, level);

	if (cache->block == root->block && cache->stamp == root->stamp)
	{
		if (cache->page == NULL)
			cache->page = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
		memcpy(cache->page, page, BLCKSZ);
		cache->valid = true;
		return;
	}
	cache->block = root->block;
	cache->stamp = root->stamp;
	cache->valid = false;
}

/*
 * Read and lock a page so high above the leaves.  Returns false if it is not
 * what the pointer to it said.
 */
static inline bool
read_page(const HybIndex *ix, const HybVersion *version, const HybChild *at,
		  int height, BlockNumber from, Buffer *buf)
{
	*buf = hyb_page_lock(ix, at->block, from, BUFFER_LOCK_SHARE,
						 height == 0 ? HYB_PAGE_LEAF : HYB_PAGE_INNER, at->stamp);
	if (!BufferIsValid(*buf))
	{
		hyb_check_stale(ix, version, at->block);
		return false;
	}
	if (height > 0 && hyb_page_opaque(BufferGetPage(*buf))->level != height)
		hyb_corrupted(ix->rel, at->block, "An internal node has the wrong level.");
	return true;
}

/*
 * From a node, whose block `at` is, to the child that the position leads to,
 * with the fence that it has there, if it has one in this node.
 */
static inline void
follow_child(const HybIndex *ix, Page page, const HybSought *sought,
			 HybChild *at, HybDescent *descent)
{
	BlockNumber block = at->block;
	int			i = hyb_inner_search(ix->desc, page, sought->pos,
									 sought->backward, ix->rel, block);
	bool		fence = sought->want_fence &&
		(sought->backward ? i > 0 : i + 1 < hyb_inner_count(page));

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
 * Scans go on at a fence, so a damaged one that does not lie beyond the
 * position would have them go round for ever.
 */
static inline void
check_fence(const HybIndex *ix, const HybSought *sought,
			const HybDescent *descent)
{
	int			cmp = hyb_pos_compare(ix->desc, &descent->fence, sought->pos);

	if (sought->backward ? cmp > -1 : cmp < 1)
	{
		if (BufferIsValid(descent->buf))
			UnlockReleaseBuffer(descent->buf);
		hyb_corrupted(ix->rel, descent->block,
					  "The separators around this leaf do not enclose the position that they led here from.");
	}
}

bool
hyb_static_descend(const HybIndex *ix, const HybVersion *version,
				   const HybSought *sought, HybDescent *descent)
{
	HybChild	at;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	const HybRoot *root = &version->levels[sought->level];
	int			height = (int) root->height - 1;	/* of the page at hand */
	Page		page;

	at.block = root->block;
	at.stamp = root->stamp;
	descent->buf = InvalidBuffer;
	descent->probed = false;
	descent->skipped = false;
	memset(&descent->fence, 0, sizeof(HybPos));
	descent->fence.tie = sought->backward ? HYB_BEFORE : HYB_AFTER;
	page = cached_root(ix, sought->level, root);
	for (;;)
	{
		Buffer		buf = InvalidBuffer;

		if (page == NULL)
		{
			if (!read_page(ix, version, &at, height, from, &buf))
				return false;
			if (height == 0)
			{
				descent->buf = buf;
				break;
			}
			page = BufferGetPage(buf);
			if (from == HYB_METAPAGE_BLKNO && ix->desc->all_mem)
				note_root(ix, sought->level, &at, page);
		}
		from = at.block;
		follow_child(ix, page, sought, &at, descent);
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		page = NULL;
		HYB_POINT("descend");
		height--;
		if (height == 0 && sought->bound != NULL &&
			BlockNumberIsValid(at.filter_block))
		{
			/*
			 * Whether the version is still current is for the caller to find
			 * out, after a leaf as after a filter.
			 */
			HybFilterAnswer answer =
				hyb_filter_probe(ix, &at,
								 sought->backward ? sought->bound : sought->pos,
								 sought->backward ? sought->pos : sought->bound);

			descent->probed = answer != HYB_ANSWER_UNKNOWN;
			descent->skipped = answer == HYB_ANSWER_NO;
			if (descent->skipped || (descent->probed && sought->stop_at_filter))
				break;
		}
	}
	descent->block = at.block;
	descent->stamp = at.stamp;
	if (sought->backward ? !HYB_POS_MIN(&descent->fence) :
		!HYB_POS_MAX(&descent->fence))
		check_fence(ix, sought, descent);
	return true;
}
