/*
 * index_file.c
 *		See index_file.h.
 */
#include "index_file.h"

#include "access/amapi.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/proc.h"
#include "utils/rel.h"

/* The access method: not a summarizing one. */
static IndexAmRoutine method;

#define require(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s: %s\n", __func__, #condition); \
			abort(); \
		} \
	} while (0)

/* Local buffers: the buffer of block n is -n - 1. */
static Block pages[INDEX_FILE_BLOCKS];
static Block standby[INDEX_FILE_BLOCKS];
static int	locks[INDEX_FILE_BLOCKS];	/* BUFFER_LOCK_*, of the test's process */
static int	pins[INDEX_FILE_BLOCKS];	/* of the test's process */
static bool foreign[INDEX_FILE_BLOCKS]; /* pinned by another one */
static BlockNumber nblocks;

Block	   *LocalBufferBlockPointers = pages;
int			NLocBuffer = INDEX_FILE_BLOCKS;

static BlockNumber
block_of(Buffer buf)
{
	require(buf < 0 && (BlockNumber) (-buf - 1) < nblocks);
	return (BlockNumber) (-buf - 1);
}

/* ---- for tests ---- */

BlockNumber
index_file_extend(void)
{
	require(nblocks < INDEX_FILE_BLOCKS);
	pages[nblocks] = malloc(BLCKSZ);
	standby[nblocks] = malloc(BLCKSZ);
	memset(pages[nblocks], 0, BLCKSZ);
	memset(standby[nblocks], 0, BLCKSZ);
	return nblocks++;
}

HybIndex *
index_file_create(HybKeyDesc *desc)
{
	static SMgrRelationData smgr;
	static HybIndex ix;
	Relation	rel = hyb_fuzz_relation();

	require(index_file_held() == 0);
	while (nblocks > 0)
	{
		nblocks--;
		free(pages[nblocks]);
		free(standby[nblocks]);
		foreign[nblocks] = false;
	}
	smgr.smgr_cached_nblocks[MAIN_FORKNUM] = InvalidBlockNumber;
	rel->rd_smgr = &smgr;
	rel->rd_rel->relpersistence = RELPERSISTENCE_TEMP;
	rel->rd_indam = &method;
	rel->rd_islocaltemp = true;
	rel->rd_index->indnkeyatts = desc != NULL ? (int16) desc->nkeys : 1;
	ix = (HybIndex) {.rel = rel,.desc = desc,.incarnation = 77};
	ignore_checksum_failure = false;
	hyb_meta_init(pages[index_file_extend()], &ix);
	index_file_log(HYB_METAPAGE_BLKNO);
	return &ix;
}

Page
index_file_page(BlockNumber block)
{
	require(block < nblocks);
	return pages[block];
}

HybMetaPage *
index_file_meta(void)
{
	return hyb_page_meta(index_file_page(HYB_METAPAGE_BLKNO));
}

BlockNumber
index_file_length(void)
{
	return nblocks;
}

void
index_file_pin(BlockNumber block)
{
	require(block < nblocks && !foreign[block]);
	foreign[block] = true;
}

void
index_file_unpin(BlockNumber block)
{
	require(block < nblocks && foreign[block]);
	foreign[block] = false;
}

bool
index_file_is_pinned(BlockNumber block)
{
	return foreign[block];
}

int
index_file_held(void)
{
	int			held = 0;

	for (BlockNumber i = 0; i < nblocks; i++)
		held += pins[i] + (locks[i] != BUFFER_LOCK_UNLOCK);
	return held;
}

/* A copy without what lies between pd_lower and pd_upper, which is not logged. */
static void
copy_logged(char *copy, Page page)
{
	PageHeader	header = (PageHeader) page;

	memcpy(copy, page, BLCKSZ);
	if (header->pd_lower >= SizeOfPageHeaderData && header->pd_lower < header->pd_upper)
		memset(copy + header->pd_lower, 0, header->pd_upper - header->pd_lower);
}

bool
index_file_is_logged(BlockNumber block)
{
	PGAlignedBlock ours;
	PGAlignedBlock theirs;

	copy_logged(ours.data, pages[block]);
	copy_logged(theirs.data, standby[block]);
	return memcmp(ours.data, theirs.data, BLCKSZ) == 0;
}

void
index_file_log(BlockNumber block)
{
	hyb_page_assert_valid(pages[block]);
	copy_logged(standby[block], pages[block]);
}

/* ---- buffers ---- */

Buffer
ReadBuffer(Relation rel, BlockNumber block)
{
	if (block == P_NEW)
		block = index_file_extend();
	require(block < nblocks);
	pins[block]++;
	return -(Buffer) block - 1;
}

/* The block is not in memory, unless another process has it. */
Buffer
ReadBufferExtended(Relation rel, ForkNumber fork, BlockNumber block,
				   ReadBufferMode mode, BufferAccessStrategy strategy)
{
	Buffer		buf = ReadBuffer(rel, block);

	require(fork == MAIN_FORKNUM && mode == RBM_ZERO_AND_LOCK);
	if (!foreign[block] && pins[block] == 1)
		memset(pages[block], 0, BLCKSZ);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	return buf;
}

PrefetchBufferResult
PrefetchBuffer(Relation rel, ForkNumber fork, BlockNumber block)
{
	require(fork == MAIN_FORKNUM && block < nblocks);
	return (PrefetchBufferResult) {
		.recent_buffer = foreign[block] || pins[block] > 0 ? -(Buffer) block - 1 : InvalidBuffer
	};
}

bool
ReadRecentBuffer(RelFileLocator locator, ForkNumber fork, BlockNumber block,
				 Buffer recent)
{
	require(block_of(recent) == block);
	pins[block]++;
	return true;
}

static void
change_lock(Buffer buf, int mode)
{
	BlockNumber block = block_of(buf);

	require(pins[block] > 0);
	require((mode == BUFFER_LOCK_UNLOCK) != (locks[block] == BUFFER_LOCK_UNLOCK));
	locks[block] = mode;
}

#if PG_MAJORVERSION_NUM >= 19
void
LockBufferInternal(Buffer buf, BufferLockMode mode)
{
	change_lock(buf, mode);
}

void
UnlockBuffer(Buffer buf)
{
	change_lock(buf, BUFFER_LOCK_UNLOCK);
}

/* Asked for shared buffers only; those of the file are local. */
bool
BufferIsLockedByMe(Buffer buf)
{
	abort();
}

bool
BufferIsLockedByMeInMode(Buffer buf, BufferLockMode mode)
{
	abort();
}
#else
void
LockBuffer(Buffer buf, int mode)
{
	change_lock(buf, mode);
}
#endif

bool
ConditionalLockBuffer(Buffer buf)
{
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	return true;
}

bool
ConditionalLockBufferForCleanup(Buffer buf)
{
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	if (IsBufferCleanupOK(buf))
		return true;
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	return false;
}

bool
IsBufferCleanupOK(Buffer buf)
{
	BlockNumber block = block_of(buf);

	require(locks[block] == BUFFER_LOCK_EXCLUSIVE);
	return pins[block] == 1 && !foreign[block];
}

void
ReleaseBuffer(Buffer buf)
{
	BlockNumber block = block_of(buf);

	require(pins[block] > 0);
	pins[block]--;
	require(pins[block] > 0 || locks[block] == BUFFER_LOCK_UNLOCK);
}

void
UnlockReleaseBuffer(Buffer buf)
{
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	ReleaseBuffer(buf);
}

BlockNumber
BufferGetBlockNumber(Buffer buf)
{
	return block_of(buf);
}

BlockNumber
RelationGetNumberOfBlocksInFork(Relation rel, ForkNumber fork)
{
	return nblocks;
}

/* ---- what is logged ---- */

void
hyb_wal_begin(HybWalSet *set, Relation rel)
{
	*set = (HybWalSet) {.rel = rel};
}

static HybWalBuffer *
buffer_of(HybWalSet *set, Buffer buf)
{
	require(locks[block_of(buf)] == BUFFER_LOCK_EXCLUSIVE);
	for (int i = 0; i < set->nbuffers; i++)
		if (set->buffers[i].buf == buf)
			return &set->buffers[i];
	require(set->nbuffers < HYB_WAL_MAX_BUFFERS);
	set->buffers[set->nbuffers] = (HybWalBuffer) {.buf = buf};
	return &set->buffers[set->nbuffers++];
}

void
hyb_wal_range(HybWalSet *set, Buffer buf, uint16 offset, uint16 length)
{
	HybWalBuffer *buffer = buffer_of(set, buf);

	require(buffer->nranges < HYB_WAL_MAX_RANGES && offset + length <= BLCKSZ);
	buffer->ranges[buffer->nranges++] = (HybWalRange) {offset, length};
}

void
hyb_wal_lower(HybWalSet *set, Buffer buf)
{
	hyb_wal_range(set, buf, offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex));
}

void
hyb_wal_opaque(HybWalSet *set, Buffer buf)
{
	hyb_wal_range(set, buf, BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)), sizeof(HybPageOpaque));
}

void
hyb_wal_image(HybWalSet *set, Buffer buf)
{
	buffer_of(set, buf)->image = true;
}

void
hyb_wal_commit(HybWalSet *set)
{
	require(CritSectionCount > 0);
	for (int i = 0; i < set->nbuffers; i++)
	{
		const HybWalBuffer *buffer = &set->buffers[i];
		BlockNumber block = block_of(buffer->buf);

		hyb_page_assert_valid(pages[block]);
		if (buffer->image)
			copy_logged(standby[block], pages[block]);
		for (int r = 0; r < buffer->nranges; r++)
			memcpy((char *) standby[block] + buffer->ranges[r].offset,
				   (char *) pages[block] + buffer->ranges[r].offset,
				   buffer->ranges[r].length);
	}
}

/* ---- others ---- */

/* ---- functions for shared relations, which are never called ---- */

int			LockTimeout = 0;
LWLockPadded *MainLWLockArray;
BufferDescPadded *BufferDescriptors;

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	abort();
}

void
LWLockRelease(LWLock *lock)
{
	abort();
}

/* A test has all locks of slots, and does not lock buffers by these. */
bool
LWLockHeldByMe(LWLock *lock)
{
	return true;
}

bool
LWLockHeldByMeInMode(LWLock *lock, LWLockMode mode)
{
	return true;
}

uint32
BufTableHashCode(BufferTag *tag)
{
	abort();
}

int
BufTableLookup(BufferTag *tag, uint32 hash)
{
	abort();
}

LockAcquireResult
LockAcquire(const LOCKTAG *tag, LOCKMODE mode, bool session, bool dont_wait)
{
	abort();
}

bool
LockRelease(const LOCKTAG *tag, LOCKMODE mode, bool session)
{
	abort();
}

void
pg_re_throw(void)
{
	abort();
}

/* What the includes declare, in servers that have injection points. */
#if PG_MAJORVERSION_NUM >= 18
void		InjectionPointRun(const char *name, void *arg);

void
InjectionPointRun(const char *name, void *arg)
#else
void		InjectionPointRun(const char *name);

void
InjectionPointRun(const char *name)
#endif
{
}
