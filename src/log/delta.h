/*
 * delta.h
 *		Delta pages, the durable form of the dynamic stage, and how to read
 *		them.
 *
 * A generation has up to HYB_LANES chains of pages.  Entries lie one after
 * the other from PageGetContents() on, without alignment: a byte or two with
 * length and flags, the heap TID, the entry's bytes.  Rows that are inserted one
 * after the other lie on few pages of the table, so two bytes tell most TIDs
 * beside that of the page's first entry.
 *
 * They end where a length of 0 follows, or at pd_lower, which is ahead of them
 * by less than HYB_DELTA_STEP; what lies between is all zeroes.  So most
 * appends need not log pd_lower.
 */
#ifndef HYB_DELTA_H
#define HYB_DELTA_H

#include "memtree/memtree.h"
#include "store/meta.h"

/* The first byte: flags, and the length or the high bits of it. */
#define HYB_DELTA_DEAD		0x80	/* VACUUM removed it */
#define HYB_DELTA_LONG		0x40	/* the low bits are in a second byte */
#define HYB_DELTA_NEAR		0x20	/* of the TID there are two bytes */
#define HYB_DELTA_LEN_MASK	0x1F

/*
 * These are the block, less that of the page's first entry, plus
 * HYB_DELTA_BEHIND, and the offset.
 */
#define HYB_DELTA_BEHIND	64
#define HYB_DELTA_NEAR_TID	2

/* Bytes ahead of an entry: at most, and with those of the shortest one. */
#define HYB_DELTA_HEADER		8
#define HYB_DELTA_MIN_ENTRY		4

/* The bytes by which pd_lower grows. */
#define HYB_DELTA_STEP		256

/* What is ahead of an entry. */
typedef struct HybDeltaHeader
{
	uint16		size;			/* of the header itself */
	uint16		len;			/* of the entry; 0: there is none */
	uint16		flags;			/* HYB_DELTA_DEAD */
	ItemPointerData tid;
} HybDeltaHeader;

/*
 * The header of an entry that has a whole TID.  Reads up to HYB_DELTA_HEADER
 * bytes, though the header may be shorter.
 */
static inline HybDeltaHeader
hyb_delta_whole_header(const uint8 *p)
{
	HybDeltaHeader header;

	header.flags = p[0] & HYB_DELTA_DEAD;
	header.len = p[0] & HYB_DELTA_LEN_MASK;
	header.size = 1;
	if ((p[0] & HYB_DELTA_LONG) != 0)
		header.len = header.len << 8 | p[header.size++];
	memcpy(&header.tid, p + header.size, sizeof(ItemPointerData));
	header.size += sizeof(ItemPointerData);
	return header;
}

StaticAssertDecl(HYB_MAX_ENTRY_SIZE <= (HYB_DELTA_LEN_MASK << 8 | 0xFF),
				 "a length has 13 bits");
StaticAssertDecl((HYB_DELTA_DEAD & HYB_DELTA_LONG) == 0 &&
				 ((HYB_DELTA_DEAD | HYB_DELTA_LONG | HYB_DELTA_NEAR) & HYB_DELTA_LEN_MASK) == 0,
				 "flags and length share a byte");

/* Where the first entry of a page lies. */
#define HYB_DELTA_FIRST		MAXALIGN(SizeOfPageHeaderData)

/* The table's block that TIDs of a page are told beside; it has an entry. */
static inline BlockNumber
hyb_delta_base(Page page)
{
	HybDeltaHeader first = hyb_delta_whole_header((uint8 *) page + HYB_DELTA_FIRST);

	return ItemPointerGetBlockNumberNoCheck(&first.tid);
}

/* What is ahead of the entry at an offset of a page. */
static inline HybDeltaHeader
hyb_delta_header(Page page, uint16 offset)
{
	const uint8 *p = (uint8 *) page + offset;
	HybDeltaHeader header = hyb_delta_whole_header(p);

	Assert(offset >= HYB_DELTA_FIRST && offset < BLCKSZ);
	if ((p[0] & HYB_DELTA_NEAR) != 0)
	{
		header.size -= sizeof(ItemPointerData);
		ItemPointerSet(&header.tid,
					   hyb_delta_base(page) + p[header.size] - HYB_DELTA_BEHIND,
					   p[header.size + 1]);
		header.size += HYB_DELTA_NEAR_TID;

		/* the first entry's TID is whole */
		if (offset == HYB_DELTA_FIRST)
			header.len = 0;
	}
	return header;
}

/* Do two bytes tell a TID? */
static inline bool
hyb_delta_is_near(const ItemPointerData *tid, BlockNumber base)
{
	return ItemPointerGetBlockNumberNoCheck(tid) - base + HYB_DELTA_BEHIND <= PG_UINT8_MAX &&
		ItemPointerGetOffsetNumberNoCheck(tid) <= PG_UINT8_MAX;
}

/* Bytes that an entry of this length takes, at most. */
static inline uint32
hyb_delta_size(uint32 len)
{
	Assert(len > 0 && len <= HYB_MAX_ENTRY_SIZE);
	return len + sizeof(ItemPointerData) + (len > HYB_DELTA_LEN_MASK ? 2 : 1);
}

/*
 * Write what an entry is on a page that it is the first one of; returns its
 * length.  Its place is unused.
 */
extern uint32 hyb_delta_image(const HybEntry *entry, uint8 *image);

/*
 * Write such an entry, which has this header, to a page, with the TID near or
 * whole.  Returns its length there.
 */
extern uint32 hyb_delta_place(uint8 *place, const uint8 *image,
							  const HybDeltaHeader *header, bool near,
							  BlockNumber base);

/* ---- the entries of a page ---- */

/*
 * The next entry of a delta page; false at the end.  Of *entry, block says
 * which page that is, and next where to go on, 0 for the beginning: start with
 * {.block = ...}.  entry->bytes points into the page; keylen is left as it is.
 * Damage raises ERRCODE_INDEX_CORRUPTED.
 */
extern bool hyb_delta_next(Relation rel, Page page, HybEntry *entry);

/*
 * Where the next entry is that begins with these bytes, or else where the
 * entries end or are damaged: hyb_delta_next goes on there.  `from` is as
 * HybEntry.next.
 */
extern uint16 hyb_delta_seek(Page page, uint16 from, const uint8 *bytes, uint32 len);

/*
 * Find out entry->keylen.  Bytes that do not encode the key columns raise
 * ERRCODE_INDEX_CORRUPTED.
 */
extern void hyb_delta_key_length(const HybIndex *ix, HybEntry *entry);

/*
 * Where the entries of a page end; from is where one of them does, or the first
 * one begins.
 */
extern uint16 hyb_delta_end(Relation rel, Page page, BlockNumber block,
							uint16 from);

/* Is that where one ends the end of all? */
static inline bool
hyb_delta_is_end(Page page, uint16 from)
{
	return from >= ((PageHeader) page)->pd_lower || ((uint8 *) page)[from] == 0;
}

/* Entries on a page, dead ones included. */
extern uint32 hyb_delta_count(Relation rel, Page page, BlockNumber block);

/*
 * Live entries on a page that lie above a watermark (NULL: all live ones).
 * Compares keys, so `page` is a copy.
 */
extern uint32 hyb_delta_count_live(const HybIndex *ix, Page page,
								   BlockNumber block, const HybPos *watermark);

/* ---- the pages of a generation ---- */

/*
 * A generation as it is: a version that is kept does not know how long the log
 * has become.  False if it is no longer there.
 */
extern bool hyb_generation_now(HybIndex *ix, uint64 number,
							   HybGeneration *generation);

/*
 * A walk over the delta pages of a generation, one lane after the other:
 *
 *		hyb_delta_walk_start(&walk, ix, &generation, whole);
 *		while (hyb_delta_walk_next(&walk))
 *			if (!hyb_delta_walk_copy(&walk, copy))
 *				... the generation is gone, or the page is damaged
 *
 * Without a lock that makes the generation stay what it is, its pages may be
 * freed and used for something else meanwhile.  hyb_delta_walk_lock and _copy
 * find that out and return false, and callers find out whether the version was
 * changed: if not the page is damaged.
 *
 * Raises ERRCODE_INDEX_CORRUPTED for a link to a block that the index does not
 * have, and for too many pages, as where links go round or lanes meet.  A
 * generation that is `whole`, not appended to any more, has as many as it
 * counts, another one at most as many as the file.
 */
typedef struct HybDeltaWalk
{
	const HybIndex *ix;
	uint64		generation;		/* its number */
	BlockNumber head[HYB_LANES];
	bool		whole;
	uint64		limit;			/* npages above this are looked into */
	uint64		npages;			/* locked or copied so far */
	int			lane;			/* of the page at hand */
	BlockNumber block;			/* the page at hand */
	BlockNumber from;			/* the page that names it */
	BlockNumber link;			/* the page that it names */
} HybDeltaWalk;

/* A generation without a number has no pages. */
extern void hyb_delta_walk_start(HybDeltaWalk *walk, const HybIndex *ix,
								 const HybGeneration *generation, bool whole);

/*
 * The same from a page of one lane to its end; `from` names that page, or is
 * InvalidBlockNumber.  The caller adds pages of earlier walks to npages.
 */
extern void hyb_delta_walk_lane(HybDeltaWalk *walk, const HybIndex *ix,
								const HybGeneration *generation, bool whole,
								BlockNumber block, BlockNumber from);

/* Go on to the next page, be it of the next lane; false if there is none. */
extern bool hyb_delta_walk_next(HybDeltaWalk *walk);

/*
 * The page at hand, pinned and share-locked.  False, with nothing held, if it
 * is not a delta page of the generation.  The lock is one of a delta page in
 * the lock order of docs/developing.md.
 */
extern bool hyb_delta_walk_lock(HybDeltaWalk *walk, Buffer *buf);

/* The same, but copies the page (BLCKSZ bytes) and holds nothing. */
extern bool hyb_delta_walk_copy(HybDeltaWalk *walk, char *copy);

/* For a caller that has got the page by itself: go on from here. */
#define hyb_delta_walk_follow(walk, page) \
	((walk)->link = hyb_page_opaque(page)->link)

#endif							/* HYB_DELTA_H */
