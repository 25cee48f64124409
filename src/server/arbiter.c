/*
 * arbiter.c
 *		Lets ON CONFLICT (column operator_class) find our unique indexes.
 *
 * The parser takes the operator class for one of btree's, and the planner
 * wants an index column of that very operator family.  So before planning,
 * a btree class is replaced by the class of ours that has the same operators,
 * where a unique index of the table has that and none has btree's.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "base/server.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "server/hooks.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static planner_hook_type previous_planner = NULL;

/* Have both classes the same operators for their type? */
static bool
same_operators(Oid opclass_a, Oid opclass_b)
{
	Oid			type = get_opclass_input_type(opclass_a);

	return get_opclass_input_type(opclass_b) == type &&
		hyb_same_operators(get_opclass_family(opclass_a),
						   get_opclass_family(opclass_b), type);
}

/*
 * The class to infer an index with: `elem`'s own, or the one of ours that
 * stands for it.
 */
static Oid
find_inference_class(Relation table, const InferenceElem *elem, Oid hybrid)
{
	AttrNumber	attno = IsA(elem->expr, Var) ?
		((const Var *) elem->expr)->varattno : 0;
	Oid			found = InvalidOid;
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		oidvector  *indclass = (oidvector *)
			DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID,
												   index->rd_indextuple,
												   Anum_pg_index_indclass));
		bool		btree = index->rd_rel->relam == BTREE_AM_OID;

		for (int i = 0; i < index->rd_index->indnkeyatts; i++)
		{
			Oid			opclass = indclass->values[i];

			if (!index->rd_index->indisunique ||
				index->rd_index->indkey.values[i] != attno)
				continue;
			if (btree && same_operators(opclass, elem->inferopclass))
			{
				index_close(index, NoLock);
				list_free(indexes);
				return elem->inferopclass;
			}
			if (index->rd_rel->relam == hybrid && !OidIsValid(found) &&
				same_operators(opclass, elem->inferopclass))
				found = opclass;
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	return OidIsValid(found) ? found : elem->inferopclass;
}

/* The query's relations are locked. */
static void
replace_classes(Query *query)
{
	ListCell   *lc;

	if (query->commandType == CMD_INSERT && query->onConflict != NULL)
	{
		Oid			hybrid = InvalidOid;
		Relation	table = NULL;

		foreach(lc, query->onConflict->arbiterElems)
		{
			InferenceElem *elem = lfirst_node(InferenceElem, lc);

			if (!OidIsValid(elem->inferopclass))
				continue;
			if (table == NULL)
			{
				hybrid = get_index_am_oid("hybrid", true);
				table = table_open(rt_fetch(query->resultRelation,
											query->rtable)->relid, NoLock);
			}
			elem->inferopclass = find_inference_class(table, elem, hybrid);
		}
		if (table != NULL)
			table_close(table, NoLock);
	}
	if (query->hasModifyingCTE)
		foreach(lc, query->cteList)
			replace_classes(castNode(Query,
									 lfirst_node(CommonTableExpr, lc)->ctequery));
}

static PlannedStmt *
planner_with_classes(Query *parse, const char *query_string,
					 int cursorOptions, ParamListInfo boundParams)
{
	replace_classes(parse);
	return previous_planner ?
		previous_planner(parse, query_string, cursorOptions, boundParams) :
		standard_planner(parse, query_string, cursorOptions, boundParams);
}

void
hyb_arbiter_init(void)
{
	previous_planner = planner_hook;
	planner_hook = planner_with_classes;
}
