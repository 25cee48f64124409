/*
 * log_reader.c
 *		Reading entries of a generation one by one, where its tree does not have
 *		them.
 *
 * The slot of the tree is locked, which comes before delta pages in the lock
 * order.  A page of the generation is only appended to, and entries that a tree
 * has are within what was appended before: all that changes is the dead flag.
 * Once the generation is merged its pages may be freed and used for something
 * else, while a tree of it is still there: the page tells.
 */
#include "base/compat.h"

#include "log/delta.h"
#include "log/log_reader.h"

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
