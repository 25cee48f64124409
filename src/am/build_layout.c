/*
 * build_layout.c
 *		Which layout an index is built with.
 */
#include "compat.h"

#include "am/build_layout.h"
#include "page/settings.h"
#include "utils/builtins.h"
#include "utils/rel.h"

/*
 * Do the encodings of a column's values have the same length, so that a few bits
 * tell neighbours apart?
 */
static bool
has_fixed_width(const HybColumn *col)
{
	return col->compare == HYB_COMPARE_MEM &&
		(col->store == HYB_STORE_INT || col->width > 0);
}

HYB_NORETURN static void
fail(Relation index, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("layout \"trie\" is not possible for index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

bool
hyb_build_is_truncated(Relation index, const HybKeyDesc *desc)
{
	TupleDesc	tupdesc = RelationGetDescr(index);

	if (hyb_layout_option(index) != HYB_OPTION_TRIE)
		return false;
	if (desc->natts > desc->nkeys)
		fail(index, "The index has INCLUDE columns.",
			 "Rows are visited for every entry of such an index: leave the columns out.");
	for (int i = 0; i < desc->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (index->rd_index->indkey.values[i] == 0)
			fail(index, psprintf("Column \"%s\" is an expression.", NameStr(att->attname)),
				 "Keys are read from the table again: index a generated column that is stored.");
		if (!has_fixed_width(&desc->cols[i]))
			fail(index, psprintf("Column \"%s\" is of type %s, whose keys have no fixed length or are not ordered by their bytes.",
								 NameStr(att->attname), format_type_be(desc->cols[i].typid)),
				 "Use layout = columnar.");
	}
	return true;
}
