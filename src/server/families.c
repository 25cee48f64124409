/*
 * families.c
 *		Lets the server find hybrid indexes where it looks for btree ones.
 *
 * The planner knows operator families of btree by their OIDs.  Only for these
 * does it use a bare boolean, LIKE over the pattern operator classes, or a join
 * to a unique key.  Our families have the same operators, so the planner's
 * description of an index names btree's family in place of ours.  The executor
 * goes by the index itself: what the planner finds in btree's family has to be in
 * ours.  If a member has been added to btree's family since, ours still stands
 * in for queries that do not use the types of that member.
 *
 * If that holds for all columns, the index is shown as a btree.  Then it can have
 * row comparisons as conditions (scan_qual.c, rowcompare.c), and the planner asks
 * it for the least and greatest value when a histogram ends before.  If it does
 * not hold for one column, the index stays ours: the planner expects the
 * families of a btree to be those of equivalence classes.
 *
 * In ON CONFLICT (column operator_class) the parser takes the class for one of
 * btree's, and the planner wants an index column of that very family.  So before
 * planning the class is replaced by ours with the same operators, if a unique
 * index of the table has it and none has btree's.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "base/server.h"
#include "catalog/pg_am.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "server/btree_only.h"
#include "storage/lmgr.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* ---- indexes as the planner sees them ---- */

/* A family of ours and one of btree's, in the cache `pairs`. */
typedef struct FamilyPair
{
	Oid			ours;			/* with `btree` the key of the hash table */
	Oid			btree;
	bool		known;			/* `covers` is up to date */
	bool		covers;			/* ours has all members of btree's */
} FamilyPair;

static HTAB *pairs = NULL;

/* Callback: members of some family have changed. */
static void
forget_pairs(Datum arg, int cacheid, uint32 hash)
{
	HASH_SEQ_STATUS status;
	FamilyPair *pair;

	hash_seq_init(&status, pairs);
	while ((pair = hash_seq_search(&status)) != NULL)
		pair->known = false;
}

static bool
covers(Oid ours, Oid btree)
{
	Oid			key[2] = {ours, btree};
	FamilyPair *pair;
	bool		found;

	if (pairs == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(key),.entrysize = sizeof(FamilyPair)};

		pairs = hash_create("operator families of hybrid indexes", 64, &control,
							HASH_ELEM | HASH_BLOBS);
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, forget_pairs, (Datum) 0);
	}
	pair = hash_search(pairs, key, HASH_ENTER, &found);
	if (!found)
		pair->known = false;
	if (!pair->known)
	{
		bool		all;

		/* set first: a change meanwhile clears it again */
		pair->known = true;
		all = hyb_family_has_members(ours, btree, NIL);
		pair->covers = all;
	}
	return pair->covers;
}

static List *
add_input_types(List *types, Oid operator)
{
	Oid			left;
	Oid			right;

	op_input_types(operator, &left, &right);
	return list_append_unique_oid(list_append_unique_oid(types, left), right);
}

/* A tree_walker_callback; the context is a List **. */
static bool
collect_types(Node *node, void *context)
{
	List	  **types = context;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (IsA(node, OpExpr))
		*types = add_input_types(*types, ((OpExpr *) node)->opno);
	else if (IsA(node, ScalarArrayOpExpr))
		*types = add_input_types(*types, ((ScalarArrayOpExpr *) node)->opno);
	else if (IsA(node, RowCompareExpr))
		foreach(lc, ((RowCompareExpr *) node)->opnos)
			* types = add_input_types(*types, lfirst_oid(lc));
	else if (IsA(node, Query))
		return query_tree_walker((Query *) node, collect_types, context, 0);
	return expression_tree_walker(node, collect_types, context);
}

/*
 * Does our family have what the planner could take of btree's for this query?
 * That is operators for each two of the types that the query's operators have.
 * The column's type counts too: the planner turns LIKE, for example, into
 * operators of btree.
 */
static bool
covers_query(Query *query, Oid type, Oid ours, Oid btree)
{
	List	   *types = list_make1_oid(type);

	(void) collect_types((Node *) query, &types);
	return hyb_family_has_members(ours, btree, types);
}

/*
 * The family of btree with the order of a column, or InvalidOid.  The server has
 * looked for it, but not in an index of a partitioned table.
 */
static Oid
btree_family(const IndexOptInfo *index, int column)
{
	Oid			type = index->opcintype[column];
	Oid			result = InvalidOid;
	Oid			less;
	CatCList   *members;

	if (index->sortopfamily != NULL)
		return index->sortopfamily[column];
	less = get_opfamily_member(index->opfamily[column], type, type,
							   BTLessStrategyNumber);
	members = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(less));
	for (int i = 0; i < members->n_members && !OidIsValid(result); i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);

		if (member->amopmethod == BTREE_AM_OID &&
			member->amopstrategy == BTLessStrategyNumber)
			result = member->amopfamily;
	}
	ReleaseCatCacheList(members);
	return result;
}

static void
show_as_btree(Query *query, IndexOptInfo *index)
{
	bool		all = true;

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		Oid			btree = btree_family(index, i);

		if (OidIsValid(btree) &&
			(covers(index->opfamily[i], btree) ||
			 covers_query(query, index->opcintype[i], index->opfamily[i], btree)))
			index->opfamily[i] = btree;
		else
			all = false;
	}
	if (all)
		index->relam = BTREE_AM_OID;
}

void
hyb_show_as_btree(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (hyb_is_our_method(index->relam))
			show_as_btree(root->parse, index);
	}
}

/* ---- classes of ON CONFLICT ---- */

/* Do both classes have the same operators for their type? */
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

	Assert(CheckRelationLockedByMe(table, AccessShareLock, true));
	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		oidvector  *indclass = hyb_index_classes(index);
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

void
hyb_replace_conflict_classes(Query *query)
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
			hyb_replace_conflict_classes(castNode(Query, lfirst_node(CommonTableExpr, lc)->ctequery));
}
