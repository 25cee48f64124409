/*
 * descend.c
 *		Descent from the root of the static stage to a leaf.
 */
#include "compat.h"

#include "dynamic/slot.h"
#include "page/meta.h"
#include "static/descend.h"
#include "static/filter.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A page was not what a pointer to it said.  That happens when the version is
 * no longer current; if it is, the page is damaged, and starting over would
 * come here for ever.
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

/*
 * A backend's copy of an index's root, if that is an internal node.  A node
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

static void
release_root(void *piece)
{
	if (((RootCache *) piece)->page != NULL)
		pfree(((RootCache *) piece)->page);
}

static HybSlotPiece root_piece = {
	.size = sizeof(RootCache),
	.release = release_root
};

void
hyb_static_init(void)
{
	hyb_slot_add_piece(&root_piece);
}

/* The copy, or NULL if the page has to be read. */
static inline Page
cached_root(const HybIndex *ix, BlockNumber block, uint64 stamp)
{
	const RootCache *root = hyb_slot_piece(ix, &root_piece);

	if (root->valid && root->block == block && root->stamp == stamp)
		return (Page) root->page;
	return NULL;
}

/* A root was read, and checked. */
static void
note_root(const HybIndex *ix, BlockNumber block, uint64 stamp, Page page)
{
	RootCache  *root = hyb_slot_piece(ix, &root_piece);

	if (root->block == block && root->stamp == stamp)
	{
		if (root->page == NULL)
			root->page = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
		memcpy(root->page, page, BLCKSZ);
		root->valid = true;
		return;
	}
	root->block = block;
	root->stamp = stamp;
	root->valid = false;
}

/*
 * Read and lock the page of a level.  Returns false if it is not what the
 * pointer to it said.
 */
static inline bool
read_page(const HybIndex *ix, const HybVersion *version, const HybChild *at,
		  int level, BlockNumber from, Buffer *buf)
{
	*buf = hyb_page_read(ix, at->block, from);
	LockBuffer(*buf, BUFFER_LOCK_SHARE);
	if (!hyb_page_check(ix, *buf, level == 0 ? HYB_PAGE_LEAF : HYB_PAGE_INNER,
						at->stamp))
	{
		UnlockReleaseBuffer(*buf);
		check_stale(ix, version, at->block);
		return false;
	}
	if (level > 0)
	{
		Page		page = BufferGetPage(*buf);

		if (hyb_page_opaque(page)->level != level)
			hyb_corrupted(ix->rel, at->block, "An internal node has the wrong level.");
		if (from == HYB_METAPAGE_BLKNO && ix->desc->all_mem)
			note_root(ix, at->block, at->stamp, page);
	}
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
	int			level = (int) version->height - 1;
	Page		page;

	at.block = version->root;
	at.stamp = version->root_stamp;
	descent->buf = InvalidBuffer;
	descent->probed = false;
	descent->skipped = false;
	memset(&descent->fence, 0, sizeof(HybPos));
	descent->fence.tie = sought->backward ? HYB_BEFORE : HYB_AFTER;
	page = level > 0 && ix->desc->all_mem ?
		cached_root(ix, at.block, at.stamp) : NULL;
	for (;;)
	{
		Buffer		buf = InvalidBuffer;

		if (page == NULL)
		{
			if (!read_page(ix, version, &at, level, from, &buf))
				return false;
			if (level == 0)
			{
				descent->buf = buf;
				break;
			}
			page = BufferGetPage(buf);
		}
		from = at.block;
		follow_child(ix, page, sought, &at, descent);
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		page = NULL;
		HYB_POINT("descend");
		level--;
		if (level == 0 && sought->bound != NULL &&
			BlockNumberIsValid(at.filter_block))
		{
			/*
			 * Whether the version is still current is for the caller to find
			 * out, after a leaf as after a filter.
			 */
			descent->probed = true;
			descent->skipped =
				!hyb_filter_probe(ix, &at,
								  sought->backward ? sought->bound : sought->pos,
								  sought->backward ? sought->pos : sought->bound);
			if (descent->skipped || sought->stop_at_filter)
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
