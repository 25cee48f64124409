/*
 * own_trees.c
 *		A backend's own trees of an index, and the form in which it reads its log.
 *
 * A backend tries the forms of HybReadForm in order.  If memory for one is lacking,
 * hyb_read_lacks has it left out for a time.  Shared trees are tried before that if
 * another generation is active.  Nothing else changes these times.  While own trees
 * are left out there are none.  Reads that may not use shared trees begin with own
 * ones, and change nothing of when shared ones are tried.
 *
 * Synced trees have all entries but those that a slot tells of, which has been the
 * index's since before their lanes were followed.  So they remember its address
 * and serial.  These are compared with the cache's when the trees are opened, and
 * when they were caught up.  A slot can change in these ways only:
 *
 *	- It goes to another index, or to none.  Its serial is counted up then, and
 *	  does not repeat.  So if it is the same, the slot was the index's all the time.
 *	- The index gets a slot, be it the same again: that has another serial.
 *	- One comes and goes while the trees are not opened.  They know of none before
 *	  and after: without a slot, readers look at the tail pages.
 *	- The cache goes: its trees go with it.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/own_trees.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* How long shared trees are not tried, and a backend's own. */
#define SHARED_WAIT_MS		1000
#define OWN_WAIT_MS			10000

/* Indexes that a backend has trees of its own for, at most. */
#define OWNERS_MAX			64

/* ---- trees ---- */

/* Those that there are; the newest come last. */
static dlist_head owners = DLIST_STATIC_INIT(owners);
static int	nowners = 0;

static bool
has_trees(const void *piece)
{
	return ((const HybOwnTrees *) piece)->stage != NULL;
}

HybCachePiece hyb_own_trees_piece = {
	.size = sizeof(HybOwnTrees),
	.release = hyb_own_trees_drop,
	.wanted = has_trees
};

/* An error ends the use with the transaction or subtransaction that it aborts. */
bool
hyb_own_trees_busy(const HybOwnTrees *own)
{
	return own->subuser != InvalidSubTransactionId &&
		own->user == HYB_LOCAL_XID && SubTransactionIsActive(own->subuser);
}

void
hyb_own_trees_begin(HybOwnTrees *own)
{
	Assert(own->stage != NULL && !hyb_own_trees_busy(own));
	own->user = HYB_LOCAL_XID;
	own->subuser = GetCurrentSubTransactionId();
	Assert(hyb_own_trees_busy(own));
}

void
hyb_own_trees_end(HybOwnTrees *own)
{
	Assert(hyb_own_trees_busy(own));
	own->subuser = InvalidSubTransactionId;
}

static inline void
own_trees_assert_valid(const HybOwnTrees *own)
{
	/* both or neither */
	Assert((own->stage == NULL) == (own->arena == NULL));
	Assert(own->stage != NULL || !hyb_own_trees_busy(own));
	Assert((own->slot == NULL) == (own->slot_serial == 0));
}

void
hyb_own_trees_drop(void *piece)
{
	HybOwnTrees *own = piece;

	own_trees_assert_valid(own);
	if (own->arena == NULL)
		return;
	Assert(!hyb_own_trees_busy(own) && nowners > 0);
	hyb_arena_drop(own->arena);
	own->arena = NULL;
	own->stage = NULL;
	dlist_delete(&own->node);
	nowners--;
}

void
hyb_own_trees_make(HybCache *cache)
{
	HybOwnTrees *own = hyb_own_trees(cache);
	uint64		budget = (uint64) hyb_dynamic_memory_kb * 1024;
	HybArena   *arena;
	dlist_mutable_iter iter;

	/* trees of other indexes go, while there is too much of them all */
	dlist_foreach_modify(iter, &owners)
	{
		HybOwnTrees *other = dlist_container(HybOwnTrees, node, iter.cur);

		if (hyb_arena_private() <= budget && nowners < OWNERS_MAX)
			break;
		if (other == own || hyb_own_trees_busy(other))
			continue;
		hyb_own_trees_drop(other);
		hyb_cache_let_go(other->cache);
	}
	if (own->arena != NULL)
		return;
	if (nowners == OWNERS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("comparison functions use too many hybrid indexes at a time")));
	arena = hyb_arena_create(TopMemoryContext);
	own->stage = MemoryContextAllocZero(arena->context, sizeof(HybStage));
	own->arena = arena;
	own->cache = cache;
	dlist_push_tail(&owners, &own->node);
	nowners++;
	own_trees_assert_valid(own);
}

bool
hyb_own_trees_find_slot(HybOwnTrees *own)
{
	const HybCache *cache = own->cache;

	(void) hyb_slot_find(own->cache);
	if (own->slot == cache->shared && own->slot_serial == cache->shared_serial)
		return true;
	own->slot = cache->shared;
	own->slot_serial = cache->shared_serial;
	hyb_tree_happens(own->stage, HYB_ACTIVE, HYB_TREE_SLOT_LOST);
	return false;
}

/* ---- forms ---- */

HybReadForm
hyb_read_form(const HybOwnTrees *own, HybReadForm first, uint64 generation)
{
	if (first == HYB_READ_SHARED &&
		(own->generation != generation ||
		 GetCurrentStatementStartTimestamp() >= own->until[HYB_READ_SHARED]))
		return HYB_READ_SHARED;
	return GetCurrentStatementStartTimestamp() >= own->until[HYB_READ_OWN] ?
		HYB_READ_OWN : HYB_READ_PAGES;
}

HybReadForm
hyb_read_lacks(HybOwnTrees *own, HybReadForm form, uint64 generation)
{
	int			ms = form == HYB_READ_SHARED ? SHARED_WAIT_MS : OWN_WAIT_MS;

	Assert(form == hyb_read_form(own, form, generation) && form != HYB_READ_PAGES);
	own->until[form] = TimestampTzPlusMilliseconds(GetCurrentStatementStartTimestamp(), ms);
	if (form == HYB_READ_SHARED)
		own->generation = generation;
	else
		hyb_own_trees_drop(own);
	return hyb_read_form(own, form, generation);
}
