/*
 * row_reader.h
 *		Reading the rows of a table that an index's entries lead to.
 *
 * No other file calls the table access method's functions for that, whose interface
 * server 20 changes.  A TID leads to a chain of row versions at most, as heap has it,
 * and the snapshot decides which of them is the row.
 */
#ifndef HYB_ROW_READER_H
#define HYB_ROW_READER_H

#include "base/compat.h"

#include "access/tableam.h"

/* A table that is read row by row.  All zero: it was not opened yet. */
typedef struct HybRowReader
{
	IndexFetchTableData *fetch; /* NULL: not opened */
	TupleTableSlot *slot;		/* the row that was read last */
} HybRowReader;

/* Opens the table, if the reader has not done it.  Takes memory of the current context. */
static inline void
hyb_row_reader_open(HybRowReader *reader, Relation table)
{
	if (reader->fetch != NULL)
		return;
	reader->slot = table_slot_create(table, NULL);
	reader->fetch = HYB_INDEX_FETCH_BEGIN(table);
}

/*
 * Reads the row that the snapshot sees at a TID into reader->slot.  If the snapshot sees
 * no row there, *dead says whether no snapshot will ever see one.  A caller that does not
 * ask passes NULL.
 */
static inline bool
hyb_row_read(HybRowReader *reader, const ItemPointerData *tid, Snapshot snapshot,
			 bool *dead)
{
	ItemPointerData at = *tid;	/* becomes the TID of the row version */
	bool		again = false;

	Assert(reader->fetch != NULL);
	return table_index_fetch_tuple(reader->fetch, &at, snapshot, reader->slot, &again,
								   dead);
}

/* Lets go of the last row and its page. */
static inline void
hyb_row_reader_reset(HybRowReader *reader)
{
	if (reader->fetch == NULL)
		return;
	ExecClearTuple(reader->slot);
	table_index_fetch_reset(reader->fetch);
}

static inline void
hyb_row_reader_close(HybRowReader *reader)
{
	if (reader->fetch == NULL)
		return;
	table_index_fetch_end(reader->fetch);
	ExecDropSingleTupleTableSlot(reader->slot);
	reader->fetch = NULL;
}

/* hyb_row_read for one row whose values are not wanted. */
static inline bool
hyb_row_exists(Relation table, const ItemPointerData *tid, Snapshot snapshot, bool *dead)
{
	ItemPointerData at = *tid;

	return table_index_fetch_tuple_check(table, &at, snapshot, dead);
}

#endif							/* HYB_ROW_READER_H */
