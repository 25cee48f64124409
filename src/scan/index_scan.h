/*
 * index_scan.h
 *		Index scans, as the server asks for them.
 */
#ifndef HYB_INDEX_SCAN_H
#define HYB_INDEX_SCAN_H

#include "access/amapi.h"

#include "base/compat.h"
#include "filter/filter_choice.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

extern IndexScanDesc hyb_ambeginscan(Relation index, int nkeys, int norderbys);
extern Size HYB_ESTIMATE_PARALLEL_SCAN(hyb_amestimateparallelscan);
extern void hyb_aminitparallelscan(void *target);
extern void hyb_amparallelrescan(IndexScanDesc scan);
extern void hyb_amrescan(IndexScanDesc scan, ScanKey keys, int nkeys,
						 ScanKey orderbys, int norderbys);
extern bool hyb_amgettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 hyb_amgetbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void hyb_amendscan(IndexScanDesc scan);
extern void hyb_ammarkpos(IndexScanDesc scan);
extern void hyb_amrestrpos(IndexScanDesc scan);
extern bool hyb_amcanreturn(Relation index, int attno);

/* ---- explain.c ---- */

/* What an EXPLAIN remembers of queries that it has planned. */
typedef struct HybExplain
{
	MemoryContext context;		/* NULL: there is no EXPLAIN */
	List	   *prevented;
} HybExplain;

/* A utility statement begins, and ends, after an error too. */
extern void hyb_explain_enter(HybExplain *outer, const Node *statement);
extern void hyb_explain_leave(const HybExplain *outer);

/* The planner considers an index of prefixes; the planner has a plan. */
struct IndexOptInfo;
extern void hyb_explain_path(const struct IndexOptInfo *index);
extern void hyb_explain_planned(const PlannedStmt *plan);

/*
 * What EXPLAIN says of a node that scans a hybrid index, from server 18 on; and
 * before, by a NOTICE, of a plan that is started.
 */
struct ExplainState;
extern void hyb_explain_scan(PlanState *state, struct ExplainState *es);
extern void hyb_explain_started(PlanState *state);

/* Heap pages that scans asked for ahead, not in memory: HybLogStats.counters. */
#define HYB_HEAP_PREFETCHES		(HYB_PROBE_OUTCOMES + HYB_UNIQUE_OUTCOMES)

/* Scans that returned values of entries, likewise. */
#define HYB_INDEX_ONLY_SCANS	(HYB_HEAP_PREFETCHES + 1)

/* The library is loaded. */
extern void hyb_scan_init(void);

#endif							/* HYB_INDEX_SCAN_H */
