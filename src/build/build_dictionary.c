/*
 * build_dictionary.c
 *		Learning an index's dictionaries when it is created.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "build/build_dictionary.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "store/dictionary.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Blocks that keys to learn from come from, at most */
#define SAMPLE_BLOCKS	512

/* Steps through the sampled blocks: a prime, so that all of them are met */
#define SAMPLE_BLOCK_STEP		521

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
		uint32		place = (uint32) ((uint64) i * SAMPLE_BLOCK_STEP % n);
		BlockNumber block = (BlockNumber) ((uint64) place * nblocks / n);

		CHECK_FOR_INTERRUPTS();
		state.wanted = HYB_ENCODED_SAMPLE_KEYS / n;
		(void) table_index_build_range_scan(heap, index, info, false, false,
											false, block, 1,
											sample_callback, &state, NULL);
	}
}

static void
report_dictionary(const HybIndex *ix)
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
						hyb_dictionary_rate(d->sample_bytes, d->sample_stored),
						d->sample_keys),
				 errdetail("Scheme %s, %u dictionary entries, " UINT64_FORMAT " bytes.",
						   hyb_encoded_scheme(&ix->desc->cols[d->column]),
						   d->hope == NULL ? 0 : hyb_hope_entries(d->hope), d->stored_size),
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
	report_dictionary(ix);
	MemoryContextDelete(context);
	return first;
}
