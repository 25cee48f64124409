/*
 * slot_key.c
 *		The key of a row of the table.
 */
#include "base/compat.h"

#include "key/slot_key.h"
#include "key/toast_value.h"
#include "utils/rel.h"

bool
hyb_key_append_column(const HybColumn *col, Datum value, bool isnull, HybBuf *out)
{
	Datum		fetched = value;

	if (col->attlen == -1 && !isnull && !hyb_toast_fetch(&fetched))
		return false;
	hyb_key_encode_column(col, fetched, isnull, out);
	if (fetched != value)
		pfree(DatumGetPointer(fetched));
	return true;
}

bool
hyb_key_of_slot(const HybKeyDesc *desc, Relation index, TupleTableSlot *slot,
				HybBuf *out)
{
	uint32		len = out->len;

	Assert(desc->nkeys == IndexRelationGetNumberOfKeyAttributes(index));
	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = index->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;

		Assert(attno > 0);
		value = slot_getattr(slot, attno, &isnull);
		if (!hyb_key_append_column(&desc->cols[i], value, isnull, out))
		{
			out->len = len;
			return false;
		}
	}
	return true;
}
