/*
 * log_reader.h
 *		Reading entries of a generation one by one, where its tree does not have
 *		them.
 */
#ifndef HYB_LOG_READER_H
#define HYB_LOG_READER_H

#include "log/dynamic.h"
#include "memtree/tree.h"

/* Pins the page read last; what it has read lies in `bytes`. */
typedef struct HybLogReader
{
	HybEntryLog log;
	HybIndex   *ix;
	uint64		generation;
	Buffer		buf;
	BlockNumber block;			/* of buf */
	BlockNumber lost;			/* no page of the generation, or no entry
								 * there */
	uint8		bytes[HYB_MAX_ENTRY_SIZE];
} HybLogReader;

/*
 * A tree of an opened stage, to be read or changed; end with
 * hyb_log_reader_end, while the stage is still locked.  Where an error comes
 * between, the pin goes with the resource owner.
 */
extern void hyb_tree_use(HybTreeUse *use, HybIndex *ix, HybTree *tree,
						 HybArena *arena, HybLogReader *reader);

static inline void
hyb_log_reader_end(HybLogReader *reader)
{
	if (BufferIsValid(reader->buf))
		ReleaseBuffer(reader->buf);
	reader->buf = InvalidBuffer;
}

#endif							/* HYB_LOG_READER_H */
