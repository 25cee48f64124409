/*
 * errors.c
 *		Says what an error of the server means where a hybrid index caused it.
 *
 * The first statement of a session that uses a hybrid index loads this library.
 * Some parts of such a statement have been done by then without it: they looked
 * up operator classes of ON CONFLICT (families.c) or read the parameters of a
 * constraint (ddl/utility.c).  Their errors get a hint when the server reports
 * them to the log and the client.  A function that catches the error sees what
 * the server said.
 *
 * So do CREATE INDEX on a type that has no hybrid operator class, and SQL objects of
 * a newer extension than the library.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "server/btree_only.h"
#include "store/settings.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* When the statement began that loaded the library; 0: the server did, at its start. */
static TimestampTz loaded_at = 0;

/* The schema that had the extension's functions then, for hints. */
static NameData schema;

bool
hyb_error_of_first_use(void)
{
	return loaded_at != 0 && GetCurrentStatementStartTimestamp() == loaded_at;
}

void
hyb_error_set_hint(ErrorData *error, const char *format, const char *function)
{
	char	   *name = quote_qualified_identifier(NameStr(schema), function);

	error->hint = MemoryContextStrdup(error->assoc_context,
									  psprintf(format, name));
}

static void
explain_first_use(ErrorData *error)
{
	const char *hint;

	if (strcmp(error->message_id,
			   "there is no unique or exclusion constraint matching the ON CONFLICT specification") == 0)
		hint = HYB_IS_WORKER ? _(HYB_LOADED_LATE_WORKER_HINT) :
			_("Operator classes are looked for in hybrid indexes once the library \"hybridindex\" is loaded, which this statement did: try it again, or add it to \"session_preload_libraries\".");
	else if (strcmp(error->message_id, "unrecognized parameter \"%s\"") == 0 &&
			 strstr(error->message, "\"" HYB_ACCESS_METHOD_PARAMETER "\"") != NULL)
		hint = _("The library \"hybridindex\", which knows this parameter of constraints, was loaded by this statement: try it again, or add it to \"session_preload_libraries\".");
	else
		return;
	if (error->hint == NULL)
		error->hint = MemoryContextStrdup(error->assoc_context, hint);
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
		hyb_error_set_hint(error, _("SELECT %s() makes operator classes of all that access method \"btree\" has."),
						   "hybrid_make_operator_classes");
}

/*
 * The extension's script was of a later version than this library: its package was
 * installed in part, replaced by an older one, or without a restart.
 */
static void
explain_missing_function(ErrorData *error)
{
	if (strcmp(error->message_id, "could not find function \"%s\" in file \"%s\"") == 0 &&
		strstr(error->message, "/hybridindex.") != NULL && error->hint == NULL)
		error->hint = MemoryContextStrdup(error->assoc_context,
										  _("The server runs an older library than the SQL objects of hybridindex want. Install the newest package of hybridindex and restart the server."));
}

void
hyb_explain_error(ErrorData *error)
{
	if (hyb_error_of_first_use())
		explain_first_use(error);
	explain_missing_class(error);
	explain_missing_function(error);
}

void
hyb_errors_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		loaded_at = GetCurrentStatementStartTimestamp();
}

bool
hyb_errors_handler_called(Oid handler)
{
	static bool called = false;

	if (called)
		return false;
	called = true;
	namestrcpy(&schema, get_namespace_name(get_func_namespace(handler)));
	return true;
}
