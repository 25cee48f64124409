/*
 * test_space.c
 *		Free space: each block is always in exactly one place, and goes only where
 *		the contracts of store/space.h say.
 *
 * Blocks are reserved, used, retired, settled, taken for the log and cut off at
 * random, while another process pins some.  After each call the lists are read from
 * the file and compared with what the test knows.
 */
#include "index_file.h"

#include "miscadmin.h"
#include "store/space.h"
#include "unit.h"

#define STEPS	2000

typedef enum Place
{
	NOWHERE,
	FREE,						/* on the free list */
	END,						/* on the list of the end that is to be cut off */
	PENDING,
	USED						/* by the test */
} Place;

static HybIndex *ix;
static Place place[INDEX_FILE_BLOCKS];
static bool used[INDEX_FILE_BLOCKS];
static int	count[USED + 1];

static void
put(BlockNumber block, Place where, const char *what)
{
	CHECK(block > HYB_METAPAGE_BLKNO && block < index_file_length(), "%s: block %u", what, block);
	CHECK(place[block] == NOWHERE, "%s: block %u is in places %d and %d", what, block,
		  place[block], where);
	place[block] = where;
	count[where]++;
}

/* The blocks of a list, with the pages that name them. */
static void
walk(BlockNumber trunk, uint32 n, Place where, const char *what)
{
	int			before = count[where];

	while (BlockNumberIsValid(trunk) && count[where] - before <= n)
	{
		Page		page = index_file_page(trunk);

		put(trunk, where, what);
		CHECK(hyb_freelist_valid(page), "%s: block %u ends before its blocks", what, trunk);
		CHECK(index_file_is_logged(trunk), "%s: changes of block %u are not logged", what, trunk);
		for (uint32 i = 0; i < hyb_page_opaque(page)->count; i++)
			put(hyb_freelist_blocks(page)[i], where, what);
		trunk = hyb_page_opaque(page)->link;
	}
	CHECK(count[where] - before == n, "%s: %d blocks on list %d, not %u", what,
		  count[where] - before, where, n);
}

/* Where is each block?  `lost` blocks may be nowhere. */
static void
look(const char *what, int lost)
{
	HybMetaPage *meta = index_file_meta();

	memset(place, 0, sizeof(place));
	memset(count, 0, sizeof(count));
	for (BlockNumber block = 1; block < index_file_length(); block++)
		if (used[block])
			put(block, USED, what);
	for (uint32 i = 0; i < meta->npending; i++)
		put(meta->pending[i], PENDING, what);
	walk(meta->freelist, meta->free_blocks, FREE, what);
	walk(meta->cut_list, meta->cut_blocks, END, what);
	for (BlockNumber block = 1; block < index_file_length(); block++)
	{
		count[NOWHERE] += place[block] == NOWHERE;
		CHECK(!index_file_is_pinned(block) ||
			  hyb_page_opaque(index_file_page(block))->kind == HYB_PAGE_DELTA,
			  "%s: block %u was overwritten under a pin", what, block);
	}
	CHECK(count[NOWHERE] == lost, "%s: %d blocks are lost", what, count[NOWHERE] - lost);
	CHECK(index_file_is_logged(HYB_METAPAGE_BLKNO), "%s: the metapage is not logged", what);
	CHECK(index_file_held() == 0, "%s: buffers are held", what);
}

/* Names the beginning of the free list, that is four pages, an unpinned block? */
static bool
has_unpinned(void)
{
	BlockNumber trunk = index_file_meta()->freelist;

	for (int pages = 0; pages < 4 && BlockNumberIsValid(trunk); pages++)
	{
		Page		page = index_file_page(trunk);

		for (uint32 i = 0; i < hyb_page_opaque(page)->count; i++)
			if (!index_file_is_pinned(hyb_freelist_blocks(page)[i]))
				return true;
		trunk = hyb_page_opaque(page)->link;
	}
	return false;
}

static void
reserve(int wanted, int spare)
{
	HybMetaPage *meta = index_file_meta();
	int			room = HYB_MAX_PENDING - (int) meta->npending;
	int			nfree = count[FREE];
	BlockNumber length = index_file_length();
	BlockNumber blocks[HYB_MAX_PENDING];
	static Place before[INDEX_FILE_BLOCKS];
	bool		pinned = false;
	int			expected;
	int			n;

	wanted = Min(wanted, room);
	spare = Min(spare, room - wanted);
	/* the end is called off where the free list does not reach */
	if (BlockNumberIsValid(meta->cut) && nfree < wanted + spare)
		nfree += count[END];
	for (BlockNumber block = 1; block < length; block++)
		pinned |= index_file_is_pinned(block);
	memcpy(before, place, sizeof(before));
	n = hyb_space_reserve(ix, wanted, spare, blocks);
	look("reserve", 0);
	expected = Max(wanted, Min(wanted + spare, nfree));
	CHECK(pinned ? n >= wanted && n <= expected : n == expected,
		  "reserve %d and %d of %d: %d", wanted, spare, nfree, n);
	CHECK(pinned ? index_file_length() == length || !has_unpinned() :
		  index_file_length() == length + Max(0, wanted - nfree),
		  "reserve %d and %d of %d: the file grows by %u", wanted, spare, nfree,
		  index_file_length() - length);
	for (int i = 0; i < n; i++)
	{
		CHECK(place[blocks[i]] == PENDING, "a reserved block is not pending");
		CHECK(!index_file_is_pinned(blocks[i]), "block %u was reserved and is pinned", blocks[i]);
		CHECK(blocks[i] >= length || before[blocks[i]] == FREE || before[blocks[i]] == END,
			  "block %u was in place %d", blocks[i], before[blocks[i]]);
	}
}

/* Move a few blocks between pending[] and those in use, as an installed step does. */
static void
use_or_retire(bool use)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;

	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	for (int i = unit_below(100); i >= 0; i--)
	{
		BlockNumber block = 1 + unit_below(index_file_length() - 1);

		if (use && meta->npending > 0)
		{
			int			at = unit_below(meta->npending);

			block = meta->pending[at];
			if (index_file_is_pinned(block))
				continue;
			meta->pending[at] = meta->pending[--meta->npending];
			used[block] = true;
			hyb_page_init(index_file_page(block), ix, HYB_PAGE_DELTA, 0, 1);
			index_file_log(block);
		}
		else if (!use && used[block] && meta->npending < HYB_MAX_PENDING)
		{
			used[block] = false;
			meta->pending[meta->npending++] = block;
		}
	}
	hyb_wal_meta(&set, metabuf);
	hyb_wal_range(&set, metabuf, SizeOfPageHeaderData + offsetof(HybMetaPage, pending),
				  sizeof(meta->pending));
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
	look(use ? "use" : "retire", 0);
}

static void
settle(void)
{
	HybMetaPage *meta = index_file_meta();

	hyb_space_settle(ix);
	look("settle", 0);
	CHECK(meta->npending == 0, "%u blocks stay pending", meta->npending);
	for (BlockNumber block = 1; block < index_file_length(); block++)
		if (place[block] == END)
			CHECK(hyb_meta_cuts(meta, block), "block %u is not of the end", block);
}

/* Take a block for the log.  The last blocks of the list may be pinned. */
static void
take_block(void)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	BlockNumber length = index_file_length();
	bool		on_list = BlockNumberIsValid(meta->freelist);
	bool		unpinned = false;
	BlockNumber block;
	HybSpaceTake taken;
	HybWalSet	set;

	if (on_list)
	{
		Page		trunk = index_file_page(meta->freelist);
		int			n = (int) hyb_page_opaque(trunk)->count;

		for (int i = Max(0, n - 4); i < n; i++)
			unpinned |= !index_file_is_pinned(hyb_freelist_blocks(trunk)[i]);
		if (n == 0)
			unpinned = true;
	}
	hyb_space_take(ix, metabuf, &taken);
	block = BufferGetBlockNumber(taken.page);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	hyb_page_init(BufferGetPage(taken.page), ix, HYB_PAGE_DELTA, 0, 1);
	hyb_space_take_apply(&set, metabuf, &taken);
	hyb_wal_meta(&set, metabuf);
	hyb_wal_image(&set, taken.page);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	hyb_space_take_release(&taken);
	UnlockReleaseBuffer(metabuf);
	CHECK(!unpinned || index_file_length() == length, "the file grows beside a free block");
	CHECK(block == length ||
		  (place[block] != USED && place[block] != PENDING && place[block] != NOWHERE),
		  "block %u was taken from place %d", block, place[block]);
	used[block] = true;
	look("take", 0);
}

/* A crash has left pages of zeroes that no list knows. */
static void
adopt(void)
{
	BlockNumber blocks[3];
	int			n = Min((int) lengthof(blocks), INDEX_FILE_BLOCKS - 1000 - (int) index_file_length());

	settle();
	if (n <= 0)
		return;
	for (int i = 0; i < n; i++)
		blocks[i] = index_file_extend();
	look("zeroes", n);
	hyb_space_adopt(ix, blocks, n);
	look("adopt", 0);
	CHECK(count[PENDING] == n, "%d blocks of %d were adopted", count[PENDING], n);
	for (int i = 0; i < n; i++)
		CHECK(index_file_is_logged(blocks[i]), "block %u is not logged", blocks[i]);
}

/* VACUUM names an end, and moves what is free in it, or pending, to the end's list. */
static void
begin_end(void)
{
	HybMetaPage *meta = index_file_meta();
	BlockNumber length = index_file_length();
	HybSiftResult result;
	int			all = count[FREE] + count[END];

	hyb_file_end_begin(ix, Max(1, length - 1 - unit_below(length / 2 + 1)));
	look("an end begins", 0);
	CHECK(count[FREE] == all && count[END] == 0, "%d blocks on the end's list", count[END]);
	all += count[PENDING];
	do
	{
		result = hyb_file_end_sift(ix);
		look("sift", 0);
	} while (result == HYB_SIFT_MORE);
	/* a list of pinned blocks needs a page */
	all += index_file_length() - length;
	length = index_file_length();
	CHECK(count[FREE] + count[END] + count[PENDING] == all, "%d free blocks, not %d",
		  count[FREE] + count[END] + count[PENDING], all);
	if (result == HYB_SIFT_DONE)
		for (BlockNumber block = 1; block < length; block++)
			if (place[block] == FREE || place[block] == END)
				CHECK((place[block] == END) == hyb_meta_cuts(meta, block),
					  "block %u is in place %d", block, place[block]);
	if (count[END] > 0)
		CHECK(hyb_file_end_is_free(ix) == (count[END] == length - meta->cut),
			  "%d blocks of %u are free", count[END], length - meta->cut);
}

static void
pin_some(int n)
{
	for (BlockNumber block = 1; block < index_file_length(); block++)
		if (index_file_is_pinned(block))
			index_file_unpin(block);
	while (n-- > 0 && index_file_length() > 1)
	{
		BlockNumber block = 1 + unit_below(index_file_length() - 1);

		/* a free-list page is never pinned for long */
		if (!index_file_is_pinned(block) && place[block] != NOWHERE &&
			hyb_page_opaque(index_file_page(block))->kind != HYB_PAGE_FREELIST)
			index_file_pin(block);
	}
}

/* How many blocks are used goes up and down. */
static void
test_random(void)
{
	ix = index_file_create(NULL);
	memset(used, 0, sizeof(used));
	look("a new file", 0);
	for (int step = 0; step < STEPS; step++)
	{
		bool		grow = step / 500 % 2 == 0 && index_file_length() < INDEX_FILE_BLOCKS - 1000;

		if (unit_below(20) == 0)
			pin_some(unit_below(2) == 0 ? unit_below(index_file_length() / 2 + 1) : 0);
		switch (unit_below(8))
		{
			case 0:
				reserve(unit_below(grow ? HYB_MAX_PENDING : 20), unit_below(40));
				break;
			case 1:
				settle();
				break;
			case 2:
				take_block();
				break;
			case 3:
				if (unit_below(20) == 0)
					adopt();
				break;
			case 4:
				if (unit_below(20) == 0)
					begin_end();
				break;
			default:
				use_or_retire(unit_below(4) < (grow ? 3 : 1));
				break;
		}
	}
}

/* No block goes back and forth: the list is one page of names for many blocks. */
static void
test_long_list(void)
{
	HybMetaPage *meta;
	int			n = 3 * (int) HYB_FREELIST_CAPACITY / HYB_MAX_PENDING * HYB_MAX_PENDING;
	int			trunks = 0;

	ix = index_file_create(NULL);
	meta = index_file_meta();
	memset(used, 0, sizeof(used));
	for (int i = 0; i < n; i += HYB_MAX_PENDING)
	{
		look("a long list", 0);
		reserve(HYB_MAX_PENDING, 0);
		for (uint32 j = 0; j < meta->npending; j++)
			used[meta->pending[j]] = true;
		meta->npending = 0;
		index_file_log(HYB_METAPAGE_BLKNO);
	}
	for (BlockNumber block = 1; block < index_file_length();)
	{
		while (meta->npending < HYB_MAX_PENDING && block < index_file_length())
		{
			used[block] = false;
			meta->pending[meta->npending++] = block++;
		}
		index_file_log(HYB_METAPAGE_BLKNO);
		settle();
	}
	CHECK(count[FREE] == n, "%d blocks of %d are free", count[FREE], n);
	for (BlockNumber trunk = meta->freelist; BlockNumberIsValid(trunk); trunks++)
		trunk = hyb_page_opaque(index_file_page(trunk))->link;
	CHECK(trunks == (n + HYB_FREELIST_CAPACITY) / (HYB_FREELIST_CAPACITY + 1),
		  "%d blocks take %d pages of names", n, trunks);
}

/* All blocks on their way to a list are pinned, and it has no page: the file grows. */
static void
test_all_pinned(bool end)
{
	HybMetaPage *meta;

	ix = index_file_create(NULL);
	meta = index_file_meta();
	memset(used, 0, sizeof(used));
	look("an empty file", 0);
	reserve(3, 0);
	if (end)
		meta->cut = 2;
	index_file_log(HYB_METAPAGE_BLKNO);
	for (BlockNumber block = 1; block <= 3; block++)
	{
		hyb_page_init(index_file_page(block), ix, HYB_PAGE_DELTA, 0, 1);
		index_file_log(block);
		if (block > 1 || !end)
			index_file_pin(block);
	}
	settle();
	CHECK(count[FREE] == (end ? 1 : 4) && count[END] == (end ? 3 : 0),
		  "%d and %d blocks are on lists", count[FREE], count[END]);
	pin_some(0);
	settle();
}

/*
 * Scans have pinned all blocks that the first page of the free list names, and those
 * of the second one are used up.  The second page stays, since the first one has a
 * link to it.
 */
static void
test_second_page_empty(void)
{
	HybMetaPage *meta;
	BlockNumber first;
	BlockNumber second;

	ix = index_file_create(NULL);
	meta = index_file_meta();
	memset(used, 0, sizeof(used));
	for (int i = 0; i < (int) HYB_FREELIST_CAPACITY + 5; i++)
	{
		BlockNumber block = index_file_extend();

		hyb_page_init(index_file_page(block), ix, HYB_PAGE_DELTA, 0, 1);
		index_file_log(block);
		meta->pending[meta->npending++] = block;
		index_file_log(HYB_METAPAGE_BLKNO);
		settle();
	}
	first = meta->freelist;
	second = hyb_page_opaque(index_file_page(first))->link;
	CHECK(hyb_page_opaque(index_file_page(first))->count == 3 &&
		  hyb_page_opaque(index_file_page(second))->count == HYB_FREELIST_CAPACITY,
		  "the pages of the free list are not as the test wants them");
	for (int i = 0; i < 3; i++)
		index_file_pin(hyb_freelist_blocks(index_file_page(first))[i]);
	while (hyb_page_opaque(index_file_page(second))->count > 0)
	{
		reserve(HYB_MAX_PENDING, 0);
		while (meta->npending > 0)
			used[meta->pending[--meta->npending]] = true;
		index_file_log(HYB_METAPAGE_BLKNO);
	}
	CHECK(count[FREE] == 5, "%d blocks are free", count[FREE]);
	pin_some(0);
	reserve(5, 0);
	CHECK(count[FREE] == 0, "%d blocks are still free", count[FREE]);
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
	{
		test_long_list();
		test_all_pinned(false);
		test_all_pinned(true);
		test_second_page_empty();
		test_random();
	}
	return unit_report("space");
}
