/*
 * utility_call.h
 *		A call of the ProcessUtility hook.
 */
#ifndef HYB_UTILITY_CALL_H
#define HYB_UTILITY_CALL_H

#include "postgres.h"

#include "tcop/utility.h"

/* The hook's parameters, and who would have been called without us. */
typedef struct HybUtilityCall
{
	PlannedStmt *stmt;
	const char *source;			/* text of the query string */
	bool		read_only_tree; /* the statement's tree must not be changed */
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *environment;
	DestReceiver *dest;
	QueryCompletion *completion;
	ProcessUtility_hook_type next;
} HybUtilityCall;

static inline void
hyb_utility_next(const HybUtilityCall *call)
{
	call->next(call->stmt, call->source, call->read_only_tree, call->context,
			   call->params, call->environment, call->dest,
			   call->completion);
}

#endif							/* HYB_UTILITY_CALL_H */
