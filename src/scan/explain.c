/*
 * explain.c
 *		What EXPLAIN ANALYZE says of filters, of hot copies, and of pages asked for
 *		ahead.
 *
 * PostgreSQL 18 calls a hook for each node of a plan.  A node that scans a
 * hybrid index has its scan still open then, and in it the counts of all its
 * loops; of a parallel scan those of the leader.  hybrid_index_stats has all.
 */
#include "base/compat.h"

#ifdef HYB_HAVE_EXPLAIN_HOOK
#include "access/genam.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "filter/filter_choice.h"
#include "scan/index_scan.h"
#include "scan/scan.h"
#include "utils/rel.h"

/* The index scan that a plan node has, or NULL. */
static IndexScanDesc
node_scan(PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_IndexScanState:
			return castNode(IndexScanState, state)->iss_ScanDesc;
		case T_IndexOnlyScanState:
			return castNode(IndexOnlyScanState, state)->ioss_ScanDesc;
		case T_BitmapIndexScanState:
			return castNode(BitmapIndexScanState, state)->biss_ScanDesc;
		default:
			return NULL;
	}
}

static void
explain_filter(const HybScanCounts *counts, const char *checks, const char *skipped,
			   ExplainState *es)
{
	ExplainPropertyUInteger(checks, NULL, counts->filter_checks, es);
	ExplainPropertyUInteger(skipped, NULL, counts->filter_negatives, es);
}

void
hyb_explain_scan(PlanState *state, ExplainState *es)
{
	IndexScanDesc scan = es->analyze ? node_scan(state) : NULL;
	const HybLookUp *look;
	const HybScanCounts *counts;
	HybFilterKind kind;

	if (scan == NULL ||
		scan->indexRelation->rd_indam->ambeginscan != hyb_ambeginscan)
		return;
	look = scan->opaque;
	counts = &look->counts;

	/* what is chosen by the size of things is not told beforehand */
	kind = hyb_filter_option(scan->indexRelation) == HYB_FILTER_AUTO ? HYB_FILTER_NONE :
		hyb_filter_kind_of_level(hyb_index_create_handle(scan->indexRelation), 0, 1);

	if (hyb_filter_has_ranges(kind))
		explain_filter(counts, "Range Filter Checks",
					   "Leaves Skipped by Range Filter", es);
	else if (kind == HYB_FILTER_POINTS || counts->filter_checks > 0)
		explain_filter(counts, "Point Filter Checks",
					   "Leaves Skipped by Point Filter", es);
	if (counts->hot_hits > 0)
		ExplainPropertyUInteger("Hot Copies", NULL, counts->hot_hits, es);
	if (counts->stale > 0)
		ExplainPropertyUInteger("Stale Entries", NULL, counts->stale, es);
	if (look->scan != NULL && look->scan->mode.ahead.asked > 0)
		ExplainPropertyUInteger("Heap Prefetches", NULL, look->scan->mode.ahead.asked, es);
}

#endif							/* HYB_HAVE_EXPLAIN_HOOK */
