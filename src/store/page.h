/*
 * page.h
 *		Pages: their kinds, the header that each carries, and changing them.
 *
 * docs/format.md describes every page byte by byte.
 */
#ifndef HYB_PAGE_H
#define HYB_PAGE_H

#include "base/compat.h"

#include "storage/block.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "store/handle.h"

#define HYB_METAPAGE_BLKNO	0

typedef enum HybPageKind
{
	HYB_PAGE_META = 1,
	HYB_PAGE_LEAF,				/* static stage, leaf/leaf.h */
	HYB_PAGE_INNER,				/* static stage, store/inner.h */
	HYB_PAGE_DELTA,				/* delta log, log/delta.h */
	HYB_PAGE_FREELIST,			/* array of free block numbers */
	HYB_PAGE_DICTIONARY,		/* store/dictionary.h */
	HYB_PAGE_FILTER				/* static stage, filter/filter.h */
} HybPageKind;

/* Special space of every page. */
typedef struct HybPageOpaque
{
	uint64		incarnation;	/* of the index this page belongs to */
	uint64		stamp;			/* of the merge step, or number of the
								 * generation, that built the page */
	uint16		kind;			/* HybPageKind */
	uint16		level;			/* inner pages: 1 just above the leaves; else
								 * 0 */
	uint32		link;			/* delta: next page of the lane; free list,
								 * dictionary: next page of the kind; else
								 * InvalidBlockNumber */
	uint32		count;			/* delta: entries, not kept up to date while
								 * the page takes more; free list: blocks;
								 * leaf: TIDs; inner: children; filter: images */
	uint16		flags;			/* HYB_DELTA_CLOSED, HYB_LEAF_TOMBSTONES,
								 * HYB_INNER_FILTERS */
	uint16		page_id;		/* HYB_PAGE_ID */
} HybPageOpaque;

#define HYB_PAGE_ID			0xFFB7
#define HYB_DELTA_CLOSED	0x0001	/* takes no more entries */
#define HYB_LEAF_TOMBSTONES	0x0002	/* a tombstone bitmap follows the content */
#define HYB_INNER_FILTERS	0x0004	/* level 1: children have rent and filters */

#define hyb_page_opaque(page) ((HybPageOpaque *) PageGetSpecialPointer(page))

/* Content bytes of one page: SizeOfPageHeaderData is MAXALIGNed. */
#define HYB_PAGE_CAPACITY \
	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(HybPageOpaque)))

StaticAssertDecl(sizeof(HybPageOpaque) == 32, "docs/format.md says what a page ends with");
StaticAssertDecl(HYB_PAGE_CAPACITY % MAXIMUM_ALIGNOF == 0, "the special space is aligned");

#ifdef USE_ASSERT_CHECKING
/*
 * Tests that damage pages say so with the server's setting
 * ignore_checksum_failure: what is made of such pages is not asserted.
 */
#define hyb_is_damaged()	ignore_checksum_failure

/* A page of an index, locked exclusively or a private image, as it is logged. */
extern void hyb_page_assert_valid(Page page);

/* Does this process hold the content lock that a change of the buffer needs? */
extern bool hyb_page_is_mine(Buffer buf);

/* The same of the lock that reading it needs. */
extern bool hyb_page_is_locked(Buffer buf);
#else
#define hyb_page_assert_valid(page) ((void) (page))
#endif

/* page.c */
extern void hyb_page_init(Page page, const HybIndex *ix, HybPageKind kind,
						  uint16 level, uint64 stamp);

/*
 * Is this page of this index, and of this kind?  Raises
 * ERRCODE_INDEX_CORRUPTED, naming index and block, if the header is not one
 * of ours or belongs to another index.  Returns false if it is a sound page
 * of another kind or stamp (a stale pointer: the caller restarts); stamp 0
 * accepts any.
 */
extern bool hyb_page_check(const HybIndex *ix, Buffer buf, HybPageKind kind,
						   uint64 stamp);

/*
 * ReadBuffer, for a block number that was found on page `from`
 * (InvalidBlockNumber: the caller does not know).  Raises
 * ERRCODE_INDEX_CORRUPTED if the index has no such block, or if it is the
 * metapage, which nothing points to.  Asks for the size of the file only if
 * the block lies beyond the size last seen.
 */
extern Buffer hyb_page_read(const HybIndex *ix, BlockNumber block,
							BlockNumber from);

/*
 * The same for a page that is read again and again: if it is still in the
 * buffer where it was the last time, the buffer need not be looked up.
 */
extern Buffer hyb_page_read_recent(const HybIndex *ix, BlockNumber block,
								   BlockNumber from, Buffer recent);

/*
 * hyb_page_read, the lock (BUFFER_LOCK_SHARE or _EXCLUSIVE), and
 * hyb_page_check; InvalidBuffer, with nothing locked or pinned, where that says
 * that it is another page.
 */
extern Buffer hyb_page_lock(const HybIndex *ix, BlockNumber block,
							BlockNumber from, int mode, HybPageKind kind,
							uint64 stamp);

/* Copy a page under a share lock; true if hyb_page_check says so of it. */
extern bool hyb_page_copy(const HybIndex *ix, BlockNumber block,
						  BlockNumber from, HybPageKind kind, uint64 stamp,
						  char *copy);

/* The test of hyb_page_read alone; and as a question. */
extern bool hyb_page_exists(const HybIndex *ix, BlockNumber block);
extern void hyb_page_check_pointer(const HybIndex *ix, BlockNumber block,
								   BlockNumber from);
HYB_NORETURN extern void hyb_corrupted(Relation rel, BlockNumber blkno,
									   const char *detail);

/*
 * ---- changing pages (wal.c) ----
 *
 * A change set collects up to four exclusively locked buffers.  For each it has the
 * byte ranges that the caller changes in place, inside one critical section.
 *
 *		hyb_wal_begin(&set, rel);
 *		... everything that can fail ...
 *		START_CRIT_SECTION();
 *		memcpy(page + off, ...);
 *		hyb_wal_range(&set, buf, off, len);		(HYB_WAL_MAX_RANGES of a buffer
 *												at most)
 *		hyb_wal_image(&set, buf);				(log the whole page instead)
 *		hyb_wal_commit(&set);					(marks dirty, logs, sets LSNs)
 *		END_CRIT_SECTION();
 *
 * Commit reads ranges from the page.  A caller that changes pd_lower adds the range
 * of the header that holds it: hyb_wal_lower.  Buffers of relations that need no
 * WAL are only marked dirty.  GenericXLogStart and GenericXLogFinish copy and
 * compare whole pages, which costs ten times as much.
 */
#define HYB_WAL_MAX_BUFFERS	4
#define HYB_WAL_MAX_RANGES	16

typedef struct HybWalRange
{
	uint16		offset;
	uint16		length;
} HybWalRange;

typedef struct HybWalBuffer
{
	Buffer		buf;
	bool		image;
	int			nranges;
	HybWalRange ranges[HYB_WAL_MAX_RANGES];
} HybWalBuffer;

typedef struct HybWalSet
{
	Relation	rel;
	int			nbuffers;
	HybWalBuffer buffers[HYB_WAL_MAX_BUFFERS];
} HybWalSet;

extern void hyb_wal_begin(HybWalSet *set, Relation rel);
extern void hyb_wal_range(HybWalSet *set, Buffer buf, uint16 offset,
						  uint16 length);
extern void hyb_wal_lower(HybWalSet *set, Buffer buf);	/* pd_lower changed */
extern void hyb_wal_opaque(HybWalSet *set, Buffer buf); /* special space changed */
extern void hyb_wal_image(HybWalSet *set, Buffer buf);
extern void hyb_wal_commit(HybWalSet *set);

#endif							/* HYB_PAGE_H */
