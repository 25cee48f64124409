/*
 * convert_arbiter.c
 *		INSERT ... ON CONFLICT while a unique index is being converted.
 *
 * From the moment that the twin is ready until the swap, both indexes find
 * duplicates.  The planner takes only valid indexes as arbiters, and the twin is not
 * valid.  So of two sessions that insert the same new key at once, one may see a
 * duplicate in the twin, which is an error where it asked for another action.  The
 * remedy: if an index is an arbiter, its twin is one, too.  The executor passes over
 * arbiters that are not ready, and the other index has what they lack.  In a plan
 * from before the swap the old index is the arbiter, which finds no duplicates any
 * more; the twin does.
 *
 * A session may load the library too late for this, when the executor opens a hybrid
 * twin:
 *
 * - ON CONFLICT ON CONSTRAINT opens the constraint's index only when it is planned.
 *   With columns the planner opens all indexes, so the library is there by then.
 * - A plan of any form may be older than the twin.
 *
 * Before PostgreSQL 18 that is an error.  From 18 on such a twin leaves duplicates to
 * the constraint's index until the swap (insert/unique.c).  Rows routed to
 * partitions find their arbiters in the executor, when the first row comes.  REINDEX
 * CONCURRENTLY has the same gap there.
 *
 * For ON CONFLICT ON CONSTRAINT the planner (infer_arbiter_indexes in plancat.c) asks
 * which index the constraint has, and then opens the indexes of the table.  If the
 * session learns of a swap only then, it finds no arbiter.  So we lock the indexes
 * just before: a lock that is held already brings no news of other sessions.
 *
 * The swap can be read in catalogs before its news comes, and the news comes in parts.
 * So the constraint may have the twin by now, which is invalid by what the session
 * knows of that.  Then the session forgets all that it knows.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "ddl/utility.h"
#include "insert/insertion.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

/* Returns true if one of the two indexes is to take the place of the other. */
static bool
are_twins(Relation a, Relation b, Oid hybrid)
{
	return (!a->rd_index->indisvalid || !b->rd_index->indisvalid) &&
		(a->rd_rel->relam == hybrid || b->rd_rel->relam == hybrid) &&
		hyb_same_uniqueness(a, b);
}

/* Returns true if the index is the twin of an arbiter. */
static bool
is_missing(Oid indexoid, List *arbiters)
{
	Relation	index = index_open(indexoid, RowExclusiveLock);
	Oid			hybrid = get_index_am_oid("hybrid", true);
	bool		missing = false;
	ListCell   *lc;

	foreach(lc, index->rd_index->indisunique ? arbiters : NIL)
	{
		Relation	arbiter = index_open(lfirst_oid(lc), RowExclusiveLock);

		missing |= are_twins(index, arbiter, hybrid);
		index_close(arbiter, NoLock);
	}
	index_close(index, NoLock);
	return missing;
}

/*
 * The table is locked for insertions, so no other twin can become ready before the
 * statement ends.
 */
static void
add_twins(ResultRelInfo *result)
{
	List	   *arbiters = result->ri_onConflictArbiterIndexes;
	List	   *twins = NIL;
	List	   *indexes = RelationGetIndexList(result->ri_RelationDesc);
	ListCell   *lc;
	bool		all_valid = true;

	Assert(CheckRelationLockedByMe(result->ri_RelationDesc, RowExclusiveLock, true));
	foreach(lc, indexes)
		all_valid &= get_index_isvalid(lfirst_oid(lc));
	foreach(lc, all_valid ? NIL : list_difference_oid(indexes, arbiters))
		if (is_missing(lfirst_oid(lc), arbiters))
		twins = lappend_oid(twins, lfirst_oid(lc));

	/* the list belongs to the plan */
	if (twins != NIL)
		result->ri_onConflictArbiterIndexes =
			list_concat(list_copy(arbiters), twins);
	list_free(indexes);
}

void
hyb_twin_arbiters_prepare(ModifyTableState *modify)
{
	for (int i = 0; i < modify->mt_nrels; i++)
	{
		ResultRelInfo *result = &modify->resultRelInfo[i];

		if (result->ri_onConflictArbiterIndexes != NIL &&
			result->ri_RelationDesc->rd_rel->relkind == RELKIND_RELATION)
			add_twins(result);
	}
}

/*
 * Locks the indexes of a locked table in the planner's mode.  If one of these locks
 * brings news of a swap, the planner looks up the constraint and all its indexes
 * after that.  No other swap can follow: its conversion waits for this transaction.
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

/* Returns false if the constraint's index is invalid by what the session knows. */
static bool
has_valid_index(Oid constraint, LOCKMODE lockmode)
{
	Oid			indexoid = get_constraint_index(constraint);
	Relation	index;
	bool		valid;

	if (!OidIsValid(indexoid))
		return true;			/* the planner reports that */
	index = index_open(indexoid, lockmode);
	valid = index->rd_index->indisvalid;
	index_close(index, NoLock);
	return valid;
}

void
hyb_lock_arbiters(const Query *query)
{
	const RangeTblEntry *table;
	Oid			constraint = query->onConflict == NULL ? InvalidOid :
		query->onConflict->constraint;

	if (!OidIsValid(constraint))
		return;
	table = rt_fetch(query->resultRelation, query->rtable);
	lock_indexes(table->relid, constraint, table->rellockmode);
	if (!has_valid_index(constraint, table->rellockmode))
	{
		InvalidateSystemCaches();
		lock_indexes(table->relid, constraint, table->rellockmode);
	}
	HYB_POINT("plan-constraint");
}
