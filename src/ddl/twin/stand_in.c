/*
 * stand_in.c
 *		A btree index without content that takes the place of a hybrid index.
 *
 * Some statements want a btree index and look at its operator classes and access
 * method only, never into it.  These are ADD CONSTRAINT ... USING INDEX, and before
 * PostgreSQL 18 foreign keys and REFRESH MATERIALIZED VIEW CONCURRENTLY.  So a
 * stand-in takes the place of the hybrid index for the statement:
 * hyb_stand_in_make, the statement, hyb_stand_ins_end.  After an error the
 * transaction takes back all of it.
 *
 * index_concurrently_swap (catalog/index.c) gives the place to the stand-in, with
 * the constraint and the foreign keys that refer to it, and gives it back.  The
 * stand-in is created as by CREATE INDEX CONCURRENTLY and never becomes ready, so
 * nothing is inserted into it.  The swap marks the hybrid index invalid: it is
 * inserted into, and finds duplicates, as before.  The file of the stand-in is a
 * metapage, for the planner reads that of each valid btree index before our hook
 * can hide the index.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "catalog/binary_upgrade.h"
#include "catalog/heap.h"
#include "ddl/twin/twin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* OIDs of the stand-ins there are, in TopTransactionContext. */
static List *present = NIL;

/*
 * pg_upgrade chooses the number of each new relation.  We take numbers from the top
 * of the range, and each once, since a transaction remembers what it has dropped.
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

/* For indexes without a constraint: that would get the name, too. */
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
hyb_stand_in_make(HybStandIns *stand_ins, Relation table, Oid index,
				  bool keep_name)
{
	HybStandIn *result;
	MemoryContext old_context;

	if (list_member_oid(stand_ins->settled, index))
		return NULL;
	result = palloc0(sizeof(HybStandIn));
	Assert(!keep_name || !OidIsValid(get_index_constraint(index)));
	choose_number();
	result->index = index;
	result->keep_name = keep_name;
	result->oid = hyb_twin_create(table, index, BTREE_AM_OID,
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
	stand_ins->made = lappend(stand_ins->made, result);
	stand_ins->settled = lappend_oid(stand_ins->settled, index);

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	present = lappend_oid(present, result->oid);
	MemoryContextSwitchTo(old_context);
	return result;
}

static void
drop_index(Oid index, int flags)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, index);
	performDeletion(&object, DROP_RESTRICT, PERFORM_DELETION_INTERNAL | flags);
	CommandCounterIncrement();
}

/* Returns the index, or what was made in its place with this name. */
static Oid
current_oid(Oid index, const HybStandIn *stand_in, const char *name)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index)) ? index :
		get_relname_relid(name, stand_in->schema);
}

/*
 * Only this transaction has seen the stand-in, so a weak lock does for dropping it.
 * The server takes no such lock on temporary tables.
 */
static void
drop_stand_in(Oid oid)
{
	drop_index(oid, get_rel_persistence(oid) == RELPERSISTENCE_TEMP ? 0 :
			   PERFORM_DELETION_CONCURRENT_LOCK);
}

static void
end_stand_in(const HybStandIn *stand_in)
{
	Oid			oid;
	Oid			index;

	CommandCounterIncrement();
	present = list_delete_oid(present, stand_in->oid);
	oid = current_oid(stand_in->oid, stand_in, stand_in->name);
	index = current_oid(stand_in->index, stand_in, stand_in->index_name);
	if (!OidIsValid(oid))
	{
		if (OidIsValid(index))
			drop_index(index, 0);
		return;
	}
	if (!OidIsValid(index))
	{
		drop_stand_in(oid);
		return;
	}
	if (stand_in->keep_name)
		exchange_names(oid, index);
	move_place(oid, index);
	drop_stand_in(oid);
	if (OidIsValid(get_index_constraint(index)))
		hyb_index_set_options(index,
							  hyb_marker_set(hyb_index_options(index), true));
}

void
hyb_stand_ins_end(const HybStandIns *stand_ins)
{
	ListCell   *lc;

	foreach(lc, stand_ins->made)
		end_stand_in(lfirst(lc));
}

void
hyb_stand_ins_hide(RelOptInfo *rel)
{
	ListCell   *lc;

	if (present == NIL)
		return;
	foreach(lc, rel->indexlist)
		if (list_member_oid(present,
							lfirst_node(IndexOptInfo, lc)->indexoid))
		rel->indexlist = foreach_delete_current(rel->indexlist, lc);
}

/* Until then OIDs of a subtransaction that failed do no harm. */
static void
forget_stand_ins(XactEvent event, void *arg)
{
	present = NIL;
}

void
hyb_stand_in_init(void)
{
	RegisterXactCallback(forget_stand_ins, NULL);
}
