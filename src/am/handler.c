/*
 * handler.c
 *		Module magic, library start-up, and the access method's routine table.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "am/am.h"
#include "base/mute.h"
#include "build/build.h"
#include "commands/vacuum.h"
#include "ddl/utility.h"
#include "filter/filter_choice.h"
#include "fmgr.h"
#include "hot/hot_table.h"
#include "insert/gather.h"
#include "insert/insertion.h"
#include "log/log.h"
#include "log/unique_lock.h"
#include "merge/merge.h"
#include "scan/index_scan.h"
#include "server/before_18/before_18.h"
#include "server/btree_only.h"
#include "shared/directory.h"
#include "shared/index_cache.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "shared/workers.h"
#include "store/settings.h"
#include "tree/descend.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "vacuum/vacuum.h"

#ifndef HYB_VERSION
#error "the Makefile defines HYB_VERSION"
#endif

HYB_MODULE_MAGIC("hybridindex", HYB_VERSION);

PG_FUNCTION_INFO_V1(hybridhandler);
PG_FUNCTION_INFO_V1(hybrid_version);
#ifdef HYB_HAVE_SUMMARIZING
PG_FUNCTION_INFO_V1(hybrid_hot_handler);
#endif

extern PGDLLEXPORT void _PG_init(void);

static void
use_index(Relation index)
{
	if (hyb_shared_init())
		hyb_merge_consider_database(index);
}

static void
shared_init(void)
{
	static const HybSharedPart *const parts[] = {
		&hyb_directory_part, &hyb_arena_part, &hyb_database_part,
		&hyb_unique_part, &hyb_workers_part, &hyb_progress_part, &hyb_hot_part,
		&hyb_cache_part
	};

	hyb_arena_init();
	hyb_hot_init();
	hyb_shared_define(parts, lengthof(parts));
	hyb_index_use = use_index;
}

/*
 * Settings come first, and hooks last: a hook may be called as soon as it is
 * taken.
 */
void
_PG_init(void)
{
	hyb_mute_init();
	hyb_settings_init();
	shared_init();
	hyb_log_init();
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

static const IndexAmRoutine routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = BTMaxStrategyNumber,
	.amsupport = HYB_NSUPPORT,
	.amoptsprocnum = HYB_OPTIONS_PROC,
	.amcanorder = true,
	.amcanorderbyop = false,
	.amcanbackward = true,
	.amcanunique = true,
	.amcanmulticol = true,
	.amoptionalkey = true,
	.amsearcharray = true,
	.amsearchnulls = true,
	.amstorage = false,
	.amclusterable = true,
	.ampredlocks = true,
	.amcanparallel = true,
#ifdef HYB_HAVE_PARALLEL_BUILD
	.amcanbuildparallel = true,
#endif
	.amcaninclude = true,
	.amusemaintenanceworkmem = false,
	.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL,
	.amkeytype = InvalidOid,
#ifdef HYB_HAVE_COMPARE_TYPES
	.amconsistentequality = true,
	.amconsistentordering = true,

	/*
	 * btree has all our operators and says what they mean.  If our families
	 * did too, the planner would take two equality operators for different
	 * ones if only one of the access methods had both.  Then an operator
	 * added to a family of btree changed plans without hybrid indexes.
	 */
	.amtranslatestrategy = NULL,
	.amtranslatecmptype = bttranslatecmptype,
#endif

	.ambuild = hyb_ambuild,
	.ambuildempty = hyb_ambuildempty,
	.aminsert = hyb_aminsert,
#ifdef HYB_HAVE_INSERT_CLEANUP
	.aminsertcleanup = hyb_aminsertcleanup,
#endif
	.ambulkdelete = hyb_ambulkdelete,
	.amvacuumcleanup = hyb_amvacuumcleanup,
	.amcanreturn = hyb_amcanreturn,
	.amcostestimate = hyb_amcostestimate,
	.amoptions = hyb_amoptions,
	.amproperty = NULL,
	.ambuildphasename = hyb_ambuildphasename,
	.amvalidate = hyb_amvalidate,
	.amadjustmembers = hyb_amadjustmembers,
	.ambeginscan = hyb_ambeginscan,
	.amrescan = hyb_amrescan,
	.amgettuple = hyb_amgettuple,
	.amgetbitmap = hyb_amgetbitmap,
	.amendscan = hyb_amendscan,
	.ammarkpos = hyb_ammarkpos,
	.amrestrpos = hyb_amrestrpos,
	.amestimateparallelscan = hyb_amestimateparallelscan,
	.aminitparallelscan = hyb_aminitparallelscan,
	.amparallelrescan = hyb_amparallelrescan,
};

Datum
hybridhandler(PG_FUNCTION_ARGS)
{
	if (hyb_errors_handler_called(fcinfo->flinfo->fn_oid))
		hyb_conflict_loaded();
	HYB_RETURN_ROUTINE(routine);
}

#ifdef HYB_HAVE_SUMMARIZING
/*
 * hybrid_hot: updates of its columns may be HOT, and its entries lead to HOT chains.  What
 * trusts an entry without looking at the row it cannot do: uniqueness and index-only
 * scans.  It has no marks, since the planner can do without them, and no CLUSTER.
 */
Datum
hybrid_hot_handler(PG_FUNCTION_ARGS)
{
	static IndexAmRoutine hot;

	hot = routine;
	hot.amsummarizing = true;
	hot.amcanunique = false;
	hot.amclusterable = false;
	hot.amcaninclude = false;
	hot.amcanreturn = NULL;
	hot.amgettuple = hyb_chains_gettuple;
	hot.ammarkpos = NULL;
	hot.amrestrpos = NULL;
	HYB_RETURN_ROUTINE(hot);
}
#endif

Datum
hybrid_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(HYB_VERSION));
}
