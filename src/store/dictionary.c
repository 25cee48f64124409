/*
 * dictionary.c
 *		Writing and reading dictionary pages; the dictionaries of a backend.
 *
 * A backend keeps the dictionaries it uses, by the incarnation of their index:
 * it gets dictionaries once, and never other ones.  Each handle counts as a
 * user until its memory context is reset; of those without any the latest few
 * are kept.
 */
#include "base/compat.h"

#include "lib/ilist.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "store/dictionary.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Sets of dictionaries kept without a user */
#define KEPT_UNUSED		8

typedef struct CachedDictionaries
{
	dlist_node	node;			/* in `cache`, the latest used first */
	uint64		incarnation;
	int			users;
	BlockNumber npages;			/* of the chain */
	BlockNumber end;			/* one past its last block in the file */
	MemoryContext context;		/* of the dictionaries and of this */
	HybDictionaries *dictionaries;
} CachedDictionaries;

typedef struct DictionaryUser
{
	MemoryContextCallback callback;
	CachedDictionaries *cached;
} DictionaryUser;

static dlist_head cache = DLIST_STATIC_INIT(cache);

static uint32
page_crc(const HybDictionaryPage *content)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &content->length,
				offsetof(HybDictionaryPage, bytes) -
				offsetof(HybDictionaryPage, length) + content->length);
	FIN_CRC32C(crc);
	return crc;
}

void
hyb_dictionary_page_init(Page page, const HybIndex *ix, const uint8 *bytes,
						 Size len, int number, BlockNumber next)
{
	Size		from = (Size) number * HYB_DICTIONARY_PAGE_BYTES;
	uint32		n = (uint32) Min(len - from, HYB_DICTIONARY_PAGE_BYTES);
	HybDictionaryPage *content;

	Assert(number >= 0 && from < len);
	/* the last part, and no other one, has no page behind it */
	Assert(BlockNumberIsValid(next) == (len - from > HYB_DICTIONARY_PAGE_BYTES));
	hyb_page_init(page, ix, HYB_PAGE_DICTIONARY, 0, 1);
	content = hyb_dictionary_page(page);
	content->length = n;
	memcpy(content->bytes, bytes + from, n);
	content->crc = page_crc(content);
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData +
		offsetof(HybDictionaryPage, bytes) + n;
	hyb_page_opaque(page)->count = n;
	hyb_page_opaque(page)->link = next;
}

BlockNumber
hyb_dictionary_write(HybIndex *ix, const uint8 *bytes, Size len)
{
	int			npages = hyb_dictionary_npages(len);
	BlockNumber first = RelationGetNumberOfBlocks(ix->rel);

	/* the new pages are consecutive: no other process knows the index */
	for (int i = 0; i < npages; i++)
	{
		Buffer		buf = ReadBuffer(ix->rel, P_NEW);

		if (BufferGetBlockNumber(buf) != first + i)
			elog(ERROR, "unexpected block %u in a new index",
				 BufferGetBlockNumber(buf));
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		START_CRIT_SECTION();
		hyb_dictionary_page_init(BufferGetPage(buf), ix, bytes, len, i,
								 i + 1 < npages ? first + i + 1 : InvalidBlockNumber);
		MarkBufferDirty(buf);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buf);
	}
	return first;
}

void
hyb_dictionary_check_page(Relation rel, BlockNumber block, Page page)
{
	const HybDictionaryPage *content = hyb_dictionary_page(page);

	if (content->length == 0 || content->length > HYB_DICTIONARY_PAGE_BYTES ||
		((PageHeader) page)->pd_lower != SizeOfPageHeaderData +
		offsetof(HybDictionaryPage, bytes) + content->length)
		hyb_corrupted(rel, block, "The length of a dictionary page is wrong.");
	if (page_crc(content) != content->crc)
		hyb_corrupted(rel, block, "The checksum of a dictionary page is wrong.");
}

/* Read the chain at `first` into *out; sets *npages and *end. */
static void
read_chain(const HybIndex *ix, BlockNumber first, HybBuf *out,
		   BlockNumber *npages, BlockNumber *end)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	BlockNumber block = first;
	BlockNumber from = HYB_METAPAGE_BLKNO;

	*npages = 0;
	*end = HYB_METAPAGE_BLKNO + 1;
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		if (block >= nblocks || ++*npages > nblocks)
			hyb_corrupted(ix->rel, from,
						  "The link to the next dictionary page is wrong.");
		buf = ReadBuffer(ix->rel, block);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		if (!hyb_page_check(ix, buf, HYB_PAGE_DICTIONARY, 0))
			hyb_corrupted(ix->rel, block, "It is not a dictionary page.");
		hyb_dictionary_check_page(ix->rel, block, page);
		hyb_buf_append(out, hyb_dictionary_page(page)->bytes,
					   hyb_dictionary_page(page)->length);
		*end = Max(*end, block + 1);
		from = block;
		block = hyb_page_opaque(page)->link;
		UnlockReleaseBuffer(buf);
	}
}

/* Drop sets without users, the longest unused first. */
static void
trim_cache(void)
{
	dlist_mutable_iter iter;
	int			unused = 0;

	dlist_foreach_modify(iter, &cache)
	{
		CachedDictionaries *cached = dlist_container(CachedDictionaries, node,
													 iter.cur);

		Assert(cached->users >= 0);
		if (cached->users == 0 && ++unused > KEPT_UNUSED)
		{
			dlist_delete(&cached->node);
			MemoryContextDelete(cached->context);
		}
	}
}

static CachedDictionaries *
load(const HybIndex *ix, BlockNumber first)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid dictionaries",
												  ALLOCSET_DEFAULT_SIZES);
	CachedDictionaries *cached = MemoryContextAllocZero(context,
														sizeof(CachedDictionaries));
	HybBuf		bytes = {0};

	read_chain(ix, first, &bytes, &cached->npages, &cached->end);
	cached->incarnation = ix->incarnation;
	cached->context = context;
	cached->dictionaries = hyb_encoded_load(bytes.data, bytes.len,
											context);
	if (cached->dictionaries == NULL)
		hyb_corrupted(ix->rel, first,
					  "The dictionary that starts there is malformed.");
	pfree(bytes.data);

	/* from here on nothing fails */
	MemoryContextSetParent(context, TopMemoryContext);
	dlist_push_head(&cache, &cached->node);
	return cached;
}

static void
release_user(void *arg)
{
	Assert(((DictionaryUser *) arg)->cached->users > 0);
	((DictionaryUser *) arg)->cached->users--;
}

/* What this backend has of an index, or NULL. */
static CachedDictionaries *
find(const HybIndex *ix)
{
	dlist_iter	iter;

	dlist_foreach(iter, &cache)
	{
		CachedDictionaries *cached = dlist_container(CachedDictionaries, node,
													 iter.cur);

		if (cached->incarnation == ix->incarnation)
			return cached;
	}
	return NULL;
}

BlockNumber
hyb_dictionary_pages(const HybIndex *ix)
{
	/* a set of dictionaries with a user stays */
	Assert(ix->dictionaries == NULL || (find(ix) != NULL && find(ix)->users > 0));
	return ix->dictionaries != NULL ? find(ix)->npages : 0;
}

BlockNumber
hyb_dictionary_end(const HybIndex *ix)
{
	Assert(ix->dictionaries == NULL || (find(ix) != NULL && find(ix)->users > 0));
	return ix->dictionaries != NULL ? find(ix)->end : HYB_METAPAGE_BLKNO + 1;
}

void
hyb_dictionary_attach(HybIndex *ix, BlockNumber first)
{
	CachedDictionaries *cached;
	DictionaryUser *user;

	Assert(ix->desc->has_encoded);
	user = MemoryContextAllocZero(ix->context, sizeof(DictionaryUser));
	cached = find(ix);
	if (cached == NULL)
	{
		trim_cache();
		cached = load(ix, first);
	}
	else
		dlist_move_head(&cache, &cached->node);
	if (!hyb_encoded_attach(ix->desc, cached->dictionaries))
		hyb_corrupted(ix->rel, first,
					  "The dictionary is not that of the index's columns.");

	user->cached = cached;
	user->callback.func = release_user;
	user->callback.arg = user;
	cached->users++;
	MemoryContextRegisterResetCallback(ix->context, &user->callback);
	ix->dictionaries = cached->dictionaries;
}
