/*
 * identity.c
 *		Refuses a hybrid index as replica identity, which server 17 cannot use.
 *
 * Server 17 finds the rows that logical replication changes through btree and
 * hash indexes only, but lets any unique index become the replica identity.  The
 * apply worker of a subscriber then fails with an internal error each time that
 * it is started.  The server opens the index before it changes the catalog, so
 * this library and its hook are in place in time.
 */
#include "base/compat.h"

#ifdef HYB_NO_REPLICA_IDENTITY

#include "base/server.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "replication/logicalworker.h"
#include "server/before_18/before_18.h"
#include "server/btree_only.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* Is the index the replica identity, as this snapshot sees the catalog? */
static bool
is_identity(Oid index, Snapshot snapshot)
{
	List	   *rows = hyb_index_rows(Anum_pg_index_indexrelid, index, snapshot);

	return rows != NIL && ((Form_pg_index) linitial(rows))->indisreplident;
}

/*
 * The command at hand has changed a row of pg_index.  The catalog snapshot still
 * sees the row as it was.
 */
void
hyb_identity_check(ObjectAccessType access, Oid classid, Oid objectid)
{
	if (access == OAT_POST_ALTER && classid == IndexRelationId &&
		hyb_index_is_of(objectid, get_index_am_oid("hybrid", true)) &&
		is_identity(objectid, SnapshotSelf) && !is_identity(objectid, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot use index \"%s\" of access method \"hybrid\" as replica identity",
						get_rel_name(objectid)),
				 errdetail("A subscriber of this PostgreSQL version cannot find rows through it."),
				 errhint("Use a btree index or REPLICA IDENTITY FULL, or PostgreSQL 18 or later.")));
}

/* A subscriber looks for the rows to change through the primary key. */
void
hyb_identity_explain_error(ErrorData *error)
{
	if (IsLogicalWorker() && error->hint == NULL &&
		strncmp(error->message_id, "missing operator ", 17) == 0)
		hyb_error_set_hint(error, _("Subscribers of this PostgreSQL version cannot find rows through a hybrid index: %s() the primary key here, or have a btree index be the replica identity of the table here."),
						   "hybrid_revert");
}

#endif							/* HYB_NO_REPLICA_IDENTITY */
