/*
 * conflict.c
 *		Lets INSERT ... ON CONFLICT find equal keys in unique hybrid indexes.
 *
 * Before 18 the executor opens the indexes of such a table with the first row,
 * and takes every unique index for a btree when it looks up how to find equal
 * keys (BuildSpeculativeIndexInfo in catalog/index.c).  But it opens only indexes
 * that are not open yet.  So we open them after the executor has started and
 * before the first row, and look up equality in the operator families of the
 * index.
 *
 * The executor opens a partition, with ExecInitPartitionInfo, when the first row
 * is routed to it.  It takes unique indexes for btrees only if the statement has
 * ON CONFLICT.  So when a row has come out of the plan below, we route it first
 * as by a statement without ON CONFLICT.  Then we add what is missing: how equal
 * keys are found, the arbiters, and what DO UPDATE needs.  The executor finds the
 * partition opened.
 *
 * This library has to be loaded when the executor starts.  If an ON CONFLICT
 * clause names an index, the planner has opened it and so loaded the library.
 * ON CONFLICT DO NOTHING without a target may load it too late: that is an error
 * with a hint.  The handler's first call raises it if the portal being run tells
 * that a statement with ON CONFLICT has started.  Statements within functions,
 * EXECUTE and EXPLAIN ANALYZE have no such portal: there the server's own error
 * is changed when it is reported.
 */
#include "base/compat.h"

#if HYB_BEFORE_18

#include "access/attmap.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "server/before_18/before_18.h"
#include "server/btree_only.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define LOADED_LATE \
	"the library \"hybridindex\", which INSERT ... ON CONFLICT needs for a unique hybrid index, was loaded too late"
#define LOADED_LATE_DETAIL \
	"Before PostgreSQL 18 it has to be there when such a statement starts, and this one was the first of its session to use a hybrid index."
#define LOADED_LATE_HINT \
	"Try it again, or add \"hybridindex\" to \"session_preload_libraries\"."

/* A statement that is being executed; in its memory context. */
typedef struct RoutedInsert
{
	struct RoutedInsert *next;
	ModifyTableState *modify;
	PlanState  *source;			/* where rows come from */
	ExecProcNodeMtd fetch;		/* what that has been doing */
	ModifyTable without;		/* the plan, without ON CONFLICT */
	TupleTableSlot *row;		/* of the partitioned table */
	ResultRelInfo *last;		/* the partition of the row before, or NULL */
	List	   *foreign;		/* those that are foreign tables */
	Oid			hybrid;
	MemoryContextCallback forget;
} RoutedInsert;

static RoutedInsert *inserts = NULL;

/*
 * Fills in how equal keys are found in unique indexes, which are open.  The server
 * takes hybrid indexes for btrees.
 */
static void
look_up_all(ResultRelInfo *result, Oid hybrid)
{
	for (int i = 0; i < result->ri_NumIndices; i++)
	{
		Relation	index = result->ri_IndexRelationDescs[i];
		IndexInfo  *info = result->ri_IndexRelationInfo[i];

		if (info->ii_Unique)
			BuildSpeculativeIndexInfo(index->rd_rel->relam == hybrid ?
									  hyb_as_btree(index) : index, info);
	}
}

/* Has the partition been opened as by a statement without ON CONFLICT? */
static bool
lacks_look_up(const ResultRelInfo *partition)
{
	for (int i = 0; i < partition->ri_NumIndices; i++)
	{
		const IndexInfo *info = partition->ri_IndexRelationInfo[i];

		if (info->ii_Unique)
			return info->ii_UniqueOps == NULL;
	}
	return false;
}

/* The partition's indexes that are attached to the arbiters. */
static List *
map_arbiters(const ResultRelInfo *partition, List *arbiters)
{
	List	   *mapped = NIL;
	ListCell   *lc;

	if (arbiters == NIL)
		return NIL;
	foreach(lc, RelationGetIndexList(partition->ri_RelationDesc))
	{
		ListCell   *of_index;

		foreach(of_index, get_partition_ancestors(lfirst_oid(lc)))
			if (list_member_oid(arbiters, lfirst_oid(of_index)))
			mapped = lappend_oid(mapped, lfirst_oid(lc));
	}
	if (list_length(mapped) != list_length(arbiters))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("invalid arbiter index list of partition \"%s\"",
						RelationGetRelationName(partition->ri_RelationDesc))));
	return mapped;
}

/* An expression of the partitioned table, of its new row and the present one. */
static Node *
map_columns(const RoutedInsert *insert, const ResultRelInfo *partition,
			const AttrMap *map, const void *expression)
{
	Oid			type = RelationGetForm(partition->ri_RelationDesc)->reltype;
	Node	   *node = copyObjectImpl(expression);
	bool		whole_row;

	node = map_variable_attnos(node, INNER_VAR, 0, map, type, &whole_row);
	return map_variable_attnos(node,
							   insert->modify->resultRelInfo[0].ri_RangeTableIndex,
							   0, map, type, &whole_row);
}

/* The state of DO UPDATE for a partition with other column numbers. */
static void
make_projection(const RoutedInsert *insert, const ResultRelInfo *partition,
				OnConflictSetState *state)
{
	const ModifyTable *plan = (const ModifyTable *) insert->modify->ps.plan;
	PlanState  *parent = &insert->modify->ps;
	Relation	table = partition->ri_RelationDesc;
	AttrMap    *map = HYB_ATTRMAP_BY_NAME(RelationGetDescr(table),
										  RelationGetDescr(insert->modify->resultRelInfo[0].ri_RelationDesc));
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, plan->onConflictCols)
		columns = lappend_int(columns, map->attnums[lfirst_int(lc) - 1]);
	state->oc_ProjSlot = table_slot_create(table,
										   &parent->state->es_tupleTable);
	state->oc_ProjInfo =
		ExecBuildUpdateProjection((List *) map_columns(insert, partition, map,
													   plan->onConflictSet),
								  true, columns, RelationGetDescr(table),
								  parent->ps_ExprContext, state->oc_ProjSlot,
								  parent);
	if (plan->onConflictWhere)
		state->oc_WhereClause =
			ExecInitQual((List *) map_columns(insert, partition, map,
											  plan->onConflictWhere),
						 parent);
}

/* What ExecInitPartitionInfo does where there is ON CONFLICT. */
static void
prepare_partition(const RoutedInsert *insert, ResultRelInfo *partition)
{
	EState	   *estate = insert->modify->ps.state;
	const ResultRelInfo *root = insert->modify->rootResultRelInfo;
	MemoryContext old_context = MemoryContextSwitchTo(estate->es_query_cxt);

	look_up_all(partition, insert->hybrid);
	partition->ri_onConflictArbiterIndexes =
		map_arbiters(partition, root->ri_onConflictArbiterIndexes);
	if (root->ri_onConflict != NULL)
	{
		OnConflictSetState *state = makeNode(OnConflictSetState);

		CheckCmdReplicaIdentity(partition->ri_RelationDesc, CMD_UPDATE);
		*state = *root->ri_onConflict;
		state->oc_Existing = table_slot_create(partition->ri_RelationDesc,
											   &estate->es_tupleTable);
		if (HYB_ROOT_TO_PARTITION(partition, estate) != NULL)
			make_projection(insert, partition, state);
		partition->ri_onConflict = state;
	}
	MemoryContextSwitchTo(old_context);
}

/*
 * A foreign table reads in the plan that it is to do nothing about duplicates,
 * when it is opened: so once more, with the plan as it is.
 */
static void
prepare_foreign(RoutedInsert *insert, ResultRelInfo *partition)
{
	EState	   *estate = insert->modify->ps.state;
	const FdwRoutine *routine = partition->ri_FdwRoutine;
	MemoryContext old_context;

	if (routine->BeginForeignInsert == NULL ||
		list_member_ptr(insert->foreign, partition))
		return;
	old_context = MemoryContextSwitchTo(estate->es_query_cxt);
	insert->foreign = lappend(insert->foreign, partition);
	if (routine->EndForeignInsert != NULL)
		routine->EndForeignInsert(estate, partition);
	partition->ri_FdwState = NULL;
	routine->BeginForeignInsert(insert->modify, partition);
	MemoryContextSwitchTo(old_context);
}

static ResultRelInfo *
find_partition(RoutedInsert *insert, TupleTableSlot *row)
{
	ModifyTableState *modify = insert->modify;
	Plan	   *plan = modify->ps.plan;
	int			natts = insert->row->tts_tupleDescriptor->natts;
	ResultRelInfo *partition;

	/* what comes after the table's columns is of no interest */
	ExecClearTuple(insert->row);
	slot_getsomeattrs(row, natts);
	memcpy(insert->row->tts_values, row->tts_values, natts * sizeof(Datum));
	memcpy(insert->row->tts_isnull, row->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(insert->row);

	modify->ps.plan = &insert->without.plan;
	partition = ExecFindPartition(modify, modify->rootResultRelInfo,
								  modify->mt_partition_tuple_routing,
								  insert->row, modify->ps.state);
	modify->ps.plan = plan;
	return partition;
}

static TupleTableSlot *
fetch_and_prepare(PlanState *source)
{
	RoutedInsert *insert = inserts;
	TupleTableSlot *row;

	while (insert->source != source)
		insert = insert->next;
	row = insert->fetch(source);
	if (!TupIsNull(row))
	{
		ResultRelInfo *partition = find_partition(insert, row);

		if (partition != insert->last && partition->ri_FdwRoutine != NULL)
			prepare_foreign(insert, partition);
		else if (partition != insert->last && lacks_look_up(partition))
			prepare_partition(insert, partition);
		insert->last = partition;
	}
	return row;
}

static void
forget_insert(void *arg)
{
	RoutedInsert **link = &inserts;

	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
}

/*
 * The statement, which has just been started, inserts into a partitioned table.
 * Each partition is prepared before its first row comes.
 */
static void
route_insert(ModifyTableState *modify, Oid hybrid)
{
	EState	   *estate = modify->ps.state;
	RoutedInsert *insert = MemoryContextAllocZero(estate->es_query_cxt,
												  sizeof(RoutedInsert));

	insert->modify = modify;
	insert->source = outerPlanState(modify);
	insert->fetch = insert->source->ExecProcNodeReal;
	insert->without = *(ModifyTable *) modify->ps.plan;
	insert->without.onConflictAction = ONCONFLICT_NONE;
	insert->row = ExecInitExtraTupleSlot(estate,
										 RelationGetDescr(modify->rootResultRelInfo->ri_RelationDesc),
										 &TTSOpsVirtual);
	insert->hybrid = hybrid;
	insert->forget.func = forget_insert;
	insert->forget.arg = insert;
	insert->next = inserts;
	inserts = insert;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &insert->forget);
	ExecSetExecProcNode(insert->source, fetch_and_prepare);
}

/* ---- starting a statement ---- */

/* A query has been started since this library was loaded. */
static bool query_was_started = false;

/*
 * Partitioned tables known to have no unique hybrid index, so that statements do
 * not look at all partitions each time.  Forgotten when any relation changes.
 */
static List *plain_tables = NIL;	/* OIDs, in TopMemoryContext */
static bool plain_tables_stale = false;

static bool
is_unique_hybrid(Oid index, Oid hybrid)
{
	HeapTuple	tuple;
	bool		result;

	if (!hyb_index_is_of(index, hybrid))
		return false;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_index) GETSTRUCT(tuple))->indisunique;
	ReleaseSysCache(tuple);
	return result;
}

/* Opens no index: one may be on its way into the relation cache. */
static bool
has_unique_hybrid(Relation table, Oid hybrid)
{
	List	   *indexes;
	ListCell   *lc;
	bool		found = false;

	if (!table->rd_rel->relhasindex)
		return false;
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
		found = found || is_unique_hybrid(lfirst_oid(lc), hybrid);
	list_free(indexes);
	return found;
}

static void
relation_has_changed(Datum arg, Oid relid)
{
	plain_tables_stale = true;
}

static bool
is_known_plain(Oid relid)
{
	static bool registered = false;

	if (!registered)
		CacheRegisterRelcacheCallback(relation_has_changed, (Datum) 0);
	registered = true;
	if (plain_tables_stale)
	{
		list_free(plain_tables);
		plain_tables = NIL;
		plain_tables_stale = false;
	}
	return list_member_oid(plain_tables, relid);
}

/*
 * Does a table have one that is not locked?  It is not locked here either: the
 * statement may not concern this table, and would wait for a session that locks
 * or drops it.
 */
static bool
catalog_has_unique_hybrid(Oid table, Oid hybrid)
{
	List	   *rows = hyb_index_rows(Anum_pg_index_indrelid, table, NULL);
	ListCell   *lc;
	bool		found = false;

	foreach(lc, rows)
	{
		Form_pg_index row = lfirst(lc);

		found |= row->indisunique && row->indislive &&
			hyb_index_is_of(row->indexrelid, hybrid);
	}
	list_free_deep(rows);
	return found;
}

/* Rows may be routed to any partition. */
static bool
has_unique_hybrid_below(Relation table, Oid hybrid)
{
	Oid			relid = RelationGetRelid(table);
	ListCell   *lc;

	if (is_known_plain(relid))
		return false;
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION &&
			catalog_has_unique_hybrid(lfirst_oid(lc), hybrid))
			return true;
	}

	/* if nothing has changed meanwhile */
	if (!plain_tables_stale)
	{
		MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);

		plain_tables = lappend_oid(plain_tables, relid);
		MemoryContextSwitchTo(old_context);
	}
	return false;
}

void
hyb_conflict_prepare(ModifyTableState *modify)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);

	if (!OidIsValid(hybrid))
		return;
	for (int i = 0; i < modify->mt_nrels; i++)
	{
		ResultRelInfo *result = &modify->resultRelInfo[i];
		Relation	table = result->ri_RelationDesc;

		Assert(CheckRelationLockedByMe(table, RowExclusiveLock, true));
		if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		{
			if (has_unique_hybrid_below(table, hybrid))
				route_insert(modify, hybrid);
		}
		else if (table->rd_rel->relkind == RELKIND_RELATION &&
				 result->ri_IndexRelationDescs == NULL &&
				 has_unique_hybrid(table, hybrid))
		{
			/* the executor closes the indexes with the table */
			ExecOpenIndices(result, false);
			look_up_all(result, hybrid);
		}
	}
}

void
hyb_conflict_query_starts(void)
{
	query_was_started = true;
}

static void
check_loaded(Plan *plan, List *rtable, Oid hybrid)
{
	ListCell   *lc;

	if (plan == NULL || !IsA(plan, ModifyTable) ||
		((ModifyTable *) plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	foreach(lc, ((ModifyTable *) plan)->resultRelations)
	{
		Relation	table = table_open(rt_fetch(lfirst_int(lc), rtable)->relid,
									   AccessShareLock);

		if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ?
			has_unique_hybrid_below(table, hybrid) :
			has_unique_hybrid(table, hybrid))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg(LOADED_LATE),
					 errdetail(LOADED_LATE_DETAIL),
					 HYB_IS_WORKER ? errhint(HYB_LOADED_LATE_WORKER_HINT) :
					 errhint(LOADED_LATE_HINT)));
		table_close(table, AccessShareLock);
	}
}

void
hyb_conflict_loaded(void)
{
	Oid			hybrid;
	ListCell   *lc;

	/* a query that has started with the library is not too early */
	if (query_was_started || ActivePortal == NULL || !IsTransactionState())
		return;
	hybrid = get_index_am_oid("hybrid", true);
	foreach(lc, ActivePortal->stmts)
	{
		PlannedStmt *stmt = lfirst_node(PlannedStmt, lc);
		ListCell   *subplan;

		if (!OidIsValid(hybrid) ||
			(stmt->commandType != CMD_INSERT && !stmt->hasModifyingCTE))
			continue;
		check_loaded(stmt->planTree, stmt->rtable, hybrid);
		foreach(subplan, stmt->subplans)
			check_loaded(lfirst(subplan), stmt->rtable, hybrid);
	}
}

void
hyb_conflict_explain_error(ErrorData *error)
{
	if (!hyb_error_of_first_use() ||
		strcmp(error->message_id,
			   "unexpected non-btree speculative unique index") != 0)
		return;
	error->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	error->message = MemoryContextStrdup(error->assoc_context, _(LOADED_LATE));
	error->detail = MemoryContextStrdup(error->assoc_context,
										_(LOADED_LATE_DETAIL));
	error->hint = MemoryContextStrdup(error->assoc_context,
									  HYB_IS_WORKER ?
									  _(HYB_LOADED_LATE_WORKER_HINT) :
									  _(LOADED_LATE_HINT));
}

#endif							/* HYB_BEFORE_18 */
