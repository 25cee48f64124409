/*
 * scan_chains.c
 *		Index scans of hybrid_hot: entries lead to HOT chains, and may be stale.
 *
 * A row comes once, by the entry whose key is that of the version that the snapshot
 * sees.  Several runs may have that entry: the copies are neighbours, and the scan
 * returns the first.  The executor goes from the root to the version by itself.
 *
 * A scan of one whole key need not look: the executor compares the version with the key
 * (xs_recheck), and no other entry of the chain has it.  A partial index has to, since
 * the planner takes the predicate for granted.
 *
 * A row that the scan's own statement has changed meanwhile has a command number that
 * the snapshot does not see, whatever entries it has got.
 *
 * With another snapshot a chain comes if any of its members has the key, or if that is
 * not known without calling functions, and may come twice.
 *
 * In a serializable transaction heap_hot_search_buffer locks what it sees and notes
 * conflicts with what it does not see.  So it is asked only about chains with a member
 * that has the key.  These are looked for after the batch's entries were locked: a
 * transaction that adds the key to a chain later meets the lock.
 */
#include "base/compat.h"

#include "base/row_reader.h"
#include "chain/chain.h"
#include "scan/scan.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

typedef struct HybScanChains
{
	HybChainReader *reader;
	HybRowReader rows;			/* reads by the scan's own xs_heapfetch, so
								 * the executor finds the page pinned */
	bool		have;			/* the last entry is known: */
	ItemPointerData tid;
	HybBuf		key;
	HybBuf		next_key;		/* scratch */
} HybScanChains;

static HybScanChains *
chains_of(HybScan *so)
{
	HybScanChains *chains = so->chains;

	if (chains == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(so->context);

		chains = palloc0(sizeof(HybScanChains));
		hyb_buf_reserve(&chains->key, 64);
		hyb_buf_reserve(&chains->next_key, 64);
		chains->reader = hyb_chain_reader_create(so->ix, so->scan->heapRelation);
		chains->rows.slot = table_slot_create(so->scan->heapRelation, NULL);
		so->chains = chains;
		MemoryContextSwitchTo(old);
	}
	return chains;
}

void
hyb_chains_rescan(HybScan *so)
{
	if (so->chains == NULL)
		return;
	hyb_chain_reader_release(so->chains->reader);
	ExecClearTuple(so->chains->rows.slot);
	so->chains->have = false;
}

void
hyb_chains_end(HybScan *so)
{
	if (so->chains == NULL)
		return;
	hyb_chain_reader_free(so->chains->reader);
	ExecDropSingleTupleTableSlot(so->chains->rows.slot);
	so->chains = NULL;
}

/* The key of the scan's current item, into chains->next_key.  Called in so->context. */
static void
read_key(HybScan *so, HybScanChains *chains)
{
	HybScanBatch *batch = so->batch;
	HybBuf	   *key = &chains->next_key;

	key->len = 0;
	if (hyb_keys_are_one(&so->keys))
		hyb_buf_append(key, so->keys.start.key, so->keys.start.len);
	else
		hyb_key_join(so->ix->desc,
					 hyb_batch_values(so, batch, &batch->items[batch->current]),
					 so->ix->desc->nkeys, key);
}

/* Takes the current entry for the last one.  Returns false if it was that already. */
static bool
is_another_entry(HybScan *so, HybScanChains *chains)
{
	HybBuf		key;

	read_key(so, chains);
	if (chains->have && ItemPointerEquals(&so->scan->xs_heaptid, &chains->tid) &&
		hyb_key_compare(so->ix->desc, chains->key.data, chains->key.len,
						chains->next_key.data, chains->next_key.len) == 0)
		return false;
	key = chains->key;
	chains->key = chains->next_key;
	chains->next_key = key;
	chains->tid = so->scan->xs_heaptid;
	chains->have = true;
	return true;
}

/*
 * Does the last entry lead to the row that the snapshot sees?  *dead: it leads to no row,
 * for any snapshot.
 */
static bool
leads_to_visible(HybScan *so, HybScanChains *chains, bool *dead)
{
	chains->rows.fetch = so->scan->xs_heapfetch;
	return hyb_row_read(&chains->rows, &chains->tid, so->scan->xs_snapshot, dead) &&
		hyb_chain_row_has_key(chains->reader, chains->rows.slot,
							  chains->key.data, chains->key.len);
}

/* Is the last entry's row to be returned?  *recheck: the executor compares it. */
static bool
leads_to_row(HybScan *so, HybScanChains *chains, bool *recheck, bool *dead)
{
	bool		plain = so->ix->desc->plain;
	bool		mvcc = IsMVCCSnapshot(so->scan->xs_snapshot);

	if (plain && (!mvcc || so->mode.locks) &&
		!hyb_chain_has_key(chains->reader, &chains->tid, chains->key.data, chains->key.len))
		return false;
	/* the planner, which looks for the ends of a column, takes stale values */
	*recheck = mvcc ? plain && hyb_keys_are_one(&so->keys) : !so->scan->xs_want_itup;
	return !mvcc || *recheck || leads_to_visible(so, chains, dead);
}

bool
hyb_chains_take(HybScan *so)
{
	MemoryContext old = MemoryContextSwitchTo(so->context);
	HybScanChains *chains = chains_of(so);
	bool		another = is_another_entry(so, chains);
	bool		dead = false;
	bool		returned = another && leads_to_row(so, chains, &so->scan->xs_recheck, &dead);

	if (!returned)
		so->scan->kill_prior_tuple = dead && !so->scan->xactStartedInRecovery;
	so->counts->stale += another && !returned;
	MemoryContextSwitchTo(old);
	return returned;
}
