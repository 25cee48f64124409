/*
 * entry_size.c
 *		The longest entries that an index takes.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "insert/entry_size.h"
#include "key/encoded.h"
#include "utils/rel.h"

/* Is the entry so short that it fits with any dictionary? */
static bool
fits_in_any_case(const HybKeyDesc *desc, const Datum *values,
				 const bool *isnull, uint32 len)
{
	Size		most = len;

	for (int i = 0; i < desc->nkeys; i++)
	{
		if (hyb_column_is_encoded(&desc->cols[i]) && !isnull[i])
			most += toast_raw_datum_size(values[i]) * HYB_HOPE_MAX_CODE / 7;
	}
	return most <= HYB_MAX_ENTRY_SIZE;
}

/*
 * The longest that the entry may become.  Whether a row fits an index must not
 * depend on whether a merge has learned a dictionary, nor from which rows.
 */
static uint32
longest_form(const HybKeyDesc *desc, const Datum *values, const bool *isnull)
{
	HybBuf		buf = {0};
	uint32		growth = 0;
	uint32		len;

	for (int i = 0; i < desc->natts; i++)
	{
		HybColumn	plain = desc->cols[i];
		uint32		before = buf.len;

		plain.dictionary = NULL;
		hyb_key_encode_column(&plain, values[i], isnull[i], &buf);
		if (hyb_column_is_encoded(&plain) && !isnull[i])
			growth += hyb_encoded_growth(buf.len - before);
	}
	len = buf.len + growth;
	hyb_buf_free(&buf);
	return len;
}

void
hyb_check_entry_size(const HybIndex *ix, Relation heap, const Datum *values,
					 const bool *isnull, uint32 len, ItemPointer tid)
{
	const HybKeyDesc *desc = ix->desc;

	if (unlikely(desc->has_encoded && len <= HYB_MAX_ENTRY_SIZE &&
				 !fits_in_any_case(desc, values, isnull, len)))
		len = longest_form(desc, values, isnull);
	if (likely(len <= HYB_MAX_ENTRY_SIZE))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %u exceeds hybrid maximum %d for index \"%s\"",
					len, HYB_MAX_ENTRY_SIZE, RelationGetRelationName(ix->rel)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   ItemPointerGetBlockNumber(tid),
					   ItemPointerGetOffsetNumber(tid),
					   RelationGetRelationName(heap)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing."),
			 errtableconstraint(heap, RelationGetRelationName(ix->rel))));
}
