/*
 * delta.h
 *		Delta pages, the durable form of the dynamic stage, and how to read
 *		them.
 *
 * A generation has up to HYB_LANES chains of pages.  Entries lie one after
 * the other from PageGetContents() to pd_lower, each a HybDeltaEntry header
 * followed by the entry's bytes, without alignment.
 */
#ifndef HYB_DELTA_H
#define HYB_DELTA_H

#include "dynamic/entry.h"
#include "page/meta.h"

#define HYB_DELTA_DEAD		0x8000	/* in len_flags: VACUUM removed it */
#define HYB_DELTA_LEN_MASK	0x0FFF

typedef struct HybDeltaEntry
{
	uint16		len_flags;		/* bytes of the entry, and flags */
	ItemPointerData tid;		/* heap TID */
} HybDeltaEntry;				/* 8 bytes; read and written with memcpy */

#define HYB_DELTA_HEADER	8

/* Write what an entry is on a page; returns its length.  Its place is unused. */
extern uint32 hyb_delta_image(const HybEntry *entry, uint8 *image);

/* Where the first entry of a page lies. */
#define HYB_DELTA_FIRST		MAXALIGN(SizeOfPageHeaderData)

/* ---- the entries of a page ---- */

/*
 * The next entry of a delta page; false at the end.  Of *entry, block says
 * which page that is, and next where to go on, 0 for the beginning: start with
 * {.block = ...}.  entry->bytes points into the page; keylen is left as it is.
 * Damage raises ERRCODE_INDEX_CORRUPTED.
 */
extern bool hyb_delta_next(Relation rel, Page page, HybEntry *entry);

/*
 * Find out entry->keylen.  Bytes that are no encoding of the key columns raise
 * ERRCODE_INDEX_CORRUPTED.
 */
extern void hyb_delta_key_length(const HybIndex *ix, HybEntry *entry);

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
 * have, and if there are more pages than there can be, because links go round
 * or lanes meet: more than a generation counts that is `whole`, that is, not
 * appended to any more; else more than the file has.
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
 * is no delta page of the generation.  The lock is one of a delta page in the
 * lock order of docs/source-map.md.
 */
extern bool hyb_delta_walk_lock(HybDeltaWalk *walk, Buffer *buf);

/* The same, but copies the page (BLCKSZ bytes) and holds nothing. */
extern bool hyb_delta_walk_copy(HybDeltaWalk *walk, char *copy);

/* For a caller that has got the page by itself: go on from here. */
#define hyb_delta_walk_follow(walk, page) \
	((walk)->link = hyb_page_opaque(page)->link)

#endif							/* HYB_DELTA_H */
