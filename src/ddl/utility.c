/*
 * utility.c
 *		Takes part in utility statements: constraints whose indexes are hybrid,
 *		the setting hybridindex.replace_btree, and what the server carries out
 *		for btree only.
 *
 * A ProcessUtility hook sees all statements of sessions that have loaded this
 * library, also those that other statements are made of (the indexes of CREATE
 * TABLE).  A session that has not loaded it does so when its first DDL fires the
 * extension's event triggers: these stand for the hook in that one statement.
 * pg_upgrade restores event triggers last of all, but has loaded the library
 * when it restored the access method's handler.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/event_trigger.h"
#include "ddl/attach.h"
#include "ddl/detour.h"
#include "ddl/replace.h"
#include "ddl/stand_in.h"
#include "fmgr.h"
#include "insert/gather.h"
#include "miscadmin.h"
#include "nodes/nodes.h"
#include "parser/parser.h"
#include "server/hooks.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(hybrid_ddl_command);

static ProcessUtility_hook_type previous_process_utility = NULL;

/*
 * The statement that the hook has been called for, so that the event triggers
 * have nothing to do.
 */
static Node *current_tree = NULL;

/* What is to be done after it: by the first event trigger, or by the hook. */
static HybDetour *current_detour = NULL;

/* Of the statement that has loaded the library, in TopTransactionContext. */
static Node *first_tree = NULL;
static SubTransactionId first_subtransaction;
static HybDetour first_detour;

/* Statements that are looked at at all. */
static bool
concerns_us(const Node *tree)
{
	return IsA(tree, IndexStmt) || IsA(tree, CreateStmt) ||
		IsA(tree, AlterTableStmt) || IsA(tree, RefreshMatViewStmt);
}

/* The statement is allowed here, as far as it is for standard_ProcessUtility. */
static void
before_statement(const HybStatement *statement, HybDetour *detour)
{
	switch (nodeTag(statement->tree))
	{
		case T_IndexStmt:
			hyb_replace_in_index(statement);
			hyb_attach_index_above((IndexStmt *) statement->tree,
								   statement->source);
			break;
		case T_CreateStmt:
			hyb_replace_in_create_table(statement);
			break;
		case T_AlterTableStmt:
			{
				Oid			relid = hyb_detour_alter_table(detour,
														   (AlterTableStmt *) statement->tree);

				if (OidIsValid(relid))
				{
					hyb_replace_in_alter_table(statement, relid);
					hyb_attach_constraints_above((AlterTableStmt *) statement->tree,
												 relid);
					hyb_detour_postpone(detour,
										(AlterTableStmt *) statement->tree,
										relid);
				}
				break;
			}
		case T_RefreshMatViewStmt:
			hyb_detour_refresh(detour, (RefreshMatViewStmt *) statement->tree);
			break;
		default:
			break;
	}
}

static void
end_once(HybDetour *detour)
{
	HybDetour	ended = *detour;

	memset(detour, 0, sizeof(*detour));
	hyb_detour_end(&ended);
}

/* The statement, or a copy that has been changed before it is carried out. */
static PlannedStmt *
take_part(PlannedStmt *pstmt, const char *source, bool read_only_tree,
		  HybDetour *detour)
{
	HybStatement statement;
	PlannedStmt *ours;

	if (!concerns_us(pstmt->utilityStmt) || XactReadOnly ||
		RecoveryInProgress() || IsInParallelMode())
		return pstmt;
	ours = read_only_tree ? copyObject(pstmt) : pstmt;
	statement.tree = ours->utilityStmt;
	statement.source = source;
	statement.location = pstmt->stmt_location;
	before_statement(&statement, detour);
	return ours;
}

/* So many parameters because it is a hook. */
static void
process_utility(PlannedStmt *pstmt, const char *source, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous_process_utility ?
		previous_process_utility : standard_ProcessUtility;
	Node	   *outer_tree = current_tree;
	HybDetour  *outer_detour = current_detour;
	HybDetour	detour = {0};
	PlannedStmt *ours;

	hyb_gather_before_read(InvalidOid);
	ours = take_part(pstmt, source, read_only_tree, &detour);
	current_tree = ours->utilityStmt;
	current_detour = &detour;
	PG_TRY();
	{
		next(ours, source, read_only_tree && ours == pstmt, context, params,
			 environment, dest, completion);
	}
	PG_FINALLY();
	{
		current_tree = outer_tree;
		current_detour = outer_detour;
	}
	PG_END_TRY();
	end_once(&detour);
}

/*
 * The parse trees of the query string, if it is one with this value of
 * standard_conforming_strings.  The server has read it already, so there are no
 * warnings, and no errors but that of another value.
 */
static List *
read_again(bool conforming)
{
	MemoryContext context = CurrentMemoryContext;
	bool		conforms = standard_conforming_strings;
	bool		warns = escape_string_warning;
	int			backslash = backslash_quote;
	List	   *volatile trees = NIL;

	standard_conforming_strings = conforming;
	escape_string_warning = false;
	backslash_quote = BACKSLASH_QUOTE_ON;
	PG_TRY();
	{
		trees = raw_parser(debug_query_string, RAW_PARSE_DEFAULT);
	}
	PG_CATCH();
	{
		/* it holds nothing but memory */
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	standard_conforming_strings = conforms;
	escape_string_warning = warns;
	backslash_quote = backslash;
	return trees;
}

/*
 * Where the text of a statement that an event trigger fires for begins in the
 * query string: event triggers are not told.  It is found by its parse tree,
 * unless it is in a function.  Statements before it may have changed how
 * strings are read.
 */
static void
find_source(HybStatement *statement)
{
	statement->source = NULL;
	statement->location = -1;
	if (debug_query_string == NULL)
		return;
	for (int i = 0; i < 2; i++)
	{
		ListCell   *lc;

		foreach(lc, read_again(standard_conforming_strings == (i == 0)))
		{
			RawStmt    *raw = lfirst_node(RawStmt, lc);

			if (!equal(raw->stmt, statement->tree))
				continue;
			statement->source = debug_query_string;
			statement->location = raw->stmt_location;
			return;
		}
	}
}

/* Event trigger of the extension, on ddl_command_start and ddl_command_end. */
Datum
hybrid_ddl_command(PG_FUNCTION_ARGS)
{
	EventTriggerData *data = (EventTriggerData *) fcinfo->context;
	MemoryContext old_context;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by event trigger manager",
						"hybrid_ddl_command")));
	if (data->parsetree == current_tree)
	{
		/* so that other event triggers see the result */
		if (strcmp(data->event, "ddl_command_end") == 0)
			end_once(current_detour);
		PG_RETURN_NULL();
	}

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	if (strcmp(data->event, "ddl_command_start") == 0)
	{
		HybStatement statement = {.tree = data->parsetree};

		if (first_tree == NULL && concerns_us(data->parsetree))
		{
			first_tree = data->parsetree;
			first_subtransaction = GetCurrentSubTransactionId();
			find_source(&statement);
			before_statement(&statement, &first_detour);
		}
	}
	else if (first_tree == data->parsetree)
	{
		end_once(&first_detour);
		first_tree = NULL;
	}
	MemoryContextSwitchTo(old_context);
	PG_RETURN_NULL();
}

static void
forget_first(XactEvent event, void *arg)
{
	first_tree = NULL;
	memset(&first_detour, 0, sizeof(first_detour));
}

/* It fails with the subtransaction that it is in, or one around that. */
static void
forget_first_of(SubXactEvent event, SubTransactionId subtransaction,
				SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && first_tree != NULL &&
		subtransaction <= first_subtransaction)
		forget_first(XACT_EVENT_ABORT, NULL);
}

void
hyb_utility_init(void)
{
	previous_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	RegisterXactCallback(forget_first, NULL);
	RegisterSubXactCallback(forget_first_of, NULL);
	hyb_replace_init();
	hyb_stand_in_init();
}
