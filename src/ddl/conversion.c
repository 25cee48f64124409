/*
 * conversion.c
 *		The conversion of one index: what can be converted, the locks, and the
 *		steps.
 *
 * A conversion creates a twin of the index, builds it, swaps the two, and drops the
 * index.  hyb_conversion_now does so in one transaction: writers of the table wait
 * from the beginning, readers for the swap at the end.  convert_concurrent.c does
 * the steps in transactions of their own.
 *
 * Locks: the table, its partitions after their parents, then the index and those
 * attached to it.  The lock of a table conflicts with itself, and so with another
 * conversion.
 */
#include "base/compat.h"

#include <ctype.h>

#include "access/amapi.h"
#include "build/build.h"
#include "catalog/catalog.h"
#include "catalog/partition.h"
#include "commands/progress.h"
#include "ddl/convert.h"
#include "ddl/match.h"
#include "pgstat.h"
#include "server/before_18/ddl_before_18.h"
#include "store/handle.h"
#include "store/settings.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

Oid
hyb_convert_target(bool to_hybrid)
{
	return to_hybrid ? get_index_am_oid("hybrid", false) : BTREE_AM_OID;
}

/* ---- messages ---- */

/* Returns false.  Detail and hint may be NULL. */
static bool
refuse(HybConversion *conversion, int code, char *message, char *detail,
	   char *hint)
{
	conversion->refusal = (HybRefusal)
	{
		code, message, detail, hint
	};
	return false;
}

void
hyb_conversion_skip(const HybConversion *conversion)
{
	const HybRefusal *refusal = &conversion->refusal;

	ereport(NOTICE,
			(errmsg("skipping index \"%s\": %s", conversion->name,
					refusal->message),
			 refusal->detail ? errdetail_internal("%s", refusal->detail) : 0,
			 refusal->hint ? errhint("%s", refusal->hint) : 0));
}

void
hyb_conversion_already(const HybConversion *conversion)
{
	ereport(NOTICE,
			(errmsg("index \"%s\" is of access method \"%s\" already",
					conversion->name,
					get_am_name(conversion->access_method))));
}

/* ---- which index, and its locks ---- */

/*
 * Refuses what is not an index, or not the caller's, or the server's.  Without a lock on
 * the index the answer may be stale.
 */
static bool
check_identity(HybConversion *conversion, Oid indexoid, bool *exists)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	int			code = ERRCODE_FEATURE_NOT_SUPPORTED;
	char	   *message = NULL;
	char	   *name;
	Form_pg_class form;

	*exists = HeapTupleIsValid(tuple);
	if (!*exists)
		return refuse(conversion, ERRCODE_UNDEFINED_OBJECT,
					  psprintf(_("index with OID %u does not exist"), indexoid),
					  NULL, NULL);
	form = (Form_pg_class) GETSTRUCT(tuple);
	conversion->name = name = pstrdup(NameStr(form->relname));
	conversion->schema = get_namespace_name(form->relnamespace);
	if (form->relkind != RELKIND_INDEX &&
		form->relkind != RELKIND_PARTITIONED_INDEX)
	{
		code = ERRCODE_WRONG_OBJECT_TYPE;
		message = psprintf(_("\"%s\" is not an index"), name);
	}
	else if (!has_privs_of_role(GetUserId(), form->relowner))
	{
		code = ERRCODE_INSUFFICIENT_PRIVILEGE;
		message = psprintf(_("must be owner of index %s"), name);
	}
	else if (IsToastNamespace(form->relnamespace))
		message = psprintf(_("cannot convert index \"%s\" of a TOAST table"), name);
	else if (IsCatalogRelationOid(IndexGetRelation(indexoid, true)))
		message = psprintf(_("cannot convert index \"%s\" of a system catalog"), name);
	else if (isOtherTempNamespace(form->relnamespace))
		message = _("cannot convert temporary indexes of other sessions");
	ReleaseSysCache(tuple);
	return message == NULL || refuse(conversion, code, message, NULL, NULL);
}

/*
 * The index was dropped while we waited for the lock.  Returns true if another
 * conversion has replaced it by one of the same name.
 */
static bool
was_converted(const HybConversion *conversion, Oid table)
{
	Oid			schema = get_namespace_oid(conversion->schema, true);
	Oid			successor = OidIsValid(schema) ?
		get_relname_relid(conversion->name, schema) : InvalidOid;

	return OidIsValid(successor) &&
		IndexGetRelation(successor, true) == table &&
		hyb_index_is_of(successor, conversion->access_method);
}

static inline bool
wants_trie(const HybConversion *conversion)
{
	return conversion->layout != NULL &&
		strcmp(conversion->layout, HYB_LAYOUT_NAME_TRIE) == 0;
}

/* Is there nothing to convert about this index? */
static bool
is_as_wanted(const HybConversion *conversion, Relation index)
{
	bool		trie = wants_trie(conversion);

	if (index->rd_rel->relam != conversion->access_method)
		return false;
	if (conversion->layout == NULL)
		return true;
	return (hyb_layout_option(index) == HYB_OPTION_TRIE) == trie &&
		(index->rd_rel->relkind != RELKIND_INDEX ||
		 hyb_index_is_truncated(index) == trie);
}

/* Refuses a layout that is not possible.  Operator classes may run functions. */
static bool
check_layout(HybConversion *conversion, Relation index)
{
	Relation	hybrid = index;
	HybTrieObstacle obstacle;
	HybCaller	caller;
	bool		possible;

	if (!wants_trie(conversion) || index->rd_rel->relkind != RELKIND_INDEX)
		return true;
	hyb_become_owner(&caller, index->rd_rel->relowner);
	if (index->rd_rel->relam != conversion->access_method)
		hybrid = hyb_twin_as_hybrid(index);
	possible = !hyb_trie_obstacle(hybrid, hyb_key_desc_create(hybrid), &obstacle);
	hyb_become_caller(&caller);
	return possible ||
		refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
			   psprintf(_("layout \"trie\" is not possible for index \"%s\""),
						RelationGetRelationName(index)),
			   pstrdup(obstacle.detail), pstrdup(obstacle.hint));
}

/* Refuses what hybrid_hot cannot be. */
static bool
check_summarizing(HybConversion *conversion, Relation index)
{
	const char *what = index->rd_index->indisunique ? _("It is unique.") :
		index->rd_index->indisexclusion ? _("It belongs to an exclusion constraint.") :
		index->rd_index->indisclustered ? _("The table is clustered on it.") :
		index->rd_index->indnatts > index->rd_index->indnkeyatts ?
		_("It has INCLUDE columns.") : NULL;

	if (what == NULL || !hyb_is_hot_method(conversion->access_method))
		return true;
	return refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
				  psprintf(_("index \"%s\" cannot be of access method \"%s\""),
						   RelationGetRelationName(index), "hybrid_hot"),
				  pstrdup(what), NULL);
}

/* Refuses what cannot be converted by itself. */
static bool
check_part(HybConversion *conversion, Relation index)
{
	Form_pg_index form = index->rd_index;
	Oid			access_method = index->rd_rel->relam;
	char	   *name = RelationGetRelationName(index);
	bool		to_btree = conversion->access_method == BTREE_AM_OID;

	if (access_method != BTREE_AM_OID && !hyb_is_our_method(access_method))
		return refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
					  psprintf(_("index \"%s\" is of access method \"%s\""), name,
							   get_am_name(access_method)),
					  to_btree ? _("Only a hybrid index can be made a btree one.") :
					  _("Only a btree index can be made a hybrid one."), NULL);
	if (!form->indisvalid)
		return refuse(conversion, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
					  psprintf(_("cannot convert invalid index \"%s\""), name), NULL,
					  _("Use REINDEX INDEX to make it valid, or DROP INDEX if an interrupted operation has left it."));
	if (!check_summarizing(conversion, index))
		return false;
	if (form->indisexclusion && conversion->concurrently)
		return refuse(conversion, ERRCODE_FEATURE_NOT_SUPPORTED,
					  psprintf(_("cannot convert index \"%s\" of an exclusion constraint concurrently"),
							   name), NULL,
					  psprintf(_("Use %s(), which locks the table."),
							   hyb_sql_function(to_btree ? "hybrid_revert" : "hybrid_convert")));
	return (to_btree || hyb_before_18_converts(index, &conversion->refusal)) &&
		hyb_twin_possible(index, conversion->access_method, &conversion->refusal) &&
		check_layout(conversion, index);
}

/* Refuses an index of a partition that is attached to one above it. */
static bool
check_alone(HybConversion *conversion, Oid indexoid)
{
	if (!get_rel_relispartition(indexoid))
		return true;
	return refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
				  psprintf(_("cannot convert index \"%s\" of a partition alone"),
						   conversion->name),
				  psprintf(_("It is attached to index \"%s\" of the partitioned table."),
						   get_rel_name(llast_oid(get_partition_ancestors(indexoid)))),
				  _("Convert that index, with all that are attached to it."));
}

/*
 * Refuses an index of a child if it would differ from the one that it corresponds to.
 * Looks at the parent before the child is locked, since parents are locked first.
 */
static bool
check_below(HybConversion *conversion, Oid indexoid)
{
	Oid			other = hyb_index_method(indexoid);
	Oid			above = conversion->with_children && other != conversion->access_method &&
		(other == BTREE_AM_OID || hyb_is_our_method(other)) ?
		hyb_index_above(indexoid, other) : InvalidOid;

	if (!OidIsValid(above))
		return true;
	return refuse(conversion, ERRCODE_WRONG_OBJECT_TYPE,
				  psprintf(_("cannot convert index \"%s\" of a child table alone"),
						   conversion->name),
				  psprintf(_("It corresponds to index \"%s\" of the parent table."),
						   get_rel_name(above)),
				  _("Convert that index, with all that correspond to it."));
}

static void
add_part(HybConversion *conversion, Relation index)
{
	HybConvertPart *part = palloc0(sizeof(HybConvertPart));

	Assert(CheckRelationLockedByMe(index, ShareUpdateExclusiveLock, true));
	part->table = index->rd_index->indrelid;
	part->owner = index->rd_rel->relowner;
	part->index = RelationGetRelid(index);
	part->stored = index->rd_rel->relkind == RELKIND_INDEX;
	conversion->unique |= index->rd_index->indisunique;

	/* to simplify them would run the owner's functions as this user */
	part->safe = heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs,
								NULL) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
	part->schema = get_namespace_name(index->rd_rel->relnamespace);
	conversion->parts = lappend(conversion->parts, part);
}

/* Returns the index, those attached to it, and those that correspond to it. */
static List *
indexes_with(const HybConversion *conversion, LOCKMODE lockmode)
{
	List	   *indexes = find_all_inheritors(conversion->index, lockmode, NULL);

	return !conversion->with_children ? indexes :
		list_concat(indexes, hyb_indexes_below(conversion->index,
											   conversion->tables));
}

/* The tables are locked. */
static HybConvertStatus
add_parts(HybConversion *conversion)
{
	bool		needed = false;
	ListCell   *lc;

	foreach(lc, indexes_with(conversion, ShareUpdateExclusiveLock))
	{
		Relation	index = index_open(lfirst_oid(lc), ShareUpdateExclusiveLock);
		bool		ok;

		needed |= !is_as_wanted(conversion, index);
		if (!needed && conversion->layout == NULL)
		{
			index_close(index, NoLock);
			return HYB_CONVERT_ALREADY;
		}
		ok = check_part(conversion, index);
		if (ok)
			add_part(conversion, index);
		index_close(index, NoLock);
		if (!ok)
			return HYB_CONVERT_REFUSED;
	}
	if (needed)
		return HYB_CONVERT_READY;
	conversion->parts = NIL;
	return HYB_CONVERT_ALREADY;
}

/*
 * Another conversion that has the lock may be waiting for old snapshots.  So we
 * release the snapshot of the catalogs first.
 */
static void
lock_without_snapshot(Oid relid, LOCKMODE lockmode)
{
	InvalidateCatalogSnapshot();
	LockRelationOid(relid, lockmode);
}

/*
 * Returns the table, its partitions, and the children that go with it.  A partition
 * that is being detached may be hidden from this snapshot, but its index is attached
 * until that ends.
 */
static List *
tables_below(const HybConversion *conversion, Oid table)
{
	List	   *tables = NIL;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(table, NoLock, NULL))
		if (get_rel_relispartition(lfirst_oid(lc)) ||
			hyb_goes_with(lfirst_oid(lc), table))
		tables = lappend_oid(tables, lfirst_oid(lc));
	foreach(lc, find_all_inheritors(conversion->index, NoLock, NULL))
		tables = list_append_unique_oid(tables,
										IndexGetRelation(lfirst_oid(lc), false));
	return tables;
}

/*
 * Returns the table, which is locked, and those below it, after their parents and
 * locked.  Nothing can be attached to a locked table.
 */
static List *
lock_tables(const HybConversion *conversion, Oid table, LOCKMODE lockmode)
{
	List	   *locked = list_make1_oid(table);

	for (;;)
	{
		List	   *tables = tables_below(conversion, table);
		List	   *added = list_difference_oid(tables, locked);
		ListCell   *lc;

		if (added == NIL)
			return tables;
		foreach(lc, added)
			lock_without_snapshot(lfirst_oid(lc), lockmode);
		locked = list_concat(locked, added);
	}
}

HybConvertStatus
hyb_conversion_open(HybConversion *conversion, Oid index, Oid access_method,
					const char *layout, bool concurrently, bool with_children)
{
	LOCKMODE	lockmode = concurrently ? ShareUpdateExclusiveLock :
		ShareRowExclusiveLock;
	Oid			table;
	bool		exists;

	memset(conversion, 0, sizeof(*conversion));
	conversion->access_method = access_method;
	conversion->layout = layout;
	conversion->concurrently = concurrently;
	conversion->with_children = with_children;
	conversion->index = index;
	if (!check_identity(conversion, index, &exists) ||
		!check_below(conversion, index))
		return HYB_CONVERT_REFUSED;

	/* the table first, as the server does */
	table = IndexGetRelation(index, true);
	lock_without_snapshot(table, lockmode);
	if (!check_identity(conversion, index, &exists))
		return !exists && was_converted(conversion, table) ?
			HYB_CONVERT_ALREADY : HYB_CONVERT_REFUSED;
	conversion->tables = lock_tables(conversion, table, lockmode);
	lock_without_snapshot(index, ShareUpdateExclusiveLock);
	if (!check_alone(conversion, index))
		return HYB_CONVERT_REFUSED;
	return add_parts(conversion);
}

/* Returns true for `name`, perhaps cut short, with _ccnew or _ccold and a number. */
static bool
is_leftover_of(const char *candidate, const char *name)
{
	size_t		length = strlen(candidate);

	while (length > 0 && isdigit((unsigned char) candidate[length - 1]))
		length--;
	if (length <= 6 || (strncmp(candidate + length - 6, "_ccnew", 6) != 0 &&
						strncmp(candidate + length - 6, "_ccold", 6) != 0))
		return false;
	length -= 6;
	return strncmp(candidate, name, length) == 0 &&
		(name[length] == '\0' || strlen(candidate) >= NAMEDATALEN - 4);
}

/* Returns the names of invalid indexes that operations on the index have left. */
static List *
leftovers_of(const char *index, Oid table)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, hyb_index_rows(Anum_pg_index_indrelid, table, NULL))
	{
		Form_pg_index row = lfirst(lc);
		char	   *name = get_rel_name(row->indexrelid);

		if (!row->indisvalid && name != NULL && is_leftover_of(name, index))
			names = lappend(names, name);
	}
	return names;
}

/* Of one name, or several that are qualified. */
static char *
drop_hint(const char *names)
{
	return psprintf(_("Use DROP INDEX %s."), names);
}

static void
tell_leftovers_of(const char *index, Oid table)
{
	char	   *schema = get_namespace_name(get_rel_namespace(table));
	ListCell   *lc;

	foreach(lc, leftovers_of(index, table))
		ereport(NOTICE,
				(errmsg("invalid index \"%s\" has been left by an operation on index \"%s\" that was interrupted",
						(char *) lfirst(lc), index),
				 errhint("%s", drop_hint(quote_qualified_identifier(schema, lfirst(lc))))));
}

bool
hyb_conversion_is_unfinished(HybConversion *conversion)
{
	StringInfoData names;
	const char *first = NULL;
	ListCell   *lc;

	initStringInfo(&names);
	foreach(lc, conversion->parts)
	{
		const HybConvertPart *part = lfirst(lc);
		ListCell   *of_names;

		foreach(of_names, leftovers_of(get_rel_name(part->index), part->table))
		{
			const char *name = lfirst(of_names);

			if (strstr(name, "_ccnew") == NULL)
				continue;
			appendStringInfo(&names, "%s%s", first == NULL ? "" : ", ",
							 quote_qualified_identifier(part->schema, name));
			if (first == NULL)
				first = name;
		}
	}
	if (first == NULL)
		return false;
	refuse(conversion, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		   psprintf(_("invalid index \"%s\" has been left by an operation on it that was interrupted"),
					first), NULL, drop_hint(names.data));
	return true;
}

/*
 * Entries that led to no row of the table came from index-only scans, from bitmap
 * scans, or are of dead rows.  Some dead rows are found in any index.
 */
static void
tell_index_only_scans(const HybConvertPart *part)
{
	Datum		oid = ObjectIdGetDatum(part->index);
	int64		entries = DatumGetInt64(DirectFunctionCall1(pg_stat_get_tuples_returned, oid));
	int64		others = entries - DatumGetInt64(DirectFunctionCall1(pg_stat_get_tuples_fetched, oid));

	if (others > entries / 100)
		ereport(NOTICE,
				(errmsg("index \"%s\" may have served index-only scans, which are not possible with layout \"trie\"",
						get_rel_name(part->index)),
				 errdetail("Of %lld entries that scans returned, %lld led to no row of the table. Bitmap scans do that too.",
						   (long long) entries, (long long) others)));
}

void
hyb_conversion_tell(const HybConversion *conversion)
{
	ListCell   *lc;

	/* it may have been replaced while we waited for the lock */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(conversion->index)))
		return;
	foreach(lc, indexes_with(conversion, NoLock))
		tell_leftovers_of(get_rel_name(lfirst_oid(lc)),
						  IndexGetRelation(lfirst_oid(lc), false));
	if (conversion->parts != NIL && conversion->unique &&
		conversion->access_method != BTREE_AM_OID)
		hyb_before_18_warn(conversion->name);
	foreach(lc, wants_trie(conversion) ? conversion->parts : NIL)
	{
		const HybConvertPart *part = lfirst(lc);

		if (part->stored)
			tell_index_only_scans(part);
	}
}

/* ---- steps ---- */

void
hyb_conversion_progress(const HybConversion *conversion,
						const HybConvertPart *part, int phase)
{
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, part->table);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_COMMAND,
								 conversion->concurrently ?
								 PROGRESS_CREATEIDX_COMMAND_REINDEX_CONCURRENTLY :
								 PROGRESS_CREATEIDX_COMMAND_REINDEX);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_INDEX_OID,
								 OidIsValid(part->twin) ? part->twin : part->index);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_ACCESS_METHOD_OID,
								 conversion->access_method);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, phase);
}

/* Returns a free name, such as REINDEX CONCURRENTLY chooses. */
static char *
choose_name(Oid index, const char *label)
{
	return ChooseRelationName(get_rel_name(index), NULL, label,
							  get_rel_namespace(index), false);
}

/* Runs functions of index expressions as the owner. */
static void
create_twin(const HybConversion *conversion, HybConvertPart *part, uint16 flags)
{
	Relation	table = table_open(part->table, NoLock);
	Relation	index = index_open(part->index, NoLock);
	Datum		options = hyb_twin_options(index, conversion->access_method);
	char	   *name = choose_name(part->index, "ccnew");
	HybCaller	caller;

	if (conversion->layout != NULL)
		options = hyb_layout_set(options, conversion->layout);
	hyb_become_owner(&caller, part->owner);
	part->twin = hyb_twin_create(table, part->index, conversion->access_method,
								 name, flags, options);
	hyb_become_caller(&caller);
	part->twin_name = name;
	index_close(index, NoLock);
	table_close(table, NoLock);
	CommandCounterIncrement();
}

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
 * index_concurrently_swap attaches the twin to the parent of the index and moves
 * dependencies, but leaves the children to the index.
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
 * Children come before what they are attached to.
 *
 * From the swap on the twin finds duplicates for all sessions, for those that do not
 * know of the swap yet ask both indexes.  The old index is still inserted into.  If
 * it went on checking, it would report duplicates under a temporary name, hide them
 * from ON CONFLICT, which asks valid indexes only, and check deferrable constraints
 * too early.
 */
void
hyb_conversion_swap(HybConversion *conversion)
{
	for (int i = list_length(conversion->parts) - 1; i >= 0; i--)
	{
		HybConvertPart *part = list_nth(conversion->parts, i);

		CHECK_FOR_INTERRUPTS();
		if (!part->stored)
			create_twin(conversion, part, INDEX_CREATE_SKIP_BUILD);
		Assert(OidIsValid(part->twin));
		part->old_name = choose_name(part->index, "ccold");
		index_concurrently_swap(part->twin, part->index, part->old_name);
		hyb_twin_swapped(part->twin, part->index);
		if (conversion->concurrently)
			hyb_index_stop_checking(part->index, false);
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

	Assert(!conversion->concurrently ||
		   conversion->state == HYB_CONVERT_SWAPPED);
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

/* ---- all in one transaction ---- */

/*
 * Builds the twin as REINDEX would.  If older snapshots may use the old index, they
 * may use the twin, whatever rows it lacks.  But in HOT chains that an index of
 * hybrid_hot allowed the versions have different keys, and the twin has the last one's.
 * BuildIndexInfo and the build run functions of the table's owner.
 */
static void
build_twin(const HybConvertPart *part)
{
	Relation	table = table_open(part->table, NoLock);
	Relation	old_index = index_open(part->index, NoLock);
	Relation	twin = index_open(part->twin, AccessExclusiveLock);
	bool		as_reindex = !old_index->rd_index->indcheckxmin &&
		!HYB_IS_SUMMARIZING(old_index);
	HybCaller	caller;

	Assert(CheckRelationLockedByMe(table, ShareRowExclusiveLock, true));
	hyb_become_owner(&caller, part->owner);
	HYB_INDEX_BUILD(table, twin, BuildIndexInfo(twin), as_reindex);
	hyb_become_caller(&caller);
	index_close(twin, NoLock);
	index_close(old_index, NoLock);
	table_close(table, NoLock);
	CommandCounterIncrement();
}

/* Fails if this transaction itself is reading one of the tables. */
static void
check_not_in_use(const HybConversion *conversion, const char *command)
{
	ListCell   *lc;

	foreach(lc, conversion->tables)
	{
		Relation	table = table_open(lfirst_oid(lc), NoLock);

		Assert(CheckRelationLockedByMe(table, ShareRowExclusiveLock, true));
		CheckTableNotInUse(table, command);
		table_close(table, NoLock);
	}
}

static void
lock_for_swap(const HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, conversion->tables)
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
	foreach(lc, conversion->parts)
		LockRelationOid(((HybConvertPart *) lfirst(lc))->index,
						AccessExclusiveLock);
}

Oid
hyb_conversion_now(HybConversion *conversion)
{
	bool		to_hybrid = conversion->access_method != BTREE_AM_OID;
	ListCell   *lc;

	Assert(!conversion->concurrently && conversion->parts != NIL);
	check_not_in_use(conversion, to_hybrid ? "convert index of" : "revert index of");
	hyb_conversion_create(conversion);
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		hyb_conversion_progress(conversion, part, PROGRESS_CREATEIDX_PHASE_BUILD);
		if (part->stored)
			build_twin(part);
	}
	lock_for_swap(conversion);
	hyb_conversion_swap(conversion);
	hyb_conversion_drop(conversion);
	pgstat_progress_end_command();
	return ((HybConvertPart *) linitial(conversion->parts))->twin;
}

Oid
hyb_convert_now(Oid index, Oid access_method, const char *layout,
				bool with_children)
{
	HybConversion conversion;

	switch (hyb_conversion_open(&conversion, index, access_method, layout, false,
								with_children))
	{
		case HYB_CONVERT_REFUSED:
			hyb_refuse(&conversion.refusal);
			break;
		case HYB_CONVERT_ALREADY:
			hyb_conversion_already(&conversion);
			hyb_conversion_tell(&conversion);
			return index;
		case HYB_CONVERT_READY:
			break;
	}
	hyb_conversion_tell(&conversion);
	return hyb_conversion_now(&conversion);
}
