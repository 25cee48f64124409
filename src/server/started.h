/*
 * started.h
 *		The insertions of a query that the executor has just started.
 */
#ifndef HYB_STARTED_H
#define HYB_STARTED_H

#include "executor/execdesc.h"
#include "nodes/execnodes.h"

/*
 * For an ExecutorStart hook, when the query has been started: calls `prepare`,
 * in the query's memory context, with each ModifyTable that has ON CONFLICT,
 * unless nothing is going to be executed (EXPLAIN).
 */
extern void hyb_started_on_conflict(const QueryDesc *query, int eflags,
									void (*prepare) (ModifyTableState *modify));

#endif							/* HYB_STARTED_H */
