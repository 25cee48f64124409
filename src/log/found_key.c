/*
 * found_key.c
 *		What a look-up has found, for an insertion of the same key.
 *
 * It is of use within a subtransaction only.  That has table and index locked: meanwhile
 * VACUUM does not cut blocks off that entries lead to.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/found_key.h"
#include "shared/index_cache.h"
#include "storage/proc.h"

/* Longer keys are not kept. */
#define MOST_BYTES		48

/* Look-ups in an index that note what they find, after an insertion has asked. */
#define NOTING			32

/* The last look-up. */
static struct
{
	LocalTransactionId xact;	/* 0: nothing is kept */
	SubTransactionId subtransaction;
	uint64		incarnation;
	const HybUniquePartition *partition;	/* of its ticket, as what follows */
	uint32		hash;
	uint64		seen;
	uint32		keylen;
	int			n;				/* entries found; -1: not known yet */
	ItemPointerData tids[HYB_FOUND_ENTRIES];
	uint8		key[MOST_BYTES];
}			found;

void
hyb_found_key_want(HybIndex *ix)
{
	hyb_cache_get(ix)->noting = NOTING;
}

bool
hyb_found_key_begin(HybIndex *ix, const HybBuf *key, uint64 hash)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybUniqueTicket ticket;

	found.xact = InvalidLocalTransactionId;
	if (likely(cache->noting == 0))
		return false;
	cache->noting--;
	if (key->len > MOST_BYTES)
		return false;
	hyb_unique_begin(ix, hash, &ticket);
	/* without a partition, a lock keeps others away only during an insertion */
	if (ticket.partition == NULL)
		return false;
	hyb_unique_note(&ticket);
	found.partition = ticket.partition;
	found.hash = ticket.hash;
	found.seen = ticket.seen;
	found.incarnation = ix->incarnation;
	found.keylen = key->len;
	memcpy(found.key, key->data, key->len);
	found.n = -1;
	return true;
}

ItemPointerData *
hyb_found_key_keep(int n)
{
	Assert(n >= 0 && n <= HYB_FOUND_ENTRIES && found.n == -1);
	found.n = n;
	found.xact = HYB_LOCAL_XID;
	found.subtransaction = GetCurrentSubTransactionId();
	return found.tids;
}

int
hyb_found_key_take(HybIndex *ix, const uint8 *key, uint32 keylen,
				   HybUniqueTicket *ticket, ItemPointerData *tids)
{
	if (found.xact == InvalidLocalTransactionId || found.xact != HYB_LOCAL_XID ||
		found.subtransaction != GetCurrentSubTransactionId() ||
		found.incarnation != ix->incarnation ||
		found.partition != ticket->partition || found.hash != ticket->hash ||
		found.keylen != keylen || memcmp(found.key, key, keylen) != 0)
		return -1;
	Assert(found.n >= 0 && ticket->partition != NULL);
	hyb_found_key_want(ix);
	ticket->seen = found.seen;
	memcpy(tids, found.tids, found.n * sizeof(ItemPointerData));
	return found.n;
}
