/*
 * page.h
 *		Page kinds, the page header of ours, and the metapage.
 *
 * docs/format.md describes every page byte by byte.
 */
#ifndef HYB_PAGE_H
#define HYB_PAGE_H

#include "compat.h"

#include "key/hope.h"
#include "storage/block.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#define HYB_METAPAGE_BLKNO	0
#define HYB_META_MAGIC		0x48594249	/* "HYBI" */
#define HYB_FORMAT_VERSION	1

typedef enum HybPageKind
{
	HYB_PAGE_META = 1,
	HYB_PAGE_LEAF,				/* static stage, static/leaf.h */
	HYB_PAGE_INNER,				/* static stage, static/inner.h */
	HYB_PAGE_DELTA,				/* delta log, dynamic/delta.h */
	HYB_PAGE_FREELIST,			/* array of free block numbers */
	HYB_PAGE_DICTIONARY,		/* page/dictionary.h */
	HYB_PAGE_FILTER				/* static stage, static/filter.h */
} HybPageKind;

/* Special space of every page. */
typedef struct HybPageOpaque
{
	uint64		incarnation;	/* of the index this page belongs to */
	uint64		stamp;			/* of the merge step, or number of the
								 * generation, that built the page */
	uint16		kind;			/* HybPageKind */
	uint16		level;			/* inner pages: 1 just above the leaves; else 0 */
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
#define HYB_INNER_FILTERS	0x0004	/* children have filters and TID counts */

#define hyb_page_opaque(page) ((HybPageOpaque *) PageGetSpecialPointer(page))

/* Content bytes of one page: SizeOfPageHeaderData is MAXALIGNed. */
#define HYB_PAGE_CAPACITY \
	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(HybPageOpaque)))

/* Tail pages of the active generation that backends can append to. */
#define HYB_LANES			4

/* One run of the delta log. */
typedef struct HybGeneration
{
	uint64		number;			/* 0: there is none */
	BlockNumber head[HYB_LANES];	/* first page, or InvalidBlockNumber */
	BlockNumber tail[HYB_LANES];	/* last page */
	uint64		npages;			/* delta pages of all lanes */
	uint64		nentries;		/* entries on pages that are full or closed */
} HybGeneration;

/* Blocks a merge step may hold; bounds the size of a step. */
#define HYB_MAX_PENDING		320

/*
 * Metapage content, at PageGetContents().  A change is WAL-logged as one
 * record, so a reader or a recovered server sees all of it or nothing.
 */
typedef struct HybMetaPage
{
	uint32		magic;			/* HYB_META_MAGIC */
	uint32		format;			/* HYB_FORMAT_VERSION */
	uint64		incarnation;	/* random, of this build of the index */
	uint64		version;		/* + 1 whenever root, watermark or a generation
								 * changes */
	uint64		vacuum_counter; /* + 1 at the end of each VACUUM that removed
								 * entries */
	uint64		next_stamp;		/* of the next merge step */
	uint64		next_generation;	/* number of the next active generation */

	/* static stage */
	uint64		root_stamp;		/* stamp of root */
	BlockNumber root;			/* InvalidBlockNumber: empty */
	uint32		height;			/* 0: empty, 1: root is a leaf */
	uint64		static_tids;	/* TIDs in leaves, tombstones included */
	uint64		static_tombstones;	/* TIDs of them that are tombstones */
	uint64		leaf_pages;
	uint64		inner_pages;

	/* dynamic stage */
	HybGeneration active;
	HybGeneration frozen;		/* being merged; number 0: none */
	HybGeneration retiring;		/* merged, its pages being freed */

	/* merges */
	uint64		merges;			/* generations merged */
	uint64		merged_entries; /* entries they moved */
	uint64		rewritten_tids; /* TIDs of the leaves that the last whole merge
								 * rewrote; HYB_REWRITTEN_UNKNOWN: there was
								 * none yet */
	uint64		rewriting_tids; /* the same of the merge at hand, so far */

	/* space */
	BlockNumber freelist;		/* first free-list page */
	uint32		free_blocks;	/* blocks free, free-list pages included */
	uint32		npending;		/* blocks in pending[] */
	uint32		flags;			/* HYB_META_COMPACT and others */
	BlockNumber dictionary;		/* first dictionary page, or invalid */
	uint32		filter_pages;

	/*
	 * Blocks on their way into or out of the tree.  A merge step puts every
	 * block here before it writes to it, and the switch of version puts the
	 * replaced blocks here; whoever finds blocks here while holding the merge
	 * lock owes them to the free list.
	 */
	BlockNumber pending[HYB_MAX_PENDING];

	/*
	 * Watermark, a HybPos: frozen entries at or below it are in the static
	 * stage.  Length 0: -infinity, or with HYB_AFTER +infinity.
	 */
	uint16		wm_len;			/* bytes of wm_key used */
	uint8		wm_ncols;		/* HybPos.ncols */
	int8		wm_tie;			/* HybTie */
	ItemPointerData wm_tid;		/* HYB_AT only */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];

	/* by key column: of those with a dictionary, a sample of what the last
	 * merge moved */
	HybRecent	recent[INDEX_MAX_KEYS];
} HybMetaPage;

#define HYB_REWRITTEN_UNKNOWN	PG_UINT64_MAX

#define HYB_META_COMPACT	0x0001	/* next merge visits every leaf, to drop
									 * tombstones and join small leaves */
#define HYB_META_PLAIN		0x0002	/* columns to be encoded with a dictionary
									 * are stored as they are, until a merge
									 * learns one */
#define HYB_META_COMPACTING	0x0004	/* the merge of the frozen generation
									 * visits every leaf */

#define hyb_page_meta(page) ((HybMetaPage *) PageGetContents(page))

struct HybSlot;
struct HybDictionaries;

/*
 * A backend's copy of the static stage's root, if that is an internal node.
 * A node never changes, so the copy is good for as long as versions have this
 * root.  Made when a root is met for the second time.
 */
typedef struct HybRootCache
{
	BlockNumber block;			/* root met last */
	uint64		stamp;			/* its stamp, 0: none was met */
	bool		valid;			/* `page` is a copy of it */
	char	   *page;			/* BLCKSZ bytes in TopMemoryContext, or NULL */
} HybRootCache;

/*
 * A backend's handle on an open index; lives in the memory context of the
 * scan, statement or call that uses it.
 */
typedef struct HybIndex
{
	Relation	rel;
	HybKeyDesc *desc;
	uint64		incarnation;
	struct HybSlot *slot;		/* shared or backend-local dynamic stage
								 * state; NULL until first needed; see
								 * hyb_index_remember_slot */
	uint64		slot_serial;	/* tells whether `slot` still is what it was */
	HybRootCache *root;			/* in `slot`; NULL without one */
	MemoryContext context;		/* that the handle lives in */
	const struct HybDictionaries *dictionaries; /* NULL without encoded
												 * columns, and while they
												 * are plain */
} HybIndex;

/*
 * What a batch of a scan, or a merge step, works on: a consistent copy of the
 * metapage's fields.
 */
typedef struct HybVersion
{
	uint64		version;
	uint64		vacuum_counter;
	uint64		root_stamp;
	BlockNumber root;
	uint32		height;
	HybGeneration active;
	HybGeneration frozen;
	HybPos		watermark;		/* points to wm_key */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];
} HybVersion;

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

/* The test alone. */
extern void hyb_page_check_pointer(const HybIndex *ix, BlockNumber block,
								   BlockNumber from);
extern HYB_NORETURN void hyb_corrupted(Relation rel, BlockNumber blkno,
									   const char *detail);

/* Copies the version out of a share-locked metapage. */
extern void hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version);

/*
 * The transaction that wrote the row of this process's database in pg_database
 * (meta.c).  Read when the first handle is made, or by hyb_note_database, since
 * those who need it (dynamic/database.c) may hold locks.
 */
extern TransactionId hyb_database_xmin;
extern void hyb_note_database(void);

/* meta.c: opens a handle, one chunk, in the current memory context */
extern HybIndex *hyb_index_create_handle(Relation rel);

/*
 * Have handles that are made from now on begin with the slot of this one.
 * Whoever uses it has to find out whether it still is the index's, which
 * slot_serial is for.
 */
extern void hyb_index_remember_slot(const HybIndex *ix);

#endif							/* HYB_PAGE_H */
