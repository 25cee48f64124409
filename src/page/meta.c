/*
 * meta.c
 *		Reading and changing the metapage; opening a handle on an index.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "page/dictionary.h"
#include "page/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

StaticAssertDecl(sizeof(HybMetaPage) <= HYB_PAGE_CAPACITY,
				 "the metapage's content must fit one page");

static void
check_meta(Relation rel, Page page)
{
	HybMetaPage *meta = hyb_page_meta(page);
	HybPageOpaque *opaque;

	if (((PageHeader) page)->pd_special != BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)))
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage header is not that of a hybrid index.");
	opaque = hyb_page_opaque(page);
	if (opaque->page_id != HYB_PAGE_ID || opaque->kind != HYB_PAGE_META ||
		meta->magic != HYB_META_MAGIC ||
		meta->incarnation != opaque->incarnation)
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage is not that of a hybrid index.");
	if (meta->format != HYB_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has format version %u, but this hybridindex reads version %u",
						RelationGetRelationName(rel), meta->format,
						HYB_FORMAT_VERSION),
				 errhint("Please REINDEX it.")));
	if (meta->npending > HYB_MAX_PENDING ||
		meta->wm_len > HYB_MAX_ENTRY_SIZE ||
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
	check_meta(ix->rel, page);
	*meta = hyb_page_meta(page);
	return buf;
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
}

/* Free what the relation cache keeps of the index (HybIndexCache). */
static void
drop_cache(Relation rel)
{
	if (rel->rd_amcache != NULL)
		pfree(rel->rd_amcache);
	rel->rd_amcache = NULL;
}

void
hyb_meta_draw_incarnation(HybIndex *ix)
{
	Assert(CritSectionCount == 0);
	do
	{
		if (!pg_strong_random(&ix->incarnation, sizeof(ix->incarnation)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate a random number for index \"%s\"",
							RelationGetRelationName(ix->rel))));
	} while (ix->incarnation == 0);
	drop_cache(ix->rel);
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
	meta->format = HYB_FORMAT_VERSION;
	meta->incarnation = ix->incarnation;
	meta->version = 1;
	meta->next_stamp = 1;
	meta->rewritten_tids = HYB_REWRITTEN_UNKNOWN;
	meta->next_generation = 2;
	meta->root = InvalidBlockNumber;
	hyb_generation_init(&meta->active, 1);
	hyb_generation_init(&meta->frozen, 0);
	hyb_generation_init(&meta->retiring, 0);
	meta->freelist = InvalidBlockNumber;
	meta->dictionary = InvalidBlockNumber;
	meta->filter_pages = 0;
	meta->wm_tie = HYB_BEFORE;
	ItemPointerSetInvalid(&meta->wm_tid);
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData + sizeof(HybMetaPage);
}

void
hyb_wal_meta(HybWalSet *set, Buffer metabuf)
{
	hyb_wal_range(set, metabuf, SizeOfPageHeaderData,
				  offsetof(HybMetaPage, pending));
}

void
hyb_wal_meta_pending(HybWalSet *set, Buffer metabuf)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

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
	Assert(watermark->len > 0 || watermark->ncols == 0);
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

/*
 * What the relation cache keeps of an index: what a handle is made of, so that
 * a statement neither reads the metapage nor asks operator classes for it.  One
 * chunk in rd_amcache, which the server frees whenever the entry of the
 * relation cache is invalidated, in the middle of a scan too: handles take
 * copies.  What a copy points to (the tuple descriptor, support functions,
 * options of operator classes) stays for as long as the relation is open.
 *
 * An incarnation ends with its file, which changes the relation cache's entry,
 * or where this backend builds the index in the same file, see
 * hyb_meta_draw_incarnation.
 */
typedef struct HybIndexCache
{
	uint64		incarnation;
	struct HybSlot *slot;
	uint64		slot_serial;
	HybKeyDesc	desc;			/* last; without dictionaries */
} HybIndexCache;

static HybIndexCache *
make_cache(Relation rel)
{
	HybKeyDesc *desc = hyb_key_desc_create(rel);
	Size		size = hyb_key_desc_size(desc->natts);
	HybIndex	ix = {.rel = rel};
	HybMetaPage *meta;
	Buffer		buf = hyb_meta_lock(&ix, BUFFER_LOCK_SHARE, &meta);
	uint64		incarnation = meta->incarnation;
	HybIndexCache *cache;

	UnlockReleaseBuffer(buf);

	/* an operator class's function may have opened the index meanwhile */
	drop_cache(rel);
	cache = MemoryContextAlloc(rel->rd_indexcxt,
							   offsetof(HybIndexCache, desc) + size);
	cache->incarnation = incarnation;
	cache->slot = NULL;
	cache->slot_serial = 0;
	memcpy(&cache->desc, desc, size);
	pfree(desc);
	rel->rd_amcache = cache;
	return cache;
}

void
hyb_index_remember_slot(const HybIndex *ix)
{
	HybIndexCache *cache = ix->rel->rd_amcache;

	if (cache == NULL || cache->incarnation != ix->incarnation)
		return;
	cache->slot = ix->slot;
	cache->slot_serial = ix->slot_serial;
}

/*
 * An index with encoded columns may have learned its dictionaries since
 * anybody looked, so its metapage is read every time.
 */
static void
attach_dictionaries(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		buf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	BlockNumber dictionary = meta->dictionary;
	bool		plain = (meta->flags & HYB_META_PLAIN) != 0;

	ix->incarnation = meta->incarnation;
	UnlockReleaseBuffer(buf);
	if (plain != !BlockNumberIsValid(dictionary))
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO, plain ?
					  "The index has a dictionary, but its keys are not encoded with it." :
					  "The index has no dictionary.");
	if (!plain)
		hyb_dictionary_attach(ix, dictionary);
}

TransactionId hyb_database_xmin = InvalidTransactionId;

void
hyb_note_database(void)
{
	HeapTuple	tuple;

	if (TransactionIdIsValid(hyb_database_xmin))
		return;
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	hyb_database_xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	ReleaseSysCache(tuple);
}

HybIndex *
hyb_index_create_handle(Relation rel)
{
	HybIndexCache *cache = rel->rd_amcache;
	HybIndex   *ix;
	Size		size;

	hyb_note_database();
	if (cache == NULL)
		cache = make_cache(rel);
	size = hyb_key_desc_size(cache->desc.natts);
	ix = palloc(MAXALIGN(sizeof(HybIndex)) + size);
	ix->rel = rel;
	ix->desc = (HybKeyDesc *) ((char *) ix + MAXALIGN(sizeof(HybIndex)));
	ix->incarnation = cache->incarnation;
	ix->slot = cache->slot;
	ix->slot_serial = cache->slot_serial;
	ix->root = NULL;
	ix->context = CurrentMemoryContext;
	ix->dictionaries = NULL;
	memcpy(ix->desc, &cache->desc, size);
	if (ix->desc->has_hope)
		attach_dictionaries(ix);
	return ix;
}
