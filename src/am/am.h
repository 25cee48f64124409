/*
 * am.h
 *		What the access method's handler wires up.
 */
#ifndef HYB_AM_H
#define HYB_AM_H

#include "nodes/pathnodes.h"

/* setup.c, when the library is loaded */
extern void hyb_dynamic_init(void);

/* cost.c */
extern void hyb_amcostestimate(PlannerInfo *root, IndexPath *path,
							   double loop_count, Cost *startup_cost,
							   Cost *total_cost, Selectivity *selectivity,
							   double *correlation, double *pages);

#endif							/* HYB_AM_H */
