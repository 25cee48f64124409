/*
 * memory.h
 *		Growing arrays, byte buffers, and objects that statements share.
 */
#ifndef HYB_MEMORY_H
#define HYB_MEMORY_H

#include "postgres.h"

#include "utils/memutils.h"

/*
 * Make room for n elements of `size` bytes in an array, which is NULL at first.
 * The array is allocated in `context` and keeps what it holds.
 */
static inline void *
hyb_grow(MemoryContext context, void *array, Size n, Size size)
{
	Assert(n > 0 && size > 0 && n <= MaxAllocHugeSize / size);
	if (array == NULL)
		return MemoryContextAllocHuge(context, n * size);
	return repalloc_huge(array, n * size);
}

/* Growable byte buffer; `data` is palloc'd in the context of first use. */
typedef struct HybBuf
{
	uint8	   *data;
	uint32		len;
	uint32		cap;
	MemoryContext context;		/* not NULL: `data` is the owner's, and a
								 * larger one is allocated here */
} HybBuf;

/* An empty buffer that starts with the owner's space, or with no space. */
static inline void
hyb_buf_init(HybBuf *buf, void *space, uint32 size, MemoryContext context)
{
	buf->data = space;
	buf->len = 0;
	buf->cap = size;
	buf->context = context;
}

extern void hyb_buf_enlarge(HybBuf *buf, uint32 extra);

/* Make room for `extra` more bytes. */
static inline void
hyb_buf_reserve(HybBuf *buf, uint32 extra)
{
	if (unlikely(extra > buf->cap - buf->len))
		hyb_buf_enlarge(buf, extra);
}

static inline void
hyb_buf_append(HybBuf *buf, const void *data, uint32 len)
{
	Assert(buf->len <= buf->cap);
	hyb_buf_reserve(buf, len);
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
}

static inline void
hyb_buf_free(HybBuf *buf)
{
	if (buf->data != NULL && buf->context == NULL)
		pfree(buf->data);
}

/*
 * A large object that a backend keeps from one statement to the next, in memory
 * that stays.  It is lent to a memory context and comes back when that context is
 * reset, after an error too.
 */
typedef struct HybSpare
{
	struct HybSpare *next;		/* in the list */
	struct HybSpareList *list;	/* where it goes back to */
	MemoryContextCallback callback;
} HybSpare;

/* Unused objects of one kind. */
typedef struct HybSpareList
{
	void		(*free) (void *object);
	HybSpare   *first;
	int			n;
} HybSpareList;

/* An object of the list.  NULL: the caller has to make one. */
extern void *hyb_spare_take(HybSpareList *list);

/* Lend an object until the context is reset. */
extern void hyb_spare_lend(HybSpareList *list, HybSpare *object,
						   MemoryContext context);

#endif							/* HYB_MEMORY_H */
