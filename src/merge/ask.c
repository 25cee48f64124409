/*
 * ask.c
 *		Asking for merge workers, and starting them.
 */
#include "base/compat.h"

#include "merge/ask.h"
#include "merge/merge.h"
#include "postmaster/bgworker.h"
#include "shared/shared.h"
#include "shared/workers.h"

StaticAssertDecl(sizeof(HybWorkerRef) <= BGW_EXTRALEN,
				 "arguments must fit bgw_extra");

bool
hyb_worker_start(const HybWorkerRef *ref)
{
	BackgroundWorker worker;

	/* it would load the library of the other build, and end */
	if (hyb_shared_replaced())
		return false;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "hybridindex", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "hybrid_merge_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "hybrid merge worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "hybrid merge worker", BGW_MAXLEN);
	memcpy(worker.bgw_extra, ref, sizeof(*ref));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

bool
hyb_worker_ask(Oid dbid, Oid relid, Oid owner)
{
	HybWorkerRef ref;

	switch (hyb_worker_request(dbid, relid, owner, hyb_max_merge_workers, &ref))
	{
		case HYB_REQUEST_NOTED:
			return true;
		case HYB_REQUEST_REFUSED:
			return false;
		case HYB_REQUEST_START:
			break;
	}
	if (hyb_worker_start(&ref))
		return true;
	hyb_worker_release(&ref);
	return false;
}
