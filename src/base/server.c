/*
 * server.c
 *		What the server's own functions do not quite do.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

Oid
hyb_index_method(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relam;
	ReleaseSysCache(tuple);
	return result;
}

bool
hyb_index_is_of(Oid index, Oid access_method)
{
	return OidIsValid(access_method) && hyb_index_method(index) == access_method;
}

bool
hyb_is_our_method(Oid access_method)
{
	return access_method >= FirstNormalObjectId &&
		(access_method == get_index_am_oid("hybrid", true) ||
		 access_method == get_index_am_oid("hybrid_hot", true));
}

bool
hyb_is_hot_method(Oid access_method)
{
	return access_method >= FirstNormalObjectId &&
		access_method == get_index_am_oid("hybrid_hot", true);
}

bool
hyb_index_is_ours(Oid index)
{
	return hyb_is_our_method(hyb_index_method(index));
}

List *
hyb_index_rows(AttrNumber column, Oid oid, Snapshot snapshot)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	Oid			path = column == Anum_pg_index_indexrelid ? IndexRelidIndexId : IndexIndrelidIndexId;
	List	   *rows = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	Assert(column == Anum_pg_index_indexrelid || column == Anum_pg_index_indrelid);
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	scan = systable_beginscan(pg_index, path, true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		void	   *row = palloc(sizeof(FormData_pg_index));

		memcpy(row, GETSTRUCT(tuple), offsetof(FormData_pg_index, indkey));
		rows = lappend(rows, row);
	}
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return rows;
}

/* Returns that of the table, or what a partitioned table has for its partitions. */
static const TableAmRoutine *
table_method(Relation table)
{
	HeapTuple	tuple;
	Oid			handler;

	if (table->rd_tableam != NULL || !OidIsValid(table->rd_rel->relam))
		return table->rd_tableam;
	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(table->rd_rel->relam));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
	ReleaseSysCache(tuple);
	return GetTableAmRoutine(handler);
}

char *
hyb_not_heap(Oid table)
{
	Relation	rel = RelationIdGetRelation(table);
	const TableAmRoutine *method;
	char	   *detail = NULL;

	if (rel == NULL)
		return NULL;
	method = table_method(rel);
	if (method != NULL && method != GetHeapamTableAmRoutine())
		detail = psprintf(_("The table is of access method \"%s\", not \"heap\"."),
						  get_am_name(rel->rd_rel->relam));
	RelationClose(rel);
	return detail;
}

Relation
hyb_as_btree(Relation index)
{
	Relation	copy = palloc(sizeof(RelationData));
	Form_pg_class form = palloc(sizeof(FormData_pg_class));

	memcpy(copy, index, sizeof(RelationData));
	memcpy(form, index->rd_rel, sizeof(FormData_pg_class));
	form->relam = BTREE_AM_OID;
	copy->rd_rel = form;
	return copy;
}

static void
begin_subtransaction(void)
{
	BeginInternalSubTransaction(NULL);
}

/*
 * Begins or ends a subtransaction, with no cancel and no message to the client.  At
 * debug5 the server sends a line for each level, and looks for a cancel after each line.
 * The error would end the session, or leave the subtransaction the current one.  A client
 * that does not read would keep us from being terminated.  The client's level of messages
 * is `level` afterwards.
 */
static void
change_subtransaction(void (*change) (void), int level)
{
	client_min_messages = ERROR;
	HOLD_INTERRUPTS();
	PG_TRY();
	{
		change();
	}
	PG_FINALLY();
	{
		client_min_messages = level;
	}
	PG_END_TRY();
	RESUME_INTERRUPTS();
}

/*
 * Rolls the subtransaction back in any case, or only after an error.  `work` may run a
 * user's code, which may set lock_timeout too.  So we set it as a function's SET clause
 * does: what it was comes back with the end of the subtransaction.
 */
static ErrorData *
run_in_subtransaction(void (*work) (void *arg), void *arg, int lock_ms, bool rollback)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	int			level = client_min_messages;
	char		value[16];

	snprintf(value, sizeof(value), "%d", lock_ms);
	change_subtransaction(begin_subtransaction, level);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		(void) set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
		work(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (rollback || error != NULL)
		change_subtransaction(RollbackAndReleaseCurrentSubTransaction, level);
	else
		change_subtransaction(ReleaseCurrentSubTransaction, client_min_messages);
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

ErrorData *
hyb_in_subtransaction(void (*work) (void *arg), void *arg, int lock_ms)
{
	return run_in_subtransaction(work, arg, lock_ms, true);
}

/* A cancel and a timeout are meant for the statement. */
static ErrorData *
but_no_cancel(ErrorData *error)
{
	if (error != NULL && error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	return error;
}

ErrorData *
hyb_without_waiting(void (*work) (void *arg), void *arg)
{
	return but_no_cancel(hyb_in_subtransaction(work, arg, HYB_SHORT_WAIT_MS));
}

ErrorData *
hyb_catch_error(void (*work) (void *arg), void *arg)
{
	return but_no_cancel(run_in_subtransaction(work, arg, HYB_SHORT_WAIT_MS, false));
}

oidvector *
hyb_index_classes(Relation index)
{
	return (oidvector *)
		DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID,
											   index->rd_indextuple,
											   Anum_pg_index_indclass));
}

List *
hyb_class_name(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass class;
	List	   *result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	result = list_make2(makeString(get_namespace_name(class->opcnamespace)),
						makeString(pstrdup(NameStr(class->opcname))));
	ReleaseSysCache(tuple);
	return result;
}

bool
hyb_same_operators(Oid family_a, Oid family_b, Oid type)
{
	for (int strategy = 1; strategy <= BTMaxStrategyNumber; strategy++)
		if (get_opfamily_member(family_a, type, type, strategy) !=
			get_opfamily_member(family_b, type, type, strategy))
			return false;
	return true;
}

bool
hyb_family_has_members(Oid family, Oid other, const List *types)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY,
											  ObjectIdGetDatum(other));
	bool		all = true;

	for (int i = 0; i < members->n_members && all; i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);

		if (types == NIL ||
			(list_member_oid(types, member->amoplefttype) &&
			 list_member_oid(types, member->amoprighttype)))
			all = get_opfamily_member(family, member->amoplefttype,
									  member->amoprighttype,
									  member->amopstrategy) == member->amopopr;
	}
	ReleaseCatCacheList(members);
	return all;
}

char *
hyb_sql_function(const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum("hybrid"));
	char	   *schema = NULL;

	if (HeapTupleIsValid(tuple))
	{
		Oid			handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;

		schema = get_namespace_name(get_func_namespace(handler));
		ReleaseSysCache(tuple);
	}
	return quote_qualified_identifier(schema, name);
}

int			hyb_longest_moment_ms = 0;

bool
hyb_lock_for_a_moment(const LOCKTAG *tag, bool wait)
{
	int			save_timeout = LockTimeout;
	LockAcquireResult result;

	Assert(CritSectionCount == 0);
	hyb_mute_begin();
	LockTimeout = hyb_longest_moment_ms;
	PG_TRY();
	{
		result = LockAcquire(tag, ExclusiveLock, false, !wait);
	}
	PG_FINALLY();
	{
		LockTimeout = save_timeout;
	}
	PG_END_TRY();
	if (result == LOCKACQUIRE_NOT_AVAIL)
		hyb_mute_end();
	return result != LOCKACQUIRE_NOT_AVAIL;
}

void
hyb_unlock_after_moment(const LOCKTAG *tag)
{
	(void) LockRelease(tag, ExclusiveLock, false);
	hyb_mute_end();
}

/* ---- getting at relations ---- */

void
hyb_become_owner(HybCaller *caller, Oid owner)
{
	GetUserIdAndSecContext(&caller->user, &caller->security_context);
	SetUserIdAndSecContext(owner, caller->security_context |
						   SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = NewGUCNestLevel();
	HYB_RESTRICT_SEARCH_PATH();
}

void
hyb_become_caller(const HybCaller *caller)
{
	AtEOXact_GUC(false, caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->security_context);
}

Oid
hyb_owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

bool
hyb_owns(Oid relid)
{
	Oid			owner = hyb_owner_of(relid);

	return OidIsValid(owner) && has_privs_of_role(GetUserId(), owner);
}

Relation
hyb_try_open(Oid relid, LOCKMODE lockmode, bool *locked)
{
	Relation	rel;

	if (!OidIsValid(relid))
		return NULL;
	if (!ConditionalLockRelationOid(relid, lockmode))
	{
		if (locked != NULL)
			*locked = true;
		return NULL;
	}
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(relid, lockmode);
	return rel;
}
