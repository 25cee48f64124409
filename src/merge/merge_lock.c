/*
 * merge_lock.c
 *		The merge lock.  merge.h says what it is for.
 */
#include "base/compat.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "base/server.h"
#include "catalog/pg_class.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/rel.h"

/*
 * The sub-object of the index that stands for the merge lock.  The server locks
 * objects with sub-object 0 only, and relations with another kind of tag.
 */
#define HYB_MERGE_LOCK_SUBID	0x4859

static void
merge_lock_tag(Relation index, LOCKTAG *tag)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, RelationRelationId,
					   RelationGetRelid(index), HYB_MERGE_LOCK_SUBID);
}

bool
hyb_merge_lock(Relation index, bool wait)
{
	LOCKTAG		tag;

	Assert(!RecoveryInProgress());

	/*
	 * Members of a lock group do not conflict on an object.  Those of a
	 * parallel VACUUM work on different indexes.
	 */
	Assert(!IsParallelWorker() || (MyProc->statusFlags & PROC_IN_VACUUM) != 0);
	merge_lock_tag(index, &tag);
	if (!wait)
		return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
	hyb_lock_for_a_moment(&tag);
	return true;
}

void
hyb_merge_unlock(Relation index)
{
	LOCKTAG		tag;

	HYB_ASSERT_NO_LWLOCK();
	merge_lock_tag(index, &tag);
	LockRelease(&tag, ExclusiveLock, false);
}

bool
hyb_merge_lock_wanted(Relation index)
{
	LOCKTAG		tag;

	merge_lock_tag(index, &tag);
	return LockHasWaiters(&tag, ExclusiveLock, false);
}
