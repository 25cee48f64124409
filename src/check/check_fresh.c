/*
 * check_fresh.c
 *		hybrid_index_check: what the runs that are newer than the oldest level
 *		hold, in order.
 *
 * The leaves of the oldest level lead through the key range; the entries of
 * the dynamic stage and of newer levels are taken along with them.
 */
#include "base/compat.h"

#include "check/check.h"
#include "miscadmin.h"
#include "run/run.h"
#include "utils/memutils.h"

/* Entries of a run that are fetched at a time. */
#define FRESH_FETCH_LIMIT		1000

/* How often that is tried before a run is taken to be damaged. */
#define FETCH_TRIES		100

static inline const HybDynItem *
source_item(const HybCheckSource *source)
{
	return &source->batch.items[source->next];
}

static inline const uint8 *
source_bytes(const HybCheckSource *source)
{
	return source->batch.keys.data + source_item(source)->key_off;
}

/*
 * Get the next batch of entries: those above the last one that was consumed,
 * in whichever run that was, since it may have moved to this one.
 */
static void
fetch_more(HybCheck *check, HybCheckSource *source)
{
	HybPos		low = {.tie = HYB_BEFORE};
	HybPos		high = {.tie = HYB_AFTER};
	HybFetch	fetch = {.lo = &low,.hi = &high,.limit = FRESH_FETCH_LIMIT};
	int			tries = 0;

	if (check->fresh_key.len > 0)
		low = hyb_pos_at(check->ix->desc, check->fresh_key.data,
						 check->fresh_key.len, check->fresh_tid);
	source->version = check->version->version;
	source->next = 0;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (hyb_run_fetch(check->ix, check->version, source->run, &fetch,
						  &source->batch))
			break;

		/* within a unit only a standby's replay can change the version */
		if (++tries > FETCH_TRIES ||
			!hyb_version_is_current(check->ix, check->version))
			hyb_check_fail(check, HYB_METAPAGE_BLKNO,
						   "%s does not answer for version " UINT64_FORMAT ".",
						   source->run == HYB_RUN_DYNAMIC ?
						   "The dynamic stage" : "A static level",
						   check->version->version);
	}
	if (source->batch.nitems == 0 && !source->batch.complete)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO, "%s returned nothing, and not everything.",
					   source->run == HYB_RUN_DYNAMIC ?
					   "The dynamic stage" : "A static level");
}

/* Has the source another entry?  In another version they may have moved. */
static bool
source_ready(HybCheck *check, HybCheckSource *source)
{
	MemoryContext old_context;

	if (source->version == check->version->version)
	{
		if (source->next < source->batch.nitems)
			return true;
		if (source->batch.complete)
			return false;
	}
	old_context = MemoryContextSwitchTo(check->context);
	fetch_more(check, source);
	MemoryContextSwitchTo(old_context);
	return source->batch.nitems > 0;
}

/* Order of the next entries of two sources, which must not be the same one. */
static int
compare_sources(HybCheck *check, const HybCheckSource *a,
				const HybCheckSource *b)
{
	ItemPointerData tid = source_item(a)->tid;
	int			c = hyb_key_compare(check->ix->desc, source_bytes(a),
									source_item(a)->keylen, source_bytes(b),
									source_item(b)->keylen);

	if (c == 0)
	{
		ItemPointerData other = source_item(b)->tid;

		c = ItemPointerCompare(&tid, &other);
	}
	if (c == 0)
		hyb_check_fail(check, source_item(b)->ref.block,
					   "The entry at position %u, for heap TID (%u,%u), is in another run of the index as well.",
					   source_item(b)->ref.offset,
					   ItemPointerGetBlockNumberNoCheck(&tid),
					   ItemPointerGetOffsetNumberNoCheck(&tid));
	return c;
}

void
hyb_check_fresh_begin_unit(HybCheck *check)
{
	for (int i = 0; i < HYB_CHECK_SOURCES; i++)
		check->sources[i].version = 0;
	check->fresh = NULL;
}

const HybDynItem *
hyb_check_fresh_peek(HybCheck *check)
{
	if (check->fresh != NULL)
	{
		/* a unit is of one version, and begins without an entry at hand */
		Assert(check->fresh->version == check->version->version);
		return source_item(check->fresh);
	}
	for (int i = 0; i < check->version->nlevels; i++)
	{
		HybCheckSource *source = &check->sources[i];

		source->run = i == 0 ? HYB_RUN_DYNAMIC : i;
		if (source_ready(check, source) &&
			(check->fresh == NULL ||
			 compare_sources(check, source, check->fresh) < 0))
			check->fresh = source;
	}
	return check->fresh != NULL ? source_item(check->fresh) : NULL;
}

void
hyb_check_fresh_next(HybCheck *check)
{
	HybCheckSource *source = check->fresh;
	const HybDynItem *item = source_item(source);
	const uint8 *entry = source_bytes(source);
	ItemPointerData tid = item->tid;

	if (check->fresh_key.len > 0)
	{
		int			c = hyb_key_compare(check->ix->desc, check->fresh_key.data,
										check->fresh_key.len,
										entry, item->keylen);

		if (c > 0)
			hyb_check_fail(check, item->ref.block,
						   "The entry at offset %u is out of order in %s.",
						   item->ref.offset,
						   source->run == HYB_RUN_DYNAMIC ?
						   "the dynamic stage's tree" : "its level");
		if (c == 0 && ItemPointerCompare(&check->fresh_tid, &tid) >= 0)
			hyb_check_fail(check, item->ref.block,
						   "The entry at offset %u has the key and heap TID (%u,%u) of another one.",
						   item->ref.offset,
						   ItemPointerGetBlockNumberNoCheck(&tid),
						   ItemPointerGetOffsetNumberNoCheck(&tid));
	}
	if (source->run == HYB_RUN_DYNAMIC)
		hyb_check_against_log(check, item);
	hyb_check_live(check, entry, item->len, &tid);

	check->fresh_key.len = 0;
	hyb_buf_append(&check->fresh_key, entry, item->keylen);
	check->fresh_tid = tid;
	source->next++;
	check->fresh = NULL;
}
