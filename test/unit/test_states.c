/*
 * test_states.c
 *		States of the dynamic stage's trees: each pair of state and event, random
 *		walks, and what is decided by the clock.  The same for the form in which a
 *		backend reads a log.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/own_trees.h"
#include "storage/proc.h"
#include "unit.h"
#include "utils/timestamp.h"

#define STEPS		200000

static TimestampTz now = 1000;

TimestampTz
GetCurrentTimestamp(void)
{
	return now;
}

TimestampTz
GetCurrentStatementStartTimestamp(void)
{
	return now;
}

/* ---- of the server, index_cache.c and settings.c ---- */

static PGPROC process;
PGPROC	   *MyProc = &process;

bool
SubTransactionIsActive(SubTransactionId subxid)
{
	return subxid == 1;
}

int			hyb_dynamic_memory_kb = 1024;

bool
hyb_slot_find(HybCache *cache)
{
	return cache->shared != NULL;
}

void
hyb_cache_let_go(HybCache *cache)
{
	CHECK(cache->key.incarnation != 0, "a cache of an index");
}

/* ---- each pair ---- */

/*
 * By the first letter, IMPURE by "I": what follows each event, in the order of
 * HybTreeEvent; "." cannot happen.
 */
static const char states[] = "EUYNI";	/* Y: SYNCED */
static const char *const expected[HYB_TREE_STATES] = {
	"EEUYEEN..",
	"EEUYUUN.I",
	"EEYYUUN.I",
	"ENNY.UNUI",
	"EI...II.."
};

static void
check_pairs(void)
{
	bool		reached[HYB_TREE_STATES] = {[HYB_TREE_EMPTY] = true};

	for (int from = 0; from < HYB_TREE_STATES; from++)
	{
		CHECK(strlen(expected[from]) == HYB_TREE_EVENTS, "state %c", states[from]);
		for (int event = 0; event < HYB_TREE_EVENTS; event++)
		{
			HybTreeState to = HYB_TREE_EMPTY;
			bool		happens = hyb_tree_state_next(from, event, &to);

			CHECK((happens ? states[to] : '.') == expected[from][event],
				  "state %c, event %d", states[from], event);
			if (happens)
				reached[to] = true;
		}
	}
	for (int state = 0; state < HYB_TREE_STATES; state++)
		CHECK(reached[state], "state %c", states[state]);
}

/* ---- random walks ---- */

/* What a state promises is compared with what has happened. */
static void
walk_randomly(void)
{
	HybTreeState state = HYB_TREE_EMPTY;
	bool		entered = false;	/* the tree may have entries */
	bool		followed = false;	/* to the ends, and what came since is told */
	bool		alone = false;	/* backends have trees of their own */

	for (int i = 0; i < STEPS; i++)
	{
		HybTreeEvent event = unit_below(HYB_TREE_EVENTS);

		if (!hyb_tree_state_next(state, event, &state))
			continue;
		switch (event)
		{
			case HYB_TREE_BEGINS:
				entered = followed = alone = false;
				break;
			case HYB_TREE_FREED:
				entered = followed = false;
				break;
			case HYB_TREE_FREEZES:
				followed = false;
				alone &= state != HYB_TREE_UNFINISHED;
				break;
			case HYB_TREE_ENTER:
				entered = true;
				break;
			case HYB_TREE_FOLLOWED:
				followed = true;
				alone = false;
				break;
			case HYB_TREE_HAS_ROOM:
				alone = false;
				break;
			case HYB_TREE_SLOT_LOST:
				followed = false;
				break;
			case HYB_TREE_LACKS_ROOM:
			case HYB_TREE_MEETS_IMPURE:
				entered = followed = false;
				alone = true;
				break;
		}
		CHECK((state == HYB_TREE_SYNCED) == followed, "step %d, state %c", i, states[state]);
		CHECK((state == HYB_TREE_NO_ROOM || state == HYB_TREE_IMPURE) == alone,
			  "step %d, state %c", i, states[state]);
		CHECK(!entered || state != HYB_TREE_EMPTY, "step %d, state %c", i, states[state]);
	}
}

/* ---- the clock ---- */

static void
check_room(void)
{
	HybStage	stage = {.trees[HYB_ACTIVE].generation = 5};

	hyb_stage_note_no_room(&stage, 4, 800);
	CHECK(!hyb_stage_lacks_room(&stage, 5), "another generation");
	hyb_stage_note_no_room(&stage, 5, 800);
	CHECK(hyb_stage_lacks_room(&stage, 5) && !hyb_stage_lacks_room(&stage, 4), "noted");
	CHECK(!hyb_stage_claim_retry(&stage, 10000), "too early");
	now += 1000000;
	CHECK(!hyb_stage_claim_retry(&stage, 900), "too little room");
	CHECK(hyb_stage_claim_retry(&stage, 901), "room");
	CHECK(!hyb_stage_claim_retry(&stage, 901), "one at a time");
	hyb_tree_happens(&stage, HYB_ACTIVE, HYB_TREE_ENTER);
	CHECK(hyb_stage_lacks_room(&stage, 5), "not yet");
	hyb_tree_happens(&stage, HYB_ACTIVE, HYB_TREE_FOLLOWED);
	CHECK(hyb_tree_is_synced(&stage, HYB_ACTIVE) && !hyb_stage_lacks_room(&stage, 5), "fits");

	/* an evicted tree has no generation */
	memset(&stage, 0, sizeof(stage));
	hyb_stage_note_no_room(&stage, 6, 800);
	CHECK(hyb_stage_lacks_room(&stage, 6), "evicted");
}

/* ---- forms ---- */

#define SECOND		INT64CONST(1000000)

static void
check_forms(void)
{
	HybOwnTrees own = {0};

	CHECK(hyb_read_form(&own, HYB_READ_SHARED, 5) == HYB_READ_SHARED, "first");
	CHECK(hyb_read_form(&own, HYB_READ_OWN, 5) == HYB_READ_OWN, "may not use shared trees");
	CHECK(hyb_read_lacks(&own, HYB_READ_SHARED, 5) == HYB_READ_OWN, "next");
	now += SECOND - 1;
	CHECK(hyb_read_form(&own, HYB_READ_SHARED, 5) == HYB_READ_OWN, "too early");
	CHECK(hyb_read_form(&own, HYB_READ_SHARED, 6) == HYB_READ_SHARED, "another generation");
	CHECK(hyb_read_lacks(&own, HYB_READ_OWN, 5) == HYB_READ_PAGES, "last");
	now++;
	for (int second = 1; second < 10; second++)
	{
		CHECK(hyb_read_form(&own, HYB_READ_SHARED, 5) == HYB_READ_SHARED, "second %d", second);
		CHECK(hyb_read_lacks(&own, HYB_READ_SHARED, 5) == HYB_READ_PAGES, "second %d", second);
		CHECK(hyb_read_form(&own, HYB_READ_OWN, 5) == HYB_READ_PAGES, "second %d", second);
		now += SECOND;
	}
	CHECK(hyb_read_lacks(&own, HYB_READ_SHARED, 5) == HYB_READ_PAGES, "too early by a moment");
	now += SECOND - 1;
	CHECK(hyb_read_form(&own, HYB_READ_SHARED, 5) == HYB_READ_OWN, "ten seconds");
	now++;
	CHECK(hyb_read_form(&own, HYB_READ_SHARED, 5) == HYB_READ_SHARED, "both again");
}

/* A backend tries the first form that it may use and that has not lacked memory lately. */
static void
walk_forms(void)
{
	HybOwnTrees own = {0};
	uint64		generation = 1;
	uint64		lacked_in = 0;
	TimestampTz lacked[HYB_READ_PAGES] = {-10 * SECOND, -10 * SECOND};
	int			reached[HYB_READ_PAGES + 1] = {0};

	for (int i = 0; i < STEPS; i++)
	{
		HybReadForm first = unit_below(4) == 0 ? HYB_READ_OWN : HYB_READ_SHARED;
		HybReadForm form = first;

		now += unit_below(4) == 0 ? unit_below(3 * SECOND) : 0;
		generation += unit_below(16) == 0;
		if (form == HYB_READ_SHARED && lacked_in == generation &&
			now - lacked[HYB_READ_SHARED] < SECOND)
			form = HYB_READ_OWN;
		if (form == HYB_READ_OWN && now - lacked[HYB_READ_OWN] < 10 * SECOND)
			form = HYB_READ_PAGES;
		CHECK(hyb_read_form(&own, first, generation) == form, "step %d", i);
		reached[form]++;
		if (form == HYB_READ_PAGES || unit_below(4) == 0)
			continue;
		lacked[form] = now;
		if (form == HYB_READ_SHARED)
			lacked_in = generation;
		CHECK(hyb_read_lacks(&own, form, generation) > form, "step %d", i);
	}
	for (int form = 0; form <= HYB_READ_PAGES; form++)
		CHECK(reached[form] > STEPS / 100, "form %d: %d times", form, reached[form]);
}

/* ---- the slot that tells a backend's own trees of appends ---- */

static void
check_slots(void)
{
	static struct
	{
		HybCache	cache;
		HybOwnTrees own;
	}			kept;
	HybSharedSlot slots[2];
	HybStage   *stage;

	hyb_own_trees_piece.offset = (char *) &kept.own - (char *) &kept;
	kept.cache.key.incarnation = 1;
	hyb_own_trees_make(&kept.cache);
	stage = kept.own.stage;
	stage->trees[HYB_ACTIVE].generation = 5;
	for (int i = 0; i < 8; i++)
	{
		/* none, the first, the other, the first again */
		HybSharedSlot *slot = i % 4 == 0 ? NULL : &slots[i % 2];
		bool		same = i == 0;

		kept.cache.shared = slot;
		kept.cache.shared_serial = slot == NULL ? 0 : i;
		hyb_tree_happens(stage, HYB_ACTIVE, HYB_TREE_FOLLOWED);
		CHECK(hyb_own_trees_find_slot(&kept.own) == same, "slot %d", i);
		CHECK(hyb_tree_is_synced(stage, HYB_ACTIVE) == same, "slot %d", i);
		hyb_tree_happens(stage, HYB_ACTIVE, HYB_TREE_FOLLOWED);
		CHECK(hyb_own_trees_find_slot(&kept.own), "slot %d, the same", i);
		CHECK(hyb_tree_is_synced(stage, HYB_ACTIVE), "slot %d, the same", i);
	}
	(void) hyb_read_lacks(&kept.own, HYB_READ_OWN, 5);
	CHECK(kept.own.stage == NULL && kept.own.arena == NULL, "trees stay");
}

int
main(void)
{
	check_pairs();
	walk_randomly();
	check_room();
	check_forms();
	walk_forms();
	check_slots();
	return unit_report("states");
}
