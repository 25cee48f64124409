/*
 * dictionary.h
 *		Dictionary pages: what encoded columns are encoded with.
 *
 * A chain of pages from the metapage's `dictionary` on holds one byte string
 * (key/encoded.h), written when the index is created, or by the merge that
 * first has enough keys to learn from, and never changed.  Each page has a
 * checksum of its own, whether the cluster has any or not: a wrong bit here
 * would make all keys wrong.
 */
#ifndef HYB_DICTIONARY_H
#define HYB_DICTIONARY_H

#include "key/encoded.h"
#include "store/page.h"

/* At PageGetContents() of a dictionary page */
typedef struct HybDictionaryPage
{
	uint32		crc;			/* CRC-32C of length and bytes */
	uint32		length;
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} HybDictionaryPage;

#define hyb_dictionary_page(page) ((HybDictionaryPage *) PageGetContents(page))
#define HYB_DICTIONARY_PAGE_BYTES \
	(HYB_PAGE_CAPACITY - offsetof(HybDictionaryPage, bytes))

/* Pages that a byte string takes. */
#define hyb_dictionary_npages(len) \
	((int) (((len) + HYB_DICTIONARY_PAGE_BYTES - 1) / HYB_DICTIONARY_PAGE_BYTES))

/*
 * Fill a page image with part `number` (from 0 on) of a byte string; `next` is
 * the block of the following part, or InvalidBlockNumber.
 */
extern void hyb_dictionary_page_init(Page page, const HybIndex *ix,
									 const uint8 *bytes, Size len, int number,
									 BlockNumber next);

/*
 * Append pages with these bytes to a new index; returns the first one's block.
 * The caller logs them.
 */
extern BlockNumber hyb_dictionary_write(HybIndex *ix, const uint8 *bytes,
										Size len);

/*
 * Check a dictionary page, read-locked or a copy; raises
 * ERRCODE_INDEX_CORRUPTED.
 */
extern void hyb_dictionary_check_page(Relation rel, BlockNumber block,
									  Page page);

/*
 * Give the columns of the handle their dictionaries, which are read from the
 * chain at `first` unless this backend has them.  They stay until the
 * handle's memory context goes.  Sets ix->dictionaries.
 */
extern void hyb_dictionary_attach(HybIndex *ix, BlockNumber first);

/* Pages of the dictionaries that a handle has; reads none. */
extern BlockNumber hyb_dictionary_pages(const HybIndex *ix);

/* One past the last block of the file that these, or the metapage, lie in. */
extern BlockNumber hyb_dictionary_end(const HybIndex *ix);

#endif							/* HYB_DICTIONARY_H */
