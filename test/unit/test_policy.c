/*
 * test_policy.c
 *		The merge policy: decisions for given facts, properties that hold for any
 *		facts, and a simulated index.
 */
#include "merge/policy.h"
#include "unit.h"

#define MB	(UINT64_C(1) << 20)

/* ---- facts ---- */

/* An index of `tids` entries with default settings, and nothing to do. */
static HybMergeFacts
index_of(uint64_t tids)
{
	HybMergeFacts facts = {0};

	facts.static_tids = facts.level_tids = tids;
	facts.rewritten_tids = tids;
	facts.leaves = tids / 800 + (tids > 0);
	facts.static_pages = facts.leaves;
	facts.page_bytes = 8192;
	facts.memory_budget = 64 * MB;
	facts.ratio = 10;
	facts.floor = 8192;
	facts.step_leaves = 32;
	facts.nlevels = 1;
	facts.max_levels = 4;
	return facts;
}

static void
set_active(HybMergeFacts *facts, uint64_t entries, uint64_t per_page)
{
	facts->active_entries = entries;
	facts->active_pages = (entries + per_page - 1) / per_page;
}

static HybMergeFacts
random_facts(void)
{
	HybMergeFacts facts = index_of(unit_random() >> (unit_below(40) + 24));

	set_active(&facts, unit_random() >> (unit_below(40) + 24), 1 + unit_below(400));
	facts.frozen_entries = unit_below(3) == 0 ? unit_below(1000000) : 0;
	facts.merging_pages = facts.frozen_entries / (1 + unit_below(400));
	facts.unfinished = facts.frozen_entries > 0 || unit_below(4) == 0;
	facts.tombstones = unit_below(2) == 0 ? 0 :
		unit_random() % (facts.static_tids + 1);
	if (unit_below(2) == 0)
		facts.rewritten_tids = unit_below(2) == 0 ? UINT64_MAX : unit_below(100000);
	facts.visit_asked = unit_below(10) == 0;
	facts.learnable = unit_below(10) == 0;
	facts.together = unit_below(2) == 0;
	facts.memory_budget = (64 + unit_below(65536)) * UINT64_C(1024);
	facts.memory_used = unit_random() % (facts.memory_budget + 1);
	facts.elastic = unit_below(2) == 0;
	facts.largest_tree = unit_below(2) == 0;
	facts.does_not_fit = unit_below(8) == 0;
	facts.ratio = 1 + unit_below(1000);
	facts.floor = unit_below(3) == 0 ? 0 : unit_below(100000);
	facts.step_leaves = 1 + unit_below(64);
	facts.nlevels = 1 + unit_below(4);
	facts.max_levels = 1 + unit_below(4);
	facts.freeze_entries = unit_random() >> (unit_below(40) + 24);
	return facts;
}

/* ---- the policy's decisions ---- */

/* Is a log of `trigger` entries merged, and one with an entry less not yet? */
static void
check_trigger(HybMergeFacts facts, uint64_t trigger, const char *what)
{
	HybMergeNeed need;

	set_active(&facts, trigger - 1, 300);
	need = hyb_policy_need(&facts);
	CHECK(!need.freeze && need.help == 0, "%s", what);
	set_active(&facts, trigger, 300);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help == 0, "%s", what);
	set_active(&facts, trigger + trigger / 2 - 1, 300);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help == 0, "%s", what);
	set_active(&facts, trigger + (trigger + 1) / 2, 300);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help > 0, "%s", what);
}

static void
test_triggers(void)
{
	HybMergeFacts facts = index_of(0);

	facts.memory_budget = 1024 * MB;
	check_trigger(facts, 6144, "three quarters of the floor, of an empty index");
	facts.floor = 800;
	check_trigger(facts, 600, "another floor");
	facts.learnable = true;
	check_trigger(facts, 800, "the floor of one that is to learn");
	facts = index_of(1000);
	facts.memory_budget = 1024 * MB;
	check_trigger(facts, 8192, "the floor of one that is not empty");

	/* pages that make merging an entry as dear as it may be */
	facts = index_of(100000);
	facts.memory_budget = 1024 * MB;
	facts.static_pages = 10000;
	check_trigger(facts, 60000, "six times the share of a small index");
	facts.ratio = 5;
	check_trigger(facts, 120000, "another ratio");
	facts.ratio = 10;
	facts.frozen_entries = 10000;
	check_trigger(facts, 66000, "what is frozen counts");
	facts.frozen_entries = 0;
	facts.rewritten_tids = 40000;
	check_trigger(facts, 8192, "a merge that rewrites less than half");
	facts.rewritten_tids = UINT64_MAX;
	check_trigger(facts, 60000, "no merge yet");
	facts = index_of(500000);
	facts.memory_budget = 1024 * MB;
	facts.static_pages = 10000;
	check_trigger(facts, 262144, "where the small index ends");
	facts = index_of(3000000);
	facts.memory_budget = 1024 * MB;
	facts.static_pages = 30000;
	check_trigger(facts, 300000, "the share of a large index");
	facts.static_pages = 900;
	check_trigger(facts, 900 * 8192 / 30, "less, where it is cheap");
	facts.static_pages = 700;
	check_trigger(facts, 210000, "but most of the share");
	facts.ratio = 5;
	check_trigger(facts, 420000, "of another ratio");
	facts = index_of(300000);
	facts.memory_budget = 1024 * MB;
	facts.static_pages = 250;
	check_trigger(facts, 250 * 8192 / 30, "a small index");
	facts.static_pages = 150;
	check_trigger(facts, 50400, "most of two fifths of its share");
}

static void
test_overlap(void)
{
	HybMergeFacts facts = index_of(1000000);

	facts.memory_budget = 1024 * MB;
	facts.static_pages = 10000;
	facts.unfinished = true;
	facts.merging_pages = 100;
	set_active(&facts, 99 * 300, 300);
	CHECK(hyb_policy_need(&facts).help == 0, "the log is short beside the one that is merged");
	set_active(&facts, 100 * 300, 300);
	CHECK(hyb_policy_need(&facts).help == 4 * 301, "both take space");
	CHECK(!hyb_policy_need(&facts).freeze, "but it is not merged yet");
}

static void
test_memory(void)
{
	HybMergeFacts facts = index_of(10000000);
	HybMergeNeed need;

	set_active(&facts, 2047 * 4, 4);
	CHECK(!hyb_policy_need(&facts).freeze, "less than a quarter of the budget");
	set_active(&facts, 2048 * 4, 4);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help == 0, "a quarter of the budget");
	set_active(&facts, 4096 * 4, 4);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help == 4 * 5, "half of the budget: %d",
		  (int) need.help);

	/* 12 bytes an entry, 35 % of 64 MB; or 210 % of them as log */
	facts.elastic = true;
	facts.ratio = 1;
	set_active(&facts, 1957000, 500);
	CHECK(!hyb_policy_need(&facts).freeze, "compact, less than its share");
	set_active(&facts, 1958000, 500);
	need = hyb_policy_need(&facts);
	CHECK(need.freeze && need.help == 0, "compact, its share");
	set_active(&facts, 3077000, 500);
	CHECK(hyb_policy_need(&facts).help > 0, "compact, more than half");
	set_active(&facts, 17200 * 40, 40);
	CHECK(!hyb_policy_need(&facts).freeze, "compact, large entries");
	set_active(&facts, 17205 * 40, 40);
	CHECK(hyb_policy_need(&facts).freeze, "compact, a log of 210 %%");
	facts.elastic = false;
	facts.ratio = 10;

	set_active(&facts, 15, 1);
	facts.does_not_fit = true;
	CHECK(!hyb_policy_need(&facts).freeze, "no room, but few pages");
	set_active(&facts, 16, 1);
	CHECK(hyb_policy_need(&facts).freeze, "no room");
	facts.does_not_fit = false;

	facts.memory_used = 56 * MB - 1;
	facts.largest_tree = true;
	CHECK(!hyb_policy_need(&facts).freeze, "memory is not short");
	facts.memory_used = 56 * MB;
	CHECK(hyb_policy_need(&facts).freeze, "memory is short");
	facts.largest_tree = false;
	CHECK(!hyb_policy_need(&facts).freeze, "others have more");
}

static void
test_others(void)
{
	HybMergeFacts facts = index_of(100000);
	HybStepSize size;

	CHECK(!hyb_policy_need(&facts).finish, "nothing unfinished");
	facts.unfinished = true;
	CHECK(hyb_policy_need(&facts).finish, "unfinished");
	CHECK(!hyb_policy_need(&facts).freeze, "unfinished");
	facts.visit_asked = true;
	CHECK(hyb_policy_need(&facts).freeze, "a visit of all leaves");
	facts = index_of(0);
	facts.learnable = true;
	set_active(&facts, 95 * 20, 20);
	CHECK(!hyb_policy_need(&facts).freeze, "too few keys to learn from");
	set_active(&facts, 96 * 20, 20);
	CHECK(hyb_policy_need(&facts).freeze, "enough keys to learn from");

	facts = index_of(1000000);
	facts.tombstones = 200000;
	CHECK(!hyb_policy_compact(&facts, 1000, 10), "tombstones and dead leaves");
	CHECK(hyb_policy_compact(&facts, 1000, 11), "dead leaves");
	facts.tombstones++;
	CHECK(hyb_policy_compact(&facts, 1000, 0), "tombstones");
	facts.tombstones = 0;
	CHECK(!hyb_policy_compact(&facts, 1000, 1000), "no tombstones");

	facts.settled_tids = 800000;
	CHECK(!hyb_policy_stale(&facts) && !hyb_policy_settle(&facts, 0), "entries without chains");
	facts.chains = true;
	CHECK(!hyb_policy_stale(&facts), "few stale entries");
	facts.frozen_entries = 120001;
	CHECK(hyb_policy_stale(&facts), "stale entries");
	facts.frozen_entries = 0;
	CHECK(!hyb_policy_settle(&facts, 840000), "few for VACUUM");
	facts.active_entries = 8001;
	CHECK(hyb_policy_settle(&facts, 840000), "many for VACUUM");
	facts.active_entries = 0;
	facts.chains = false;

	CHECK(hyb_policy_join(&facts, 0.74), "empty leaves");
	CHECK(!hyb_policy_join(&facts, 0.75), "full leaves");
	facts.leaves = 7;
	CHECK(!hyb_policy_join(&facts, 0), "few leaves");

	facts = index_of(0);
	facts.frozen_entries = 1000000;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 4 && size.entries == 8192 && size.bytes == 16 * 8192,
		  "no leaves: %d %d", size.leaves, size.entries);
	facts.leaves = 96;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 6 && size.entries == 8192, "a sixteenth: %d", size.leaves);
	facts.leaves = 200;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 8, "enough: %d", size.leaves);
	facts.leaves = 320;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 10, "one of 32: %d", size.leaves);
	facts.leaves = 100000;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 32 && size.bytes == 32 * 8192, "the setting: %d", size.leaves);
	facts.frozen_entries = 20000000;
	size = hyb_policy_step(&facts);
	CHECK(size.entries == 12800, "twice the even share: %d", size.entries);
	facts.frozen_entries = 1000000000;
	size = hyb_policy_step(&facts);
	CHECK(size.entries == 32 * 512, "the most: %d", size.entries);

	/* merges that rewrite most leaves */
	facts = index_of(1000000);
	facts.frozen_entries = 100000;
	size = hyb_policy_step(&facts);
	CHECK(size.leaves == 32 && size.entries == 2557 + 319,
		  "the even share and an eighth: %d", size.entries);
	facts.frozen_entries = 10000;
	size = hyb_policy_step(&facts);
	CHECK(size.entries == 1024, "some in any case: %d", size.entries);
	facts.frozen_entries = 1000000000;
	size = hyb_policy_step(&facts);
	CHECK(size.entries == 32 * 512, "and no more than before: %d", size.entries);
	facts.frozen_entries = 100000;
	facts.rewritten_tids = 500000;
	size = hyb_policy_step(&facts);
	CHECK(size.entries == 8192, "those that do not: %d", size.entries);
}

/* Levels of an index of this number of freezes that has n levels. */
static int
levels_at(int n, uint64_t freezes)
{
	HybMergeFacts facts = index_of(freezes * 10000);

	facts.nlevels = n;
	facts.freeze_entries = 10000;
	facts.static_pages = facts.static_tids / 100;
	return hyb_policy_levels(&facts);
}

static void
test_levels(void)
{
	HybMergeFacts facts = index_of(10000000);
	HybUnitFacts unit = {.content = 1,.price = 50,.path = 5};

	facts.freeze_entries = 400000;
	CHECK(hyb_policy_levels(&facts) == 2, "a second level");
	facts.static_pages = 2000;
	CHECK(hyb_policy_levels(&facts) == 1, "none for freezes that are cheap");
	facts.together = true;
	CHECK(hyb_policy_levels(&facts) == 2, "but during a load");
	facts.static_pages = 30 * 400000 / 8192;
	CHECK(hyb_policy_levels(&facts) == 1, "none for merges that are cheap");
	facts = index_of(10000000);
	CHECK(levels_at(1, 20) == 1, "one level is enough");
	CHECK(levels_at(1, 21) == 2, "a second level");
	CHECK(levels_at(2, 12) == 2, "the second level stays");
	CHECK(levels_at(2, 11) == 1, "and goes");
	CHECK(levels_at(2, 500) == 2, "two are enough");
	CHECK(levels_at(1, 501) == 3, "two more at once");
	CHECK(levels_at(3, 280) == 3, "the third stays");
	CHECK(levels_at(3, 279) == 2, "and goes");
	CHECK(levels_at(3, 1000000) == 3, "never more than three");

	facts.freeze_entries = 1000000;
	CHECK(hyb_policy_levels(&facts) == 1, "a tenth");
	facts.together = true;
	CHECK(hyb_policy_levels(&facts) == 2, "a tenth during a load");
	facts.together = false;

	facts.freeze_entries = 10000;
	facts.max_levels = 2;
	CHECK(hyb_policy_levels(&facts) == 2, "the setting");
	facts.rewritten_tids = 100000;
	CHECK(hyb_policy_levels(&facts) == 1, "merges that rewrite little");
	facts.rewritten_tids = UINT64_MAX;
	CHECK(hyb_policy_levels(&facts) == 2, "no merge yet");
	facts.nlevels = 2;
	facts.level_tids = 2499;
	CHECK(hyb_policy_levels(&facts) == 1, "a level that stays empty");
	facts.level_tids = 2500;
	CHECK(hyb_policy_levels(&facts) == 2, "one that does not");

	CHECK(!hyb_policy_move(&unit), "no rent");
	unit.rent = 54.9;
	CHECK(!hyb_policy_move(&unit), "less rent than it costs");
	unit.rent = 55;
	CHECK(hyb_policy_move(&unit), "as much");
	unit.rent = 0;
	unit.content = 55;
	CHECK(hyb_policy_move(&unit), "entries that are worth it");

	facts.oldest_leaves = 1000;
	facts.newer_leaves = 30;
	facts.newer_tids = 25000;
	facts.earned_pages = 1029;
	CHECK(!hyb_policy_quiet(&facts), "too little was written");
	facts.earned_pages = 1030;
	CHECK(hyb_policy_quiet(&facts), "as much as one level costs");
	facts.newer_tids = 900;
	facts.earned_pages = 930;
	CHECK(hyb_policy_quiet(&facts), "few entries fall into few leaves");

	facts.nlevels = 1;
	facts.newer_leaves = facts.newer_tids = 0;
	facts.leaves = 1000;
	facts.file_pages = 1100;
	CHECK(!hyb_policy_quiet(&facts), "one level and no log");
	facts.active_pages = 31;
	facts.active_entries = 0;
	facts.earned_pages = 968;
	CHECK(!hyb_policy_quiet(&facts), "a log with an entry for each of many leaves");
	facts.earned_pages = 969;
	CHECK(hyb_policy_quiet(&facts), "merges have written as much");
	facts.active_pages = 30;
	facts.earned_pages = 1000;
	facts.free_pages = 67;
	CHECK(!hyb_policy_quiet(&facts), "a log that is short for the index");
	facts.free_pages = 68;
	CHECK(hyb_policy_quiet(&facts), "one that keeps free pages");
	facts.leaves = facts.oldest_leaves = 2;
	facts.active_pages = 20;
	facts.earned_pages = 0;
	facts.file_pages = 31;
	CHECK(!hyb_policy_quiet(&facts), "a file that is short");
	facts.file_pages = 32;
	CHECK(hyb_policy_quiet(&facts), "pages of the log count as written");
}

/* Loads of small entries and large ones; and freezes that come for want of memory. */
static void
test_levels_of_small(void)
{
	HybMergeFacts facts;

	for (uint64_t bytes = 1; bytes <= 10; bytes++)
		for (uint64_t n = 20000; n < 500000; n += n / 10)
		{
			facts = index_of(n);
			facts.memory_budget = 1024 * MB;
			facts.static_pages = n * bytes / 8192 + 1;
			facts.together = true;
			for (facts.freeze_entries = 1000;; facts.freeze_entries += 100)
			{
				set_active(&facts, facts.freeze_entries, 600);
				if (hyb_policy_need(&facts).freeze)
					break;
			}
			CHECK(hyb_policy_levels(&facts) == 1, "one level at %d entries of %d bytes",
				  (int) n, (int) bytes);
		}
	facts = index_of(100000);
	facts.freeze_entries = 3000;
	CHECK(hyb_policy_levels(&facts) == 2, "a small index whose freezes lack memory");
}

/* ---- properties ---- */

static void
test_properties(void)
{
	for (int round = 0; round < 20000; round++)
	{
		HybMergeFacts facts = random_facts();
		HybMergeNeed need = hyb_policy_need(&facts);
		HybStepSize size = hyb_policy_step(&facts);
		HybMergeFacts more = facts;
		HybMergeFacts nothing = facts;

		CHECK(need.finish == facts.unfinished, "finish");
		CHECK(need.help == 0 || need.freeze || need.finish, "help without a merge");
		CHECK(hyb_policy_levels(&facts) >= 1 &&
			  hyb_policy_levels(&facts) <= (int) facts.max_levels,
			  "%d levels", hyb_policy_levels(&facts));

		/* an empty log is merged only to visit the leaves */
		set_active(&nothing, 0, 1);
		nothing.visit_asked = false;
		CHECK(!hyb_policy_need(&nothing).freeze && hyb_policy_need(&nothing).help == 0,
			  "a merge of nothing");

		/* what is wanted is wanted of a longer log too */
		set_active(&more, facts.active_entries + 1 + unit_below(100000), 1);
		more.active_pages = facts.active_pages + unit_below(1000);
		CHECK(!need.freeze || hyb_policy_need(&more).freeze,
			  "not monotone");
		CHECK(need.help == 0 || hyb_policy_need(&more).help > 0,
			  "help not monotone");

		CHECK(size.leaves >= 1 && (uint64_t) size.leaves <= facts.step_leaves,
			  "%d leaves", size.leaves);
		CHECK(size.entries >= 1 && size.bytes >= 1, "%d entries", size.entries);

		for (double fill = 0; fill < 1; fill += 0.125)
			CHECK(hyb_policy_join(&facts, fill) || !hyb_policy_join(&facts, fill + 0.125),
				  "joins not monotone");
		facts.tombstones = 0;
		CHECK(!hyb_policy_compact(&facts, 10, 10), "compacts for nothing");
	}
}

/* ---- a simulated index ---- */

typedef struct Simulation
{
	HybMergeFacts facts;
	uint64_t	frozen_left;
	uint64_t	part;			/* a merge rewrites one leaf in `part` */
	uint64_t	entry_bytes;	/* the more, the less is done in a step */
} Simulation;

/* A step, or a freeze and a step; false: nothing to do. */
static bool
simulate_step(Simulation *s, bool may_freeze)
{
	HybMergeFacts *facts = &s->facts;
	HybStepSize size = hyb_policy_step(facts);
	uint64_t	n;

	if (!facts->unfinished)
	{
		if (!may_freeze || facts->active_pages == 0)
			return false;
		facts->frozen_entries = facts->active_entries;
		s->frozen_left = facts->active_entries;
		set_active(facts, 0, 1);
		facts->unfinished = true;
	}

	/* entries of some leaves: what falls into them, at least one */
	n = s->frozen_left;
	if (n > (uint64_t) size.entries)
		n = (uint64_t) size.entries;
	if (n > 1 + size.bytes / s->entry_bytes)
		n = 1 + size.bytes / s->entry_bytes;
	s->frozen_left -= n;
	facts->merged_entries += n;
	facts->static_tids += n;
	facts->leaves = facts->static_pages = facts->static_tids / 800 + 1;
	if (s->frozen_left == 0)
	{
		facts->frozen_entries = 0;
		facts->unfinished = false;
		facts->rewritten_tids = facts->static_tids / s->part;
	}
	return true;
}

/*
 * Load an index that no worker merges: the inserter does what the policy has it do
 * (trigger.c), and no more.  The log stays within `bound` times what
 * triggers a merge.
 */
static void
simulate_load(uint64_t part, uint64_t entry_bytes, double bound)
{
	Simulation	s = {index_of(0), 0, part, entry_bytes};
	uint64_t	inserted = 0;

	s.facts.memory_budget = 16384 * MB;
	for (int page = 0; page < 20000; page++)
	{
		uint64_t	entries = 200 + unit_below(150);
		uint64_t	trigger = 262144;
		HybMergeNeed need;

		inserted += entries;
		s.facts.active_entries += entries;
		s.facts.active_pages++;
		need = hyb_policy_need(&s.facts);
		if (need.help > 0)
		{
			uint64_t	target = s.facts.merged_entries + need.help;

			do
			{
				if (!simulate_step(&s, need.freeze))
					break;
				need = hyb_policy_need(&s.facts);
			} while (need.help > 0 && s.facts.merged_entries < target);
		}
		if (inserted / s.facts.ratio > trigger)
			trigger = inserted / s.facts.ratio;
		if ((double) s.facts.active_entries > bound * (double) trigger ||
			s.facts.static_tids + s.frozen_left + s.facts.active_entries != inserted)
		{
			CHECK(false, "%d entries in the log of %d inserted, %d merged", (int) s.facts.active_entries, (int) inserted,
				  (int) s.facts.static_tids);
			return;
		}
	}
	while (simulate_step(&s, true))
		;
	CHECK(s.facts.static_tids == inserted, "all is merged");
}

int
main(void)
{
	test_triggers();
	test_overlap();
	test_memory();
	test_levels();
	test_levels_of_small();
	test_others();
	test_properties();
	/* steps that are large and small, beside what they have to do */
	simulate_load(1, 24, 2.7);
	simulate_load(100, 24, 2.7);
	simulate_load(1, 5000, 2.7);
	simulate_load(100, 5000, 2.7);
	return unit_report("test_policy");
}
