/*
 * append.c
 *		Appending entries to the delta log.
 *
 * Each lane of the active generation is a chain of pages.  Only the last one,
 * the tail, takes entries.  A page is its lane's tail exactly if it has no
 * successor (link) and is not closed.  The appender checks both with the page
 * locked exclusively, together with kind and generation number.  So the place
 * where a backend looks first may be a mere hint: freezing a generation closes
 * all its tails before the next generation begins.
 *
 * Backends start with the lane that they used last, at first lane 0, and go
 * to the next one when its tail is locked by another.  Another lane is opened
 * only when all open ones are busy, so without contention the log is one run
 * in order of insertion.
 *
 * When a tail is full, the metapage is locked, and one record changes it, the
 * old tail's link, the new page and the free list.  That is the only time
 * that an insert touches the metapage.
 *
 * Entries come as an image, the bytes that they have on a page one after the
 * other, with whole TIDs.  As many of them as a page takes are one change: one lock,
 * one critical section, one record with one range of bytes, one announcement.
 *
 * Entries of several indexes may be one change, too (hyb_delta_append_together).
 * Then the appender holds the tails of up to HYB_APPEND_TOGETHER indexes at once.
 * No two appenders can wait for each other in a circle: while this one holds a tail
 * it waits neither for another tail nor for a metapage.  An index whose tails are
 * busy, full, or not where the hints say takes no part, and the caller appends its
 * entries by themselves.  All that may fail comes before the critical section.  Each
 * index has its announcement before its page is unlocked.
 */
#include "base/compat.h"

#include "log/delta.h"
#include "log/log.h"
#include "log/own_trees.h"
#include "log/stage_access.h"
#include "log/unique_lock.h"
#include "miscadmin.h"
#include "store/meta.h"
#include "store/space.h"
#include "utils/rel.h"

/* Where a backend appends to an index; checked when the page is locked. */
typedef struct TailHints
{
	uint64		generation;		/* 0: no hints */
	BlockNumber tail[HYB_LANES];
	Buffer		buffer;			/* where the page appended to last was */
	uint64		end_generation;
	uint64		end;			/* where this backend's last append to it
								 * ended: hyb_lane_end */
	int			lane;			/* preferred */
} TailHints;

static HybCachePiece hints_piece = {.size = sizeof(TailHints)};

void
hyb_log_init(void)
{
	hyb_cache_add_piece(&hints_piece);
	hyb_cache_add_piece(&hyb_own_trees_piece);
	hyb_cache_add_piece(&hyb_short_log_piece);
	hyb_cache_add_piece(&hyb_counters_piece);
}

static inline void
set_tail_hints(TailHints *hints, const HybGeneration *active)
{
	hints->generation = active->number;
	memcpy(hints->tail, active->tail, sizeof(hints->tail));
}

static void
load_hints(HybIndex *ix, TailHints *hints)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);

	set_tail_hints(hints, &meta->active);
	UnlockReleaseBuffer(metabuf);
}

/* What is to be appended: some entries, of which as many go as a page takes. */
typedef struct Appending
{
	HybIndex   *ix;
	HybCache   *cache;			/* of the index */
	TailHints  *hints;			/* the cache's */
	const uint8 *image;			/* as they are on a page */
	uint32		len;			/* of all of them */
	uint32		keylen;			/* if there is one only: of its key columns, */
	uint64		hash;			/* and their hash if that is wanted */
	Buffer		tail;			/* locked exclusively, */
	uint64		generation;		/* of this generation */
	int			lane;			/* and lane */
	uint16		from;			/* where the page's entries end */
	uint64		begin;			/* the same as hyb_lane_end */
	uint64		end;			/* where they end afterwards */
	uint32		done;			/* bytes that were appended */
	uint32		last;			/* bytes of the last entry on the page */
	BlockNumber base;			/* TIDs are told beside, on the page */
	bool		full;			/* the append filled a page */
} Appending;

/* Find out where the entries of a tail page end. */
static void
find_end(HybIndex *ix, int lane, Buffer buf, Appending *appending)
{
	const TailHints *hints = appending->hints;
	HybCache   *cache = appending->cache;
	Page		page = BufferGetPage(buf);
	BlockNumber block = BufferGetBlockNumber(buf);
	uint64		generation = hyb_page_opaque(page)->stamp;
	uint16		from = HYB_DELTA_FIRST;

	Assert(hyb_page_is_mine(buf));
	if (hints->end_generation == generation && hyb_lane_end_block(hints->end) == block)
		from = hyb_lane_end_offset(hints->end);
	if (!hyb_delta_is_end(page, from) && hyb_slot_find(cache))
	{
		/*
		 * another backend has appended, or this one is here for the first
		 * time
		 */
		uint64		end = hyb_slot_appended(cache->shared, generation, lane);

		pg_read_barrier();
		if (hyb_slot_valid(cache) && hyb_lane_end_block(end) == block)
			from = Max(from, hyb_lane_end_offset(end));
	}
	appending->from = hyb_delta_end(ix->rel, page, block, from);
	Assert(appending->from >= HYB_DELTA_FIRST && hyb_delta_is_end(page, appending->from));
}

/*
 * Before the change, with the page locked that changes: find the shared slot, which is
 * told of it.  If it has a tree, have look-ups of other keys not wait for the entry; its
 * first tree is built by a reader that locks the page later.
 */
static inline void
find_slot(Appending *appending)
{
	HybDeltaHeader header;

	(void) hyb_slot_find(appending->cache);
	appending->hash = 0;
	if (appending->keylen == 0 || !appending->ix->desc->exact ||
		appending->cache->shared == NULL || appending->cache->shared->tree_bytes == 0)
		return;
	header = hyb_delta_whole_header(appending->image);
	appending->hash = hyb_key_hash(appending->image + header.size, appending->keylen);
}

/*
 * Tell other backends where the entries of a lane end now, and remember it for the
 * next append of this one.
 */
static inline void
announce(const Appending *appending)
{
	HybCache   *cache = appending->cache;
	bool		together = appending->keylen == 0;

	if (cache->shared != NULL)
		hyb_unentered_add(&cache->shared->unentered, appending->hash);
	hyb_slot_publish(cache, appending->generation, appending->lane, appending->end);
	if (hyb_slot_valid(cache) && cache->shared->together != together)
		cache->shared->together = together;
	appending->hints->end_generation = appending->generation;
	appending->hints->end = appending->end;
}

/*
 * The header of the next entry, `done` bytes of them being on the page, at an
 * offset of the page; *near: how it is written there.  Returns its length there.
 */
static inline uint32
next_append_header(const Appending *appending, uint32 done, uint32 offset,
				   HybDeltaHeader *header, bool *near)
{
	Assert(done < appending->len);
	*header = hyb_delta_whole_header(appending->image + done);
	*near = offset != HYB_DELTA_FIRST &&
		hyb_delta_is_near(&header->tid, appending->base);
	return header->size + header->len -
		(*near ? sizeof(ItemPointerData) - HYB_DELTA_NEAR_TID : 0);
}

/* Has the page room for the first one?  Find out what TIDs are told beside. */
static inline bool
page_has_room(Page page, Appending *appending)
{
	HybDeltaHeader header;
	bool		near;

	if (appending->from == HYB_DELTA_FIRST)
	{
		header = hyb_delta_whole_header(appending->image);
		appending->base = ItemPointerGetBlockNumberNoCheck(&header.tid);
	}
	else
		appending->base = hyb_delta_base(page);
	return appending->from + next_append_header(appending, 0, appending->from, &header, &near) <=
		((PageHeader) page)->pd_upper;
}

/*
 * Write those behind the others that the page has room for; returns where they
 * end.  *lower: pd_lower has grown.
 */
static inline uint16
put_entries(Page page, Appending *appending, bool *lower)
{
	PageHeader	ph = (PageHeader) page;
	uint32		end = appending->from;

	Assert(CritSectionCount > 0);
	appending->done = 0;
	while (appending->done < appending->len)
	{
		HybDeltaHeader header;
		bool		near;
		uint32		len = next_append_header(appending, appending->done, end, &header, &near);

		if (end + len > ph->pd_upper)
			break;
		appending->last = len;
		end += hyb_delta_place((uint8 *) page + end, appending->image + appending->done,
							   &header, near, appending->base);
		appending->done += header.size + header.len;
	}
	/* the caller has seen that the first one has room */
	Assert(appending->done > 0 && appending->done <= appending->len);
	*lower = end > ph->pd_lower;
	if (*lower)
		ph->pd_lower = Min(TYPEALIGN(HYB_DELTA_STEP, end), ph->pd_upper);
	Assert(end <= ph->pd_lower && ph->pd_lower - end < HYB_DELTA_STEP);
	return end;
}

/*
 * Append to tails that were chosen, each of another index, and let go of them.
 *
 * The shared slots are looked for before the change, with the pages locked, and
 * told of it before they are unlocked; nothing in between can fail, as nothing may
 * after the WAL record.
 */
static void
append_to_tails(Appending *appendings, int n)
{
	HybWalSet	set;

	Assert(n > 0 && n <= HYB_APPEND_TOGETHER);
	for (int i = 0; i < n; i++)
	{
		HybPageOpaque *opaque = hyb_page_opaque(BufferGetPage(appendings[i].tail));

		/* a tail: of this generation, not closed, without a page behind it */
		Assert(hyb_page_is_mine(appendings[i].tail) && opaque->stamp == appendings[i].generation);
		Assert(!BlockNumberIsValid(opaque->link) && (opaque->flags & HYB_DELTA_CLOSED) == 0);
		(void) opaque;
		find_slot(&appendings[i]);
	}
	hyb_wal_begin(&set, appendings[0].ix->rel);
	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		Appending  *appending = &appendings[i];
		Buffer		buf = appending->tail;
		bool		lower;

		appending->end = appending->begin - appending->from +
			put_entries(BufferGetPage(buf), appending, &lower);
		if (lower)
			hyb_wal_lower(&set, buf);
		hyb_wal_range(&set, buf, appending->from,
					  hyb_lane_end_offset(appending->end) - appending->from);
	}
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		Appending  *appending = &appendings[i];

		announce(appending);

		/*
		 * The append has filled the page if it has no room for another entry
		 * like the last one: a merge that begins now finds no page behind it
		 * with a single entry.
		 */
		appending->full = hyb_lane_end_offset(appending->end) + appending->last >
			((PageHeader) BufferGetPage(appending->tail))->pd_upper;
		UnlockReleaseBuffer(appending->tail);
	}
}

/*
 * May entries go to this last page of a lane, which is locked exclusively: is it not
 * closed, with room for one more?  Notes it.
 */
static inline bool
takes_one(Appending *appending, uint64 generation, int lane, Buffer buf)
{
	Page		page = BufferGetPage(buf);

	Assert(lane >= 0 && lane < HYB_LANES);
	appending->hints->lane = lane;
	appending->tail = buf;
	appending->generation = generation;
	appending->lane = lane;
	find_end(appending->ix, lane, buf, appending);
	appending->begin = hyb_lane_end(BufferGetBlockNumber(buf), appending->from);
	return (hyb_page_opaque(page)->flags & HYB_DELTA_CLOSED) == 0 &&
		page_has_room(page, appending);
}

/* The tail of a lane, while the metapage is locked. */
static Buffer
lock_tail(HybIndex *ix, BlockNumber block, uint64 generation)
{
	Buffer		buf = hyb_page_lock(ix, block, HYB_METAPAGE_BLKNO,
									BUFFER_LOCK_EXCLUSIVE, HYB_PAGE_DELTA,
									generation);

	if (!BufferIsValid(buf) ||
		hyb_page_opaque(BufferGetPage(buf))->link != InvalidBlockNumber)
		hyb_corrupted(ix->rel, block,
					  "This is not the last delta page of its lane.");
	return buf;
}

/*
 * Append with the metapage locked: the lane has no page yet, or its tail is
 * full or closed (a freeze that a crash cut short).  Returns true if a page
 * was filled.
 */
static bool
append_to_new_page(Appending *appending, int lane)
{
	HybIndex   *ix = appending->ix;
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	uint64		generation = meta->active.number;
	BlockNumber old_block = meta->active.tail[lane];
	BlockNumber new_block;
	Buffer		old = InvalidBuffer;
	bool		lower;
	uint32		old_count = 0;
	HybSpaceTake take;
	HybWalSet	set;

	if (BlockNumberIsValid(old_block))
	{
		old = lock_tail(ix, old_block, generation);
		if (takes_one(appending, generation, lane, old))
		{
			/* another backend has added a page before us */
			set_tail_hints(appending->hints, &meta->active);
			UnlockReleaseBuffer(metabuf);
			append_to_tails(appending, 1);
			return appending->full;
		}
	}

	/* that page is locked already */
	if (BufferIsValid(old) && meta->freelist == old_block)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "The free list begins at a page of the delta log.");
	if (BufferIsValid(old))
		old_count = hyb_delta_count(ix->rel, BufferGetPage(old), old_block);
	hyb_space_take(ix, metabuf, &take);
	HYB_POINT("delta-page");
	new_block = BufferGetBlockNumber(take.page);
	find_slot(appending);
	hyb_wal_begin(&set, ix->rel);

	START_CRIT_SECTION();
	hyb_page_init(BufferGetPage(take.page), ix, HYB_PAGE_DELTA, 0, generation);
	appending->from = HYB_DELTA_FIRST;
	(void) page_has_room(BufferGetPage(take.page), appending);
	appending->generation = generation;
	appending->lane = lane;
	appending->end = hyb_lane_end(new_block,
								  put_entries(BufferGetPage(take.page), appending, &lower));
	hyb_wal_image(&set, take.page);
	if (BufferIsValid(old))
	{
		HybPageOpaque *opaque = hyb_page_opaque(BufferGetPage(old));

		opaque->link = new_block;
		opaque->count = old_count;
		hyb_wal_opaque(&set, old);
		meta->active.nentries += old_count;
	}
	else
		meta->active.head[lane] = new_block;
	Assert(new_block != HYB_METAPAGE_BLKNO && new_block != old_block);
	meta->active.tail[lane] = new_block;
	meta->active.npages++;
	hyb_generation_assert_valid(&meta->active);
	hyb_wal_meta_field(&set, metabuf, active);
	hyb_space_take_apply(&set, metabuf, &take);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();

	if (!BufferIsValid(old))
		hyb_cache_count_change(appending->cache);	/* versions lack the new
													 * lane's head */
	announce(appending);
	set_tail_hints(appending->hints, &meta->active);
	hyb_space_take_release(&take);
	if (BufferIsValid(old))
		UnlockReleaseBuffer(old);
	UnlockReleaseBuffer(metabuf);
	return BufferIsValid(old);
}

/*
 * Lock the tail of some lane, as far as the hints know.  Returns InvalidBuffer
 * if *lane should get a page first; without `wait`, if none can be locked at once.
 */
static Buffer
lock_some_tail(HybIndex *ix, TailHints *hints, bool wait, int *lane)
{
	int			unopened = -1;
	bool		busy = false;
	Buffer		buf;

	for (int i = 0; i < HYB_LANES; i++)
	{
		*lane = (hints->lane + i) % HYB_LANES;

		/* VACUUM may have cut the file since, but not its tails */
		if (BlockNumberIsValid(hints->tail[*lane]) &&
			!hyb_page_exists(ix, hints->tail[*lane]))
		{
			if (!wait)
				return InvalidBuffer;
			load_hints(ix, hints);
		}
		if (!BlockNumberIsValid(hints->tail[*lane]))
		{
			if (unopened < 0 || *lane < unopened)
				unopened = *lane;
			continue;
		}
		buf = hyb_page_read_recent(ix, hints->tail[*lane], HYB_METAPAGE_BLKNO,
								   hints->buffer);
		if (ConditionalLockBuffer(buf))
		{
			hints->buffer = buf;
			return buf;
		}
		ReleaseBuffer(buf);
		busy = true;
	}

	if (unopened >= 0 || !wait)
	{
		*lane = busy ? unopened : 0;
		return InvalidBuffer;
	}
	*lane = hints->lane;
	buf = hyb_page_read(ix, hints->tail[*lane], HYB_METAPAGE_BLKNO);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	return buf;
}

/* Find what this process keeps about the index.  May lock the metapage for a moment. */
static inline void
find_hints(Appending *appending)
{
	HybCache   *cache = hyb_cache_get(appending->ix);
	TailHints  *hints = hyb_cache_piece_of(cache, &hints_piece);

	Assert(hints->lane >= 0 && hints->lane < HYB_LANES);
	appending->cache = cache;
	appending->hints = hints;
	if (hints->generation == 0 && hyb_cache_version_is_current(cache))
		set_tail_hints(hints, &cache->version->active);
	else if (hints->generation == 0)
		load_hints(appending->ix, hints);
}

/*
 * Is the page, which is locked, the tail of its lane, but that it may be closed?  If
 * not the lane, or the index, has moved on.  Where the file was cut it may be extended
 * just now.
 */
static inline bool
is_last_page(const Appending *appending, Buffer buf)
{
	Page		page = BufferGetPage(buf);

	return !PageIsNew(page) &&
		hyb_page_check(appending->ix, buf, HYB_PAGE_DELTA, appending->hints->generation) &&
		hyb_page_opaque(page)->link == InvalidBlockNumber;
}

/* Append some of the entries, one at least; true if that filled a page. */
static bool
append(Appending *appending)
{
	HybIndex   *ix = appending->ix;
	TailHints  *hints;

	find_hints(appending);
	hints = appending->hints;
	for (;;)
	{
		int			lane;
		Buffer		buf = lock_some_tail(ix, hints, true, &lane);

		if (!BufferIsValid(buf))
		{
			hints->lane = lane;
			HYB_POINT("delta-lane");
			return append_to_new_page(appending, lane);
		}

		if (!is_last_page(appending, buf))
		{
			BlockNumber block = BufferGetBlockNumber(buf);
			uint64		generation = hints->generation;

			UnlockReleaseBuffer(buf);
			load_hints(ix, hints);

			/*
			 * Or the page is damaged: with the metapage locked, where lanes
			 * do not move, that is told apart.
			 */
			if (hints->generation == generation && hints->tail[lane] == block)
				return append_to_new_page(appending, lane);
			continue;
		}
		if (!takes_one(appending, hints->generation, lane, buf))
		{
			UnlockReleaseBuffer(buf);
			return append_to_new_page(appending, lane);
		}
		append_to_tails(appending, 1);
		return appending->full;
	}
}

/* Choose a tail that takes all of the entries, without waiting for any lock. */
static bool
try_tail(Appending *appending)
{
	int			lane;
	Buffer		buf = lock_some_tail(appending->ix, appending->hints, false, &lane);

	if (!BufferIsValid(buf))
		return false;
	if (!is_last_page(appending, buf) ||
		!takes_one(appending, appending->hints->generation, lane, buf) ||
		appending->from + appending->len > ((PageHeader) BufferGetPage(buf))->pd_upper)
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	return true;
}

bool
hyb_delta_append(HybIndex *ix, const HybEntry *entry)
{
	uint8		image[HYB_DELTA_HEADER + HYB_MAX_ENTRY_SIZE];
	Appending	appending = {.ix = ix,.image = image,.keylen = entry->keylen};

	HYB_POINT("append");
	Assert(entry->len > 0 && entry->len <= HYB_MAX_ENTRY_SIZE);
	hyb_unique_assert_added(ix, entry->bytes, entry->keylen);
	appending.len = hyb_delta_image(entry, image);
	return append(&appending);
}

uint32
hyb_delta_append_some(const HybAppend *entries, bool *full)
{
	Appending	appending = {
		.ix = entries->ix,.image = entries->image,.len = entries->len,.keylen = entries->keylen
	};

	Assert(entries->len >= HYB_DELTA_MIN_ENTRY);
	if (append(&appending))
		*full = true;
	Assert(appending.done > 0 && appending.done <= entries->len);
	return appending.done;
}

void
hyb_delta_append_together(HybAppend *entries, int n)
{
	Appending	chosen[HYB_APPEND_TOGETHER];
	HybAppend  *of[HYB_APPEND_TOGETHER];
	int			nchosen = 0;

	Assert(n > 0 && n <= HYB_APPEND_TOGETHER);
	/* before a tail is locked: this may wait for metapages */
	for (int i = 0; i < n; i++)
	{
		Assert(RelationNeedsWAL(entries[i].ix->rel));
		Assert(i == 0 || entries[i].ix->rel != entries[i - 1].ix->rel);
		chosen[i] = (Appending)
		{
			.ix = entries[i].ix,.image = entries[i].image,.len = entries[i].len,
				.keylen = entries[i].keylen
		};
		find_hints(&chosen[i]);
	}
	for (int i = 0; i < n; i++)
	{
		entries[i].appended = try_tail(&chosen[i]);
		if (!entries[i].appended)
			continue;
		of[nchosen] = &entries[i];
		chosen[nchosen++] = chosen[i];
	}
	if (nchosen == 0)
		return;
	append_to_tails(chosen, nchosen);
	for (int i = 0; i < nchosen; i++)
	{
		Assert(chosen[i].done == chosen[i].len);
		of[i]->full = chosen[i].full;
	}
}
