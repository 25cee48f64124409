/*
 * explain.c
 *		What EXPLAIN says of index-only scans that a layout prevents, and with
 *		ANALYZE of filters, of hot copies, and of pages asked for ahead.
 *
 * PostgreSQL 18 calls a hook for each node of a plan.  A node that scans a
 * hybrid index has its scan still open then, and in it the counts of all its
 * loops; of a parallel scan those of the leader.  hybrid_index_stats has all.
 *
 * A plan does not tell that its scan would be an index-only one over columnar
 * leaves: the planner may have it return columns that nothing needs.  So we note
 * while EXPLAIN has a query planned which indexes of prefixes have all columns that
 * their table is asked for.  Of a table that occurs several times in the query all
 * occurrences have to be so, since nodes do not tell these apart.  Before 18 a
 * NOTICE tells it when the plan is started.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/sysattr.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "scan/index_scan.h"
#include "store/settings.h"
#include "utils/lsyscache.h"
#ifdef HYB_HAVE_EXPLAIN_HOOK
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "filter/filter_choice.h"
#include "scan/scan.h"
#include "utils/rel.h"
#endif

/* Plans that an EXPLAIN remembers; functions that it runs may have more. */
#define MAX_PLANS		64

/* An index of prefixes that a query may use. */
typedef struct Prevented
{
	Oid			index;
	bool		prevented;		/* each time, it has all columns */
	const PlannedStmt *plan;	/* NULL: the query is being planned */
} Prevented;

/* What the EXPLAIN that is being carried out remembers. */
static HybExplain current;

void
hyb_explain_enter(HybExplain *outer, const Node *statement)
{
	*outer = current;
	current.context = IsA(statement, ExplainStmt) ? CurrentMemoryContext : NULL;
	current.prevented = NIL;
}

void
hyb_explain_leave(const HybExplain *outer)
{
	current = *outer;
}

/* As check_index_only() of the server, for an index that has all its key columns. */
static bool
has_all_columns(const IndexOptInfo *index)
{
	Bitmapset  *used = NULL;
	Bitmapset  *columns = NULL;
	bool		all;
	ListCell   *lc;

	pull_varattnos((Node *) index->rel->reltarget->exprs, index->rel->relid, &used);
	foreach(lc, index->indrestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause,
					   index->rel->relid, &used);
	for (int i = 0; i < index->ncolumns; i++)
		columns = bms_add_member(columns, index->indexkeys[i] -
								 FirstLowInvalidHeapAttributeNumber);
	all = bms_is_subset(used, columns);
	bms_free(used);
	bms_free(columns);
	return all;
}

void
hyb_explain_path(const IndexOptInfo *index)
{
	MemoryContext old;
	Prevented  *entry;
	bool		prevented;
	ListCell   *lc;

	if (current.context == NULL)
		return;
#ifdef USE_ASSERT_CHECKING
	if (hyb_test_trie)			/* outputs of tests are those of any layout */
		return;
#endif
	prevented = enable_indexonlyscan && has_all_columns(index);
	foreach(lc, current.prevented)
	{
		entry = lfirst(lc);
		if (entry->index == index->indexoid && entry->plan == NULL)
		{
			entry->prevented &= prevented;
			return;
		}
	}
	if (list_length(current.prevented) >= MAX_PLANS)
		return;
	old = MemoryContextSwitchTo(current.context);
	entry = palloc(sizeof(Prevented));
	*entry = (Prevented)
	{
		.index = index->indexoid,.prevented = prevented
	};
	current.prevented = lappend(current.prevented, entry);
	MemoryContextSwitchTo(old);
}

void
hyb_explain_planned(const PlannedStmt *plan)
{
	ListCell   *lc;

	foreach(lc, current.prevented)
	{
		Prevented  *entry = lfirst(lc);

		if (entry->plan == NULL)
			entry->plan = plan;
	}
}

/* The index that a node would read by an index-only scan, or InvalidOid. */
static Oid
prevented_index(const PlanState *state)
{
	Oid			index;
	ListCell   *lc;

	if (IsA(state->plan, IndexScan))
		index = castNode(IndexScan, state->plan)->indexid;
	else if (IsA(state->plan, BitmapIndexScan))
		index = castNode(BitmapIndexScan, state->plan)->indexid;
	else
		return InvalidOid;
	foreach(lc, current.prevented)
	{
		const Prevented *entry = lfirst(lc);

		if (entry->index == index && entry->prevented &&
			entry->plan == state->state->es_plannedstmt)
			return index;
	}
	return InvalidOid;
}

#ifndef HYB_HAVE_EXPLAIN_HOOK

static bool
tell_node(PlanState *state, void *arg)
{
	Oid			index = prevented_index(state);

	if (OidIsValid(index))
		ereport(NOTICE,
				(errmsg("index-only scan of index \"%s\" is not possible with layout \"trie\"",
						get_rel_name(index))));
	return planstate_tree_walker(state, tell_node, arg);
}

void
hyb_explain_started(PlanState *state)
{
	if (current.prevented != NIL && state != NULL)
		(void) tell_node(state, NULL);
}

#else

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
explain_filter(const HybScan *so, const char *checks, const char *skipped,
			   ExplainState *es)
{
	ExplainPropertyUInteger(checks, NULL, so->filter_checks, es);
	ExplainPropertyUInteger(skipped, NULL, so->filter_negatives, es);
}

void
hyb_explain_scan(PlanState *state, ExplainState *es)
{
	IndexScanDesc scan = es->analyze ? node_scan(state) : NULL;
	const HybScan *so;
	HybFilterKind kind;

	if (OidIsValid(prevented_index(state)))
		ExplainPropertyText("Index-Only Scan", "not possible with layout = trie", es);

	if (scan == NULL ||
		scan->indexRelation->rd_indam->ambeginscan != hyb_ambeginscan)
		return;
	so = scan->opaque;

	/* what is chosen by the size of things is not told beforehand */
	kind = hyb_filter_option(so->ix->rel) == HYB_FILTER_AUTO ?
		HYB_FILTER_NONE : hyb_filter_kind_of_level(so->ix, 0, 1);

	if (hyb_filter_has_ranges(kind))
		explain_filter(so, "Range Filter Checks",
					   "Leaves Skipped by Range Filter", es);
	else if (kind == HYB_FILTER_POINTS || so->filter_checks > 0)
		explain_filter(so, "Point Filter Checks",
					   "Leaves Skipped by Point Filter", es);
	if (so->hot_hits > 0)
		ExplainPropertyUInteger("Hot Copies", NULL, so->hot_hits, es);
	if (so->mode.ahead.asked > 0)
		ExplainPropertyUInteger("Heap Prefetches", NULL, so->mode.ahead.asked, es);
}

#endif							/* HYB_HAVE_EXPLAIN_HOOK */
