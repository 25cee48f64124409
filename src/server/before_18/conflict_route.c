/*
 * conflict_route.c
 *		INSERT ... ON CONFLICT into partitions with unique indexes of ours, to
 *		which rows are routed, before PostgreSQL 18.
 *
 * The executor opens a partition when the first row of it comes, and takes its
 * unique indexes for btrees then (ExecInitPartitionInfo in execPartition.c), but
 * only for a statement with ON CONFLICT.  So a moment before, when the row has
 * come out of the plan below, it is routed as by a statement without, and what
 * is missing is made up for: how equal keys are found, the arbiters, and what
 * DO UPDATE needs.  When the executor routes the row, the partition is there.
 */
#include "base/compat.h"

#include "server/before_18/conflict_route.h"

#ifdef HYB_ON_CONFLICT_NEEDS_BTREE

#include "access/attmap.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

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

/* What BuildSpeculativeIndexInfo does for a btree. */
static void
look_up_equality(Relation index, IndexInfo *info)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	info->ii_UniqueOps = palloc(sizeof(Oid) * nkeys);
	info->ii_UniqueProcs = palloc(sizeof(Oid) * nkeys);
	info->ii_UniqueStrats = palloc(sizeof(uint16) * nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		Oid			type = index->rd_opcintype[i];
		Oid			equal = get_opfamily_member(index->rd_opfamily[i], type,
												type, BTEqualStrategyNumber);

		if (!OidIsValid(equal))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("operator family of index \"%s\" has no equality operator for type %s",
							RelationGetRelationName(index),
							format_type_be(type))));
		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
		info->ii_UniqueOps[i] = equal;
		info->ii_UniqueProcs[i] = get_opcode(equal);
	}
}

void
hyb_conflict_look_up(ResultRelInfo *result, Oid hybrid)
{
	for (int i = 0; i < result->ri_NumIndices; i++)
	{
		Relation	index = result->ri_IndexRelationDescs[i];
		IndexInfo  *info = result->ri_IndexRelationInfo[i];

		if (!info->ii_Unique)
			continue;
		if (index->rd_rel->relam == hybrid)
			look_up_equality(index, info);
		else
			BuildSpeculativeIndexInfo(index, info);
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

	hyb_conflict_look_up(partition, insert->hybrid);
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

void
hyb_conflict_route(ModifyTableState *modify, Oid hybrid)
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

#endif							/* HYB_ON_CONFLICT_NEEDS_BTREE */
