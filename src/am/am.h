/*
 * am.h
 *		What the access method's handler wires up.
 */
#ifndef HYB_AM_H
#define HYB_AM_H

#include "nodes/pathnodes.h"

/* hooks.c, when the library is loaded */
extern void hyb_hooks_init(void);

/* cost.c */
extern void hyb_amcostestimate(PlannerInfo *root, IndexPath *path,
							   double loop_count, Cost *startup_cost,
							   Cost *total_cost, Selectivity *selectivity,
							   double *correlation, double *pages);

#endif							/* HYB_AM_H */
