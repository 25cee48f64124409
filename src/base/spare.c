/*
 * spare.c
 *		Objects that a backend keeps from one statement to the next.
 */
#include "base/compat.h"

#include "base/spare.h"

/* Objects of one kind that are kept, at most. */
#define MAX_SPARE	8

/* The context that it was lent to goes. */
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
