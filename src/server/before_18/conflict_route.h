/*
 * conflict_route.h
 *		INSERT ... ON CONFLICT into partitions with unique indexes of ours, to
 *		which rows are routed, before PostgreSQL 18.
 */
#ifndef HYB_CONFLICT_ROUTE_H
#define HYB_CONFLICT_ROUTE_H

#include "nodes/execnodes.h"

/* Fills in how equal keys are found in unique indexes, which are open. */
extern void hyb_conflict_look_up(ResultRelInfo *result, Oid hybrid);

/*
 * The statement, which has just been started, inserts into a partitioned table:
 * each partition is prepared before its first row comes.
 */
extern void hyb_conflict_route(ModifyTableState *modify, Oid hybrid);

#endif							/* HYB_CONFLICT_ROUTE_H */
