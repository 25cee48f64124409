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
extern bool hyb_chains_gettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 hyb_amgetbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void hyb_amendscan(IndexScanDesc scan);
extern void hyb_ammarkpos(IndexScanDesc scan);
extern void hyb_amrestrpos(IndexScanDesc scan);
extern bool hyb_amcanreturn(Relation index, int attno);

/* ---- explain.c ---- */

/* What EXPLAIN says of a node that scans a hybrid index, from server 18 on. */
struct ExplainState;
extern void hyb_explain_scan(PlanState *state, struct ExplainState *es);

/* Heap pages that scans asked for ahead, not in memory: HybLogStats.counters. */
#define HYB_HEAP_PREFETCHES		(HYB_PROBE_OUTCOMES + HYB_UNIQUE_OUTCOMES)

/* Scans that returned values of entries, likewise. */
#define HYB_INDEX_ONLY_SCANS	(HYB_HEAP_PREFETCHES + 1)

/* The library is loaded. */
extern void hyb_scan_init(void);

#endif							/* HYB_INDEX_SCAN_H */
