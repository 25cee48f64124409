/*
 * block_stream.c
 *		The blocks of an index in physical order, read ahead.
 */
#include "base/compat.h"

#include "commands/vacuum.h"
#include "storage/bufmgr.h"
#include "store/block_stream.h"
#include "store/settings.h"
#include "utils/rel.h"
#ifdef HYB_HAVE_READ_STREAM
#include "storage/read_stream.h"
#endif

/* The first block from this one on that is not left out, or the end. */
static BlockNumber
not_skipped(const HybBlockStream *stream, BlockNumber block)
{
	if (stream->skip != NULL)
		while (block < stream->end &&
			   (stream->skip[block >> 3] & (1 << (block & 7))) != 0)
			block++;
	return block;
}

#ifdef HYB_HAVE_READ_STREAM

/* Takes no locks, as servers that put requests together want it. */
static BlockNumber
next_to_read(ReadStream *reader, void *arg, void *per_buffer)
{
	HybBlockStream *stream = arg;

	stream->ahead = not_skipped(stream, stream->ahead);
	return stream->ahead < stream->end ? stream->ahead++ : InvalidBlockNumber;
}

#endif

void
hyb_block_stream_begin(HybBlockStream *stream, Relation rel,
					   BlockNumber first, BlockNumber end, const uint8 *skip,
					   BufferAccessStrategy strategy)
{
	Assert(first <= end);
	*stream = (HybBlockStream)
	{
		.rel = rel,.strategy = strategy,.skip = skip,.next = first,
			.ahead = first,.end = end
	};
#ifdef HYB_HAVE_READ_STREAM
	if (hyb_prefetch)
		stream->reader = read_stream_begin_relation(HYB_READ_STREAM_FLAGS,
													strategy, rel, MAIN_FORKNUM,
													next_to_read, stream, 0);
#endif
}

Buffer
hyb_block_stream_next(HybBlockStream *stream)
{
	BlockNumber block;

	HYB_VACUUM_DELAY_POINT();
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader != NULL)
	{
		Buffer		buf = read_stream_next_buffer(stream->reader, NULL);

		/* blocks come in physical order, and none twice */
		Assert(!BufferIsValid(buf) ||
			   (BufferGetBlockNumber(buf) >= stream->next &&
				BufferGetBlockNumber(buf) < stream->end));
		if (BufferIsValid(buf))
			stream->next = BufferGetBlockNumber(buf) + 1;
		return buf;
	}
#endif
	block = not_skipped(stream, stream->next);
	if (block >= stream->end)
		return InvalidBuffer;
	stream->next = block + 1;
	return ReadBufferExtended(stream->rel, MAIN_FORKNUM, block, RBM_NORMAL,
							  stream->strategy);
}

void
hyb_block_stream_unpin(HybBlockStream *stream)
{
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader == NULL)
		return;
	read_stream_reset(stream->reader);
	stream->ahead = stream->next;
#endif
}

void
hyb_block_stream_end(HybBlockStream *stream)
{
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader != NULL)
		read_stream_end(stream->reader);
	stream->reader = NULL;
#endif
}
