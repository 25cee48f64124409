/*
 * build_layout.c
 *		Which layout an index is built with.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "build/build_layout.h"
#include "store/settings.h"
#include "utils/builtins.h"
#include "utils/rel.h"

static bool
is_of_heap(Relation index)
{
	Relation	table = RelationIdGetRelation(index->rd_index->indrelid);
	bool		heap = table != NULL && table->rd_tableam == GetHeapamTableAmRoutine();

	if (table != NULL)
		RelationClose(table);
	return heap;
}

/* Why an index cannot hold the beginnings of keys only, and what to do. */
typedef struct Obstacle
{
	const char *detail;
	const char *hint;
} Obstacle;

static bool
find_obstacle(Relation index, const HybKeyDesc *desc, Obstacle *obstacle)
{
	TupleDesc	tupdesc = RelationGetDescr(index);

	if (desc->natts > desc->nkeys)
	{
		obstacle->detail = "The index has INCLUDE columns.";
		obstacle->hint = "Rows are visited for every entry of such an index: leave the columns out.";
		return true;
	}
	if (!is_of_heap(index))
	{
		obstacle->detail = "The table is not one of access method \"heap\".";
		obstacle->hint = "Use layout = columnar.";
		return true;
	}
	for (int i = 0; i < desc->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (index->rd_index->indkey.values[i] == 0)
		{
			obstacle->detail = psprintf("Column \"%s\" is an expression.",
										NameStr(att->attname));
			obstacle->hint = "Keys are read from the table again: index a generated column that is stored.";
			return true;
		}
		if (desc->cols[i].compare != HYB_COMPARE_MEM)
		{
			obstacle->detail = psprintf("Keys of column \"%s\", of type %s, are not ordered by their bytes.",
										NameStr(att->attname),
										format_type_be(desc->cols[i].typid));
			obstacle->hint = OidIsValid(desc->cols[i].collation) ?
				"Use a collation that orders by bytes, such as \"C\", or layout = columnar." :
				"Use layout = columnar.";
			return true;
		}
	}
	return false;
}

bool
hyb_build_is_truncated(Relation index, const HybKeyDesc *desc)
{
	Obstacle	obstacle;

#ifdef USE_ASSERT_CHECKING
	if (hyb_test_trie && !find_obstacle(index, desc, &obstacle))
		return true;
#endif
	if (hyb_layout_option(index) != HYB_OPTION_TRIE)
		return false;
	if (find_obstacle(index, desc, &obstacle))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout \"trie\" is not possible for index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail_internal("%s", obstacle.detail),
				 errhint("%s", obstacle.hint)));
	return true;
}
