/*
 * test_states.c
 *		States of the dynamic stage's trees: each pair of state and event, random
 *		walks, and what is decided by the clock.
 */
#include "base/compat.h"

#include "memtree/stage.h"
#include "unit.h"
#include "utils/timestamp.h"

#define STEPS		200000

static TimestampTz now = 1000;

TimestampTz
GetCurrentTimestamp(void)
{
	return now;
}

/* ---- each pair ---- */

/*
 * By the first letter, IMPURE by "I": what follows each event, in the order of
 * HybTreeEvent; "." cannot happen.
 */
static const char states[] = "ESUYNI";	/* S: SORTING, Y: SYNCED */
static const char *const expected[HYB_TREE_STATES] = {
	"EES.UYEEN..",
	"EE.UUY.SN..",
	"EE..UYUUN.I",
	"EES.YYUUN.I",
	"EN..NY.UNUI",
	"EI.....II.."
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
			case HYB_TREE_SORT:
				followed = entered = false;
				break;
			case HYB_TREE_SORT_ENDS:
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
		CHECK(!entered || (state != HYB_TREE_EMPTY && state != HYB_TREE_SORTING),
			  "step %d, state %c", i, states[state]);
	}
}

/* ---- the clock ---- */

static void
check_sort(void)
{
	HybStage	stage = {.trees[HYB_ACTIVE].generation = 5};
	TimestampTz until;

	CHECK(hyb_stage_plan_sort(&stage, HYB_ACTIVE, 100, &until) == HYB_SORT_NOW, "first");
	now += 99;
	CHECK(hyb_stage_plan_sort(&stage, HYB_ACTIVE, 100, &until) == HYB_SORT_WAIT, "second");
	CHECK(!hyb_tree_ends_sort(&stage, HYB_ACTIVE, now), "another sort");
	CHECK(hyb_tree_ends_sort(&stage, HYB_ACTIVE, until), "in time");
	CHECK(stage.state[HYB_ACTIVE] == HYB_TREE_UNFINISHED, "in time");

	memset(&stage, 0, sizeof(stage));
	CHECK(hyb_stage_plan_sort(&stage, HYB_ACTIVE, 100, &until) == HYB_SORT_NOW, "first");
	now += 100;
	CHECK(hyb_stage_plan_sort(&stage, HYB_ACTIVE, 100, &until) == HYB_SORT_NONE, "too long");
	CHECK(hyb_stage_plan_sort(&stage, HYB_ACTIVE, 100, &until) == HYB_SORT_NONE, "in vain");
	CHECK(!hyb_tree_ends_sort(&stage, HYB_ACTIVE, until), "too late");
}

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

int
main(void)
{
	check_pairs();
	walk_randomly();
	check_sort();
	check_room();
	return unit_report("states");
}
