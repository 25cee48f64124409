/*
 * before_18.h
 *		What only servers before 18 need.
 *
 * This folder and its calls go when support of server 17 ends.  On later servers
 * each of these calls is nothing.
 */
#ifndef HYB_BEFORE_18_H
#define HYB_BEFORE_18_H

#include "catalog/objectaccess.h"
#include "executor/executor.h"

#if HYB_BEFORE_18

/* ---- conflict.c: INSERT ... ON CONFLICT ---- */

/* The executor is about to start a query. */
extern void hyb_conflict_query_starts(void);

/* It has started one with this INSERT ... ON CONFLICT; in the query's context. */
extern void hyb_conflict_prepare(ModifyTableState *modify);

/*
 * The handler's first call: an error if a statement with ON CONFLICT that has
 * started already needs this library.
 */
extern void hyb_conflict_loaded(void);

/* An error is being reported that has a message_id. */
extern void hyb_conflict_explain_error(ErrorData *error);

/* ---- rowcompare.c: row comparisons as conditions ---- */

/* The planner considers one as condition of a hybrid index. */
extern void hyb_row_compare_planned(void);

/* Calls `start`, with row comparisons in the plan made conditions of columns. */
extern void hyb_row_compare_start(QueryDesc *query, int eflags,
								  ExecutorStart_hook_type start);

#else
#define hyb_conflict_query_starts() ((void) 0)
#define hyb_conflict_prepare(modify) ((void) 0)
#define hyb_conflict_loaded() ((void) 0)
#define hyb_conflict_explain_error(error) ((void) 0)
#define hyb_row_compare_planned() ((void) 0)
#define hyb_row_compare_start(query, eflags, start) (start) ((query), (eflags))
#endif

/* ---- identity.c: replica identity, in 17 ---- */

#ifdef HYB_NO_REPLICA_IDENTITY
/* For the object access hook: refuses a hybrid index as replica identity. */
extern void hyb_identity_check(ObjectAccessType access, Oid classid,
							   Oid objectid);

/* An error is being reported that has a message_id. */
extern void hyb_identity_explain_error(ErrorData *error);
#else
#define hyb_identity_explain_error(error) ((void) 0)
#endif

/* ---- statement_end.c: when statements end that insert, before 17 ---- */

#ifndef HYB_HAVE_INSERT_CLEANUP
/* When the library is loaded. */
extern void hyb_statement_end_init(void);

/* The executor has started a query: its end will be noticed. */
extern void hyb_statement_started(const QueryDesc *query, int eflags);
#else
#define hyb_statement_end_init() ((void) 0)
#define hyb_statement_started(query, eflags) ((void) 0)
#endif

#endif							/* HYB_BEFORE_18_H */
