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

/* An error of the server, and what we say of it. */
typedef struct ExplainedError
{
	const char *message_id;
	const char *part;			/* of the message */
	const char *hint;			/* may have a place for a function's name */
	bool		first_use;		/* only if the statement loaded the library */
} ExplainedError;

static const ExplainedError explained[] = {
	{"there is no unique or exclusion constraint matching the ON CONFLICT specification", "",
	gettext_noop("Operator classes are looked for in hybrid indexes once the library \"hybridindex\" is loaded, which this statement did: try it again, or add it to \"session_preload_libraries\"."), true},
	{"unrecognized parameter \"%s\"", "\"" HYB_ACCESS_METHOD_PARAMETER "\"",
	gettext_noop("The library \"hybridindex\", which knows this parameter of constraints, was loaded by this statement: try it again, or add it to \"session_preload_libraries\"."), true},

	/* btree may have a class for a type that has none of ours */
	{"data type %s has no default operator class for access method \"%s\"", "access method \"hybrid\"",
	gettext_noop("SELECT %s() makes operator classes of all that access method \"btree\" has."), false},

	/*
	 * The extension's script was of a later version than this library: its
	 * package was installed in part, replaced by an older one, or without a
	 * restart.
	 */
	{"could not find function \"%s\" in file \"%s\"", "/hybridindex.",
	gettext_noop("The server runs an older library than the SQL objects of hybridindex want. Install the newest package of hybridindex and restart the server."), false},
};

void
hyb_explain_error(ErrorData *error)
{
	for (int i = 0; i < lengthof(explained); i++)
	{
		const ExplainedError *row = &explained[i];

		if (strcmp(error->message_id, row->message_id) == 0 &&
			strstr(error->message, row->part) != NULL &&
			(!row->first_use || hyb_error_of_first_use()))
			hyb_error_set_hint(error, row->first_use && HYB_IS_WORKER ?
							   _(HYB_LOADED_LATE_WORKER_HINT) : _(row->hint),
							   "hybrid_make_operator_classes");
	}
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
