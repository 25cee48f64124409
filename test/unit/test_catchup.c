/*
 * test_catchup.c
 *		Catching up: after it a tree has the live entries of its generation's log,
 *		each once, and before it hyb_stage_is_caught_up says that some are missing.
 *
 * A log grows in all lanes, is frozen and merged, and VACUUM flags entries, while a
 * stage catches up now and then with little memory.  That is done for trees of a
 * backend's own, which VACUUM cannot find, and for those of a shared slot.
 */
#include "index_file.h"

#include "log/delta.h"
#include "log/stage_access.h"
#include "shared/shared_arena.h"
#include "unit.h"

#define MAXENTRIES	20000
#define MAXKEY		400
#define ROUNDS		1000

/* An entry of the log, as the test has written it. */
typedef struct Logged
{
	uint8		key[MAXKEY];
	uint32		len;
	ItemPointerData tid;
	uint64		generation;
	BlockNumber block;
	uint16		offset;
	bool		dead;
} Logged;

static Logged logged[MAXENTRIES];
static int	nlogged;
static HybIndex *ix;
static HybSharedSlot slot;
static HybCache cache;
static HybStage stage;
static HybStageAccess opened;
static bool scarce;
static bool long_keys;

int			hyb_test_pressure = 0;

/* ---- of index_cache.c ---- */

bool
hyb_version_is_current(HybIndex *of, const HybVersion *version)
{
	CHECK(of == ix, "another index");
	return version->version == index_file_meta()->version;
}

void
hyb_slot_publish(HybCache *of, uint64 generation, int lane, uint64 end)
{
	if (generation < pg_atomic_read_u64(&slot.appended_gen))
		return;
	if (generation > pg_atomic_read_u64(&slot.appended_gen))
	{
		for (int i = 0; i < HYB_LANES; i++)
			pg_atomic_write_u64(&slot.appended[i], 0);
		pg_atomic_write_u64(&slot.appended_gen, generation);
	}
	CHECK(end >= pg_atomic_read_u64(&slot.appended[lane]), "a lane ends where it did before");
	pg_atomic_write_u64(&slot.appended[lane], end);
}

static bool
is_scarce(const HybArena *arena)
{
	return scarce;
}

/* ---- the log ---- */

static HybVersion
current_version(void)
{
	static HybVersion versions[16];
	static int	next;
	HybVersion *version = &versions[next++ % lengthof(versions)];

	hyb_version_from_meta(index_file_meta(), version);
	return *version;
}

static HybKeyDesc *
make_desc(void)
{
	HybKeyDesc *desc = calloc(1, hyb_key_desc_size(1));

	desc->natts = desc->nkeys = 1;
	desc->all_mem = desc->exact = true;
	desc->cols[0] = (HybColumn) {.store = HYB_STORE_BYTES,.compare = HYB_COMPARE_MEM,.terminated = true};
	return desc;
}

static void
append(void)
{
	HybMetaPage *meta = index_file_meta();
	HybGeneration *active = &meta->active;
	int			lane = (int) unit_below(HYB_LANES);
	Logged	   *entry = &logged[nlogged];
	HybBuf		key = {0};
	uint8		bytes[MAXKEY];
	uint8		image[MAXKEY + HYB_DELTA_HEADER];
	HybValue	val = {.ptr = bytes,.len = long_keys || unit_below(8) == 0 ? unit_below(MAXKEY - 4) : 3 + unit_below(9)};
	HybEntry	as_entry;
	uint32		size;
	Page		page = NULL;
	PageHeader	header;

	if (nlogged == MAXENTRIES)
		return;
	for (uint32 i = 0; i < val.len; i++)
		bytes[i] = (uint8) ('a' + unit_below(i < 2 ? 20 : 3));
	hyb_key_join(ix->desc, &val, 1, &key);
	memcpy(entry->key, key.data, key.len);
	entry->len = key.len;
	entry->dead = false;
	ItemPointerSet(&entry->tid, (BlockNumber) nlogged / 100, (OffsetNumber) (nlogged % 100 + 1));
	as_entry = (HybEntry) {.bytes = entry->key,.len = entry->len,.tid = entry->tid};
	size = hyb_delta_image(&as_entry, image);

	if (BlockNumberIsValid(active->tail[lane]))
		page = index_file_page(active->tail[lane]);
	if (page == NULL || ((PageHeader) page)->pd_lower + size > ((PageHeader) page)->pd_upper)
	{
		BlockNumber block = index_file_extend();

		hyb_page_init(index_file_page(block), ix, HYB_PAGE_DELTA, 0, active->number);
		if (page == NULL)
			active->head[lane] = block;
		else
			hyb_page_opaque(page)->link = block;
		active->tail[lane] = block;
		active->npages++;
		page = index_file_page(block);
	}
	header = (PageHeader) page;
	entry->generation = active->number;
	entry->block = active->tail[lane];
	entry->offset = header->pd_lower;
	memcpy((char *) page + header->pd_lower, image, size);
	header->pd_lower += size;
	active->nentries++;
	nlogged++;
	if (cache.shared != NULL)
		hyb_slot_publish(&cache, active->number, lane, hyb_lane_end(entry->block, header->pd_lower));
}

static void
freeze(void)
{
	HybMetaPage *meta = index_file_meta();

	if (meta->frozen.number != 0)
		return;
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (BlockNumberIsValid(meta->active.tail[lane]))
			hyb_page_opaque(index_file_page(meta->active.tail[lane]))->flags |= HYB_DELTA_CLOSED;
	meta->frozen = meta->active;
	hyb_generation_init(&meta->active, meta->next_generation++);
	meta->version++;
}

/* The entries of a tree stay where they are when its generation is frozen. */
static void
check_freeze(void)
{
	uint64		nentries = stage.trees[HYB_ACTIVE].nentries;
	HybVersion	version = current_version();

	if (stage.trees[HYB_ACTIVE].generation != version.frozen.number || version.frozen.number == 0 ||
		(opened.shared == NULL && stage.vacuum_counter < version.vacuum_counter))
		return;
	CHECK(hyb_stage_catch_up(ix, &opened, &version, 0) == HYB_STAGE_READY, "the current version is an older one");
	CHECK(stage.trees[HYB_FROZEN].nentries == nentries && stage.trees[HYB_ACTIVE].nentries == 0,
		  "entries do not stay in a tree that is frozen");
}

/* All of the frozen generation is merged: its pages are used for something else. */
static void
finish(void)
{
	HybMetaPage *meta = index_file_meta();

	for (int i = 0; i < nlogged; i++)
		if (logged[i].generation == meta->frozen.number && meta->frozen.number != 0)
			hyb_page_init(index_file_page(logged[i].block), ix, HYB_PAGE_FREELIST, 0, 0);
	hyb_generation_init(&meta->frozen, 0);
	meta->version++;
}

/* VACUUM flags the entry on its page first, and then in the trees that it finds. */
static void
vacuum(void)
{
	HybMetaPage *meta = index_file_meta();

	for (int n = 0; n < 20 && nlogged > 0; n++)
	{
		Logged	   *entry = &logged[unit_below((uint32) nlogged)];
		HybTree    *tree = hyb_stage_tree(&stage, entry->generation);

		if (entry->dead || (entry->generation != meta->active.number &&
							entry->generation != meta->frozen.number))
			continue;
		((uint8 *) index_file_page(entry->block))[entry->offset] |= HYB_DELTA_DEAD;
		entry->dead = true;
		if (opened.shared != NULL && tree != NULL)
		{
			HybEntry	as_entry = {.bytes = entry->key,.len = entry->len,.keylen = entry->len,.tid = entry->tid};
			HybTreeUse	use;
			HybLogReader reader;

			hyb_tree_use(&use, ix, tree, opened.arena, &reader);
			(void) hyb_tree_flag(&use, &as_entry, HYB_ENTRY_DEAD);
			hyb_log_reader_end(&reader);
		}
	}
	meta->vacuum_counter++;
}

/* ---- what trees have ---- */

static int
compare_logged(const void *a, const void *b)
{
	Logged	   *x = *(Logged *const *) a;
	Logged	   *y = *(Logged *const *) b;
	int			c = memcmp(x->key, y->key, Min(x->len, y->len));

	return c != 0 ? c : ItemPointerCompare(&x->tid, &y->tid);
}

static void
check_tree(uint64 generation, const char *what)
{
	static Logged *expected[MAXENTRIES];
	int			n = 0;
	HybTree    *tree = hyb_stage_tree(&stage, generation);
	HybTreeIter iter = {.backward = unit_below(2) == 0};
	HybLogReader reader;
	HybPos		lo = {.tie = HYB_BEFORE};
	HybPos		hi = {.tie = HYB_AFTER};
	const char *error;

	if (generation == 0)
		return;
	CHECK(tree != NULL, "%s: no tree", what);
	for (int i = 0; i < nlogged; i++)
		if (logged[i].generation == generation && !logged[i].dead)
			expected[n++] = &logged[i];
	qsort(expected, n, sizeof(Logged *), compare_logged);
	hyb_tree_use(&iter.use, ix, tree, opened.arena, &reader);
	error = hyb_tree_verify(&iter.use);
	CHECK(error == NULL, "%s: %s", what, error);
	hyb_tree_iter_start(&iter, &lo, &hi);
	for (int i = 0; i < n; i++)
	{
		const Logged *entry = expected[iter.backward ? n - 1 - i : i];
		const HybEntry *found = hyb_tree_iter_next(&iter);

		CHECK(found != NULL, "%s: %d entries of %d", what, i, n);
		if (found == NULL)
			break;
		CHECK(found->len == entry->len && memcmp(found->bytes, entry->key, entry->len) == 0 &&
			  ItemPointerCompare(unconstify(ItemPointerData *, &found->tid),
								 unconstify(ItemPointerData *, &entry->tid)) == 0,
			  "%s: entry %d of %d is another one", what, i, n);
	}
	CHECK(hyb_tree_iter_next(&iter) == NULL, "%s: more than %d entries", what, n);
	hyb_log_reader_end(&reader);
}

/* The stage has the memory that it asks for, and hardly more. */
static void
catch_up(int want, bool appending)
{
	HybVersion	version = current_version();
	HybStageResult result;
	int			more = 0;

	/* readers want the frozen tree only if there is one */
	if (version.frozen.number == 0)
		want &= ~HYB_FETCH_FROZEN;
	if (want == 0)
		return;
	do
	{
		result = hyb_stage_catch_up(ix, &opened, &version, want);
		if (result == HYB_STAGE_MEMORY)
			CHECK(hyb_arena_reserve(opened.arena, HYB_TREE_RESERVE + unit_below(3)), "no memory");
		if (result == HYB_STAGE_MORE && appending && more++ < 5)
			append();
	} while (result == HYB_STAGE_MEMORY || result == HYB_STAGE_MORE);
	CHECK(result == HYB_STAGE_READY, "catching up with the current version: %d", result);
	CHECK(index_file_held() == 0, "pages are held");
	if (more == 0)
		CHECK(hyb_stage_is_caught_up(ix, &opened, &version, want), "not caught up after catching up");
	if (more == 0 && (want & HYB_FETCH_ACTIVE))
		check_tree(version.active.number, "the active tree");
	if (want & HYB_FETCH_FROZEN)
		check_tree(version.frozen.number, "the frozen tree");
	if (opened.shared != NULL)
		CHECK(slot.tree_bytes == hyb_stage_bytes(&stage), "the slot does not know the trees' size");
}

/* A reader that comes with an older version is sent back, and nothing is lost. */
static void
come_late(const HybVersion *old)
{
	HybMetaPage *meta = index_file_meta();

	catch_up(HYB_FETCH_ACTIVE | HYB_FETCH_FROZEN, false);
	if (old->active.number == meta->active.number || old->vacuum_counter > stage.vacuum_counter)
		return;
	CHECK(!hyb_stage_is_caught_up(ix, &opened, old, HYB_FETCH_ACTIVE), "an older version is caught up");
	CHECK(hyb_stage_catch_up(ix, &opened, old, HYB_FETCH_ACTIVE) == HYB_STAGE_STALE,
		  "an older version is not stale");
	check_tree(meta->active.number, "the active tree, after an older version");
}

static void
test_catch_up(bool shared)
{
	HybVersion	old;
	HybVersion	version;

	ix = index_file_create(make_desc());
	nlogged = 0;
	memset(&stage, 0, sizeof(stage));
	memset(&cache, 0, sizeof(cache));
	memset(&slot, 0, sizeof(slot));
	cache.shared = shared ? &slot : NULL;
	opened = (HybStageAccess) {.cache = &cache,.stage = &stage,.arena = hyb_arena_create(NULL),.shared = cache.shared};
	opened.arena->scarce = is_scarce;
	old = current_version();
	for (int round = 0; round < ROUNDS; round++)
	{
		int			burst = (int) (unit_below(30) == 0 ? unit_below(6000) : unit_below(60));
		int			want = 1 + (int) unit_below(3);

		scarce = unit_below(3) == 0;
		long_keys = unit_below(2) == 0;
		if (long_keys)
			burst = 1;
		for (int i = 0; i < burst; i++)
			append();
		version = current_version();
		if (burst > 0 && nlogged < MAXENTRIES)
			CHECK(!hyb_stage_is_caught_up(ix, &opened, &version, HYB_FETCH_ACTIVE),
				  "caught up before %d entries were read", burst);
		switch (unit_below(10))
		{
			case 0:
				freeze();
				check_freeze();
				break;
			case 1:
				if (unit_below(3) == 0)
					finish();
				break;
			case 2:
				if (!shared)
					vacuum();
				else
				{
					/* VACUUM finds trees that have all that it flags */
					catch_up(HYB_FETCH_ACTIVE | HYB_FETCH_FROZEN, false);
					vacuum();
				}
				break;
			case 3:
				come_late(&old);
				break;
			case 4:
				old = current_version();
				break;
			default:
				break;
		}
		catch_up(want, unit_below(2) == 0);
	}
	CHECK(nlogged > 10000, "only %d entries", nlogged);
	hyb_stage_clear(&stage, opened.arena);
	CHECK(opened.arena->npocket == opened.arena->nchunks, "chunks are lost");
	hyb_arena_drop(opened.arena);
	free(ix->desc);
	hyb_fuzz_reset();
}

/* A lane's page that is no longer the generation's is damage, or a stale version. */
static void
test_lost_page(void)
{
	HybVersion	version;

	ix = index_file_create(make_desc());
	nlogged = 0;
	memset(&stage, 0, sizeof(stage));
	memset(&cache, 0, sizeof(cache));
	opened = (HybStageAccess) {.cache = &cache,.stage = &stage,.arena = hyb_arena_create(NULL)};
	for (int i = 0; i < 3000; i++)
		append();
	version = current_version();
	freeze();
	finish();
	CHECK(hyb_stage_catch_up(ix, &opened, &version, HYB_FETCH_ACTIVE) == HYB_STAGE_STALE,
		  "pages of a merged generation are read");
	version.version = index_file_meta()->version;
	hyb_stage_clear(&stage, opened.arena);
	if (setjmp(hyb_fuzz_error) == 0)
	{
		(void) hyb_stage_catch_up(ix, &opened, &version, HYB_FETCH_ACTIVE);
		CHECK(false, "a page that is not of the log is no damage");
	}
	else
		CHECK(true, "damage");
	hyb_fuzz_reset();
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
	{
		test_catch_up(false);
		test_catch_up(true);
		test_lost_page();
	}
	return unit_report("catchup");
}
