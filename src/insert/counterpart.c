/*
 * counterpart.c
 *		Two unique indexes of a table that refuse the same rows.
 *
 * While an index is built to take another one's place, by a conversion or by
 * REINDEX CONCURRENTLY, insertions look for duplicates in both.  An INSERT with
 * ON CONFLICT asks the arbiter what to do about a duplicate.  The new index may
 * be no arbiter, if this library was loaded too late (ddl/convert_arbiter.c),
 * and would raise an error about what the old one is about to find as well.  So
 * it leaves the duplicate to the old one, as long as it is not valid.
 *
 * This loses no duplicate.  Whoever had inserted the other row before the new
 * index became valid also asked the old index.  There each insertion looks for
 * duplicates and adds its entry in one step, so the later of the two has found
 * the earlier one.  Whether the index is valid is read after the duplicate was
 * found, and with a new snapshot: a cached answer may be older than the other
 * row, which may belong to a session that asked the new index only.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_index.h"
#include "insert/counterpart.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

bool
hyb_same_uniqueness(Relation a, Relation b)
{
	Form_pg_index form_a = a->rd_index;
	Form_pg_index form_b = b->rd_index;

	if (form_a->indnkeyatts != form_b->indnkeyatts ||
		form_a->indnullsnotdistinct != form_b->indnullsnotdistinct)
		return false;
	for (int i = 0; i < form_a->indnkeyatts; i++)
	{
		if (form_a->indkey.values[i] != form_b->indkey.values[i] ||
			a->rd_indcollation[i] != b->rd_indcollation[i] ||
			get_opfamily_member(a->rd_opfamily[i], a->rd_opcintype[i],
								a->rd_opcintype[i], BTEqualStrategyNumber) !=
			get_opfamily_member(b->rd_opfamily[i], b->rd_opcintype[i],
								b->rd_opcintype[i], BTEqualStrategyNumber))
			return false;
	}
	return equal(RelationGetIndexExpressions(a),
				 RelationGetIndexExpressions(b)) &&
		equal(RelationGetIndexPredicate(a), RelationGetIndexPredicate(b));
}

/* By now, whatever caches say. */
static bool
is_valid(Oid index)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		valid;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(index));
	scan = systable_beginscan(pg_index, IndexRelidIndexId, true, snapshot, 1,
							  &key);
	tuple = systable_getnext(scan);
	valid = !HeapTupleIsValid(tuple) ||
		((Form_pg_index) GETSTRUCT(tuple))->indisvalid;
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(pg_index, AccessShareLock);
	return valid;
}

static bool
is_counterpart(Relation index, Oid other)
{
	Relation	rel = index_open(other, RowExclusiveLock);
	bool		result;

	result = rel->rd_index->indisunique && rel->rd_index->indisvalid &&
		hyb_same_uniqueness(index, rel);
	index_close(rel, NoLock);
	return result;
}

bool
hyb_counterpart_decides(Relation index, Relation table)
{
	List	   *indexes;
	ListCell   *lc;
	bool		found = false;

	if (is_valid(RelationGetRelid(index)))
		return false;
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
		if (!found && lfirst_oid(lc) != RelationGetRelid(index))
		found = is_counterpart(index, lfirst_oid(lc));
	list_free(indexes);
	return found;
}
