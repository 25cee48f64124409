/*
 * block_stream.h
 *		The blocks of an index in physical order, read ahead.
 *
 * Servers without read streams leave reading ahead to the operating system.
 * With them blocks to come are pinned while the caller looks at the one at
 * hand: at most half of the ring of `strategy`, or what the server grants.
 * Nobody waits for these pins, since only VACUUM waits for cleanup locks, but a
 * pinned block is not used for something else: so a caller that may wait for
 * long lets go of them.
 */
#ifndef HYB_BLOCK_STREAM_H
#define HYB_BLOCK_STREAM_H

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

struct ReadStream;

typedef struct HybBlockStream
{
	Relation	rel;
	BufferAccessStrategy strategy;
	const uint8 *skip;			/* bitmap of blocks that are left out, or NULL */
	BlockNumber next;			/* all before it have been returned */
	BlockNumber ahead;			/* all before it have been asked for, by a
								 * reader */
	BlockNumber end;
	struct ReadStream *reader;	/* NULL: there is none */
} HybBlockStream;

/* Blocks from `first` up to before `end`; the relation must have them. */
extern void hyb_block_stream_begin(HybBlockStream *stream, Relation rel,
								   BlockNumber first, BlockNumber end,
								   const uint8 *skip,
								   BufferAccessStrategy strategy);

/*
 * The next block, pinned, at the pace that VACUUM is to keep; InvalidBuffer
 * after the last one.
 */
extern Buffer hyb_block_stream_next(HybBlockStream *stream);

/* Let go of all blocks but those that were returned. */
extern void hyb_block_stream_unpin(HybBlockStream *stream);
extern void hyb_block_stream_end(HybBlockStream *stream);

#endif							/* HYB_BLOCK_STREAM_H */
