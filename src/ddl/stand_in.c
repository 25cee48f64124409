/*
 * stand_in.c
 *		A btree index without content that takes the place of a hybrid one while
 *		the server asks for a btree index.
 *
 * Some statements look at the operator classes or the access method of an index
 * only to refuse everything but btree: foreign keys and REFRESH MATERIALIZED
 * VIEW CONCURRENTLY before PostgreSQL 18, ADD CONSTRAINT ... USING INDEX on all
 * versions.  None of them reads the index.
 *
 * The stand-in takes the place by index_concurrently_swap (catalog/index.c),
 * which moves the constraint and the foreign keys that point at it, and gives
 * it back in the same way.  It is created as by CREATE INDEX CONCURRENTLY and
 * never becomes ready, so that nothing is inserted into it, while the hybrid
 * index, which the swap marks invalid only, is still inserted into and still
 * unique.  Its file is a metapage, which the planner reads of each valid btree
 * index before a hook can hide it.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "catalog/binary_upgrade.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "ddl/stand_in.h"
#include "ddl/twin.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "parser/parse_utilcmd.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Those of the statements that are being executed, in TopTransactionContext. */
static List *stand_ins = NIL;

static get_relation_info_hook_type previous_relation_info = NULL;

/*
 * In pg_upgrade every new relation has a number that was chosen beforehand;
 * ours is gone before anybody else could want it.  None is used again, since a
 * transaction remembers what it has dropped.
 */
static void
choose_number(void)
{
	static Oid	number = PG_UINT32_MAX;

	if (!IsBinaryUpgrade)
		return;
	do
		number--;
	while (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(number)));
	binary_upgrade_next_index_pg_class_oid = number;
	HYB_NEXT_UPGRADE_FILENUMBER = number;
}

static void
write_metapage(Oid stand_in)
{
	Relation	index = index_open(stand_in, AccessExclusiveLock);
	Buffer		buffer = ReadBuffer(index, P_NEW);

	Assert(BufferGetBlockNumber(buffer) == BTREE_METAPAGE);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	_bt_initmetapage(BufferGetPage(buffer), P_NONE, 0, false);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	index_close(index, NoLock);
}

/* A name that no relation in the schema of `index` has. */
static char *
free_relation_name(Oid index)
{
	return ChooseRelationName(get_rel_name(index), NULL, "hybrid",
							  get_rel_namespace(index), false);
}

/* `to` gets the name and the constraint of `from`. */
static void
move_place(Oid from, Oid to)
{
	RemoveStatistics(to, 0);
	index_concurrently_swap(to, from, free_relation_name(from));
	hyb_twin_swapped(to, from);
	CommandCounterIncrement();
}

/* Neither is the index of a constraint, which would get the name too. */
static void
exchange_names(Oid a, Oid b)
{
	char	   *name_a = get_rel_name(a);
	char	   *name_b = get_rel_name(b);

	RenameRelationInternal(a, free_relation_name(a), true, true);
	CommandCounterIncrement();
	RenameRelationInternal(b, name_a, true, true);
	CommandCounterIncrement();
	RenameRelationInternal(a, name_b, true, true);
	CommandCounterIncrement();
}

HybStandIn *
hyb_stand_in_make(Relation table, Oid index, bool keep_name)
{
	HybStandIn *result = palloc0(sizeof(HybStandIn));
	MemoryContext old_context;

	choose_number();
	result->index = index;
	result->keep_name = keep_name;
	result->oid = hyb_twin_create_with(table, index, BTREE_AM_OID,
									   free_relation_name(index),
									   INDEX_CREATE_SKIP_BUILD |
									   INDEX_CREATE_CONCURRENT, (Datum) 0);
	CommandCounterIncrement();
	write_metapage(result->oid);
	move_place(index, result->oid);
	if (keep_name)
		exchange_names(index, result->oid);
	result->schema = get_rel_namespace(index);
	result->name = get_rel_name(result->oid);
	result->index_name = get_rel_name(index);

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	stand_ins = lappend_oid(stand_ins, result->oid);
	MemoryContextSwitchTo(old_context);
	return result;
}

/* Nobody else sees that it is gone for the moment. */
static void
drop_index(Oid index, int flags)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, index);
	performDeletion(&object, DROP_RESTRICT, PERFORM_DELETION_INTERNAL | flags);
	CommandCounterIncrement();
}

/*
 * What ALTER TABLE would make the index by: a collation that is the column's
 * goes with that.
 */
static IndexStmt *
definition(Relation table, Oid indexoid)
{
	Relation	index = index_open(indexoid, AccessExclusiveLock);
	IndexStmt  *stmt = generateClonedIndexStmt(NULL, index, NULL, NULL);

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		AttrNumber	attnum = index->rd_index->indkey.values[i];

		if (index->rd_indcollation[i] ==
			TupleDescAttr(RelationGetDescr(table), attnum - 1)->attcollation)
			list_nth_node(IndexElem, stmt->indexParams, i)->collation = NIL;
	}
	stmt->idxname = pstrdup(RelationGetRelationName(index));
	stmt->reset_default_tblspc = true;
	index_close(index, NoLock);
	return stmt;
}

HybStandIn *
hyb_stand_in_make_alone(Relation table, Oid index)
{
	HybStandIn *result;

	CheckTableNotInUse(table, "ALTER TABLE");
	result = hyb_stand_in_make(table, index, false);
	result->table = RelationGetRelid(table);
	result->definition = definition(table, index);
	drop_index(index, 0);
	return result;
}

/* An index, or what has been made in its place, which has its name. */
static Oid
now(Oid index, const HybStandIn *stand_in, const char *name)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index)) ? index :
		get_relname_relid(name, stand_in->schema);
}

Oid
hyb_stand_in_end(const HybStandIn *stand_in)
{
	Oid			oid;
	Oid			index;
	bool		both;

	CommandCounterIncrement();
	stand_ins = list_delete_oid(stand_ins, stand_in->oid);
	oid = now(stand_in->oid, stand_in, stand_in->name);
	if (OidIsValid(oid) && stand_in->definition != NULL)
	{
		HYB_DEFINE_INDEX(stand_in->table, stand_in->definition);
		CommandCounterIncrement();
	}
	index = now(stand_in->index, stand_in, stand_in->index_name);
	both = OidIsValid(oid) && OidIsValid(index);
	if (both)
	{
		if (stand_in->keep_name)
			exchange_names(oid, index);
		move_place(oid, index);
	}
	if (!OidIsValid(oid) && !OidIsValid(index))
		return InvalidOid;

	/*
	 * Nobody else has ever seen the stand-in.  The server does not take the
	 * weak lock on temporary tables, whose locks nobody else meets.
	 */
	if (!OidIsValid(oid))
		drop_index(index, 0);
	else if (get_rel_persistence(oid) == RELPERSISTENCE_TEMP)
		drop_index(oid, 0);
	else
		drop_index(oid, PERFORM_DELETION_CONCURRENT_LOCK);
	return both ? index : InvalidOid;
}

static void
hide_stand_ins(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (previous_relation_info)
		previous_relation_info(root, relid, inhparent, rel);
	if (stand_ins == NIL)
		return;
	foreach(lc, rel->indexlist)
		if (list_member_oid(stand_ins,
							lfirst_node(IndexOptInfo, lc)->indexoid))
		rel->indexlist = foreach_delete_current(rel->indexlist, lc);
}

/* Those of a subtransaction that was rolled back are only OIDs of nothing. */
static void
forget_stand_ins(XactEvent event, void *arg)
{
	stand_ins = NIL;
}

void
hyb_stand_in_init(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = hide_stand_ins;
	RegisterXactCallback(forget_stand_ins, NULL);
}
