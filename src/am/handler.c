/*
 * handler.c
 *		Module magic, library start-up, and the access method's routine table.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "am/am.h"
#include "build/build.h"
#include "build/build_progress.h"
#include "catalog/pg_type_d.h"
#include "commands/vacuum.h"
#include "filter/filter_use.h"
#include "fmgr.h"
#include "insert/gather.h"
#include "insert/insert.h"
#include "insert/statement_end.h"
#include "insert/unique.h"
#include "log/log.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "scan/index_scan.h"
#include "server/hooks.h"
#include "server/validate.h"
#include "shared/shared.h"
#include "storage/ipc.h"
#include "store/settings.h"
#include "tree/descend.h"
#include "utils/guc.h"
#include "vacuum/vacuum.h"
#ifdef HYB_HAVE_COMPARE_TYPES
#include "access/cmptype.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(hybridhandler);

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

void		_PG_init(void);

static void
shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	RequestAddinShmemSpace(hyb_shared_size());
}

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	hyb_shared_startup();
}

/*
 * Nothing needs shared_preload_libraries; there, the control structure is made
 * at start-up in memory of its own, instead of the server's spare, which
 * others may have used up by the time that it is needed.
 */
void
_PG_init(void)
{
	if (process_shared_preload_libraries_in_progress)
	{
		previous_shmem_request = shmem_request_hook;
		shmem_request_hook = shmem_request;
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = shmem_startup;
	}
	hyb_settings_init();
	hyb_dynamic_init();
	hyb_static_init();
	hyb_filter_use_init();
	hyb_scan_init();
	hyb_unique_init();
	hyb_gather_init();
	hyb_statement_end_init();
	hyb_merge_init();
	hyb_hooks_init();
	hyb_explain_init();
	hyb_identity_init();
	hyb_arbiter_init();
	hyb_conflict_init();
	hyb_convert_arbiter_init();
	hyb_family_init();
	hyb_rowcompare_init();
	hyb_utility_init();
	MarkGUCPrefixReserved("hybridindex");
}

#ifdef HYB_HAVE_COMPARE_TYPES
static StrategyNumber
translate_cmptype(CompareType cmptype, Oid opfamily)
{
	switch (cmptype)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_LE:
			return BTLessEqualStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GE:
			return BTGreaterEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}
#endif

Datum
hybridhandler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	if (hyb_hooks_handler_called(fcinfo->flinfo->fn_oid))
		hyb_conflict_loaded();

	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = HYB_NSUPPORT;
	am->amoptsprocnum = HYB_OPTIONS_PROC;
	am->amcanorder = true;
	am->amcanorderbyop = false;
	am->amcanbackward = true;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->amstorage = false;
	am->amclusterable = true;
	am->ampredlocks = true;
	am->amcanparallel = true;
#ifdef HYB_HAVE_PARALLEL_BUILD
	am->amcanbuildparallel = true;
#endif
	am->amcaninclude = true;
	am->amusemaintenanceworkmem = false;
	am->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
	am->amkeytype = InvalidOid;
#ifdef HYB_HAVE_COMPARE_TYPES
	am->amconsistentequality = true;
	am->amconsistentordering = true;

	/*
	 * What an operator means is btree's to say, which has it too.  The
	 * planner would also ask our families, and take two equality operators
	 * for different ones if either only is in them: plans without any index
	 * of ours changed as soon as somebody added an operator to a family of
	 * btree's.
	 */
	am->amtranslatestrategy = NULL;
	am->amtranslatecmptype = translate_cmptype;
#endif

	am->ambuild = hyb_ambuild;
	am->ambuildempty = hyb_ambuildempty;
	am->aminsert = hyb_aminsert;
#ifdef HYB_HAVE_INSERT_CLEANUP
	am->aminsertcleanup = hyb_aminsertcleanup;
#endif
	am->ambulkdelete = hyb_ambulkdelete;
	am->amvacuumcleanup = hyb_amvacuumcleanup;
	am->amcanreturn = hyb_amcanreturn;
	am->amcostestimate = hyb_amcostestimate;
	am->amoptions = hyb_amoptions;
	am->amproperty = NULL;
	am->ambuildphasename = hyb_ambuildphasename;
	am->amvalidate = hyb_amvalidate;
	am->amadjustmembers = hyb_amadjustmembers;
	am->ambeginscan = hyb_ambeginscan;
	am->amrescan = hyb_amrescan;
	am->amgettuple = hyb_amgettuple;
	am->amgetbitmap = hyb_amgetbitmap;
	am->amendscan = hyb_amendscan;
	am->ammarkpos = hyb_ammarkpos;
	am->amrestrpos = hyb_amrestrpos;
	am->amestimateparallelscan = hyb_amestimateparallelscan;
	am->aminitparallelscan = hyb_aminitparallelscan;
	am->amparallelrescan = hyb_amparallelrescan;

	PG_RETURN_POINTER(am);
}
