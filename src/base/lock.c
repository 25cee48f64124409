/*
 * lock.c
 *		Heavyweight locks that are held for a moment only.
 */
#include "base/compat.h"

#include "base/lock.h"
#include "miscadmin.h"
#include "storage/proc.h"

void
hyb_lock_for_a_moment(const LOCKTAG *tag)
{
	int			save_timeout = LockTimeout;

	Assert(CritSectionCount == 0);
	if (LockTimeout == 0)
	{
		(void) LockAcquire(tag, ExclusiveLock, false, false);
		return;
	}
	LockTimeout = 0;
	PG_TRY();
	{
		(void) LockAcquire(tag, ExclusiveLock, false, false);
	}
	PG_FINALLY();
	{
		LockTimeout = save_timeout;
	}
	PG_END_TRY();
}
