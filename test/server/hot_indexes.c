/*
 * hot_indexes.c
 *		Makes indexes hybrid_hot for ./dev server-tests and ./dev server-isolation.
 *
 * Where hybridindex.replace_btree has made CREATE INDEX one of a hybrid index, this
 * library makes it one of hybrid_hot, if that is possible.  So it has to be loaded before
 * hybridindex: the hook of the library that was loaded last comes first.
 *
 * This changes less than other ways would.  Tests' texts stay as they are, and with them
 * what psql prints of them and where errors are.  There are no event triggers for tests
 * to list, and no second index whose OID or file they could see.  What can be hybrid has
 * been decided with the types of all columns and expressions, which a text does not tell.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static ProcessUtility_hook_type previous;

/*
 * Tables that tests order with CLUSTER, which refuses indexes of hybrid_hot.  To convert
 * the index before that would take other locks than CLUSTER does.
 */
static const char *const clustered[] = {
	"abbrev_abort_uuids", "alttype_cluster", "clstr_4", "clstr_expression", "clstr_tst",
	"clstrpart", "cluster_part_tab", "cluster_tab", "concur_clustered", "maintain_test",
	"ptnowner", "sro_tab", "test_maint",
};

static bool
is_clustered(const char *table)
{
	for (int i = 0; i < lengthof(clustered); i++)
		if (strcmp(table, clustered[i]) == 0)
			return true;
	return false;
}

/* Returns true if the access method has all operator classes that are named. */
static bool
has_classes(const IndexStmt *stmt, Oid method)
{
	ListCell   *lc;

	foreach(lc, stmt->indexParams)
	{
		List	   *class = lfirst_node(IndexElem, lc)->opclass;

		if (class != NIL && !OidIsValid(get_opclass_oid(method, class, true)))
			return false;
	}
	return true;
}

static bool
can_be_hot(const IndexStmt *stmt)
{
	Oid			hot = get_index_am_oid("hybrid_hot", true);

	return OidIsValid(hot) && strcmp(stmt->accessMethod, "hybrid") == 0 &&
		!stmt->unique && stmt->indexIncludingParams == NIL &&
		stmt->excludeOpNames == NIL && !is_clustered(stmt->relation->relname) &&
		has_classes(stmt, hot);
}

static void
make_hot(PlannedStmt *pstmt, const char *source, bool read_only_tree,
		 ProcessUtilityContext context, ParamListInfo params,
		 QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous ? previous : standard_ProcessUtility;

	if (IsA(pstmt->utilityStmt, IndexStmt) &&
		can_be_hot((IndexStmt *) pstmt->utilityStmt))
	{
		pstmt = copyObject(pstmt);
		((IndexStmt *) pstmt->utilityStmt)->accessMethod = pstrdup("hybrid_hot");
	}
	next(pstmt, source, read_only_tree, context, params, environment, dest, completion);
}

void
_PG_init(void)
{
	previous = ProcessUtility_hook;
	ProcessUtility_hook = make_hot;
}
