/*
 * scan_assert.c
 *		What holds for a scan, its batches and what they have of a level.
 *
 * Called where such a struct is complete: when the keys are processed, when a
 * batch is loaded, and when more of it is put together.  Keys are compared where
 * that runs no user's code.
 */
#include "base/compat.h"

#include "scan/scan.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#ifdef USE_ASSERT_CHECKING

static void
assert_constant(const HybScan *so, const HybScanConst *c)
{
	Assert(c->len > 0);
	Assert(c->off + c->len <= so->constants.len);
}

static void
assert_bound(const HybScan *so, int column, const HybScanBound *bound)
{
	if (!bound->set)
		return;
	assert_constant(so, &bound->value);
	Assert(bound->more >= 0);
	Assert(column + bound->more < so->ix->desc->nkeys);
}

static void
assert_columns(const HybScan *so)
{
	const HybKeyDesc *desc = so->ix->desc;
	int			narrays = 0;

	for (int i = 0; i < desc->nkeys; i++)
	{
		const HybScanColumn *sc = &so->columns[i];

		assert_bound(so, i, &sc->lower);
		assert_bound(so, i, &sc->upper);
		Assert(sc->used || !(sc->lower.set || sc->upper.set || sc->array != NULL));
		Assert(!(sc->isnull && sc->notnull));
		/* a NULL satisfies no comparison */
		Assert(sc->notnull || !(sc->lower.set || sc->upper.set || sc->array != NULL));
	}
	for (int i = 0; i < so->nprefix; i++)
	{
		const HybScanPrefix *prefix = &so->prefix[i];

		if (prefix->array == NULL)
		{
			assert_constant(so, &prefix->value);
			continue;
		}
		narrays++;
		Assert(prefix->elem >= 0 && prefix->elem < prefix->array->nelems);
	}
	Assert(narrays == so->narrays);
}

void
hyb_scan_assert_valid(const HybScan *so)
{
	const HybKeyDesc *desc = so->ix->desc;

	if (so->empty)
		return;
	Assert(so->nprefix >= 0 && so->nprefix <= desc->nkeys);
	Assert(so->point == (so->nprefix == desc->nkeys));
	Assert(!so->has_range || so->nprefix < desc->nkeys);
	Assert(so->point_hash == 0 || (so->point && desc->exact));
	assert_columns(so);
	Assert(so->nquals >= 0 && so->nquals <= so->quals_alloc);
	for (int i = 0; i < so->nquals; i++)
		Assert(so->quals[i].column >= 0 && so->quals[i].column < desc->nkeys);
	/* only columns behind the range's are hopped over */
	Assert(so->hop_last < desc->nkeys);
	Assert(so->hop_last < 0 || (so->hop_last >= so->nprefix && !desc->truncated));
	Assert(so->nquals == 0 || so->need_values);
	/* both only for the planner's look at an end of the index, on a standby */
	Assert(!(so->need_pins && so->check_heap) || !IsMVCCSnapshot(so->scan->xs_snapshot));
	Assert(!so->rechecks || desc->truncated);
	/* ranges that are empty were found to be so */
	Assert(!desc->all_mem || hyb_pos_compare(desc, &so->start, &so->end) <= 0);
	Assert(!so->mark_in_batch || so->marked);
	Assert(!so->marked || so->mark_in_batch || so->mark_batch != NULL);
	Assert(so->mark_batch != so->batch);
}

/* Rows that were copied one by one. */
static void
assert_rows(const HybScanPart *part)
{
	Assert(part->nrows <= part->rows_alloc);
	for (int i = 0; i < part->nrows; i++)
	{
		const HybScanRow *row = &part->rows[i];

		Assert(row->off + row->len <= part->rowbytes.len ||
			   part->mode == HYB_STATIC_RESOLVED);
		Assert(part->mode == HYB_STATIC_RAW || row->keylen <= row->len);
		Assert(i == 0 || part->mode == HYB_STATIC_RESOLVED ||
			   row->first_item > part->rows[i - 1].first_item);
	}
}

static void
assert_part(const HybScan *so, const HybScanPart *part)
{
	if (part->mode == HYB_STATIC_NONE)
	{
		Assert(part->first == part->last);
		return;
	}
	Assert(part->first >= 0 && part->first <= part->last);
	Assert(part->last <= HYB_LEAF_MAX_ITEMS);
	Assert(part->next >= part->first && part->next <= part->last);
	Assert(so->batch->hot || so->need_pins == BufferIsValid(part->pin));
	Assert(part->tids_end - part->tids_base <= part->tids_alloc);
	/* hops read TIDs as they get to them */
	Assert((part->mode == HYB_STATIC_PAGE && so->hop_last >= 0) ||
		   (part->tids_base <= part->first && part->last <= part->tids_end));
	switch (part->mode)
	{
		case HYB_STATIC_TIDS:
			Assert(so->point || !so->need_values);
			break;
		case HYB_STATIC_ROWS:
			Assert(part->nrows > 0 && part->nrows <= HYB_SCAN_FEW_ROWS);
			Assert(part->rows[0].first_item <= part->first);
			assert_rows(part);
			break;
		case HYB_STATIC_PAGE:
			Assert(part->page != NULL && part->leaf.page == (Page) part->page);
			Assert(part->last <= part->leaf.nitems);
			break;
		case HYB_STATIC_RAW:
			Assert(so->ix->desc->truncated && so->whole_leaves);
			break;
		case HYB_STATIC_RESOLVED:
			Assert(so->ix->desc->truncated && part->nrows == part->last);
			assert_rows(part);
			break;
		case HYB_STATIC_NONE:
			break;
	}
}

/* Entries of one key are in the order of their TIDs, whatever runs have them. */
static void
assert_order(const HybScanBatch *batch)
{
	for (int i = 1; i < batch->nitems; i++)
		Assert(ItemPointerCompare(&batch->items[i - 1].tid,
								  &batch->items[i].tid) <= 0);
}

void
hyb_batch_assert_valid(const HybScan *so, const HybScanBatch *batch)
{
	const HybKeyDesc *desc = so->ix->desc;

	if (hyb_is_damaged())
		return;
	Assert(batch->proven);
	Assert(batch->nitems >= 0 && batch->nitems <= batch->items_alloc);
	Assert(batch->current >= -1 && batch->current <= batch->nitems);
	Assert(batch->nkilled >= 0 && batch->nkilled <= batch->killed_alloc);
	Assert(batch->nparts >= 1 && batch->nparts <= HYB_MAX_LEVELS);
	Assert(!batch->hot || (batch->nparts == 1 && so->point));
	for (int i = 0; i < batch->nparts; i++)
		assert_part(so, batch->parts[i]);
	for (int i = 0; i < batch->nitems; i++)
	{
		const HybScanItem *item = &batch->items[i];

		Assert(item->part < batch->nparts);
		Assert(item->source >= 0 || -1 - item->source < batch->dyn.nitems);
	}
	Assert(batch->next_dyn >= 0 && batch->next_dyn <= batch->dyn.nitems);
	Assert(!batch->fresh_known ||
		   (batch->fresh >= HYB_FRESH_DYN && batch->fresh < batch->nparts));
	Assert(!batch->fresh_known || batch->fresh_place <= batch->parts[0]->last);
	if (so->point && so->narrays == 0 && !desc->truncated)
		assert_order(batch);
	for (int i = 0; i < so->nprefix && so->narrays > 0; i++)
		Assert(so->prefix[i].array == NULL ||
			   (batch->elems[i] >= 0 && batch->elems[i] < so->prefix[i].array->nelems));
	if (desc->all_mem && batch->low.kind == HYB_EDGE_KEY &&
		batch->high.kind == HYB_EDGE_KEY)
		Assert(hyb_pos_compare(desc, &batch->low.pos, &batch->high.pos) <= 0);
}

#endif							/* USE_ASSERT_CHECKING */
