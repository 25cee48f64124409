/*
 * meta.h
 *		The metapage, and the version of an index that it names.
 *
 * docs/format.md describes the other pages byte by byte.
 */
#ifndef HYB_META_H
#define HYB_META_H

#include "store/page.h"

#define HYB_META_MAGIC		0x48594249	/* "HYBI" */
#define HYB_FORMAT_VERSION	12

/* That of hybrid_hot: library 1.0, which knows nothing of stale entries, refuses it. */
#define HYB_CHAINS_FORMAT_VERSION	13

/* Tail pages of the active generation that backends can append to. */
#define HYB_LANES			4

/* A generation of the delta log. */
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

/* Static levels that an index can have. */
#define HYB_MAX_LEVELS		4

/* A tree of leaves. */
typedef struct HybRoot
{
	uint64		stamp;
	BlockNumber block;			/* InvalidBlockNumber: empty */
	uint32		height;			/* 0: empty, 1: a leaf */
} HybRoot;

/* A static level. */
typedef struct HybLevel
{
	HybRoot		root;
	uint64		tids;			/* TIDs in leaves, tombstones included */
	uint64		tombstones;		/* TIDs of them that are tombstones */
	uint64		leaf_pages;
	uint64		inner_pages;
	uint64		filter_pages;
} HybLevel;

/*
 * Metapage content, at PageGetContents().  A change is WAL-logged as one
 * record, so a reader or a recovered server sees all of it or nothing.
 */
typedef struct HybMetaPage
{
	uint32		magic;			/* HYB_META_MAGIC */
	uint32		format;			/* HYB_FORMAT_VERSION, or that of hybrid_hot */
	uint64		incarnation;	/* random, of this build of the index */
	uint64		version;		/* + 1 whenever a root, the watermark, or
								 * which generation is active or frozen
								 * changes */
	uint64		vacuum_counter; /* + 1 in each bulk deletion of VACUUM, once
								 * all dead entries of the log are flagged */
	uint64		next_stamp;		/* of the next merge step */
	uint64		next_generation;	/* number of the next active generation */

	/*
	 * Static stage: nlevels levels, one at least.  levels[0] is the oldest
	 * one; merges of the dynamic stage go to the newest one, levels[nlevels -
	 * 1]. So a level keeps its number when a newer one is added.
	 */
	uint32		nlevels;
	uint16		pass_level;		/* a pass moves ranges of this level to the
								 * one before it; 0: there is none */
	uint16		wanted_levels;	/* passes empty newer levels than these */
	HybLevel	levels[HYB_MAX_LEVELS];

	/* dynamic stage */
	HybGeneration active;
	HybGeneration frozen;		/* being merged; number 0: none */
	HybGeneration retiring;		/* merged, its pages being freed */

	/* merges */
	uint64		merges;			/* generations merged */
	uint64		merged_entries; /* entries they moved */
	uint64		rewritten_tids; /* TIDs of the leaves that the last whole
								 * merge rewrote; HYB_REWRITTEN_UNKNOWN: there
								 * was none yet */
	uint64		rewriting_tids; /* the same of the merge at hand, so far, or
								 * of the pass that takes its entries to the
								 * level that is to be the newest one;
								 * HYB_REWRITTEN_UNKNOWN: it will not be known */
	uint64		freeze_entries; /* of generations that were frozen: a moving
								 * average; 0: none was */
	uint64		moved_entries;	/* moved from one static level to another */
	uint64		written_pages;	/* by steps, of the static stage */
	uint64		earned_pages;	/* the same, but for quiet merges, since there
								 * was one level or a quiet merge began */

	/* space */
	BlockNumber freelist;		/* first free-list page */
	uint32		free_blocks;	/* blocks free, free-list pages included */
	uint32		npending;		/* blocks in pending[] */
	uint32		flags;			/* HYB_META_COMPACT and others */
	BlockNumber dictionary;		/* first dictionary page, or invalid */

	/*
	 * The end of the file that VACUUM is about to cut off: store/file_end.c.
	 */
	BlockNumber cut;			/* its first block; InvalidBlockNumber: none */
	BlockNumber cut_list;		/* first page of the list of its free blocks */
	uint32		cut_blocks;		/* blocks on that, its pages included */
	BlockNumber cut_end;		/* if not 0: the blocks from cut up to this
								 * one belong to nothing, and the file may
								 * have been cut already */

	/*
	 * Blocks on their way into or out of the tree.  A merge step puts every
	 * block here before it writes to it, and the switch of version puts the
	 * replaced blocks here.  A process that holds the merge lock and finds
	 * blocks here has to move them to the free list.
	 */
	BlockNumber pending[HYB_MAX_PENDING];

	/*
	 * Watermark, a HybPos: frozen entries at or below it are in the static
	 * stage.  Length 0: -infinity, or with HYB_AFTER +infinity.  While there
	 * is a pass, and so no frozen generation: the pass is done up to here.
	 */
	uint16		wm_len;			/* bytes of wm_key used */
	uint8		wm_ncols;		/* HybPos.ncols */
	int8		wm_tie;			/* HybTie */
	ItemPointerData wm_tid;		/* HYB_AT only */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];

	/*
	 * by key column: of those with a dictionary, a sample of what the last
	 * merge moved
	 */
	HybRecent	recent[INDEX_MAX_KEYS];

	/* passes over levels (merge/pass.c): stamps */
	uint64		pass_stamp;		/* of the first step since the pass began */
	uint64		surveyed[HYB_MAX_LEVELS];	/* leaves of the level with lower
											 * ones were looked at by a whole
											 * pass */

	/* hybrid_hot; the page of another index ends here */
	uint64		settled_tids;	/* entries of all levels when stale ones were
								 * looked for last */
} HybMetaPage;

/* Bytes of it in the page. */
#define hyb_meta_size(format) \
	((format) == HYB_CHAINS_FORMAT_VERSION ? sizeof(HybMetaPage) : \
	 offsetof(HybMetaPage, settled_tids))

#define HYB_REWRITTEN_UNKNOWN	PG_UINT64_MAX

#define HYB_META_COMPACT	0x0001	/* next merge visits every leaf of its
									 * level, to drop tombstones and join
									 * small leaves */
#define HYB_META_PLAIN		0x0002	/* columns to be encoded with a dictionary
									 * are stored as they are, until a merge
									 * learns one */
#define HYB_META_COMPACTING	0x0004	/* the merge of the frozen generation
									 * visits every leaf of its level */

#define HYB_META_COLLAPSE	0x0008	/* the next merge makes one level of all */
#define HYB_META_MOVING		0x0010	/* the unit that the pass is at is being
									 * moved */

#define HYB_META_QUIET		0x0020	/* the merge at hand, or with COLLAPSE the
									 * next one, was asked for because the
									 * index is quiet: it gives way to
									 * insertions */

#define HYB_META_UNEARNED	0x0040	/* the merge at hand began as a quiet one:
									 * what it writes is not earned, gives it
									 * way or not */

#define HYB_META_TRUNCATED	0x0080	/* leaves of the oldest level hold the
									 * beginnings of keys only: docs/trie.md */

#define HYB_META_ALL		0x00FF

StaticAssertDecl(sizeof(HybGeneration) == 56 && sizeof(HybRoot) == 16 &&
				 sizeof(HybLevel) == 56,
				 "sizes are part of the format");
StaticAssertDecl(HYB_MAX_PENDING > HYB_MAX_LEVELS * HYB_LANES,
				 "a step needs room for more than what a generation begins with");

#ifdef USE_ASSERT_CHECKING
/* The metapage's content, locked exclusively, at the end of a change. */
extern void hyb_meta_assert_valid(const HybMetaPage *meta);
extern void hyb_generation_assert_valid(const HybGeneration *generation);
extern void hyb_level_assert_valid(const HybLevel *level);
#else
#define hyb_meta_assert_valid(meta) ((void) (meta))
#define hyb_generation_assert_valid(generation) ((void) (generation))
#define hyb_level_assert_valid(level) ((void) (level))
#endif

#define hyb_page_meta(page) ((HybMetaPage *) PageGetContents(page))

/*
 * The metapage, pinned and locked (BUFFER_LOCK_SHARE or _EXCLUSIVE); checked.
 */
extern Buffer hyb_meta_lock(const HybIndex *ix, int mode, HybMetaPage **meta);

/* Copy its content. */
extern void hyb_meta_copy(const HybIndex *ix, HybMetaPage *copy);

/*
 * Is the page, share-locked, a metapage that this build can read?  Raises no
 * error.
 */
extern bool hyb_meta_is_readable(Page page);

/* Fill an empty page as the metapage of a new, empty index.  Cannot fail. */
extern void hyb_meta_init(Page page, const HybIndex *ix);

/* Add the metapage's fields before pending[], or what pending[] holds, to set. */
extern void hyb_wal_meta(HybWalSet *set, Buffer metabuf);
extern void hyb_wal_meta_pending(HybWalSet *set, Buffer metabuf);

/*
 * Change the watermark, all of its fields, and add them to set; NULL:
 * -infinity, which it is whenever there is no frozen generation.
 */
extern void hyb_meta_set_watermark(HybMetaPage *meta, const HybPos *watermark,
								   HybWalSet *set, Buffer metabuf);

/*
 * Set and clear flags of the metapage, which is locked exclusively, by a record
 * of its own.
 */
extern void hyb_meta_change_flags(const HybIndex *ix, Buffer metabuf,
								  uint32 set_flags, uint32 clear_flags);

#define hyb_wal_meta_field(set, metabuf, field) \
	hyb_wal_range(set, metabuf, \
				  SizeOfPageHeaderData + offsetof(HybMetaPage, field), \
				  sizeof(((HybMetaPage *) 0)->field))

extern void hyb_generation_init(HybGeneration *generation, uint64 number);
extern void hyb_level_init(HybLevel *level);

/* Does the block belong to the end of the file that is about to be cut off? */
static inline bool
hyb_meta_cuts(const HybMetaPage *meta, BlockNumber block)
{
	return BlockNumberIsValid(meta->cut) && meta->cut_end == 0 &&
		block >= meta->cut;
}

/*
 * Blocks at the end of a file of so many that a cut has taken off all lists,
 * and that are still there; the first of them is meta->cut.
 */
static inline uint32
hyb_meta_given_up(const HybMetaPage *meta, BlockNumber nblocks)
{
	BlockNumber end = Min(nblocks, meta->cut_end);

	return meta->cut_end != 0 && end > meta->cut ? end - meta->cut : 0;
}

/* Blocks of such a file that hold nothing and that some list or field names. */
static inline uint64
hyb_meta_free(const HybMetaPage *meta, BlockNumber nblocks)
{
	return (uint64) meta->free_blocks + meta->cut_blocks + meta->npending +
		hyb_meta_given_up(meta, nblocks);
}

/* The file ends where it did, or where it was cut; in a critical section. */
static inline void
hyb_meta_end_cut(HybMetaPage *meta)
{
	meta->cut = InvalidBlockNumber;
	meta->cut_list = InvalidBlockNumber;
	meta->cut_blocks = 0;
	meta->cut_end = 0;
}

/* All levels together: sums, the greatest height, and no root. */
extern HybLevel hyb_meta_static(const HybMetaPage *meta);

/* The level that merges of the dynamic stage go to. */
static inline HybLevel *
hyb_meta_newest(HybMetaPage *meta)
{
	Assert(meta->nlevels >= 1 && meta->nlevels <= HYB_MAX_LEVELS);
	return &meta->levels[meta->nlevels - 1];
}

/* ---- versions ---- */

/*
 * A version: what a batch of a scan, or a merge step, works on.  It is a consistent
 * copy of fields of the metapage, and names the runs of the index.  From the newest
 * to the oldest run these are:
 *
 * - the active generation
 * - the frozen generation, but only its entries above the watermark
 * - the static levels, from the last to the first
 *
 * Each live entry is in exactly one of them.
 */
typedef struct HybVersion
{
	uint64		version;
	uint64		vacuum_counter;
	int			nlevels;
	HybRoot		levels[HYB_MAX_LEVELS]; /* from the oldest one, as in the
										 * metapage */
	HybGeneration active;
	HybGeneration frozen;
	HybPos		watermark;		/* points to wm_key */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];
} HybVersion;

#ifdef USE_ASSERT_CHECKING
extern void hyb_version_assert_valid(const HybVersion *version);
#else
#define hyb_version_assert_valid(version) ((void) (version))
#endif

/* Copies a version out of the metapage, which is locked, or a copy of it. */
extern void hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version);

#endif							/* HYB_META_H */
