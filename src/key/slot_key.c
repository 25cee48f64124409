/*
 * slot_key.c
 *		The key of a row of the table.
 */
#include "compat.h"

#include "key/slot_key.h"
#include "utils/rel.h"

void
hyb_key_of_slot(const HybKeyDesc *desc, Relation index, TupleTableSlot *slot,
				HybBuf *out)
{
	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = index->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;

		Assert(attno > 0);
		value = slot_getattr(slot, attno, &isnull);
		hyb_key_encode_column(&desc->cols[i], value, isnull, out);
	}
}
