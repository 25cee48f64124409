/*
 * utility.h
 *		What the library does in DDL statements, and for ON CONFLICT while an index
 *		is being converted.  am/hooks.c calls it from hooks of the server.
 */
#ifndef HYB_UTILITY_H
#define HYB_UTILITY_H

#include "ddl/statement.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "tcop/utility.h"

/* A utility statement that the server carries out. */
typedef struct HybUtility
{
	Node	   *tree;
	bool		nested;			/* in a function or an extension's command */
	HybAfterStatement after;	/* what is to be done after it */
	struct HybUtility *outer;	/* the statement that this one is part of */
} HybUtility;

/* When the library is loaded. */
extern void hyb_utility_init(void);

/*
 * Before the statement, once the server has found it allowed.  Returns it, or a
 * copy that has been changed.
 */
extern PlannedStmt *hyb_utility_begin(HybUtility *utility, PlannedStmt *pstmt,
									  const char *source, bool read_only_tree,
									  ProcessUtilityContext context);

/* After it, also after an error. */
extern void hyb_utility_leave(const HybUtility *utility);

/* After hyb_utility_leave, without an error: does what is to come last. */
extern void hyb_utility_end(HybUtility *utility);

/* convert_arbiter.c: the planner has all paths of the query. */
extern void hyb_lock_arbiters(const Query *query);

/* The executor has started an INSERT ... ON CONFLICT; in the query's context. */
extern void hyb_twin_arbiters_prepare(ModifyTableState *modify);

#endif							/* HYB_UTILITY_H */
