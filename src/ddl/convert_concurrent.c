/*
 * convert_concurrent.c
 *		Converts an index while other sessions read and write the table.
 *
 * The phases are those of REINDEX CONCURRENTLY (ReindexRelationConcurrently in
 * commands/indexcmds.c).  The twin is created, then built, then gets what was
 * inserted meanwhile.  The two swap.  The old index is dropped when no session can be
 * using it any more.  Each phase is a transaction or more, and waits for the
 * transactions that know the state before it.
 *
 * Locks: in between, the session holds ShareUpdateExclusiveLock on tables and
 * indexes, never a stronger lock.  It keeps away DDL, VACUUM and other conversions.
 *
 * When a phase fails, nothing is undone.  An invalid index is left, and the error
 * says which one.
 */
#include "base/compat.h"

#include "commands/progress.h"
#include "ddl/convert.h"
#include "executor/spi.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

/* Commits, and begins a transaction, which holds no snapshot. */
static void
next_transaction(void)
{
	SPI_commit();
	CHECK_FOR_INTERRUPTS();
}

/*
 * After its first lock a conversion waits only for transactions that were there
 * before, as long as they take: lock_timeout does not count.
 */
static void
next_phase(void)
{
	next_transaction();
	(void) set_config_option("lock_timeout", "0", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

/*
 * This transaction will look into one table only.  So other concurrent builds need
 * not wait for its snapshot, which it has not taken yet.
 */
static void
announce_safe(void)
{
	Assert(MyProc->xid == InvalidTransactionId &&
		   MyProc->xmin == InvalidTransactionId);
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IN_SAFE_IC;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/* Adds the lock (LockRelId), which the session holds from phase to phase. */
static List *
lock_for_session(List *locks, Oid relid)
{
	Relation	rel = relation_open(relid, ShareUpdateExclusiveLock);
	LockRelId  *lock = palloc(sizeof(LockRelId));

	*lock = rel->rd_lockInfo.lockRelId;
	relation_close(rel, NoLock);
	LockRelationIdForSession(lock, ShareUpdateExclusiveLock);
	return lappend(locks, lock);
}

static List *
lock_all(const HybConversion *conversion)
{
	List	   *locks = NIL;
	ListCell   *lc;

	foreach(lc, conversion->tables)
		locks = lock_for_session(locks, lfirst_oid(lc));
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		locks = lock_for_session(locks, part->index);
		if (OidIsValid(part->twin))
			locks = lock_for_session(locks, part->twin);
	}
	return locks;
}

/* Waits for the transactions that now hold a conflicting lock on a table. */
static void
wait_for_lockers(const HybConversion *conversion, int phase, LOCKMODE lockmode)
{
	List	   *tags = NIL;
	ListCell   *lc;

	foreach(lc, conversion->tables)
	{
		LOCKTAG    *tag = palloc(sizeof(LOCKTAG));

		SET_LOCKTAG_RELATION(*tag, MyDatabaseId, lfirst_oid(lc));
		tags = lappend(tags, tag);
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, phase);
	WaitForLockersMultiple(tags, lockmode, true);
}

static void
build_twin_concurrently(const HybConversion *conversion, const HybConvertPart *part)
{
	HybCaller	caller;

	if (part->safe)
		announce_safe();
	PushActiveSnapshot(GetTransactionSnapshot());
	hyb_conversion_progress(conversion, part, PROGRESS_CREATEIDX_PHASE_BUILD);
	hyb_become_owner(&caller, part->owner);
	index_concurrently_build(part->table, part->twin);
	hyb_become_caller(&caller);
	PopActiveSnapshot();
}

/*
 * Inserts entries for what was inserted while the twin was built.  The twin may still
 * lack rows that were deleted before the snapshot of this function.  Transactions
 * with older snapshots can see them, so it waits for these.
 */
static void
validate(const HybConversion *conversion, const HybConvertPart *part)
{
	Snapshot	snapshot;
	TransactionId limit;
	HybCaller	caller;

	if (part->safe)
		announce_safe();
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	PushActiveSnapshot(snapshot);
	hyb_conversion_progress(conversion, part,
							PROGRESS_CREATEIDX_PHASE_VALIDATE_IDXSCAN);
	hyb_become_owner(&caller, part->owner);
	validate_index(part->table, part->twin, snapshot);
	hyb_become_caller(&caller);
	limit = snapshot->xmin;
	PopActiveSnapshot();
	UnregisterSnapshot(snapshot);

	/* without a snapshot, so that no other build waits for us */
	next_phase();
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE,
								 PROGRESS_CREATEIDX_PHASE_WAIT_3);
	WaitForOlderSnapshots(limit, true);
}

static void
set_dead(const HybConversion *conversion)
{
	ListCell   *lc;

	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		index_concurrently_set_dead(part->table, part->index);
	}
	PopActiveSnapshot();
}

/* Returns the locks that the session holds from now on. */
static List *
make_twins(HybConversion *conversion)
{
	List	   *locks;
	ListCell   *lc;

	PushActiveSnapshot(GetTransactionSnapshot());
	hyb_conversion_progress(conversion, linitial(conversion->parts), 0);
	hyb_conversion_create(conversion);
	PopActiveSnapshot();
	locks = lock_all(conversion);
	next_phase();
	conversion->state = HYB_CONVERT_CREATED;
	HYB_POINT("convert-created");

	wait_for_lockers(conversion, PROGRESS_CREATEIDX_PHASE_WAIT_1, ShareLock);
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		next_phase();
		if (part->stored)
			build_twin_concurrently(conversion, part);
	}
	next_phase();
	HYB_POINT("convert-built");

	wait_for_lockers(conversion, PROGRESS_CREATEIDX_PHASE_WAIT_2, ShareLock);
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		next_phase();
		if (part->stored)
			validate(conversion, part);
	}
	next_phase();
	HYB_POINT("convert-validated");
	return locks;
}

/* The swap can be read in catalogs, but its news has not been sent. */
static void
hold_news(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT)
		HYB_POINT("convert-untold");
}

static void
swap_twins(HybConversion *conversion)
{
	Assert(conversion->state == HYB_CONVERT_CREATED);

	/* the swap reads only catalogs */
	next_phase();
	announce_safe();
	PushActiveSnapshot(GetTransactionSnapshot());
	hyb_conversion_swap(conversion);
	PopActiveSnapshot();
	if (HYB_POINT_ATTACHED("convert-untold"))
		RegisterXactCallback(hold_news, NULL);
	next_phase();
	UnregisterXactCallback(hold_news, NULL);
	conversion->state = HYB_CONVERT_SWAPPED;
	HYB_POINT("convert-swapped");

	wait_for_lockers(conversion, PROGRESS_CREATEIDX_PHASE_WAIT_4,
					 AccessExclusiveLock);
	set_dead(conversion);
	next_phase();
	HYB_POINT("convert-dead");

	wait_for_lockers(conversion, PROGRESS_CREATEIDX_PHASE_WAIT_5,
					 AccessExclusiveLock);
	PushActiveSnapshot(GetTransactionSnapshot());
	hyb_conversion_drop(conversion);
	PopActiveSnapshot();
	next_phase();
	conversion->state = HYB_CONVERT_UNDONE;
}

/* Returns the DROP INDEX of what is left, or NULL.  Does not look at catalogs. */
static char *
clean_up_command(const HybConversion *conversion)
{
	StringInfoData command;
	ListCell   *lc;

	if (conversion->state == HYB_CONVERT_UNDONE)
		return NULL;
	initStringInfo(&command);
	foreach(lc, conversion->parts)
	{
		const HybConvertPart *part = lfirst(lc);
		const char *name = conversion->state == HYB_CONVERT_CREATED ?
			part->twin_name : part->old_name;

		if (!part->stored && conversion->state == HYB_CONVERT_CREATED)
			continue;
		appendStringInfoString(&command,
							   command.len == 0 ? "DROP INDEX " : ", ");
		appendStringInfoString(&command,
							   quote_qualified_identifier(part->schema, name));
	}
	return command.data;
}

/* The context gets into the log even if the session is terminated. */
static void
tell_context(void *arg)
{
	const HybConversion *conversion = arg;
	char	   *command = clean_up_command(conversion);

	if (command == NULL)
		errcontext("conversion of index \"%s\"", conversion->name);
	else if (conversion->state == HYB_CONVERT_CREATED)
		errcontext("conversion of index \"%s\", to be undone by: %s",
				   conversion->name, command);
	else
		errcontext("conversion of index \"%s\", which is done but for: %s",
				   conversion->name, command);
}

/* Adds the hint, or a detail if the error has another hint. */
static void
tell_command(ErrorData *error, const char *command)
{
	if (error->hint == NULL)
		error->hint = psprintf(_("Use %s."), command);
	else
		error->detail = psprintf(_("%s%sTo drop what is left, use %s."),
								 error->detail ? error->detail : "",
								 error->detail ? "\n" : "", command);
}

static void
run_phases(HybConversion *conversion)
{
	MemoryContext context = CurrentMemoryContext;
	ListCell   *lc;
	List	   *volatile locks = NIL;
	ErrorContextCallback callback;

	Assert(conversion->concurrently && conversion->state == HYB_CONVERT_UNDONE);
	callback.callback = tell_context;
	callback.arg = conversion;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	PG_TRY();
	{
		locks = make_twins(conversion);
		swap_twins(conversion);
	}
	PG_CATCH();
	{
		ErrorData  *error;
		char	   *command;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		command = clean_up_command(conversion);
		if (command != NULL)
			tell_command(error, command);
		ReThrowError(error);
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	foreach(lc, locks)
		UnlockRelationIdForSession(lfirst(lc), ShareUpdateExclusiveLock);
	pgstat_progress_end_command();
}

/* No other session sees the table, so this needs no phases. */
static void
convert_temporary(const HybConversion *conversion)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) hyb_convert_now(conversion->index, conversion->access_method,
						   conversion->layout, true);
	PopActiveSnapshot();
	next_transaction();
}

HybConvertStatus
hyb_convert_concurrently(HybConversion *conversion, Oid index,
						 Oid access_method, const char *layout, bool again)
{
	HybConvertStatus status;

	/* other sessions must not wait for our snapshot while we wait for a lock */
	next_transaction();
	status = hyb_conversion_open(conversion, index, access_method, layout, true,
								 true);
	if (status == HYB_CONVERT_READY && !again &&
		hyb_conversion_is_unfinished(conversion))
		status = HYB_CONVERT_REFUSED;
	if (status == HYB_CONVERT_REFUSED)
		return status;
	if (status == HYB_CONVERT_ALREADY)
		hyb_conversion_already(conversion);
	hyb_conversion_tell(conversion);
	if (status == HYB_CONVERT_READY)
	{
		if (get_rel_persistence(index) == RELPERSISTENCE_TEMP)
			convert_temporary(conversion);
		else
			run_phases(conversion);
	}
	return status;
}
