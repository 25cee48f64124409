/*
 * utility.c
 *		What the library does before and after utility statements.
 *
 * A ProcessUtility hook sees all statements of sessions that have loaded this library,
 * also the parts of other statements (the indexes of CREATE TABLE).  A session that has
 * not loads it when its first DDL fires the extension's event triggers.  These do the
 * hook's work for that one statement.  pg_upgrade restores event triggers last, but
 * has loaded the library with the access method's handler.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "commands/event_trigger.h"
#include "ddl/utility.h"
#include "fmgr.h"
#include "server/before_18/ddl_before_18.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/portal.h"

PG_FUNCTION_INFO_V1(hybrid_ddl_command);

/*
 * The statement of the hook.  What remains after it is done by the first event
 * trigger, or by the hook.
 */
static HybUtility *current = NULL;

/* Of the statement that has loaded the library, in TopTransactionContext. */
static Node *first_tree = NULL;
static SubTransactionId first_subtransaction;
static bool first_nested = false;
static HybAfterStatement first_after;

/* Returns the relation of a statement that concerns us, else NULL. */
static const RangeVar *
relation_of(const Node *tree)
{
	switch (nodeTag(tree))
	{
		case T_IndexStmt:
			return ((const IndexStmt *) tree)->relation;
		case T_CreateStmt:
			return ((const CreateStmt *) tree)->relation;
		case T_AlterTableStmt:
			return ((const AlterTableStmt *) tree)->relation;
		case T_RefreshMatViewStmt:
			return ((const RefreshMatViewStmt *) tree)->relation;
		default:
			return NULL;
	}
}

/*
 * Returns true if both are trees of one statement that concerns us, itself or by its
 * parts (CREATE SCHEMA), given that both are being executed.  The server copies trees,
 * and so do hooks of other libraries.  These fill in names too, so we compare only
 * what they leave: kind and relation.
 */
static bool
is_same(const Node *a, const Node *b)
{
	if (nodeTag(a) != nodeTag(b) || relation_of(a) == NULL)
		return IsA(a, CreateSchemaStmt) && IsA(b, CreateSchemaStmt);
	return strcmp(relation_of(a)->relname, relation_of(b)->relname) == 0;
}

/* The statement is allowed here, as far as it is for standard_ProcessUtility. */
static void
before_statement(const HybStatement *statement, HybAfterStatement *after)
{
	Node	   *tree = statement->tree;
	Oid			relid;

	switch (nodeTag(tree))
	{
		case T_IndexStmt:
			hyb_replace_in_index(statement);
			hyb_attach_index_above((IndexStmt *) tree, statement->source);
			break;
		case T_CreateStmt:
			hyb_replace_in_create_table(statement);
			break;
		case T_AlterTableStmt:
			relid = hyb_alter_table_before(after, (AlterTableStmt *) tree);
			if (!OidIsValid(relid))
				break;
			hyb_replace_in_alter_table(statement, relid);
			hyb_attach_constraints_above((AlterTableStmt *) tree, relid);
			break;
		case T_RefreshMatViewStmt:
			hyb_before_18_refresh(&after->stand_ins,
								  (RefreshMatViewStmt *) tree);
			break;
		default:
			break;
	}
}

static void
end_once(HybAfterStatement *after)
{
	HybAfterStatement ended = *after;

	memset(after, 0, sizeof(*after));
	if (ended.stand_ins.made == NIL && ended.constraints == NIL)
		return;
	CommandCounterIncrement();
	hyb_stand_ins_end(&ended.stand_ins);
	hyb_alter_table_after(&ended);
}

/*
 * Returns true for a statement of a function or an extension, and for a part of one.
 * Never in a binary upgrade: what it restores describes files that exist.
 */
static bool
is_nested(ProcessUtilityContext context)
{
	if (IsBinaryUpgrade)
		return false;
	if (context == PROCESS_UTILITY_SUBCOMMAND)
		return current != NULL ? current->nested : first_nested;
	return context == PROCESS_UTILITY_QUERY ||
		context == PROCESS_UTILITY_QUERY_NONATOMIC;
}

PlannedStmt *
hyb_utility_begin(HybUtility *utility, PlannedStmt *pstmt, const char *source,
				  bool read_only_tree, ProcessUtilityContext context)
{
	HybStatement statement;
	PlannedStmt *ours = pstmt;

	memset(&utility->after, 0, sizeof(HybAfterStatement));
	utility->nested = is_nested(context);
	if (relation_of(pstmt->utilityStmt) != NULL && !XactReadOnly &&
		!RecoveryInProgress() && !IsInParallelMode())
	{
		ours = read_only_tree ? copyObject(pstmt) : pstmt;
		statement.tree = ours->utilityStmt;
		statement.source = source;
		statement.location = pstmt->stmt_location;
		statement.nested = utility->nested;
		before_statement(&statement, &utility->after);
	}
	utility->tree = ours->utilityStmt;
	utility->outer = current;
	current = utility;
	return ours;
}

void
hyb_utility_leave(const HybUtility *utility)
{
	Assert(current == utility);
	current = utility->outer;
}

void
hyb_utility_end(HybUtility *utility)
{
	end_once(&utility->after);
}

/*
 * Finds the text of an event trigger's statement: the portal has it, unless a function
 * executes the statement.
 */
static void
find_source(HybStatement *statement)
{
	const PlannedStmt *executed = ActivePortal == NULL || ActivePortal->stmts == NIL ?
		NULL : linitial_node(PlannedStmt, ActivePortal->stmts);

	statement->location = -1;
	if (executed == NULL || executed->utilityStmt == NULL ||
		!is_same(executed->utilityStmt, statement->tree))
		return;
	statement->source = ActivePortal->sourceText;
	statement->location = executed->stmt_location;
}

static void
forget_first(XactEvent event, void *arg)
{
	first_tree = NULL;
	first_nested = false;
	memset(&first_after, 0, sizeof(first_after));
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
	if (current != NULL && is_same(data->parsetree, current->tree))
	{
		/* so that other event triggers see the result */
		if (strcmp(data->event, "ddl_command_end") == 0)
			end_once(&current->after);
		PG_RETURN_NULL();
	}

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	if (strcmp(data->event, "ddl_command_start") == 0)
	{
		HybStatement statement = {.tree = data->parsetree};

		if (first_tree == NULL)
		{
			first_tree = data->parsetree;
			first_subtransaction = GetCurrentSubTransactionId();
			find_source(&statement);
			first_nested = statement.nested = statement.source == NULL && !IsBinaryUpgrade;
			before_statement(&statement, &first_after);
		}
	}
	else if (first_tree == data->parsetree)
	{
		end_once(&first_after);
		forget_first(XACT_EVENT_COMMIT, NULL);
	}
	MemoryContextSwitchTo(old_context);
	PG_RETURN_NULL();
}

/* The statement fails with its subtransaction, or with one around that. */
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
	RegisterXactCallback(forget_first, NULL);
	RegisterSubXactCallback(forget_first_of, NULL);
	hyb_replace_init();
	hyb_stand_in_init();
}
