/*
 * build_dictionary.c
 *		Learning an index's dictionaries when it is created, and showing them:
 *		hybrid_dictionary_info.
 */
#include "compat.h"

#include "access/tableam.h"
#include "am/build_dictionary.h"
#include "am/sql/inspect.h"
#include "catalog/index.h"
#include "dynamic/delta.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "page/dictionary.h"
#include "page/meta.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(hybrid_dictionary_info);

/* Blocks that keys to learn from come from, at most */
#define SAMPLE_BLOCKS	512

/* Steps through the sampled blocks: a prime, so that all of them are met */
#define SAMPLE_STEP		521

/* Recent entries that hybrid_dictionary_info decodes, at most */
#define RECENT_ENTRIES	100000

/* ---- learning ---- */

typedef struct SampleState
{
	const HybKeyDesc *desc;
	HybEncodedKeys *keys;		/* by column */
	uint32		wanted;			/* rows of this block */
	uint32		rows;			/* of all blocks */
	uint64		bytes;
	MemoryContext context;		/* of the keys */
} SampleState;

static void
sample_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				bool alive, void *arg)
{
	SampleState *state = arg;
	MemoryContext old;

	if (state->wanted == 0 || state->bytes >= HYB_ENCODED_SAMPLE_BYTES)
		return;
	state->wanted--;
	state->rows++;
	old = MemoryContextSwitchTo(state->context);
	for (int i = 0; i < state->desc->nkeys; i++)
	{
		HybEncodedKeys *keys = &state->keys[i];
		uint32		before = keys->n > 0 ? keys->off[keys->n] : 0;

		if (!hyb_column_is_encoded(&state->desc->cols[i]) || isnull[i])
			continue;
		hyb_encoded_add_key(keys, &state->desc->cols[i], values[i]);
		state->bytes += keys->off[keys->n] - before;
	}
	MemoryContextSwitchTo(old);
}

/*
 * Some rows of blocks all over the table.  They are met in an order that goes
 * back and forth, so that long keys, which end the sample early, do not
 * confine it to the table's beginning.
 */
static void
sample_table(const HybKeyDesc *desc, Relation heap, Relation index,
			 struct IndexInfo *info, HybEncodedKeys *keys)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	uint32		n = Min(nblocks, SAMPLE_BLOCKS);
	SampleState state;

	memset(&state, 0, sizeof(state));
	state.desc = desc;
	state.keys = keys;
	state.context = CurrentMemoryContext;
	for (uint32 i = 0; i < n && state.bytes < HYB_ENCODED_SAMPLE_BYTES; i++)
	{
		uint32		place = (uint32) ((uint64) i * SAMPLE_STEP % n);
		BlockNumber block = (BlockNumber) ((uint64) place * nblocks / n);

		CHECK_FOR_INTERRUPTS();
		state.wanted = HYB_ENCODED_SAMPLE_KEYS / n;
		(void) table_index_build_range_scan(heap, index, info, false, false,
											false, block, 1,
											sample_callback, &state, NULL);
	}
}

static double
rate(uint64 plain, uint64 stored)
{
	return stored > 0 ? (double) plain / (double) stored : 1.0;
}

static void
report(const HybIndex *ix)
{
	TupleDesc	tupdesc = RelationGetDescr(ix->rel);

	if (ix->dictionaries == NULL)
	{
		ereport(NOTICE,
				(errmsg("index \"%s\" stores its keys as they are until it has enough of them to learn from",
						RelationGetRelationName(ix->rel)),
				 errhint("A merge encodes them later.")));
		return;
	}
	for (int i = 0; i < ix->dictionaries->n; i++)
	{
		const HybDictionary *d = &ix->dictionaries->columns[i];

		ereport(NOTICE,
				(errmsg("column \"%s\" of index \"%s\" has compression rate %.2f on a sample of " UINT64_FORMAT " keys",
						NameStr(TupleDescAttr(tupdesc, d->column)->attname),
						RelationGetRelationName(ix->rel),
						rate(d->sample_bytes, d->sample_stored),
						d->sample_keys),
				 errdetail("Scheme %s, %u dictionary entries, " UINT64_FORMAT " bytes.",
						   hyb_hope_scheme_name(hyb_hope_scheme(d->hope)),
						   hyb_hope_entries(d->hope), d->stored_size),
				 d->learned ? 0 :
				 errhint("The column has too few values to learn from.  REINDEX the index when it has more.")));
	}
}

BlockNumber
hyb_build_dictionary(HybIndex *ix, Relation heap, struct IndexInfo *info)
{
	MemoryContext context;
	MemoryContext old;
	HybEncodedKeys *keys;
	HybBuf		bytes = {0};
	BlockNumber first = InvalidBlockNumber;

	if (!ix->desc->has_encoded)
		return InvalidBlockNumber;

	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid dictionary",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	keys = palloc0(ix->desc->nkeys * sizeof(HybEncodedKeys));
	sample_table(ix->desc, heap, ix->rel, info, keys);
	if (hyb_encoded_learn(ix->desc, keys, &bytes))
		first = hyb_dictionary_write(ix, bytes.data, bytes.len);
	MemoryContextSwitchTo(old);
	if (BlockNumberIsValid(first))
		hyb_dictionary_attach(ix, first);
	report(ix);
	MemoryContextDelete(context);
	return first;
}

/* ---- hybrid_dictionary_info ---- */

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
count_recent(HybIndex *ix, HybRecent *recent)
{
	HybVersion *version = palloc(sizeof(HybVersion));
	char	   *copy = palloc(BLCKSZ);
	HybMetaPage *meta;
	Buffer		buf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	uint64		entries = 0;

	hyb_version_from_meta(meta, version);
	memcpy(recent, meta->recent, sizeof(meta->recent));
	UnlockReleaseBuffer(buf);
	for (int which = 0; which < 2; which++)
	{
		HybDeltaWalk walk;

		hyb_delta_walk_start(&walk, ix, which == 0 ? &version->active :
							 &version->frozen, which != 0);
		while (entries < RECENT_ENTRIES && hyb_delta_walk_next(&walk) &&
			   hyb_delta_walk_copy(&walk, copy))
		{
			count_recent_page(ix, (Page) copy, walk.block, recent);
			entries += hyb_page_opaque((Page) copy)->count;
		}
	}
	pfree(copy);
	pfree(version);
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
		count_recent(ix, recent);
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
			values[7] = Float8GetDatum(rate(d->sample_bytes, d->sample_stored));
		}
		else
		{
			values[5] = BoolGetDatum(false);
			nulls[2] = nulls[3] = nulls[4] = nulls[6] = nulls[7] = true;
		}
		values[8] = Int64GetDatum((int64) recent[i].keys);
		nulls[9] = recent[i].keys == 0;
		if (!nulls[9])
			values[9] = Float8GetDatum(rate(recent[i].plain, recent[i].stored));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	hyb_inspect_close(&inspected);
	return (Datum) 0;
}
