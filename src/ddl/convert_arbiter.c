/*
 * convert_arbiter.c
 *		INSERT ... ON CONFLICT while a unique index and its twin are there both.
 *
 * From the moment that the twin is ready until it takes the place of the old
 * index each finds duplicates, but the planner takes for arbiters only those
 * that are valid, which the twin is not.  Two sessions that insert the same new
 * key at once then may see a duplicate in the twin, which is an error where the
 * statement asks for another action.  So what is an arbiter by way of an index
 * is one by way of its twin as well: an arbiter that is not ready is passed over
 * by the executor, and whatever it lacks the other one has.  A plan from before
 * the swap has the old index for an arbiter, which finds none from then on; the
 * twin does.
 *
 * The planner opens all indexes of a table when it looks for arbiters by columns,
 * also those that are not valid: by then this library is loaded.  For ON CONFLICT
 * ON CONSTRAINT it opens none behind that of the constraint, and a plan of any
 * form may be older than the twin.  So a session may load the library when the
 * executor opens a hybrid twin, after this file could do anything: before
 * PostgreSQL 18 an error; from then on, until the swap, that twin leaves
 * duplicates to the constraint's index (insert/counterpart.c).  A table whose rows
 * are routed to partitions has its arbiters found by the executor alone, when the
 * first row comes; there REINDEX CONCURRENTLY has the same gap.
 *
 * For ON CONFLICT ON CONSTRAINT the planner (infer_arbiter_indexes in plancat.c)
 * first asks which index the constraint has and then opens the table's indexes,
 * which is when a session learns of a swap: an index that is not valid any more
 * was looked for, and none is found.  So they are locked a moment before; a lock
 * that is held already brings no news of what others did.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "insert/counterpart.h"
#include "nodes/execnodes.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "server/hooks.h"
#include "server/started.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static ExecutorStart_hook_type previous_executor_start = NULL;
static create_upper_paths_hook_type previous_create_upper_paths = NULL;

static bool
get_flags(Oid index, bool *unique, bool *valid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	*unique = form->indisunique;
	*valid = form->indisvalid;
	ReleaseSysCache(tuple);
	return true;
}

static bool
is_twin(Oid index, Oid arbiter, Oid hybrid)
{
	Relation	a = index_open(index, RowExclusiveLock);
	Relation	b = index_open(arbiter, RowExclusiveLock);
	bool		result;

	result = (a->rd_rel->relam == hybrid || b->rd_rel->relam == hybrid) &&
		hyb_same_uniqueness(a, b);
	index_close(b, NoLock);
	index_close(a, NoLock);
	return result;
}

/* Is an index that is no arbiter the twin of one that is? */
static bool
is_missing(Oid index, List *arbiters)
{
	Oid			hybrid;
	bool		unique;
	bool		valid;
	ListCell   *lc;

	if (!get_flags(index, &unique, &valid) || !unique)
		return false;
	hybrid = get_index_am_oid("hybrid", true);
	foreach(lc, arbiters)
	{
		bool		arbiter_unique;
		bool		arbiter_valid;

		if (get_flags(lfirst_oid(lc), &arbiter_unique, &arbiter_valid) &&
			(!valid || !arbiter_valid) &&
			is_twin(index, lfirst_oid(lc), hybrid))
			return true;
	}
	return false;
}

/*
 * The table is locked for insertions, so the twins that are here are all that
 * can become ready before the statement ends.
 */
static void
add_twins(ResultRelInfo *result)
{
	List	   *arbiters = result->ri_onConflictArbiterIndexes;
	List	   *twins = NIL;
	List	   *indexes = RelationGetIndexList(result->ri_RelationDesc);
	ListCell   *lc;
	bool		all_valid = true;

	foreach(lc, indexes)
	{
		bool		unique;
		bool		valid;

		if (get_flags(lfirst_oid(lc), &unique, &valid) && !valid)
			all_valid = false;
	}
	foreach(lc, all_valid ? NIL : indexes)
		if (!list_member_oid(arbiters, lfirst_oid(lc)) &&
			is_missing(lfirst_oid(lc), arbiters))
		twins = lappend_oid(twins, lfirst_oid(lc));

	/* the plan's list is not ours to change */
	if (twins != NIL)
		result->ri_onConflictArbiterIndexes =
			list_concat(list_copy(arbiters), twins);
	list_free(indexes);
}

static void
prepare_twin_arbiter(ModifyTableState *modify)
{
	for (int i = 0; i < modify->mt_nrels; i++)
	{
		ResultRelInfo *result = &modify->resultRelInfo[i];

		if (result->ri_onConflictArbiterIndexes != NIL &&
			result->ri_RelationDesc->rd_rel->relkind == RELKIND_RELATION)
			add_twins(result);
	}
}

static void
arbiter_executor_start(QueryDesc *query, int eflags)
{
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	hyb_started_on_conflict(query, eflags, prepare_twin_arbiter);
}

/*
 * Locks the indexes of the table, which is locked, in the mode that the planner
 * will ask for.  If the session learns of a swap by one of these locks, the
 * planner looks up the constraint and all its indexes again, as they are after
 * it.  No other swap can follow: the conversion waits for this transaction.
 */
static void
lock_indexes(Oid relid, Oid constraint, LOCKMODE lockmode)
{
	Relation	table = table_open(relid, NoLock);
	List	   *indexes;
	ListCell   *lc;

	/* cached for the planner, until a lock brings news */
	(void) get_constraint_index(constraint);
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
		index_close(index_open(lfirst_oid(lc), lockmode), NoLock);
	list_free(indexes);
	table_close(table, NoLock);
}

/* The last thing that can be done before the plan is made of the path. */
static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage,
				   RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	const Query *query = root->parse;

	if (previous_create_upper_paths)
		previous_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_FINAL && query->onConflict != NULL &&
		OidIsValid(query->onConflict->constraint))
	{
		const RangeTblEntry *table = rt_fetch(query->resultRelation,
											  query->rtable);

		lock_indexes(table->relid, query->onConflict->constraint,
					 table->rellockmode);
		HYB_POINT("plan-constraint");
	}
}

void
hyb_convert_arbiter_init(void)
{
	previous_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = arbiter_executor_start;
}
