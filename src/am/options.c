/*
 * options.c
 *		Settings (hybridindex.*) and storage parameters (WITH).
 */
#include "compat.h"

#include <limits.h>

#include "access/reloptions.h"
#include "am/am.h"
#include "page/config.h"
#include "utils/guc.h"

int			hyb_dynamic_memory_kb = 64 * 1024;
int			hyb_merge_floor = 8192;
int			hyb_merge_step_pages = 32;
bool		hyb_background_merge = true;

static relopt_kind hyb_relopt_kind;

/*
 * Called once, when the library is loaded.
 */
void
hyb_options_init(void)
{
	hyb_relopt_kind = add_reloption_kind();
	add_int_reloption(hyb_relopt_kind, "merge_ratio",
					  "Merges start when the static stage holds at most this many times the entries of the dynamic stage.",
					  HYB_DEFAULT_MERGE_RATIO, HYB_MIN_MERGE_RATIO,
					  HYB_MAX_MERGE_RATIO, ShareUpdateExclusiveLock);

	/* One pool serves the whole server, so no session may size it. */
	DefineCustomIntVariable("hybridindex.dynamic_memory",
							"Sets the memory for the dynamic stages of all hybrid indexes together.",
							"Where it does not suffice, merges start earlier; no insertion fails for lack of it.",
							&hyb_dynamic_memory_kb,
							64 * 1024, 64, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_KB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.merge_floor",
							"Sets the number of dynamic entries below which merge_ratio starts no merge.",
							NULL,
							&hyb_merge_floor,
							8192, 0, INT_MAX,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.merge_step_pages",
							"Sets the number of static leaf pages that one step of a merge reads.",
							"Larger steps write less, smaller ones wait for less.",
							&hyb_merge_step_pages,
							32, 1, 128,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.background_merge",
							 "Starts background workers to merge hybrid indexes.",
							 "If off, insertions and VACUUM do the steps of merges themselves.",
							 &hyb_background_merge,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	MarkGUCPrefixReserved("hybridindex");
}

bytea *
hyb_amoptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"merge_ratio", RELOPT_TYPE_INT, offsetof(HybOptions, merge_ratio)}
	};

	return (bytea *) build_reloptions(reloptions, validate, hyb_relopt_kind,
									  sizeof(HybOptions), tab, lengthof(tab));
}
