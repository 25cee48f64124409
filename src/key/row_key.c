/*
 * row_key.c
 *		The key of a row of the table.
 *
 * fetch_toasted does what heap_fetch_toast_slice (the server's
 * access/heap/heaptoast.c) does, but returns false where that raises an error.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "key/row_key.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/*
 * Copy the next chunk of a value of `size` bytes, behind the first `done` bytes.
 * Returns its length, 0 if the tuple is another chunk.
 */
static uint32
copy_chunk(HeapTuple tuple, TupleDesc desc, uint32 size, uint32 done, char *out)
{
	bool		isnull;
	uint32		seq = DatumGetInt32(fastgetattr(tuple, 2, desc, &isnull));
	Pointer		chunk = DatumGetPointer(fastgetattr(tuple, 3, desc, &isnull));
	uint32		len = Min(size - done, TOAST_MAX_CHUNK_SIZE);

	if (isnull || seq != done / TOAST_MAX_CHUNK_SIZE ||
		VARATT_IS_EXTERNAL(chunk) || VARATT_IS_COMPRESSED(chunk) ||
		VARSIZE_ANY_EXHDR(chunk) != len)
		return 0;
	memcpy(out + done, VARDATA_ANY(chunk), len);
	return len;
}

/* Does `out` have all of it? */
static bool
fetch_chunks(Oid toastrelid, Oid valueid, uint32 size, char *out)
{
	Relation	rel = table_open(toastrelid, AccessShareLock);
	SnapshotData snapshot = {.snapshot_type = SNAPSHOT_TOAST};
	Relation   *indexes;
	int			nindexes;
	int			valid = toast_open_indexes(rel, AccessShareLock, &indexes, &nindexes);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	uint32		done = 0;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(valueid));
	scan = systable_beginscan_ordered(rel, indexes[valid], &snapshot, 1, &key);
	while (done < size &&
		   (tuple = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		uint32		len = copy_chunk(tuple, RelationGetDescr(rel), size, done, out);

		if (len == 0)
			break;
		done += len;
	}
	systable_endscan_ordered(scan);
	toast_close_indexes(indexes, nindexes, AccessShareLock);
	table_close(rel, AccessShareLock);
	return done == size;
}

/*
 * Replace a value that is in a TOAST table by what is there, palloc'd and perhaps
 * still compressed.  Leaves other values alone.  Returns false if a part is gone.
 */
static bool
fetch_toasted(Datum *value)
{
	struct varlena *external = (struct varlena *) DatumGetPointer(*value);
	struct varlena *fetched;
	struct varatt_external pointer;
	uint32		size;

	if (!VARATT_IS_EXTERNAL_ONDISK(external))
		return true;
	HYB_ASSERT_NO_LWLOCK();
	VARATT_EXTERNAL_GET_POINTER(pointer, external);
	size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
	fetched = palloc(size + VARHDRSZ);
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer))
		SET_VARSIZE_COMPRESSED(fetched, size + VARHDRSZ);
	else
		SET_VARSIZE(fetched, size + VARHDRSZ);
	if (!fetch_chunks(pointer.va_toastrelid, pointer.va_valueid, size, VARDATA(fetched)))
	{
		pfree(fetched);
		return false;
	}
	*value = PointerGetDatum(fetched);
	return true;
}

/* Returns false, and appends nothing, if the value is gone. */
static bool
append_column(const HybColumn *col, Datum value, bool isnull, HybBuf *out)
{
	Datum		fetched = value;

	if (col->attlen == -1 && !isnull && !fetch_toasted(&fetched))
		return false;
	hyb_key_encode_column(col, fetched, isnull, out);
	if (fetched != value)
		pfree(DatumGetPointer(fetched));
	return true;
}

/* The key of a row: of a slot, or of a tuple if that is NULL. */
static pg_attribute_always_inline bool
append_key(const HybKeyDesc *desc, Relation index, TupleTableSlot *slot,
		   HeapTuple tuple, TupleDesc tupdesc, HybBuf *out)
{
	uint32		len = out->len;

	Assert(desc->nkeys == IndexRelationGetNumberOfKeyAttributes(index));
	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = index->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;

		Assert(attno > 0);
		value = slot != NULL ? slot_getattr(slot, attno, &isnull) :
			heap_getattr(tuple, attno, tupdesc, &isnull);
		if (!append_column(&desc->cols[i], value, isnull, out))
		{
			out->len = len;
			return false;
		}
	}
	return true;
}

bool
hyb_key_of_slot(const HybKeyDesc *desc, Relation index, TupleTableSlot *slot,
				HybBuf *out)
{
	return append_key(desc, index, slot, NULL, NULL, out);
}

bool
hyb_key_of_tuple(const HybKeyDesc *desc, Relation index, HeapTuple tuple,
				 TupleDesc tupdesc, HybBuf *out)
{
	return append_key(desc, index, NULL, tuple, tupdesc, out);
}
