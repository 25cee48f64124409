/*
 * arena.c
 *		Memory of the trees: chunks of one size, shared or backend-local.
 *
 * The shared arena is a few dynamic shared memory segments, each twice as
 * large as the one before the last, cut into chunks.  A free chunk's header
 * links it to the next one.  Segments are never given back: they are the high
 * water mark of what hybridindex.dynamic_memory allows.
 *
 * The server's DSA would do as well, but for one thing: it creates segments
 * with its locks held, so when the operating system has no memory the error
 * cannot be caught without letting go of every LWLock, the partition lock of
 * a uniqueness check among them.  Here a segment is created with no lock held
 * that the creation takes part in, and failure is an answer.
 */
#include "compat.h"

#include "dynamic/arena.h"
#include "dynamic/shared.h"
#include "dynamic/slot.h"
#include "dynamic/catchup.h"
#include "miscadmin.h"
#include "page/config.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* Chunks of the first segment; how often that doubles (to 1 GB). */
#define HYB_SEGMENT_MIN		64
#define HYB_SEGMENT_DOUBLINGS	10

/* After a failure to get shared memory, do not try again for so long. */
#define HYB_RETRY_MS		1000

/* Numbers of chunks that references can name. */
#define HYB_MAX_CHUNKS		((uint32) 1 << (32 - HYB_REF_OFFSET_BITS))

StaticAssertDecl(HYB_CHUNK_SIZE / 4 == 1 << HYB_REF_OFFSET_BITS,
				 "references name places in a chunk by fours");

HybArena	hyb_shared_arena = {.shared = true};

/* Segments that this backend has mapped; all below nattached, maybe more. */
static bool attached[HYB_MAX_SEGMENTS];
static uint32 nattached = 0;

HybArena *
hyb_arena_create(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "hybrid trees",
												  ALLOCSET_DEFAULT_SIZES);
	HybArena   *arena = MemoryContextAllocZero(context, sizeof(HybArena));

	arena->context = context;
	return arena;
}

/* Room for chunk numbers below n in arena->addr. */
static void
enlarge_addr(HybArena *arena, uint32 n)
{
	uint32		naddr = Max(arena->naddr, 16);
	MemoryContext context = arena->shared ? TopMemoryContext : arena->context;

	if (n <= arena->naddr)
		return;
	while (naddr < n)
		naddr *= 2;
	if (arena->addr == NULL)
		arena->addr = MemoryContextAllocZero(context, naddr * sizeof(char *));
	else
	{
		arena->addr = repalloc_huge(arena->addr, naddr * sizeof(char *));
		memset(arena->addr + arena->naddr, 0,
			   (naddr - arena->naddr) * sizeof(char *));
	}
	arena->naddr = naddr;
}

/* ---- shared segments ---- */

static void
trim_at_exit(int code, Datum arg)
{
	hyb_arena_trim(&hyb_shared_arena);
}

/* Enter a mapped segment's chunks into the table of addresses. */
static void
enter_segment(uint32 n, dsm_segment *seg)
{
	const HybSegment *segment = &hyb_control->segments[n];
	char	   *base = dsm_segment_address(seg);

	for (uint32 i = 0; i < segment->nchunks; i++)
		hyb_shared_arena.addr[segment->first + i] =
			base + (Size) i * HYB_CHUNK_SIZE;
	attached[n] = true;
	while (nattached < HYB_MAX_SEGMENTS && attached[nattached])
		nattached++;
}

bool
hyb_arena_attached(void)
{
	return nattached == pg_atomic_read_u32(&hyb_control->nsegments);
}

/*
 * Map a segment for the life of the backend.  The resource owner has it only
 * until it is mapped, to clean up after an error.
 */
static void
attach_segment(uint32 n)
{
	const HybSegment *segment = &hyb_control->segments[n];
	dsm_segment *seg;

	enlarge_addr(&hyb_shared_arena, segment->first + segment->nchunks);
	seg = dsm_attach(segment->handle);
	if (seg == NULL)
		elog(ERROR, "shared memory of hybridindex has vanished");
	dsm_pin_mapping(seg);
	enter_segment(n, seg);
}

void
hyb_arena_attach(void)
{
	uint32		n = pg_atomic_read_u32(&hyb_control->nsegments);

	pg_read_barrier();
	for (uint32 i = nattached; i < n; i++)
		if (!attached[i])
			attach_segment(i);
}

/*
 * dsm_create, but NULL where that raises an error for want of resources.
 *
 * Catching the error without aborting anything is safe: dsm_create holds no
 * lock when it asks the operating system for memory (and asks to be told,
 * rather than raise an error, when the server's table of segments is full),
 * and with no resource owner nothing else remembers the attempt but a small
 * descriptor in backend memory.  elog.c sets the holdoff counts to zero when
 * it raises an error; locks of callers (the partition lock of a uniqueness
 * check) are still held, so they are put back.
 */
dsm_segment *
hyb_create_segment(Size size)
{
	static TimestampTz retry_at = 0;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	dsm_segment *volatile seg = NULL;

	if (retry_at != 0 && GetCurrentTimestamp() < retry_at)
		return NULL;

	CurrentResourceOwner = NULL;
	PG_TRY();
	{
		seg = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	}
	PG_CATCH();
	{
		int			code = geterrcode();

		CurrentResourceOwner = owner;
		if (code == ERRCODE_QUERY_CANCELED || code == ERRCODE_ADMIN_SHUTDOWN ||
			code == ERRCODE_CRASH_SHUTDOWN)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;

	retry_at = seg != NULL ? 0 :
		GetCurrentTimestamp() + HYB_RETRY_MS * INT64CONST(1000);
	return seg;
}

/*
 * Add a segment to the shared arena.  Two backends may do so at once; then
 * there are two new ones.
 */
static bool
add_segment(void)
{
	static bool exit_registered = false;
	HybArena   *arena = &hyb_shared_arena;
	HybControl *control = hyb_control;
	uint32		n = pg_atomic_read_u32(&control->nsegments);
	uint32		size;
	uint32		first;
	uint32		skip;
	dsm_segment *seg;

	/* a stand-alone backend cannot attach, and has nobody to share with */
	if (!IsUnderPostmaster || n >= HYB_MAX_SEGMENTS)
		return false;
	if (!exit_registered)
	{
		before_shmem_exit(trim_at_exit, (Datum) 0);
		exit_registered = true;
	}

	size = HYB_SEGMENT_MIN << Min(n / 2, HYB_SEGMENT_DOUBLINGS);
	first = n == 0 ? 0 :
		control->segments[n - 1].first + control->segments[n - 1].nchunks;
	if (first + size > HYB_MAX_CHUNKS)
		return false;
	enlarge_addr(arena, first + 4 * size);
	seg = hyb_create_segment((Size) size * HYB_CHUNK_SIZE);
	if (seg == NULL)
		return false;

	LWLockAcquire(&control->lock.lock, LW_EXCLUSIVE);
	n = pg_atomic_read_u32(&control->nsegments);
	first = n == 0 ? 0 :
		control->segments[n - 1].first + control->segments[n - 1].nchunks;
	if (n >= HYB_MAX_SEGMENTS || first + size > HYB_MAX_CHUNKS ||
		first + size > arena->naddr)
	{
		LWLockRelease(&control->lock.lock);
		dsm_detach(seg);
		return true;			/* others were at it: look again */
	}
	dsm_pin_segment(seg);
	control->segments[n].handle = dsm_segment_handle(seg);
	control->segments[n].first = first;
	control->segments[n].nchunks = size;
	enter_segment(n, seg);

	/* chunk 0 is not handed out */
	skip = n == 0 ? 1 : 0;
	for (uint32 i = skip; i + 1 < size; i++)
		hyb_chunk(arena, first + i)->next = first + i + 1;

	SpinLockAcquire(&control->chunk_mutex);
	hyb_chunk(arena, first + size - 1)->next = control->free_chunks;
	control->free_chunks = first + skip;
	control->nfree += size - skip;
	SpinLockRelease(&control->chunk_mutex);

	/* the table entry is complete before others look at it */
	pg_write_barrier();
	pg_atomic_write_u32(&control->nsegments, n + 1);
	LWLockRelease(&control->lock.lock);
	return true;
}

bool
hyb_arena_available(void)
{
	if (pg_atomic_read_u32(&hyb_control->nsegments) == 0 && !add_segment())
		return false;
	hyb_arena_attach();
	return true;
}

/*
 * Move up to n chunks from the free list to the pocket.  Returns how many; a
 * chunk whose segment is not mapped here ends it.
 */
static uint32
take_free(HybArena *arena, uint32 n)
{
	HybControl *control = hyb_control;
	uint32		had = 0;

	SpinLockAcquire(&control->chunk_mutex);
	while (had < n && control->free_chunks != 0 &&
		   control->free_chunks < arena->naddr &&
		   arena->addr[control->free_chunks] != NULL)
	{
		uint32		chunk = control->free_chunks;
		HybChunk   *header = hyb_chunk(arena, chunk);

		control->free_chunks = header->next;
		control->nfree--;
		header->next = arena->pocket;
		arena->pocket = chunk;
		arena->npocket++;
		had++;
	}
	SpinLockRelease(&control->chunk_mutex);
	return had;
}

/*
 * Chunks in pockets count against the budget as those in trees do, so the sum
 * never exceeds it, whoever asks at the same time.
 */
static bool
charge(uint64 bytes)
{
	uint64		budget = (uint64) hyb_dynamic_memory_kb * 1024;

	if (pg_atomic_fetch_add_u64(&hyb_control->total_bytes, bytes) + bytes <= budget)
		return true;
	pg_atomic_fetch_sub_u64(&hyb_control->total_bytes, bytes);
	return false;
}

static bool
reserve_shared(HybArena *arena, uint32 n)
{
	while (arena->npocket < n)
	{
		uint32		missing = n - arena->npocket;
		uint64		bytes = (uint64) missing * HYB_CHUNK_SIZE;

		hyb_arena_attach();
		if (!charge(bytes) && !(hyb_slots_evict(bytes) && charge(bytes)))
			return false;
		missing -= take_free(arena, missing);
		if (missing == 0)
			break;
		pg_atomic_fetch_sub_u64(&hyb_control->total_bytes,
								(int64) missing * HYB_CHUNK_SIZE);
		if (hyb_arena_attached() &&
			*(volatile uint32 *) &hyb_control->nfree == 0 && !add_segment())
			return false;
	}
	return true;
}

/* ---- both kinds ---- */

bool
hyb_arena_reserve(HybArena *arena, uint32 n)
{
	if (arena->shared)
		return reserve_shared(arena, n);

	while (arena->npocket < n)
	{
		uint32		chunk = arena->nchunks + 1;

		enlarge_addr(arena, chunk + 1);
		arena->addr[chunk] = MemoryContextAlloc(arena->context, HYB_CHUNK_SIZE);
		arena->nchunks = chunk;
		hyb_arena_put(arena, chunk);
	}
	return true;
}

uint32
hyb_arena_take(HybArena *arena, uint32 kind)
{
	uint32		chunk = arena->pocket;
	HybChunk   *header;

	if (arena->npocket == 0)
		elog(ERROR, "no chunk was reserved");
	header = hyb_chunk(arena, chunk);
	arena->pocket = header->next;
	arena->npocket--;
	header->next = 0;
	header->used = HYB_CHUNK_HEADER;
	header->kind = kind;
	return chunk;
}

void
hyb_arena_put(HybArena *arena, uint32 chunk)
{
	hyb_chunk(arena, chunk)->next = arena->pocket;
	arena->pocket = chunk;
	arena->npocket++;
}

void
hyb_arena_put_chain(HybArena *arena, uint32 first)
{
	while (first != 0)
	{
		uint32		next = hyb_chunk(arena, first)->next;

		hyb_arena_put(arena, first);
		first = next;
	}
}

void
hyb_arena_trim(HybArena *arena)
{
	HybControl *control = hyb_control;
	uint32		last;

	if (!arena->shared || arena->npocket == 0)
		return;
	for (last = arena->pocket; hyb_chunk(arena, last)->next != 0;)
		last = hyb_chunk(arena, last)->next;

	SpinLockAcquire(&control->chunk_mutex);
	hyb_chunk(arena, last)->next = control->free_chunks;
	control->free_chunks = arena->pocket;
	control->nfree += arena->npocket;
	SpinLockRelease(&control->chunk_mutex);
	pg_atomic_fetch_sub_u64(&control->total_bytes,
							(int64) arena->npocket * HYB_CHUNK_SIZE);
	arena->pocket = 0;
	arena->npocket = 0;
}
