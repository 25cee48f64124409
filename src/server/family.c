/*
 * family.c
 *		Shows the planner our indexes and operator families as btree's.
 *
 * The planner knows some of btree's operator families by name: it takes a bare
 * boolean, LIKE over the pattern operator classes, or a join to a unique key
 * that nobody asks for, for what they are in these only.  Our families have the
 * same operators, so an index's description for the planner names btree's
 * family in place of ours.  The executor goes by the index itself: what the
 * planner finds in btree's family it has to find in ours.  Where somebody has
 * added members to btree's since, that is so for queries without the types of
 * these: the planner takes the operators that a query has, and others of the
 * same types.
 *
 * An index all of whose families are shown so is shown as a btree: then it can
 * have row comparisons as conditions (scan_qual.c, rowcompare.c), and be asked
 * for the least and greatest value there is, where a histogram ends before.  Of
 * a btree the planner expects that its families are those of equivalence
 * classes, so one family that is not shown as btree's keeps the index ours.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/plancat.h"
#include "server/hooks.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Does our family have all members of a btree one? */
typedef struct FamilyPair
{
	Oid			ours;			/* the key of the hash table */
	Oid			btree;
	bool		known;			/* `covers` is of the catalog as it is */
	bool		covers;
} FamilyPair;

static get_relation_info_hook_type previous_relation_info = NULL;
static HTAB *pairs = NULL;

/* Members of some family have changed. */
static void
forget_pairs(Datum arg, int cacheid, uint32 hash)
{
	HASH_SEQ_STATUS status;
	FamilyPair *pair;

	hash_seq_init(&status, pairs);
	while ((pair = hash_seq_search(&status)) != NULL)
		pair->known = false;
}

/* Has our family all members of a btree one, or all for two of these types? */
static bool
has_all_members(Oid ours, Oid btree, const List *types)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY,
											  ObjectIdGetDatum(btree));
	bool		all = members->n_members > 0;

	for (int i = 0; i < members->n_members && all; i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);

		if (types != NIL &&
			(!list_member_oid(types, member->amoplefttype) ||
			 !list_member_oid(types, member->amoprighttype)))
			continue;
		all = get_opfamily_member(ours, member->amoplefttype,
								  member->amoprighttype,
								  member->amopstrategy) == member->amopopr;
	}
	ReleaseCatCacheList(members);
	return all;
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

		/* what changes meanwhile is not known */
		pair->known = true;
		all = has_all_members(ours, btree, NIL);
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

static bool
collect_types(Node *node, List **types)
{
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
		return query_tree_walker((Query *) node, collect_types, types, 0);
	return expression_tree_walker(node, collect_types, types);
}

/*
 * Has our family what the planner could take of btree's for this query: operators
 * for two of the types that the query's operators have?  The type of the column
 * is among them for functions and operators that btree does not have, as LIKE,
 * of which the planner makes some that it has.
 */
static bool
covers_query(Query *query, Oid type, Oid ours, Oid btree)
{
	List	   *types = list_make1_oid(type);

	(void) collect_types((Node *) query, &types);
	return has_all_members(ours, btree, types);
}

/*
 * The family of btree's with the order of a column; InvalidOid if there is none.
 * The server looks for it in indexes that it can scan; those of partitioned
 * tables only tell it what is unique.
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

		if (covers(index->opfamily[i], btree) ||
			covers_query(query, index->opcintype[i], index->opfamily[i], btree))
			index->opfamily[i] = btree;
		else
			all = false;
	}
	if (all)
		index->relam = BTREE_AM_OID;
}

static void
show_indexes(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	Oid			hybrid = InvalidOid;
	ListCell   *lc;

	if (previous_relation_info)
		previous_relation_info(root, relid, inhparent, rel);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam < FirstNormalObjectId)
			continue;
		if (!OidIsValid(hybrid))
			hybrid = get_index_am_oid("hybrid", true);
		if (index->relam == hybrid)
			show_as_btree(root->parse, index);
	}
}

void
hyb_family_init(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = show_indexes;
}
