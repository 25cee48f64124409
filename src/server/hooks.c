/*
 * hooks.c
 *		Errors in plain words where the server gives an internal one.
 *
 * The first statement of a session that uses a hybrid index loads this library,
 * and in three cases that is too late for it.  Operator classes of ON CONFLICT
 * have been looked at then (arbiter.c).  Before PostgreSQL 18 the executor has
 * begun to open the indexes of a table with ON CONFLICT DO NOTHING without a
 * target, which nothing looks at before (conflict.c).  And ALTER TABLE has begun
 * where event triggers do not fire (ddl/utility.c).
 *
 * The second case is an error of ours where the handler's first call can tell
 * it by the portal that is being run, which statements within functions, EXECUTE
 * and EXPLAIN ANALYZE do not have.  Else the server's error is put in plain
 * words when it is reported, to the log and the client; a function that catches
 * it sees what the server said.
 *
 * So does who asks for an index of a type that has no operator class of ours
 * get a hint that says how to make one.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "server/hooks.h"
#include "store/settings.h"
#include "utils/builtins.h"
#include "utils/elog.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* When the statement began that called the handler first. */
static TimestampTz first_use = 0;

/* Where the extension's functions were then, for hints */
static NameData schema;

bool		hyb_preloaded = false;

static emit_log_hook_type previous_emit_log = NULL;

static void
explain_error(ErrorData *error)
{
	if (error->hint == NULL &&
		strcmp(error->message_id,
			   "there is no unique or exclusion constraint matching the ON CONFLICT specification") == 0)
		error->hint = MemoryContextStrdup(error->assoc_context,
										  HYB_IS_WORKER ?
										  _(HYB_LOADED_LATE_WORKER_HINT) :
										  _("Operator classes are looked for in hybrid indexes once the library \"hybridindex\" is loaded, which this statement did: try it again, or add it to \"session_preload_libraries\"."));
	if (error->hint == NULL &&
		strcmp(error->message_id, "unrecognized parameter \"%s\"") == 0 &&
		strstr(error->message, "\"" HYB_ACCESS_METHOD_PARAMETER "\"") != NULL)
		error->hint = MemoryContextStrdup(error->assoc_context,
										  _("The library \"hybridindex\", which knows this parameter of constraints, was loaded by this statement: try it again, or add it to \"session_preload_libraries\"."));
#ifdef HYB_ON_CONFLICT_NEEDS_BTREE
	if (strcmp(error->message_id,
			   "unexpected non-btree speculative unique index") == 0)
	{
		error->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		error->message = MemoryContextStrdup(error->assoc_context,
											 _(HYB_LOADED_LATE));
		error->detail = MemoryContextStrdup(error->assoc_context,
											_(HYB_LOADED_LATE_DETAIL));
		error->hint = MemoryContextStrdup(error->assoc_context,
										  HYB_IS_WORKER ?
										  _(HYB_LOADED_LATE_WORKER_HINT) :
										  _(HYB_LOADED_LATE_HINT));
	}
#endif
}

/* `format` has a place for the name of one of our functions. */
static void
set_hint(ErrorData *error, const char *format, const char *function)
{
	char	   *name = quote_qualified_identifier(NameStr(schema), function);

	error->hint = MemoryContextStrdup(error->assoc_context,
									  psprintf(format, name));
}

/* btree may have a class for a type that has none of ours. */
static void
explain_missing_class(ErrorData *error)
{
	static const char end[] = "access method \"hybrid\"";
	size_t		len = strlen(error->message);

	if (strcmp(error->message_id,
			   "data type %s has no default operator class for access method \"%s\"") == 0 &&
		len >= strlen(end) &&
		strcmp(error->message + len - strlen(end), end) == 0)
		set_hint(error, _("SELECT %s() makes operator classes of all that access method \"btree\" has."),
				 "hybrid_make_operator_classes");
}

#ifdef HYB_NO_REPLICA_IDENTITY
/* Rows to be changed are looked for through the primary key. */
static void
explain_subscriber(ErrorData *error)
{
	if (IsLogicalWorker() && error->hint == NULL &&
		strncmp(error->message_id, "missing operator ", 17) == 0)
		set_hint(error, _("Subscribers of this version of PostgreSQL cannot find rows through a hybrid index: %s() the primary key here, or have a btree index be the replica identity of the table here."),
				 "hybrid_revert");
}
#else
#define explain_subscriber(error) ((void) 0)
#endif

/*
 * Called for what goes to the log, before it does, and to the client: no
 * catalogs, nothing that could fail for other reasons than memory.
 */
static void
explain_reported(ErrorData *error)
{
	if (error->elevel == ERROR && error->message_id != NULL)
	{
		if (first_use != 0 && GetCurrentStatementStartTimestamp() == first_use)
			explain_error(error);
		explain_missing_class(error);
		explain_subscriber(error);
	}
	if (previous_emit_log)
		previous_emit_log(error);
}

void
hyb_hooks_init(void)
{
	hyb_preloaded = process_shared_preload_libraries_in_progress;
	previous_emit_log = emit_log_hook;
	emit_log_hook = explain_reported;
}

bool
hyb_hooks_handler_called(Oid handler)
{
	static bool called = false;

	if (called)
		return false;
	called = true;
	namestrcpy(&schema, get_namespace_name(get_func_namespace(handler)));
	first_use = GetCurrentStatementStartTimestamp();
	return true;
}
