/*
 * am.h
 *		The functions that PostgreSQL calls, wired up by handler.c.
 */
#ifndef HYB_AM_H
#define HYB_AM_H

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

#include "merge/merge.h"

/* build.c */
extern IndexBuildResult *hyb_ambuild(Relation heap, Relation index,
									 struct IndexInfo *info);
extern void hyb_ambuildempty(Relation index);

/* insert.c, unique.c */
extern bool hyb_aminsert(Relation index, Datum *values, bool *isnull,
						 ItemPointer heap_tid, Relation heap,
						 IndexUniqueCheck check_unique, bool index_unchanged,
						 struct IndexInfo *info);
extern void hyb_aminsertcleanup(Relation index, struct IndexInfo *info);

/* scan/scan.c */
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

/* Heap pages that scans asked for ahead, not in memory: HybDynamicStats.counters. */
#define HYB_HEAP_PREFETCHES		(HYB_PROBE_OUTCOMES + HYB_UNIQUE_OUTCOMES)

/* scan/scan_ahead.c, scan_dead.c, scan_lock.c, when the library is loaded */
extern void hyb_scan_ahead_init(void);
extern void hyb_scan_dead_init(void);
extern void hyb_scan_lock_init(void);

/* vacuum.c */
extern IndexBulkDeleteResult *hyb_ambulkdelete(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats,
											   IndexBulkDeleteCallback callback,
											   void *callback_state);
extern IndexBulkDeleteResult *hyb_amvacuumcleanup(IndexVacuumInfo *info,
												  IndexBulkDeleteResult *stats);

/* cost.c */
extern void hyb_amcostestimate(PlannerInfo *root, IndexPath *path,
							   double loop_count, Cost *startup_cost,
							   Cost *total_cost, Selectivity *selectivity,
							   double *correlation, double *pages);

/* validate.c, build_progress.c */
extern bool hyb_amvalidate(Oid opclassoid);
extern void hyb_amadjustmembers(Oid opfamilyoid, Oid opclassoid,
								List *operators, List *functions);
extern void hyb_check_column_classes(Relation index, int elevel);
extern char *hyb_ambuildphasename(int64 phase);

#endif							/* HYB_AM_H */
