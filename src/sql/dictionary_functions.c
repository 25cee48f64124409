/*
 * dictionary_functions.c
 *		hybrid_dictionary_info: the dictionaries of an index.
 */
#include "base/compat.h"

#include "build/build_dictionary.h"
#include "funcapi.h"
#include "log/delta.h"
#include "sql/inspect.h"
#include "store/handle.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(hybrid_dictionary_info);

/* Recent entries that are decoded, at most */
#define RECENT_ENTRIES	100000

/*
 * Add the entries of a page of the delta log, by column.
 */
static void
count_recent_page(HybIndex *ix, Page page, BlockNumber block,
				  HybRecent *recent)
{
	HybEntry	entry = {.block = block};
	HybValue	vals[INDEX_MAX_KEYS];

	while (hyb_delta_next(ix->rel, page, &entry))
	{
		if (hyb_key_split(ix->desc, entry.bytes, entry.len, ix->desc->nkeys,
						  vals) == 0)
			hyb_corrupted(ix->rel, block, "An entry of a delta page is malformed.");
		hyb_recent_add(ix->desc, vals, recent);
	}
}

/*
 * A sample of what the last merge moved, and what was inserted and not merged
 * yet, at least a part of it: pages that a merge takes away meanwhile are left
 * out.
 */
static void
sample_recent(HybIndex *ix, HybRecent *recent)
{
	char	   *copy = palloc(BLCKSZ);
	HybMetaPage meta;
	uint64		entries = 0;

	hyb_meta_copy(ix, &meta);
	memcpy(recent, meta.recent, sizeof(meta.recent));
	for (int which = 0; which < 2; which++)
	{
		HybDeltaWalk walk;

		hyb_delta_walk_start(&walk, ix, which == 0 ? &meta.active :
							 &meta.frozen, which != 0);
		while (entries < RECENT_ENTRIES && hyb_delta_walk_next(&walk) &&
			   hyb_delta_walk_copy(&walk, copy))
		{
			count_recent_page(ix, (Page) copy, walk.block, recent);
			entries += hyb_page_opaque((Page) copy)->count;
		}
	}
	pfree(copy);
}

/*
 * hybrid_dictionary_info(index regclass) RETURNS SETOF record
 */
Datum
hybrid_dictionary_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HybInspected inspected;
	HybIndex   *ix;
	HybRecent	recent[INDEX_MAX_KEYS];

	InitMaterializedSRF(fcinfo, 0);
	hyb_inspect_open(PG_GETARG_OID(0), AccessShareLock, HYB_ACCESS_READ,
					 &inspected);
	ix = hyb_index_create_handle(inspected.index);
	if (ix->desc->has_encoded)
		sample_recent(ix, recent);
	for (int i = 0; i < ix->desc->nkeys; i++)
	{
		const HybColumn *col = &ix->desc->cols[i];
		const HybDictionary *d = col->dictionary;
		Datum		values[10] = {0};
		bool		nulls[10] = {0};

		if (!hyb_column_is_encoded(col))
			continue;
		values[0] = NameGetDatum(&TupleDescAttr(RelationGetDescr(ix->rel), i)->attname);
		values[1] = CStringGetTextDatum(hyb_hope_scheme_name(hyb_encoded_scheme(col)));
		if (d != NULL)
		{
			values[2] = Int64GetDatum(hyb_hope_entries(d->hope));
			values[3] = Int64GetDatum((int64) d->stored_size);
			values[4] = Int64GetDatum((int64) hyb_hope_memory(d->hope));
			values[5] = BoolGetDatum(d->learned);
			values[6] = Int64GetDatum((int64) d->sample_keys);
			values[7] = Float8GetDatum(hyb_dictionary_rate(d->sample_bytes, d->sample_stored));
		}
		else
		{
			values[5] = BoolGetDatum(false);
			nulls[2] = nulls[3] = nulls[4] = nulls[6] = nulls[7] = true;
		}
		values[8] = Int64GetDatum((int64) recent[i].keys);
		nulls[9] = recent[i].keys == 0;
		if (!nulls[9])
			values[9] = Float8GetDatum(hyb_dictionary_rate(recent[i].plain, recent[i].stored));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	hyb_inspect_close(&inspected);
	return (Datum) 0;
}
