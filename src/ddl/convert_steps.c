/*
 * convert_steps.c
 *		Steps of a conversion: twins are created, take the places of the
 *		indexes that they were made after, and these are dropped.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/access.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "commands/tablecmds.h"
#include "ddl/convert.h"
#include "ddl/twin.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

void
hyb_conversion_progress(const HybConversion *conversion,
						const HybConvertPart *part, int phase)
{
	const int	index[] = {
		PROGRESS_CREATEIDX_COMMAND,
		PROGRESS_CREATEIDX_PHASE,
		PROGRESS_CREATEIDX_INDEX_OID,
		PROGRESS_CREATEIDX_ACCESS_METHOD_OID
	};
	int64		values[4];

	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, part->table);
	values[0] = conversion->concurrently ?
		PROGRESS_CREATEIDX_COMMAND_REINDEX_CONCURRENTLY :
		PROGRESS_CREATEIDX_COMMAND_REINDEX;
	values[1] = phase;
	values[2] = OidIsValid(part->twin) ? part->twin : part->index;
	values[3] = conversion->access_method;
	pgstat_progress_update_multi_param(lengthof(index), index, values);
}

/* A name of the index's schema that is free, as REINDEX CONCURRENTLY has it. */
static char *
choose_name(Oid index, const char *label)
{
	return ChooseRelationName(get_rel_name(index), NULL, label,
							  get_rel_namespace(index), false);
}

/* Index expressions are the owner's code, if any of it should run. */
static void
create_twin(const HybConversion *conversion, HybConvertPart *part, bits16 flags)
{
	Relation	table = table_open(part->table, NoLock);
	char	   *name = choose_name(part->index, "ccnew");
	HybCaller	caller;

	hyb_become_owner(&caller, table->rd_rel->relowner);
	part->twin = hyb_twin_create(table, part->index, conversion->access_method,
								 name, flags);
	hyb_become_caller(&caller);
	part->twin_name = name;
	table_close(table, NoLock);
	CommandCounterIncrement();
}

/* Those of partitioned indexes hold nothing, and are made when they swap. */
void
hyb_conversion_create(HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		if (part->stored)
			create_twin(conversion, part, INDEX_CREATE_SKIP_BUILD |
						(conversion->concurrently ? INDEX_CREATE_CONCURRENT : 0));
	}
}

/*
 * index_concurrently_swap attaches the twin to the parent that the index had,
 * and lets depend on it what depended on the index, but leaves to the index
 * what is attached to it.
 */
static void
adopt_children(Oid twin, Oid index)
{
	List	   *children = find_inheritance_children(index, NoLock);
	ListCell   *lc;

	foreach(lc, children)
	{
		DeleteInheritsTuple(lfirst_oid(lc), index, false, NULL);
		StoreSingleInheritance(lfirst_oid(lc), twin, 1);
	}
	if (children != NIL)
	{
		SetRelationHasSubclass(twin, true);
		CommandCounterIncrement();
	}
}

/*
 * From the swap on the twin finds the duplicates, for all who insert: those who
 * do not know of the swap yet ask both.  The old index, which is maintained
 * still, would find them before, report them under a name that nobody knows,
 * be in the way of ON CONFLICT, which asks valid indexes only, and be too early
 * for a deferrable constraint.  The server has no function for this.
 */
static void
stop_checking(Oid index)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID,
											ObjectIdGetDatum(index));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	((Form_pg_index) GETSTRUCT(tuple))->indisunique = false;
	CatalogTupleUpdate(pg_index, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_index, RowExclusiveLock);
	CommandCounterIncrement();
}

/* What is attached comes before what it is attached to. */
void
hyb_conversion_swap(HybConversion *conversion)
{
	for (int i = list_length(conversion->parts) - 1; i >= 0; i--)
	{
		HybConvertPart *part = list_nth(conversion->parts, i);

		CHECK_FOR_INTERRUPTS();
		if (!part->stored)
			create_twin(conversion, part, INDEX_CREATE_SKIP_BUILD);
		part->old_name = choose_name(part->index, "ccold");
		index_concurrently_swap(part->twin, part->index, part->old_name);
		hyb_twin_swapped(part->twin, part->index);
		if (conversion->concurrently)
			stop_checking(part->index);
		if (!part->stored)
			adopt_children(part->twin, part->index);

		/* plans that might use the index */
		CacheInvalidateRelcacheByRelid(part->table);
	}
}

void
hyb_conversion_drop(HybConversion *conversion)
{
	ObjectAddresses *objects = new_object_addresses();
	int			flags = PERFORM_DELETION_INTERNAL;
	ListCell   *lc;

	if (conversion->concurrently)
		flags |= PERFORM_DELETION_CONCURRENT_LOCK;
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);
		ObjectAddress object;

		ObjectAddressSet(object, RelationRelationId, part->index);
		add_exact_object_address(&object, objects);
	}
	performMultipleDeletions(objects, DROP_RESTRICT, flags);
	free_object_addresses(objects);
}
