/*
 * entry_size.c
 *		The longest entries that an index takes.
 */
#include "compat.h"

#include "am/entry_size.h"
#include "key/key.h"
#include "utils/rel.h"

void
hyb_check_entry_size(Relation index, Relation heap, uint32 len,
					 ItemPointer tid)
{
	if (likely(len <= HYB_MAX_ENTRY_SIZE))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %u exceeds hybrid maximum %d for index \"%s\"",
					len, HYB_MAX_ENTRY_SIZE, RelationGetRelationName(index)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   ItemPointerGetBlockNumber(tid),
					   ItemPointerGetOffsetNumber(tid),
					   RelationGetRelationName(heap)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}
