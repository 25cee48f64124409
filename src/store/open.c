/*
 * open.c
 *		Opening a handle on an index.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "miscadmin.h"
#include "store/dictionary.h"
#include "store/handle.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * What the relation cache keeps of an index: what a handle is made of, so that
 * a statement neither reads the metapage nor asks operator classes for it.  One
 * chunk in rd_amcache, which the server frees whenever the entry of the
 * relation cache is invalidated, in the middle of a scan too: handles take
 * copies.  What a copy points to (the tuple descriptor, support functions,
 * options of operator classes) stays for as long as the relation is open.  It
 * belongs to the entry, or lies in rd_indexcxt as the chunk does.
 *
 * An incarnation ends with its file, which changes the relation cache's entry,
 * or where this backend builds the index in the same file, see
 * hyb_index_draw_incarnation.
 */
typedef struct HybIndexCache
{
	uint64		incarnation;
	struct HybCache *backend;
	uint64		backend_serial;
	HybKeyDesc	desc;			/* last; without dictionaries */
} HybIndexCache;

/* Free what the relation cache keeps of the index (HybIndexCache). */
static void
drop_cache(Relation rel)
{
	if (rel->rd_amcache != NULL)
		pfree(rel->rd_amcache);
	rel->rd_amcache = NULL;
}

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

	desc->truncated = (meta->flags & HYB_META_TRUNCATED) != 0;
	UnlockReleaseBuffer(buf);

	if (desc->truncated && !(desc->all_mem && desc->natts == desc->nkeys))
		hyb_corrupted(rel, HYB_METAPAGE_BLKNO,
					  "The metapage says that leaves do not hold keys, of an index that needs them.");

	/* an operator class's function may have opened the index meanwhile */
	drop_cache(rel);
	cache = MemoryContextAlloc(rel->rd_indexcxt, offsetof(HybIndexCache, desc) + size);
	cache->incarnation = incarnation;
	cache->backend = NULL;
	cache->backend_serial = 0;
	memcpy(&cache->desc, desc, size);
	pfree(desc);
	rel->rd_amcache = cache;
	return cache;
}

void
hyb_index_remember_cache(const HybIndex *ix)
{
	HybIndexCache *cache = ix->rel->rd_amcache;

	if (cache == NULL || cache->incarnation != ix->incarnation)
		return;
	Assert(ix->cache != NULL && ix->cache_serial != 0);
	cache->backend = ix->cache;
	cache->backend_serial = ix->cache_serial;
}

void
hyb_index_draw_incarnation(HybIndex *ix)
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
 * An index with encoded columns may have learned its dictionaries meanwhile, so we
 * read its metapage every time.
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

void		(*hyb_index_use) (Relation rel) = NULL;
TransactionId hyb_database_xmin = InvalidTransactionId;

static void
prepare_first_use(void)
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

bool
hyb_index_is_truncated(Relation rel)
{
	const HybIndexCache *cache = rel->rd_amcache;
	bool		truncated = false;
	Buffer		buf;

	if (cache != NULL)
		return cache->desc.truncated;
	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) ||
		RelationGetNumberOfBlocks(rel) == 0)
		return false;
	buf = ReadBuffer(rel, HYB_METAPAGE_BLKNO);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (hyb_meta_is_readable(BufferGetPage(buf)))
		truncated = (hyb_page_meta(BufferGetPage(buf))->flags & HYB_META_TRUNCATED) != 0;
	UnlockReleaseBuffer(buf);
	return truncated;
}

HybBeingBuilt *hyb_being_built = NULL;

bool
hyb_index_is_being_built(Oid index)
{
	for (HybBeingBuilt *built = hyb_being_built; built != NULL; built = built->outer)
		if (built->index == index)
			return true;
	return false;
}

/* What handles on the index are made of; its owner lets sessions use it now. */
static HybIndexCache *
use_cache(Relation rel)
{
	if (hyb_index_is_being_built(RelationGetRelid(rel)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access index \"%s\" while it is being built",
						RelationGetRelationName(rel))));
	prepare_first_use();
	if (hyb_index_use != NULL)
		hyb_index_use(rel);
	return rel->rd_amcache != NULL ? rel->rd_amcache : make_cache(rel);
}

static void
fill_handle(HybIndex *ix, Relation rel, const HybIndexCache *cache)
{
	ix->rel = rel;
	ix->desc = (HybKeyDesc *) ((char *) ix + MAXALIGN(sizeof(HybIndex)));
	ix->incarnation = cache->incarnation;
	ix->cache = cache->backend;
	ix->cache_serial = cache->backend_serial;
	ix->context = CurrentMemoryContext;
	ix->dictionaries = NULL;
	memcpy(ix->desc, &cache->desc, hyb_key_desc_size(cache->desc.natts));
	hyb_key_desc_assert_valid(ix->desc);
	Assert(ix->desc->tupdesc == RelationGetDescr(rel));
	Assert(ix->desc->cols[0].order_proc == index_getprocinfo(rel, 1, HYB_ORDER_PROC));
	Assert(ix->desc->cols[0].index_name == RelationGetRelationName(rel));
	if (ix->desc->has_encoded)
		attach_dictionaries(ix);
	Assert(ix->incarnation != 0 && ix->desc->nkeys >= 1 &&
		   ix->desc->nkeys <= ix->desc->natts);
}

HybIndex *
hyb_index_create_handle(Relation rel)
{
	const HybIndexCache *cache = use_cache(rel);
	HybIndex   *ix = palloc(HYB_HANDLE_SIZE(cache->desc.natts));

	fill_handle(ix, rel, cache);
	return ix;
}

bool
hyb_index_make_handle(Relation rel, HybIndex *ix, Size size)
{
	const HybIndexCache *cache = use_cache(rel);

	if (HYB_HANDLE_SIZE(cache->desc.natts) > size || cache->desc.has_encoded)
		return false;
	fill_handle(ix, rel, cache);
	return true;
}
