/*
 * shared_arena.c
 *		The arena in shared memory.
 *
 * It is a table of dynamic shared memory segments, cut into chunks.  The place
 * in the table says which numbers a segment's chunks have, and its size: eight
 * segments of 256 kB, eight of 512 kB, and so on.  So the memory grows by an
 * eighth to a sixteenth at a time.  Chunks are taken from the first segments,
 * so the last ones run empty.
 *
 * Giving back.  A backend that finds a segment without a chunk in use, at the
 * end of a transaction or of the process, takes it out of the table, unless
 * little else is free.  No tree is in it, and every tree is used with its slot
 * locked, so no backend has an address in it.  Other backends notice that its
 * serial number is gone from the table when their transaction ends, or before
 * they use the arena again, and unmap it.  Idle sessions do neither.  So the
 * backend that takes the segment out has the operating system free its pages
 * (MADV_REMOVE): what idle sessions still map costs addresses, not memory.
 * The place in the table is free at once, for a segment with another serial
 * number.
 *
 * What is reserved never exceeds the budget, and what is in use is what is
 * reserved less what is free, so there is nothing that could be counted wrong
 * for ever.  A pocket that an error or an exit has left behind goes back at the
 * end of the (sub)transaction or the process.
 *
 * Small trees may lie in all segments of a large arena that is mostly free.
 * Then trees that were not read for a second are dropped, and the next reader
 * builds them anew in the first segments.  In any arena trees that were not
 * read for minutes are dropped.
 *
 * Why not the server's DSA?  Two things are missing.  It creates segments with
 * its locks held, so a failure can only be caught by releasing all LWLocks.
 * But the search of a btree up the stack may hold one, whose comparison function
 * uses an index of ours.  Here no lock is held that the creation needs, and a failure
 * is an answer.  And segments that DSA gives back keep their memory until the
 * last idle session has gone.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "storage/ipc.h"
#include "storage/spin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Segments of one size; chunks of those of the first size. */
#define HYB_SEGMENT_CLASS	8
#define HYB_SEGMENT_MIN		16

/* A segment that only fills up the budget has this many chunks at least. */
#define HYB_SEGMENT_LEAST	4

/*
 * Free chunks that are kept: these, or one for each HYB_SPARE_SHARE in use.  A
 * segment goes all the same if it is four times as large as one that could be
 * made instead.
 */
#define HYB_SPARE_CHUNKS	8
#define HYB_SPARE_SHARE		8

/* Idle trees are dropped if the arena is larger than this. */
#define HYB_SMALL_CHUNKS	64

/* It is sparse if less than one in HYB_SPARSE_SHARE chunks is in use. */
#define HYB_SPARSE_SHARE	4

/*
 * When a tree counts as idle, and how often idle trees are looked for, in ms:
 * in a sparse arena, and in another.
 */
#define HYB_SPARSE_IDLE_MS	1000
#define HYB_SPARSE_CHECK_MS	1000
#define HYB_IDLE_MS			300000
#define HYB_IDLE_CHECK_MS	60000

/* Membership filters may have 1 of this many chunks of the budget. */
#define FILTERS_SHARE	2

/* Chunks taken under one hold of the spinlock. */
#define HYB_TAKE_CHUNKS		32

/* First chunks of a segment that are not handed out: 0 names no chunk. */
#define fixed_chunks(n) ((n) == 0 ? (uint32) 1 : 0)

StaticAssertDecl(HYB_CHUNK_SIZE / 4 == 1 << HYB_REF_OFFSET_BITS,
				 "references name places in a chunk by fours");
StaticAssertDecl(HYB_SEGMENT_CLASS * HYB_SEGMENT_MIN *
				 (((uint64) 1 << (HYB_MAX_SEGMENTS / HYB_SEGMENT_CLASS)) - 1) <= HYB_MAX_CHUNKS,
				 "references must name the chunks of all segments");

static bool reserve_shared(HybArena *arena, uint32 n);
static void trim_shared(HybArena *arena);
static bool shared_is_scarce(const HybArena *arena);

HybArena	hyb_shared_arena = {
	.reserve = reserve_shared,
	.trim = trim_shared,
	.scarce = shared_is_scarce
};
bool		(*hyb_arena_evict) (uint64 bytes, int idle_ms) = NULL;

int			hyb_dynamic_memory_kb = 64 * 1024;
int			hyb_test_pressure = 0;

void
hyb_arena_init(void)
{
	/* One pool serves the whole server, so no session may size it. */
	DefineCustomIntVariable("hybridindex.dynamic_memory",
							"Sets the memory for the dynamic stages of all hybrid indexes together.",
							"Where it does not suffice, merges start earlier; no insertion fails for lack of it.",
							&hyb_dynamic_memory_kb,
							64 * 1024, 64, HYB_MAX_DYNAMIC_KB,
							PGC_SIGHUP,
							GUC_UNIT_KB | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
#ifdef USE_ASSERT_CHECKING
	DefineCustomIntVariable("hybridindex.test_pressure",
							"Has trees be as if memory was plentiful (1) or scarce (2), for tests.",
							NULL,
							&hyb_test_pressure,
							0, 0, 2,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
#endif
}

/*
 * A segment of the shared arena.  Which chunk numbers it has follows from its
 * place in the table.
 */
typedef struct Segment
{
	uint64		serial;			/* never repeats; 0: there is none */
	dsm_handle	handle;
	uint32		nchunks;
	uint32		nfree;
	uint32		unused;			/* chunks from this one on were never used */
	uint32		free_chunks;	/* chain of those that were, 0 ends it */
} Segment;

typedef struct SegmentTable
{
	pg_atomic_uint64 made;		/* segments, ever, and the last one's serial */
	pg_atomic_uint64 gone;
	pg_atomic_uint64 private_bytes; /* trees in backends' own memory */
	pg_atomic_uint64 idle_check;	/* when idle trees were last looked for */
	pg_atomic_uint32 filters;	/* chunks that are set aside for membership
								 * filters */
	slock_t		mutex;			/* protects what follows */
	Segment		segments[HYB_MAX_SEGMENTS];
	uint32		nreserved;		/* chunks of all segments, but the fixed ones */
	uint32		nfree;			/* of these, free ones */
	uint32		nempty;			/* segments of free chunks only */
} SegmentTable;

static SegmentTable *table = NULL;

/* A segment as this backend has mapped it. */
typedef struct MappedSegment
{
	uint64		serial;			/* 0: not mapped */
	uint32		nchunks;
	dsm_segment *seg;
} MappedSegment;

static MappedSegment mapped[HYB_MAX_SEGMENTS];

/* table->made and gone when `mapped` was brought up to date. */
static uint64 seen_made = 0;
static uint64 seen_gone = 0;

/* Bytes of this backend's own trees that others know of. */
static uint64 private_published = 0;

static void register_callbacks(void);

uint64
hyb_arena_all_private(void)
{
	return pg_atomic_read_u64(&table->private_bytes);
}

/* ---- the table of segments ---- */

/* Most chunks that segment n may have, and the number of its first one. */
static inline uint32
segment_size(uint32 n)
{
	return HYB_SEGMENT_MIN << (n / HYB_SEGMENT_CLASS);
}

static inline uint32
segment_first(uint32 n)
{
	uint32		class = n / HYB_SEGMENT_CLASS;

	return HYB_SEGMENT_CLASS * HYB_SEGMENT_MIN * (((uint32) 1 << class) - 1) +
		n % HYB_SEGMENT_CLASS * segment_size(n);
}

static inline uint32
segment_of(uint32 chunk)
{
	uint32		all = HYB_SEGMENT_CLASS * HYB_SEGMENT_MIN;
	uint32		class = pg_leftmost_one_pos32(chunk / all + 1);

	return class * HYB_SEGMENT_CLASS +
		(chunk - all * (((uint32) 1 << class) - 1)) / (HYB_SEGMENT_MIN << class);
}

#ifdef USE_ASSERT_CHECKING
/* A segment, and what is counted of all; the mutex is held. */
static void
segment_assert_valid(uint32 n)
{
	const Segment *segment = &table->segments[n];

	Assert(segment->serial != 0 && segment->serial <= pg_atomic_read_u64(&table->made));
	Assert(segment->nchunks >= 1 && segment->nchunks <= segment_size(n));
	Assert(segment->unused >= fixed_chunks(n) && segment->unused <= segment->nchunks);
	/* what was never used is free */
	Assert(segment->nfree >= segment->nchunks - segment->unused);
	Assert(segment->nfree <= segment->nchunks - fixed_chunks(n));
	Assert(segment->free_chunks == 0 || segment_of(segment->free_chunks) == n);
	Assert((segment->free_chunks == 0) ==
		   (segment->nfree == segment->nchunks - segment->unused));
	Assert(table->nfree >= segment->nfree && table->nfree <= table->nreserved);
	Assert(table->nempty <= HYB_MAX_SEGMENTS);
}
#else
#define segment_assert_valid(n) ((void) (n))
#endif

/* All that is ever free of it. */
static inline uint32
segment_capacity(uint32 n)
{
	return table->segments[n].nchunks - fixed_chunks(n);
}

uint64
hyb_arena_budget(void)
{
	return Min((uint64) hyb_dynamic_memory_kb * 1024, hyb_segment_limit());
}

static inline uint32
budget_chunks(void)
{
	return Min(hyb_arena_budget() / HYB_CHUNK_SIZE, HYB_MAX_CHUNKS);
}

static inline uint32
used_chunks(void)
{
	return table->nreserved - table->nfree;
}

/* Chunks in pockets count; read without the mutex. */
static bool
shared_is_scarce(const HybArena *arena)
{
	uint32		reserved = table->nreserved;
	uint32		filters = pg_atomic_read_u32(&table->filters);

	if (unlikely(hyb_test_pressure != 0))
		return hyb_test_pressure > 1;
	return (uint64) (reserved - Min(reserved, table->nfree + filters)) * 2 + filters >=
		budget_chunks();
}

/* ---- the share of membership filters ---- */

uint32
hyb_arena_filters_room(uint32 but)
{
	uint32		share = budget_chunks() / FILTERS_SHARE;
	uint32		filters = table == NULL ? 0 : pg_atomic_read_u32(&table->filters);

	return share - Min(share, filters - Min(filters, but));
}

bool
hyb_arena_set_aside(uint32 nchunks)
{
	uint32		filters = pg_atomic_read_u32(&table->filters);

	do
	{
		if (nchunks > hyb_arena_filters_room(0))
			return false;
	} while (!pg_atomic_compare_exchange_u32(&table->filters, &filters, filters + nchunks));
	return true;
}

void
hyb_arena_give_back(uint32 nchunks)
{
	Assert(pg_atomic_read_u32(&table->filters) >= nchunks);
	(void) pg_atomic_fetch_sub_u32(&table->filters, nchunks);
}

uint64
hyb_arena_filters(void)
{
	return table == NULL ? 0 :
		(uint64) pg_atomic_read_u32(&table->filters) * HYB_CHUNK_SIZE;
}

bool
hyb_arena_filters_exceed(void)
{
	return pg_atomic_read_u32(&table->filters) > budget_chunks() / FILTERS_SHARE;
}

uint64
hyb_arena_tree_budget(void)
{
	uint64		budget = hyb_arena_budget();

	return budget - Min(budget, hyb_arena_filters());
}

uint64
hyb_arena_tree_used(void)
{
	uint64		used = hyb_arena_used();

	return used - Min(used, hyb_arena_filters());
}

uint64
hyb_arena_used(void)
{
	uint32		used = 0;

	if (table != NULL)
	{
		SpinLockAcquire(&table->mutex);
		used = used_chunks();
		SpinLockRelease(&table->mutex);
	}
	return (uint64) used * HYB_CHUNK_SIZE;
}

uint64
hyb_arena_reserved(uint32 *nsegments)
{
	uint64		bytes = 0;

	*nsegments = 0;
	SpinLockAcquire(&table->mutex);
	for (uint32 n = 0; n < HYB_MAX_SEGMENTS; n++)
	{
		if (table->segments[n].serial == 0)
			continue;
		bytes += (uint64) table->segments[n].nchunks * HYB_CHUNK_SIZE;
		(*nsegments)++;
	}
	SpinLockRelease(&table->mutex);
	return bytes;
}

/* ---- mapping ---- */

bool
hyb_arena_attached(void)
{
	return seen_made == pg_atomic_read_u64(&table->made);
}

/* Enter a segment's chunks into the table of addresses, which has room. */
static void
enter_segment(uint32 n, uint64 serial, uint32 nchunks, dsm_segment *seg)
{
	char	   *base = dsm_segment_address(seg);

	Assert(mapped[n].serial == 0);
	for (uint32 i = 0; i < nchunks; i++)
		hyb_shared_arena.addr[segment_first(n) + i] =
			base + (Size) i * HYB_CHUNK_SIZE;
	mapped[n].serial = serial;
	mapped[n].nchunks = nchunks;
	mapped[n].seg = seg;
}

static void
unmap_segment(uint32 n)
{
	dsm_segment *seg = mapped[n].seg;

	Assert(mapped[n].serial != 0);
	memset(&hyb_shared_arena.addr[segment_first(n)], 0,
		   mapped[n].nchunks * sizeof(char *));
	memset(&mapped[n], 0, sizeof(mapped[n]));
	dsm_detach(seg);
}

/*
 * Map a segment until it is given back.  The resource owner has it only until
 * it is mapped, to clean up after an error.  False if it has just been given
 * back.
 */
static bool
map_segment(uint32 n, const Segment *segment)
{
	dsm_segment *seg;

	hyb_arena_enlarge(&hyb_shared_arena, segment_first(n) + segment->nchunks);
	seg = dsm_attach(segment->handle);
	if (seg == NULL)
	{
		SpinLockAcquire(&table->mutex);
		if (table->segments[n].serial != segment->serial)
		{
			SpinLockRelease(&table->mutex);
			return false;
		}
		SpinLockRelease(&table->mutex);
		elog(ERROR, "shared memory of hybridindex has vanished");
	}
	dsm_pin_mapping(seg);
	enter_segment(n, segment->serial, segment->nchunks, seg);
	return true;
}

/* Let go of segments that were given back.  Never fails. */
static void
unmap_gone(void)
{
	bool		gone[HYB_MAX_SEGMENTS];

	SpinLockAcquire(&table->mutex);
	seen_gone = pg_atomic_read_u64(&table->gone);
	for (uint32 n = 0; n < HYB_MAX_SEGMENTS; n++)
		gone[n] = mapped[n].serial != 0 &&
			mapped[n].serial != table->segments[n].serial;
	SpinLockRelease(&table->mutex);
	for (uint32 n = 0; n < HYB_MAX_SEGMENTS; n++)
		if (gone[n])
			unmap_segment(n);
}

void
hyb_arena_attach(void)
{
	if (hyb_arena_attached())
		return;
	register_callbacks();
	while (!hyb_arena_attached())
	{
		Segment		segments[HYB_MAX_SEGMENTS];
		uint64		made;
		bool		all = true;

		unmap_gone();
		SpinLockAcquire(&table->mutex);
		made = pg_atomic_read_u64(&table->made);
		memcpy(segments, table->segments, sizeof(segments));
		SpinLockRelease(&table->mutex);

		for (uint32 n = 0; n < HYB_MAX_SEGMENTS && all; n++)
			if (segments[n].serial != 0 && mapped[n].serial == 0)
				all = map_segment(n, &segments[n]);
			else if (segments[n].serial != mapped[n].serial)
				all = false;
		if (all)
			seen_made = made;
	}
}

/* ---- making segments ---- */

/*
 * Chunks that segment n would have within the budget, 0 if that is too few.
 * The first segment, without which there are no trees, is always allowed.
 */
static uint32
affordable_size(uint32 n, uint32 budget)
{
	uint32		reserved = table->nreserved + fixed_chunks(0);
	uint32		size = segment_size(n);

	if (n == 0)
		return size;
	size = Min(size, budget > reserved ? budget - reserved : 0);
	return size >= HYB_SEGMENT_LEAST ? size : 0;
}

/*
 * Add a segment to the shared arena, in the first free place.  False if that
 * is impossible; true also if another backend was quicker.
 */
static bool
add_segment(void)
{
	Segment    *segment;
	uint32		budget = budget_chunks();
	uint32		n = 0;
	uint32		size;
	dsm_segment *seg;
	bool		made = false;

	/* a stand-alone backend cannot attach, and has no one to share with */
	if (!IsUnderPostmaster)
		return false;
	register_callbacks();
	SpinLockAcquire(&table->mutex);
	while (n < HYB_MAX_SEGMENTS && table->segments[n].serial != 0)
		n++;
	size = n < HYB_MAX_SEGMENTS ? affordable_size(n, budget) : 0;
	SpinLockRelease(&table->mutex);
	if (size == 0 || !hyb_segment_room((uint64) size * HYB_CHUNK_SIZE))
		return false;
	if (mapped[n].serial != 0)
		unmap_gone();
	hyb_arena_enlarge(&hyb_shared_arena, segment_first(n) + size);
	seg = hyb_create_segment((Size) size * HYB_CHUNK_SIZE);
	if (seg == NULL)
		return false;

	HOLD_INTERRUPTS();
	dsm_pin_segment(seg);
	enter_segment(n, PG_UINT64_MAX, size, seg);
	segment = &table->segments[n];
	SpinLockAcquire(&table->mutex);
	if (segment->serial == 0 && affordable_size(n, budget) >= size)
	{
		uint64		serial = pg_atomic_read_u64(&table->made) + 1;

		segment->serial = serial;
		segment->handle = dsm_segment_handle(seg);
		segment->nchunks = size;
		segment->unused = fixed_chunks(n);
		segment->free_chunks = 0;
		segment->nfree = segment_capacity(n);
		table->nreserved += segment->nfree;
		table->nfree += segment->nfree;
		table->nempty++;
		mapped[n].serial = serial;
		if (seen_made + 1 == serial)
			seen_made = serial;
		pg_atomic_write_u64(&table->made, serial);
		made = true;
		segment_assert_valid(n);
	}
	SpinLockRelease(&table->mutex);
	if (!made)
	{
		dsm_unpin_segment(dsm_segment_handle(seg));
		unmap_segment(n);
	}
	RESUME_INTERRUPTS();
	return true;
}

bool
hyb_arena_available(void)
{
	if (pg_atomic_read_u64(&table->made) == 0 && !add_segment())
		return false;
	hyb_arena_attach();
	return true;
}

/* ---- giving segments back ---- */

/*
 * The last segment that this backend has mapped and that can go, or 0: the
 * first one stays.  What this finds without the mutex is only a hint.
 */
static uint32
spare_segment(void)
{
	uint32		keep = Max(HYB_SPARE_CHUNKS, used_chunks() / HYB_SPARE_SHARE);
	uint32		vacant = 0;

	if (table->nempty == 0 || table->nfree <= keep)
		return 0;
	while (vacant < HYB_MAX_SEGMENTS && table->segments[vacant].serial != 0)
		vacant++;
	for (uint32 n = HYB_MAX_SEGMENTS - 1; n > 0; n--)
	{
		const Segment *segment = &table->segments[n];

		if (segment->serial != 0 && segment->serial == mapped[n].serial &&
			segment->nfree == segment->nchunks &&
			(table->nfree - segment->nfree >= keep ||
			 vacant + 2 * HYB_SEGMENT_CLASS <= n))
			return n;
	}
	return 0;
}

static bool
retire_segment(void)
{
	Segment    *segment;
	dsm_handle	handle;
	uint32		n;

	if (spare_segment() == 0)
		return false;
	SpinLockAcquire(&table->mutex);
	n = spare_segment();
	if (n == 0)
	{
		SpinLockRelease(&table->mutex);
		return false;
	}
	segment_assert_valid(n);
	Assert(n > 0 && table->nempty > 0);
	segment = &table->segments[n];
	handle = segment->handle;
	table->nreserved -= segment->nchunks;
	table->nfree -= segment->nchunks;
	table->nempty--;
	memset(segment, 0, sizeof(*segment));
	pg_atomic_fetch_add_u64(&table->gone, 1);
	SpinLockRelease(&table->mutex);

	HOLD_INTERRUPTS();
	hyb_segment_free_pages(mapped[n].seg);
	dsm_unpin_segment(handle);
	unmap_segment(n);
	RESUME_INTERRUPTS();
	return true;
}

/*
 * Drop trees that were not read for long, those of dropped indexes among them.
 * Where the arena is mostly free a second is long.
 */
static void
evict_idle_trees(void)
{
	uint32		reserved = table->nreserved;
	bool		sparse;
	uint64		last;
	TimestampTz now;

	if (reserved <= HYB_SMALL_CHUNKS)
		return;
	now = GetCurrentTimestamp();
	last = pg_atomic_read_u64(&table->idle_check);
	sparse = reserved - Min(table->nfree, reserved) < reserved / HYB_SPARSE_SHARE ||
		HYB_POINT_ATTACHED("idle-trees");
	if (now >= (TimestampTz) last +
		(sparse ? HYB_SPARSE_CHECK_MS : HYB_IDLE_CHECK_MS) * INT64CONST(1000) &&
		hyb_arena_attached() &&
		pg_atomic_compare_exchange_u64(&table->idle_check, &last, now))
		(void) hyb_arena_evict(PG_UINT64_MAX,
							   sparse ? HYB_SPARSE_IDLE_MS : HYB_IDLE_MS);
}

/* ---- the ends of transactions and processes ---- */

/* Nothing is locked.  Never fails. */
static void
settle(void)
{
	if (table == NULL)
		return;
	hyb_arena_trim(&hyb_shared_arena);
	if (seen_gone != pg_atomic_read_u64(&table->gone))
		unmap_gone();
	evict_idle_trees();
	while (retire_segment())
		 /* another */ ;
}

static void
arena_transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			settle();
			break;
		default:
			break;
	}
}

static void
arena_subtransaction_ends(SubXactEvent event, SubTransactionId mine,
						  SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && table != NULL)
		hyb_arena_trim(&hyb_shared_arena);
}

static void
release_arena_at_exit(int code, Datum arg)
{
	settle();
	if (table != NULL)
		pg_atomic_fetch_sub_u64(&table->private_bytes, private_published);
	private_published = 0;
}

static void
register_callbacks(void)
{
	static bool registered = false;

	if (registered)
		return;
	before_shmem_exit(release_arena_at_exit, (Datum) 0);
	RegisterXactCallback(arena_transaction_ends, NULL);
	RegisterSubXactCallback(arena_subtransaction_ends, NULL);
	registered = true;
}

/* This backend's own trees have grown, or shrunk. */
static void
publish_private(void)
{
	uint64		bytes = hyb_arena_private();

	register_callbacks();
	pg_atomic_fetch_add_u64(&table->private_bytes, bytes - private_published);
	private_published = bytes;
}

static void
table_attached(void)
{
	hyb_arena_private_changed = publish_private;
}

static void
init_segment_table(void *memory)
{
	SegmentTable *new = memory;

	pg_atomic_init_u64(&new->made, 0);
	pg_atomic_init_u64(&new->gone, 0);
	pg_atomic_init_u64(&new->private_bytes, 0);
	pg_atomic_init_u64(&new->idle_check, 0);
	pg_atomic_init_u32(&new->filters, 0);
	SpinLockInit(&new->mutex);
}

const HybSharedPart hyb_arena_part = {
	.address = (void **) &table,.size = sizeof(SegmentTable),.init = init_segment_table,
	.attached = table_attached
};

/* ---- chunks of the shared arena ---- */

/* The next free chunk of a segment that has one and is mapped. */
static uint32
pop_chunk(uint32 n)
{
	Segment    *segment = &table->segments[n];
	uint32		chunk = segment->free_chunks;

	Assert(segment->nfree > 0);
	if (chunk != 0)
		segment->free_chunks = hyb_chunk(&hyb_shared_arena, chunk)->next;
	else
		chunk = segment_first(n) + segment->unused++;
	segment->nfree--;
	Assert(segment_of(chunk) == n && chunk != 0);
	return chunk;
}

/*
 * Move chunks from the first segments that have any to the pocket, until there
 * are n, as far as the budget allows.  Not many at a time, since this may be
 * the first look at their pages.  False if there were none.
 */
static bool
take_free_chunks(HybArena *arena, uint32 n, uint32 budget)
{
	uint32		had = arena->npocket;
	uint32		used;

	SpinLockAcquire(&table->mutex);
	used = used_chunks();
	n = Min(Min(n, had + HYB_TAKE_CHUNKS),
			had + (budget > used ? budget - used : 0));
	for (uint32 i = 0; i < HYB_MAX_SEGMENTS && table->nfree > 0 &&
		 arena->npocket < n; i++)
	{
		Segment    *segment = &table->segments[i];

		if (segment->nfree == 0 || segment->serial != mapped[i].serial)
			continue;
		if (segment->nfree == segment_capacity(i))
			table->nempty--;
		while (segment->nfree > 0 && arena->npocket < n)
		{
			hyb_arena_put(arena, pop_chunk(i));
			table->nfree--;
		}
		segment_assert_valid(i);
	}
	SpinLockRelease(&table->mutex);
	return arena->npocket > had;
}

static bool
reserve_shared(HybArena *arena, uint32 n)
{
	while (arena->npocket < n)
	{
		uint32		budget = budget_chunks();
		uint64		missing;

		hyb_arena_attach();
		while (take_free_chunks(arena, n, budget))
			 /* more */ ;
		if (arena->npocket >= n)
			break;
		if (!hyb_arena_attached())
			continue;
		missing = n - arena->npocket;
		if (hyb_arena_used() / HYB_CHUNK_SIZE + missing <= budget && add_segment())
			continue;
		if (!hyb_arena_evict(missing * HYB_CHUNK_SIZE, HYB_UNUSED_MS))
			return false;
	}
	return true;
}

/*
 * Chunks of a tree come in runs of one segment, each of which goes back at
 * once.
 */
static void
trim_shared(HybArena *arena)
{
	while (arena->npocket > 0)
	{
		uint32		first = arena->pocket;
		uint32		n = segment_of(first);
		Segment    *segment = &table->segments[n];
		HybChunk   *last = hyb_chunk(arena, first);
		uint32		count = 1;

		while (count < arena->npocket && segment_of(last->next) == n)
		{
			last = hyb_chunk(arena, last->next);
			count++;
		}
		arena->pocket = last->next;
		arena->npocket -= count;

		SpinLockAcquire(&table->mutex);
		last->next = segment->free_chunks;
		segment->free_chunks = first;
		segment->nfree += count;
		table->nfree += count;
		Assert(segment->nfree <= segment_capacity(n));
		if (segment->nfree == segment_capacity(n))
			table->nempty++;
		segment_assert_valid(n);
		SpinLockRelease(&table->mutex);
	}
	hyb_arena_assert_valid(arena);
}
