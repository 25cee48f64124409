/*
 * family.c
 *		Shows the planner our indexes and operator families as btree's.
 *
 * The planner knows some of btree's operator families by name: it takes a bare
 * boolean, LIKE over the pattern operator classes, or a join to a unique key
 * that nobody asks for, for what they are in these only.  Our families have the
 * same operators, so an index's description for the planner names btree's
 * family in place of ours, where that has all of its members.  The executor
 * goes by the index itself: what the planner finds in btree's family it finds
 * in ours.
 *
 * An index all of whose families are shown so is shown as a btree: then it can
 * have row comparisons as conditions (scan_row.c, rowcompare.c), and be asked
 * for the least and greatest value there is, where a histogram ends before.  Of
 * a btree the planner expects that its families are those of equivalence
 * classes, so one family that is not shown as btree's keeps the index ours.
 */
#include "compat.h"

#include "access/transam.h"
#include "am/hooks.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "commands/defrem.h"
#include "optimizer/plancat.h"
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

static bool
has_all_members(Oid ours, Oid btree)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY,
											  ObjectIdGetDatum(btree));
	bool		all = members->n_members > 0;

	for (int i = 0; i < members->n_members && all; i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);

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
		all = has_all_members(ours, btree);
		pair->covers = all;
	}
	return pair->covers;
}

static void
show_as_btree(IndexOptInfo *index)
{
	bool		all = true;

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (covers(index->opfamily[i], index->sortopfamily[i]))
			index->opfamily[i] = index->sortopfamily[i];
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

		if (index->relam < FirstNormalObjectId || index->sortopfamily == NULL)
			continue;
		if (!OidIsValid(hybrid))
			hybrid = get_index_am_oid("hybrid", true);
		if (index->relam == hybrid)
			show_as_btree(index);
	}
}

void
hyb_family_init(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = show_indexes;
}
