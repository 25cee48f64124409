/*
 * segment.c
 *		Segments of dynamic shared memory, as far as there is memory for them.
 */
#include "base/compat.h"

#include <sys/mman.h>
#ifdef __linux__
#include <sys/statvfs.h>
#endif

#include "miscadmin.h"
#include "shared/segment.h"
#include "storage/dsm_impl.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* After a failure to get shared memory, do not try again for so long. */
#define HYB_RETRY_MS		1000

/* Where the operating system keeps POSIX shared memory. */
#define HYB_SHM_PATH		"/dev/shm"

/*
 * File systems for shared memory may be small, that of a container by
 * default has 64 MB, and parallel queries need some of it too: half is theirs.
 */
uint64
hyb_segment_limit(void)
{
	static uint64 limit = 0;

	if (limit == 0)
	{
		limit = PG_UINT64_MAX;
#ifdef __linux__
		if (dynamic_shared_memory_type == DSM_IMPL_POSIX)
		{
			struct statvfs fs;

			if (statvfs(HYB_SHM_PATH, &fs) == 0 && fs.f_blocks > 0)
				limit = (uint64) fs.f_blocks * fs.f_frsize / 2 +
					(uint64) min_dynamic_shared_memory * 1024 * 1024;
		}
#endif
	}
	return limit;
}

/* And so is half of what is left. */
bool
hyb_segment_room(uint64 bytes)
{
#ifdef __linux__
	struct statvfs fs;

	if (dynamic_shared_memory_type == DSM_IMPL_POSIX &&
		min_dynamic_shared_memory == 0 &&
		statvfs(HYB_SHM_PATH, &fs) == 0 && fs.f_blocks > 0)
		return bytes <= (uint64) fs.f_bavail * fs.f_frsize / 2;
#endif
	return true;
}

/*
 * dsm_create, but NULL where that raises an error for want of resources.
 *
 * Catching the error without aborting anything is safe: dsm_create holds no
 * lock when it asks the operating system for memory (and asks to be told,
 * rather than raise an error, when the server's table of segments is full),
 * and with no resource owner nothing else remembers the attempt but a small
 * descriptor in backend memory.  elog.c sets the holdoff counts to zero when
 * it raises an error; locks of callers (of a search whose comparison function
 * uses another index) are still held, so they are put back.
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

	Assert(size > 0 && CritSectionCount == 0);
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
 * Free the pages of a segment that nobody will look at any more, though some
 * may have it mapped.  Pages of the server's main segment are not touched.
 */
void
hyb_segment_free_pages(dsm_segment *seg)
{
#ifdef MADV_REMOVE
	if (min_dynamic_shared_memory == 0)
		(void) madvise(dsm_segment_address(seg), dsm_segment_map_length(seg),
					   MADV_REMOVE);
#endif
}
