/*
 * meta.c
 *		The metapage, and the version of an index that it names.
 */
#include "base/compat.h"

#include "access/amapi.h"
#include "store/meta.h"
#include "utils/rel.h"

StaticAssertDecl(sizeof(HybMetaPage) <= HYB_PAGE_CAPACITY,
				 "the metapage's content must fit one page");

/*
 * What lies between pd_lower and pd_upper is not logged, and zeroed by replay.
 */
static bool
has_size(Page page, uint32 format)
{
	return ((PageHeader) page)->pd_lower == SizeOfPageHeaderData + hyb_meta_size(format);
}

/* The header is that of a metapage of some format. */
static bool
has_bounds(Page page)
{
	PageHeader	header = (PageHeader) page;

	return header->pd_special == BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)) &&
		(has_size(page, HYB_FORMAT_VERSION) || has_size(page, HYB_CHAINS_FORMAT_VERSION)) &&
		header->pd_upper == header->pd_special;
}

static bool
counters_in_range(const HybMetaPage *meta)
{
	return meta->npending <= HYB_MAX_PENDING &&
		meta->nlevels >= 1 && meta->nlevels <= HYB_MAX_LEVELS &&
		meta->pass_level < meta->nlevels &&
		meta->wanted_levels >= 1 && meta->wanted_levels <= meta->nlevels &&
		meta->wm_len <= HYB_MAX_ENTRY_SIZE;
}

static bool
is_known(uint32 format)
{
	return format == HYB_FORMAT_VERSION || format == HYB_CHAINS_FORMAT_VERSION;
}

/* The format of an index of this access method. */
static uint32
format_of(Relation rel)
{
	return HYB_IS_SUMMARIZING(rel) ? HYB_CHAINS_FORMAT_VERSION : HYB_FORMAT_VERSION;
}

#ifdef USE_ASSERT_CHECKING

void
hyb_generation_assert_valid(const HybGeneration *generation)
{
	uint32		lanes = 0;

	if (hyb_is_damaged())
		return;
	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		BlockNumber head = generation->head[lane];
		BlockNumber tail = generation->tail[lane];

		Assert(head != HYB_METAPAGE_BLKNO && tail != HYB_METAPAGE_BLKNO);
		Assert(BlockNumberIsValid(head) == BlockNumberIsValid(tail));
		lanes += BlockNumberIsValid(head) ? 1 : 0;
	}
	/* a lane has a page at least */
	Assert(generation->npages >= lanes);
	Assert(generation->number != 0 || (lanes == 0 && generation->npages == 0));
}

void
hyb_level_assert_valid(const HybLevel *level)
{
	bool		empty = level->root.height == 0;

	if (hyb_is_damaged())
		return;
	Assert(empty == !BlockNumberIsValid(level->root.block));
	Assert(level->root.block != HYB_METAPAGE_BLKNO);
	Assert(empty == (level->root.stamp == 0));
	Assert(level->tombstones <= level->tids);
	Assert(empty == (level->leaf_pages == 0) && empty == (level->tids == 0));
	/* each leaf has a TID at least, and each height a node */
	Assert(level->tids >= level->leaf_pages);
	Assert(empty || level->inner_pages >= level->root.height - 1);
	Assert(level->filter_pages <= level->leaf_pages);
}

/* What is said of the end of the file that is to be cut off: store/file_end.c. */
static void
assert_cut_valid(const HybMetaPage *meta)
{
	Assert(meta->cut != HYB_METAPAGE_BLKNO);
	Assert(BlockNumberIsValid(meta->cut_list) == (meta->cut_blocks > 0));
	Assert(!BlockNumberIsValid(meta->cut_list) ||
		   (BlockNumberIsValid(meta->cut) && meta->cut_list >= meta->cut));
	Assert(meta->cut_end == 0 ||
		   (BlockNumberIsValid(meta->cut) && meta->cut <= meta->cut_end &&
			meta->cut_blocks == 0));
}

void
hyb_meta_assert_valid(const HybMetaPage *meta)
{
	if (hyb_is_damaged())
		return;
	Assert(meta->magic == HYB_META_MAGIC && is_known(meta->format));
	Assert(meta->incarnation != 0 && meta->version > 0);
	Assert(counters_in_range(meta));
	Assert((meta->flags & ~HYB_META_ALL) == 0);

	/* generations are numbered in the order in which they begin */
	Assert(meta->active.number > 0 && meta->active.number < meta->next_generation);
	Assert(meta->frozen.number < meta->active.number);
	Assert(meta->retiring.number < meta->active.number);
	/* one is frozen when nothing is left of the one before */
	Assert(meta->frozen.number == 0 || meta->retiring.number == 0);
	hyb_generation_assert_valid(&meta->active);
	hyb_generation_assert_valid(&meta->frozen);

	for (uint32 i = 0; i < HYB_MAX_LEVELS; i++)
	{
		hyb_level_assert_valid(&meta->levels[i]);
		Assert(i < meta->nlevels || meta->levels[i].root.height == 0);
		Assert(meta->levels[i].root.stamp < meta->next_stamp);
	}
	Assert(meta->pass_stamp <= meta->next_stamp);

	/* without a merge or a pass the watermark is -infinity */
	Assert(meta->wm_tie >= HYB_BEFORE && meta->wm_tie <= HYB_AFTER);
	Assert(meta->frozen.number != 0 || meta->pass_level != 0 ||
		   (meta->wm_len == 0 && meta->wm_tie == HYB_BEFORE));
	Assert(meta->frozen.number == 0 || meta->pass_level == 0);
	Assert((meta->flags & HYB_META_MOVING) == 0 || meta->pass_level != 0);
	Assert((meta->flags & HYB_META_PLAIN) == 0 || !BlockNumberIsValid(meta->dictionary));

	Assert(BlockNumberIsValid(meta->freelist) == (meta->free_blocks > 0));
	Assert(meta->freelist != HYB_METAPAGE_BLKNO);
	assert_cut_valid(meta);
	for (uint32 i = 0; i < meta->npending; i++)
		Assert(BlockNumberIsValid(meta->pending[i]) && meta->pending[i] != HYB_METAPAGE_BLKNO);
}

#endif							/* USE_ASSERT_CHECKING */

bool
hyb_meta_is_readable(Page page)
{
	const HybMetaPage *meta = hyb_page_meta(page);

	return has_bounds(page) && meta->magic == HYB_META_MAGIC &&
		is_known(meta->format) && has_size(page, meta->format) && counters_in_range(meta);
}

static void
require_own_meta(Relation rel, Page page)
{
	HybMetaPage *meta = hyb_page_meta(page);
	HybPageOpaque *opaque;

	if (!has_bounds(page))
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage header is not that of a hybrid index.");
	opaque = hyb_page_opaque(page);
	if (opaque->page_id != HYB_PAGE_ID || opaque->kind != HYB_PAGE_META ||
		meta->magic != HYB_META_MAGIC ||
		meta->incarnation != opaque->incarnation)
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage is not that of a hybrid index.");
	if (meta->format != format_of(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has format version %u, but this hybridindex reads version %u",
						RelationGetRelationName(rel), meta->format,
						format_of(rel)),
				 meta->format > format_of(rel) ?
				 errhint("A newer hybridindex wrote it: install that one and restart the server, or REINDEX the index.") :
				 errhint("Please REINDEX it.")));
	if (!has_size(page, meta->format))
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage header is not that of a hybrid index.");
	if (!counters_in_range(meta) ||
		meta->wm_ncols > IndexRelationGetNumberOfKeyAttributes(rel))
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "A counter of the metapage is out of range.");
}

Buffer
hyb_meta_lock(const HybIndex *ix, int mode, HybMetaPage **meta)
{
	Buffer		buf = ReadBuffer(ix->rel, HYB_METAPAGE_BLKNO);
	Page		page;

	LockBuffer(buf, mode);
	page = BufferGetPage(buf);
	require_own_meta(ix->rel, page);
	*meta = hyb_page_meta(page);
	return buf;
}

void
hyb_meta_copy(const HybIndex *ix, HybMetaPage *copy)
{
	HybMetaPage *meta;
	Buffer		buf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);

	memcpy(copy, meta, sizeof(HybMetaPage));
	UnlockReleaseBuffer(buf);
}

void
hyb_generation_init(HybGeneration *generation, uint64 number)
{
	memset(generation, 0, sizeof(*generation));
	generation->number = number;
	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		generation->head[lane] = InvalidBlockNumber;
		generation->tail[lane] = InvalidBlockNumber;
	}
	hyb_generation_assert_valid(generation);
}

void
hyb_level_init(HybLevel *level)
{
	memset(level, 0, sizeof(*level));
	level->root.block = InvalidBlockNumber;
}

HybLevel
hyb_meta_static(const HybMetaPage *meta)
{
	HybLevel	sum;

	hyb_level_init(&sum);
	for (int i = 0; i < meta->nlevels; i++)
	{
		const HybLevel *level = &meta->levels[i];

		sum.root.height = Max(sum.root.height, level->root.height);
		sum.tids += level->tids;
		sum.tombstones += level->tombstones;
		sum.leaf_pages += level->leaf_pages;
		sum.inner_pages += level->inner_pages;
		sum.filter_pages += level->filter_pages;
	}
	return sum;
}

/*
 * Stamps and generation numbers start at 1: 0 means "any" or "none".
 */
void
hyb_meta_init(Page page, const HybIndex *ix)
{
	HybMetaPage *meta;

	Assert(ix->incarnation != 0);
	hyb_page_init(page, ix, HYB_PAGE_META, 0, 0);
	meta = hyb_page_meta(page);
	memset(meta, 0, sizeof(*meta));
	meta->magic = HYB_META_MAGIC;
	meta->format = format_of(ix->rel);
	meta->incarnation = ix->incarnation;
	meta->version = 1;
	meta->next_stamp = 1;
	meta->rewritten_tids = HYB_REWRITTEN_UNKNOWN;
	meta->next_generation = 2;
	meta->nlevels = 1;
	meta->wanted_levels = 1;
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
		hyb_level_init(&meta->levels[i]);
	hyb_generation_init(&meta->active, 1);
	hyb_generation_init(&meta->frozen, 0);
	hyb_generation_init(&meta->retiring, 0);
	meta->freelist = InvalidBlockNumber;
	meta->dictionary = InvalidBlockNumber;
	meta->cut = InvalidBlockNumber;
	meta->cut_list = InvalidBlockNumber;
	meta->wm_tie = HYB_BEFORE;
	ItemPointerSetInvalid(&meta->wm_tid);
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData + hyb_meta_size(meta->format);
	hyb_meta_assert_valid(meta);
	hyb_page_assert_valid(page);
}

void
hyb_wal_meta(HybWalSet *set, Buffer metabuf)
{
	hyb_meta_assert_valid(hyb_page_meta(BufferGetPage(metabuf)));
	hyb_wal_range(set, metabuf, SizeOfPageHeaderData,
				  offsetof(HybMetaPage, pending));
}

void
hyb_wal_meta_pending(HybWalSet *set, Buffer metabuf)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	Assert(BufferGetBlockNumber(metabuf) == HYB_METAPAGE_BLKNO);
	Assert(meta->npending <= HYB_MAX_PENDING);
	if (meta->npending > 0)
		hyb_wal_range(set, metabuf,
					  SizeOfPageHeaderData + offsetof(HybMetaPage, pending),
					  meta->npending * sizeof(BlockNumber));
}

void
hyb_meta_set_watermark(HybMetaPage *meta, const HybPos *watermark,
					   HybWalSet *set, Buffer metabuf)
{
	HybPos		minus_infinity = {.tie = HYB_BEFORE};

	if (watermark == NULL)
		watermark = &minus_infinity;
	Assert(CritSectionCount > 0);
	Assert(watermark->len > 0 || watermark->ncols == 0);
	Assert(watermark->len <= HYB_MAX_ENTRY_SIZE);
	/* at a TID only with a whole key */
	Assert(watermark->tie != HYB_AT || watermark->len > 0);
	meta->wm_len = watermark->len;
	meta->wm_ncols = watermark->ncols;
	meta->wm_tie = watermark->tie;
	meta->wm_tid = watermark->tid;
	if (watermark->len > 0)
		memcpy(meta->wm_key, watermark->key, watermark->len);
	hyb_wal_range(set, metabuf,
				  SizeOfPageHeaderData + offsetof(HybMetaPage, wm_len),
				  offsetof(HybMetaPage, wm_key) - offsetof(HybMetaPage, wm_len) +
				  watermark->len);
}

void
hyb_meta_change_flags(const HybIndex *ix, Buffer metabuf, uint32 set_flags,
					  uint32 clear_flags)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));
	HybWalSet	set;

	Assert(((set_flags | clear_flags) & ~HYB_META_ALL) == 0);
	Assert((set_flags & clear_flags) == 0);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	meta->flags = (meta->flags & ~clear_flags) | set_flags;
	hyb_wal_meta_field(&set, metabuf, flags);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
}

void
hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version)
{
	Assert(meta->nlevels >= 1 && meta->nlevels <= HYB_MAX_LEVELS);
	Assert(meta->wm_len <= HYB_MAX_ENTRY_SIZE);
	version->version = meta->version;
	version->vacuum_counter = meta->vacuum_counter;
	version->nlevels = (int) meta->nlevels;
	for (int i = 0; i < version->nlevels; i++)
		version->levels[i] = meta->levels[i].root;
	version->active = meta->active;
	version->frozen = meta->frozen;
	version->watermark.key = version->wm_key;
	version->watermark.len = meta->wm_len;
	/* without a key columns mean nothing, whatever an older build left there */
	version->watermark.ncols = meta->wm_len > 0 ? meta->wm_ncols : 0;
	version->watermark.tie = meta->wm_tie;
	version->watermark.tid = meta->wm_tid;
	if (meta->wm_len > 0)
		memcpy(version->wm_key, meta->wm_key, meta->wm_len);
	hyb_version_assert_valid(version);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_version_assert_valid(const HybVersion *version)
{
	Assert(version->nlevels >= 1 && version->nlevels <= HYB_MAX_LEVELS);
	/* the key is the version's own: the metapage may change */
	Assert(version->watermark.key == version->wm_key);
	Assert(version->watermark.len <= sizeof(version->wm_key));
	Assert(version->watermark.len > 0 || version->watermark.ncols == 0);
}
#endif
