/*
 * identity.c
 *		Refuses a replica identity that the server cannot use.
 *
 * Server 17 looks for the rows that logical replication changes through btree
 * and hash indexes only, but lets any unique index become the replica
 * identity: the apply worker of a subscriber then fails with an internal
 * error, however often it is started again.  The server opens the index before
 * it changes the catalog, so this library and its hook are in place in time.
 */
#include "base/compat.h"

#include "base/server.h"
#include "server/hooks.h"

#ifdef HYB_NO_REPLICA_IDENTITY

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

static object_access_hook_type previous_object_access = NULL;

/* Is the index the replica identity, as this snapshot sees the catalog? */
static bool
is_identity(Oid index, Snapshot snapshot)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(index));
	scan = systable_beginscan(rel, IndexRelidIndexId, true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	result = HeapTupleIsValid(tuple) &&
		((Form_pg_index) GETSTRUCT(tuple))->indisreplident;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * A pg_index row has been changed, by the command at hand: what it was before
 * is what the catalog snapshot still sees.
 */
static void
object_access(ObjectAccessType access, Oid classid, Oid objectid, int subid,
			  void *arg)
{
	if (previous_object_access)
		previous_object_access(access, classid, objectid, subid, arg);

	if (access == OAT_POST_ALTER && classid == IndexRelationId &&
		hyb_index_is_of(objectid, get_index_am_oid("hybrid", true)) && is_identity(objectid, SnapshotSelf) &&
		!is_identity(objectid, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot use index \"%s\" of access method \"hybrid\" as replica identity",
						get_rel_name(objectid)),
				 errdetail("A subscriber of this version of PostgreSQL cannot find rows through it."),
				 errhint("Use a btree index or REPLICA IDENTITY FULL, or PostgreSQL 18 or later.")));
}

void
hyb_identity_init(void)
{
	previous_object_access = object_access_hook;
	object_access_hook = object_access;
}

#else

void
hyb_identity_init(void)
{
}

#endif							/* HYB_NO_REPLICA_IDENTITY */
