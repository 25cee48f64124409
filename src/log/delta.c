/*
 * delta.c
 *		Reading the delta log: entries of a page, pages of a generation.
 */
#include "base/compat.h"

#include "log/delta.h"
#include "log/stage_access.h"
#include "miscadmin.h"
#include "utils/rel.h"

/* ---- the entries of a page ---- */

/* Behind the last entry there is little, and nothing but zeroes. */
static void
check_end(Relation rel, Page page, BlockNumber block, uint16 off)
{
	uint16		lower = ((PageHeader) page)->pd_lower;
	bool		zero = lower - off < HYB_DELTA_STEP;

	for (int i = off; i < lower && zero; i++)
		zero = ((uint8 *) page)[i] == 0;
	if (!zero)
		hyb_corrupted(rel, block, "The entries of a delta page do not end where the page does.");
}

bool
hyb_delta_next(Relation rel, Page page, HybEntry *entry)
{
	uint16		lower = ((PageHeader) page)->pd_lower;
	uint16		off = entry->next == 0 ? HYB_DELTA_FIRST : entry->next;
	HybDeltaHeader header;

	entry->next = off;
	if (off >= lower)
		return false;
	if (lower > BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)) ||
		off < HYB_DELTA_FIRST)
		hyb_corrupted(rel, entry->block, "The entries of a delta page do not end where the page does.");
	if (((uint8 *) page)[off] == 0)
	{
		check_end(rel, page, entry->block, off);
		return false;
	}
	header = hyb_delta_header(page, off);
	if (header.len == 0 || header.len > HYB_MAX_ENTRY_SIZE ||
		off + header.size + header.len > lower)
		hyb_corrupted(rel, entry->block, "An entry of a delta page has a wrong length.");
	entry->bytes = (const uint8 *) page + off + header.size;
	entry->len = header.len;
	entry->tid = header.tid;
	entry->flags = header.flags;
	entry->offset = off;
	entry->next = off + header.size + header.len;
	return true;
}

/* The last byte tells most keys apart: integers begin with equal ones. */
uint16
hyb_delta_seek(Page page, uint16 from, const uint8 *bytes, uint32 len)
{
	uint32		lower = Min(((PageHeader) page)->pd_lower, BLCKSZ);
	uint32		off = from == 0 ? HYB_DELTA_FIRST : from;

	Assert(len > 0);
	while (off + HYB_DELTA_HEADER < lower && ((uint8 *) page)[off] != 0)
	{
		const uint8 *p = (uint8 *) page + off;
		uint32		size = (*p & HYB_DELTA_NEAR) != 0 ?
			HYB_DELTA_NEAR_TID : sizeof(ItemPointerData);
		uint32		entry_len = *p & HYB_DELTA_LEN_MASK;

		if ((*p++ & HYB_DELTA_LONG) != 0)
			entry_len = entry_len << 8 | *p++;
		p += size;
		if (entry_len == 0 || p + entry_len > (uint8 *) page + lower ||
			(entry_len >= len && p[len - 1] == bytes[len - 1] &&
			 memcmp(p, bytes, len) == 0))
			break;
		off = p + entry_len - (uint8 *) page;
	}
	return off;
}

uint16
hyb_delta_end(Relation rel, Page page, BlockNumber block, uint16 from)
{
	HybEntry	entry = {.block = block,.next = from};

	while (!hyb_delta_is_end(page, entry.next))
		if (!hyb_delta_next(rel, page, &entry))
			break;
	return entry.next;
}

uint32
hyb_delta_image(const HybEntry *entry, uint8 *image)
{
	uint8	   *p = image;

	Assert(entry->len > 0 && entry->len <= HYB_MAX_ENTRY_SIZE);
	if (entry->len > HYB_DELTA_LEN_MASK)
	{
		*p++ = HYB_DELTA_LONG | entry->len >> 8;
		*p++ = (uint8) entry->len;
	}
	else
		*p++ = (uint8) entry->len;
	memcpy(p, &entry->tid, sizeof(ItemPointerData));
	p += sizeof(ItemPointerData);
	memcpy(p, entry->bytes, entry->len);
	Assert(p + entry->len - image == hyb_delta_size(entry->len));
	return p + entry->len - image;
}

uint32
hyb_delta_place(uint8 *place, const uint8 *image, const HybDeltaHeader *header,
				bool near, BlockNumber base)
{
	uint32		lengths = header->size - sizeof(ItemPointerData);
	uint8	   *p = place;

	Assert(header->len > 0 && header->size <= HYB_DELTA_HEADER);
	Assert(!near || hyb_delta_is_near(&header->tid, base));
	if (!near)
	{
		memcpy(p, image, header->size + header->len);
		return header->size + header->len;
	}
	memcpy(p, image, lengths);
	*p |= HYB_DELTA_NEAR;
	p += lengths;
	*p++ = (uint8) (ItemPointerGetBlockNumberNoCheck(&header->tid) - base + HYB_DELTA_BEHIND);
	*p++ = (uint8) ItemPointerGetOffsetNumberNoCheck(&header->tid);
	memcpy(p, image + header->size, header->len);
	return p + header->len - place;
}

void
hyb_delta_key_length(const HybIndex *ix, HybEntry *entry)
{
	entry->keylen = hyb_key_length(ix->desc, entry->bytes, entry->len);
	if (entry->keylen == 0 ||
		(entry->keylen != entry->len && ix->desc->natts == ix->desc->nkeys))
		hyb_corrupted(ix->rel, entry->block, "An entry of a delta page is malformed.");
}

uint32
hyb_delta_count(Relation rel, Page page, BlockNumber block)
{
	HybEntry	entry = {.block = block};
	uint32		n = 0;

	while (hyb_delta_next(rel, page, &entry))
		n++;
	return n;
}

uint32
hyb_delta_count_live(const HybIndex *ix, Page page, BlockNumber block,
					 const HybPos *watermark)
{
	HybEntry	entry = {.block = block};
	uint32		n = 0;

	while (hyb_delta_next(ix->rel, page, &entry))
	{
		if ((entry.flags & HYB_DELTA_DEAD) != 0)
			continue;
		if (watermark != NULL && !HYB_POS_MIN(watermark))
		{
			hyb_delta_key_length(ix, &entry);
			if (hyb_pos_compare_key(ix->desc, entry.bytes, entry.keylen,
									&entry.tid, watermark) <= 0)
				continue;
		}
		n++;
	}
	return n;
}

/* ---- the pages of a generation ---- */

bool
hyb_generation_now(HybIndex *ix, uint64 number, HybGeneration *generation)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);

	*generation = meta->active.number == number ? meta->active : meta->frozen;
	UnlockReleaseBuffer(metabuf);
	return generation->number == number;
}

void
hyb_delta_walk_start(HybDeltaWalk *walk, const HybIndex *ix,
					 const HybGeneration *generation, bool whole)
{
	Assert(generation->number != 0 || generation->npages == 0);
	walk->ix = ix;
	walk->generation = generation->number;
	memcpy(walk->head, generation->head, sizeof(walk->head));
	walk->whole = whole;
	walk->limit = generation->npages;
	walk->npages = 0;
	walk->lane = generation->number != 0 ? -1 : HYB_LANES;
	walk->block = InvalidBlockNumber;
	walk->from = InvalidBlockNumber;
	walk->link = InvalidBlockNumber;
}

void
hyb_delta_walk_lane(HybDeltaWalk *walk, const HybIndex *ix,
					const HybGeneration *generation, bool whole,
					BlockNumber block, BlockNumber from)
{
	hyb_delta_walk_start(walk, ix, generation, whole);
	walk->lane = HYB_LANES;
	walk->block = from;
	walk->link = block;
}

bool
hyb_delta_walk_next(HybDeltaWalk *walk)
{
	while (!BlockNumberIsValid(walk->link))
	{
		if (walk->lane + 1 >= HYB_LANES)
			return false;
		walk->link = walk->head[++walk->lane];
		walk->block = HYB_METAPAGE_BLKNO;
	}
	Assert(walk->lane >= 0 && walk->lane <= HYB_LANES);
	walk->from = walk->block;
	walk->block = walk->link;
	walk->link = InvalidBlockNumber;
	return true;
}

/*
 * More pages than there were when the walk began.  The file is asked for its
 * size only here, and only as often as it has grown.
 */
static void
check_npages(HybDeltaWalk *walk)
{
	Relation	rel = walk->ix->rel;

	if (walk->whole)
		hyb_corrupted(rel, walk->from,
					  "The delta log has more pages than the metapage counts.");
	walk->limit = RelationGetNumberOfBlocks(rel);
	if (walk->npages > walk->limit)
		hyb_corrupted(rel, walk->from,
					  "The links of the delta log go round in a circle.");
}

bool
hyb_delta_walk_lock(HybDeltaWalk *walk, Buffer *buf)
{
	Page		page;

	if (++walk->npages > walk->limit)
		check_npages(walk);
	*buf = hyb_page_read(walk->ix, walk->block, walk->from);
	page = BufferGetPage(*buf);
	LockBuffer(*buf, BUFFER_LOCK_SHARE);

	/* a page that is about to be used for something else may be all zeroes */
	if (PageIsNew(page) ||
		!hyb_page_check(walk->ix, *buf, HYB_PAGE_DELTA, walk->generation))
	{
		UnlockReleaseBuffer(*buf);
		return false;
	}
	hyb_delta_walk_follow(walk, page);
	return true;
}

bool
hyb_delta_walk_copy(HybDeltaWalk *walk, char *copy)
{
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	if (!hyb_delta_walk_lock(walk, &buf))
		return false;
	memcpy(copy, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	return true;
}

/* ---- entries that only the log has ---- */

/*
 * The slot of the tree is locked, which comes before delta pages in the lock
 * order.  A page of the generation is only appended to, and entries that a tree
 * has are within what was appended before: all that changes is the dead flag.
 * Once the generation is merged its pages may be freed and used for something
 * else, while a tree of it is still there: the page tells.
 */

/*
 * Errors are those of reading a page, and of entries that are damaged.
 */
static bool
load_log_entry(HybEntryLog *log, HybTreeLogPage *where, uint16 offset, HybEntry *entry)
{
	HybLogReader *reader = (HybLogReader *) log;
	HybIndex   *ix = reader->ix;
	Page		page;
	bool		found;

	Assert(reader->generation != 0 && !log->stale);
	Assert(BlockNumberIsValid(where->block) && where->block != HYB_METAPAGE_BLKNO);
	if (!BufferIsValid(reader->buf) || reader->block != where->block)
	{
		hyb_log_reader_end(reader);
		reader->block = where->block;
		reader->buf = hyb_page_read_recent(ix, where->block, InvalidBlockNumber,
										   where->buffer);
		if (where->buffer != reader->buf)
			where->buffer = reader->buf;
	}
	page = BufferGetPage(reader->buf);
	LockBuffer(reader->buf, BUFFER_LOCK_SHARE);
	entry->block = where->block;
	entry->next = offset;
	found = !PageIsNew(page) &&
		hyb_page_check(ix, reader->buf, HYB_PAGE_DELTA, reader->generation) &&
		hyb_delta_next(ix->rel, page, entry);
	if (found)
	{
		memcpy(reader->bytes, entry->bytes, entry->len);
		entry->bytes = reader->bytes;
		entry->keylen = entry->len;
		if (ix->desc->natts != ix->desc->nkeys)
			hyb_delta_key_length(ix, entry);
	}
	LockBuffer(reader->buf, BUFFER_LOCK_UNLOCK);
	if (!found)
	{
		log->stale = true;
		reader->lost = where->block;
	}
	return found;
}

void
hyb_tree_use(HybTreeUse *use, HybIndex *ix, HybTree *tree, HybArena *arena,
			 HybLogReader *reader)
{
	reader->log.load = load_log_entry;
	reader->log.stale = false;
	reader->ix = ix;
	reader->generation = tree->generation;
	reader->buf = InvalidBuffer;
	reader->lost = InvalidBlockNumber;
	use->tree = tree;
	use->arena = arena;
	use->desc = ix->desc;
	use->log = &reader->log;
}

/* ---- proving an entry ---- */

/*
 * An entry is named by generation, block and offset: pages of a generation are
 * only appended to, and its number never comes back.
 *
 * With the pin held, prove that the generation is part of the current version,
 * and read the dead flag.  docs/entry.md says why both together are enough.  The
 * watermark does not matter, as VACUUM flags merged entries too.  The metapage
 * comes before delta pages in the lock order, so the version is proven before the
 * page is locked.
 */
HybPinResult
hyb_delta_pin_entry(HybIndex *ix, const HybDeltaRef *ref,
					const ItemPointerData *tid, Buffer *pin)
{
	Buffer		prev = *pin;
	Buffer		buf;
	Page		page;
	HybDeltaHeader header;
	bool		found = false;
	HybPinResult result = HYB_PIN_MOVED;

	HYB_POINT("delta-pin");
	HYB_ASSERT_NO_LWLOCK();
	*pin = InvalidBuffer;
	Assert(ref->generation != 0 && ref->block != HYB_METAPAGE_BLKNO);
	Assert(ref->offset >= HYB_DELTA_FIRST);
	buf = ReleaseAndReadBuffer(prev, ix->rel, ref->block);
	/* the pin before the counter of changes */
	pg_memory_barrier();
	HYB_POINT("delta-pinned");
	if (hyb_version_has_generation(ix, ref->generation))
	{
		page = BufferGetPage(buf);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		if (hyb_page_check(ix, buf, HYB_PAGE_DELTA, ref->generation) &&
			!hyb_delta_is_end(page, ref->offset))
		{
			header = hyb_delta_header(page, ref->offset);
			found = ItemPointerEquals(&header.tid,
									  unconstify(ItemPointerData *, tid));
		}
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);

		if (found)
			result = (header.flags & HYB_DELTA_DEAD) != 0 ?
				HYB_PIN_DEAD : HYB_PIN_HOLDS;
		else if (hyb_version_has_generation(ix, ref->generation))
			hyb_corrupted(ix->rel, ref->block,
						  "An entry of the delta log is not where it was appended.");
	}
	if (result == HYB_PIN_HOLDS)
		*pin = buf;
	else
		ReleaseBuffer(buf);
	Assert((result == HYB_PIN_HOLDS) == BufferIsValid(*pin));
	return result;
}
