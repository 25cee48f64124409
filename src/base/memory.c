/*
 * memory.c
 *		Growing arrays, byte buffers, and objects that statements share.
 */
#include "base/compat.h"

#include "base/memory.h"

/* The least bytes of a buffer that grows */
#define BUF_MIN		256

/* Unused objects of one kind that a backend keeps */
#define MAX_SPARE	8

/* Slow path of hyb_buf_reserve. */
void
hyb_buf_enlarge(HybBuf *buf, uint32 extra)
{
	Size		need = (Size) buf->len + extra;
	Size		cap = Max((Size) buf->cap * 2, BUF_MIN);

	Assert(buf->len <= buf->cap && (buf->data != NULL || buf->cap == 0));
	if (need > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index key is too large")));
	cap = Min(Max(cap, need), MaxAllocSize);
	if (buf->context != NULL)
	{
		uint8	   *data = MemoryContextAlloc(buf->context, cap);

		if (buf->len > 0)
			memcpy(data, buf->data, buf->len);
		buf->data = data;
		buf->context = NULL;
	}
	else if (buf->data == NULL)
		buf->data = palloc(cap);
	else
		buf->data = repalloc(buf->data, cap);
	buf->cap = cap;
	Assert(buf->cap - buf->len >= extra);
}

/* Callback: the context that an object was lent to is reset. */
static void
give_back(void *arg)
{
	HybSpare   *object = arg;
	HybSpareList *list = object->list;

	Assert(list->n >= 0 && list->n <= MAX_SPARE);
	Assert((list->n == 0) == (list->first == NULL));
	if (list->n >= MAX_SPARE)
	{
		list->free(object);
		return;
	}
	object->next = list->first;
	list->first = object;
	list->n++;
}

void *
hyb_spare_take(HybSpareList *list)
{
	HybSpare   *object = list->first;

	Assert((list->n == 0) == (object == NULL));
	if (object != NULL)
	{
		list->first = object->next;
		list->n--;
	}
	return object;
}

void
hyb_spare_lend(HybSpareList *list, HybSpare *object, MemoryContext context)
{
	object->list = list;
	object->callback.func = give_back;
	object->callback.arg = object;
	MemoryContextRegisterResetCallback(context, &object->callback);
}
