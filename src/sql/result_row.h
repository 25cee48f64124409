/*
 * result_row.h
 *		Rows that SQL functions return.
 *
 * The script that declared a function may be of another version than the library.
 * Versions of a function only differ in columns at the end.  So a row has the columns
 * that the script declares: those that the library does not know are NULL, and values
 * for which there is no column are left out.
 */
#ifndef HYB_RESULT_ROW_H
#define HYB_RESULT_ROW_H

#include "funcapi.h"

typedef struct HybResultRow
{
	TupleDesc	tupdesc;		/* the columns that the script declares */
	Tuplestorestate *set;		/* the rows of the function, or NULL if it
								 * returns one */
	int			next;			/* index of the column that is put next */
	Datum	   *values;
	bool	   *nulls;
} HybResultRow;

/*
 * Begins the row of a function that returns one, or the first row of one that returns
 * a set.  An error says that the script declares another function.
 */
extern void hyb_result_begin(FunctionCallInfo fcinfo, bool set, HybResultRow *row);

/*
 * Puts the next column, of this type; NULL if it is not known.  An error says that
 * the column is declared with another type.
 */
extern void hyb_result_put(HybResultRow *row, Oid type, bool known, Datum value);

/* The same for a number of type bigint. */
extern void hyb_result_put_int8(HybResultRow *row, bool known, int64 number);

/* Returns the row, to a function that returns one. */
extern Datum hyb_result_datum(HybResultRow *row);

/* Adds the row to the set, and begins the next one. */
extern void hyb_result_add(HybResultRow *row);

#endif							/* HYB_RESULT_ROW_H */
