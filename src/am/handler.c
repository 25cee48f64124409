/*
 * handler.c
 *		Module magic, library start-up, and the access method's routine table.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "am/am.h"
#include "build/build.h"
#include "commands/vacuum.h"
#include "ddl/utility.h"
#include "filter/filter_choice.h"
#include "fmgr.h"
#include "hot/hot_table.h"
#include "insert/gather.h"
#include "insert/insertion.h"
#include "log/unique_lock.h"
#include "merge/merge.h"
#include "scan/index_scan.h"
#include "server/before_18/before_18.h"
#include "server/btree_only.h"
#include "shared/directory.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "shared/workers.h"
#include "store/settings.h"
#include "tree/descend.h"
#include "utils/guc.h"
#include "vacuum/vacuum.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(hybridhandler);

extern PGDLLEXPORT void _PG_init(void);

static void
attach(void)
{
	(void) hyb_shared_init();
}

static void
shared_init(void)
{
	static const HybSharedPart *const parts[] = {
		&hyb_directory_part, &hyb_arena_part, &hyb_database_part,
		&hyb_unique_part, &hyb_workers_part, &hyb_progress_part, &hyb_hot_part
	};

	hyb_arena_init();
	hyb_hot_init();
	hyb_shared_define(parts, lengthof(parts));
	hyb_index_first_use = attach;
}

/*
 * Settings come first, and hooks last: a hook may be called as soon as it is
 * taken.
 */
void
_PG_init(void)
{
	hyb_settings_init();
	shared_init();
	hyb_static_init();
	hyb_filter_use_init();
	hyb_scan_init();
	hyb_unique_init();
	hyb_gather_init();
	hyb_statement_end_init();
	hyb_merge_init();
	hyb_errors_init();
	hyb_utility_init();
	MarkGUCPrefixReserved("hybridindex");
	hyb_hooks_init();
}

Datum
hybridhandler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	if (hyb_errors_handler_called(fcinfo->flinfo->fn_oid))
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
	 * btree has all our operators and says what they mean.  If our families
	 * did too, the planner would take two equality operators for different
	 * ones if only one of the access methods had both.  Then an operator
	 * added to a family of btree changed plans without hybrid indexes.
	 */
	am->amtranslatestrategy = NULL;
	am->amtranslatecmptype = bttranslatecmptype;
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
