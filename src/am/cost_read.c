/*
 * cost_read.c
 *		What reading entries takes, for cost estimates: merging entries of the
 *		log in, and making values for index-only scans.
 */
#include "base/compat.h"

#include "am/cost.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

/*
 * What an entry takes that a scan returns, in cpu_operator_cost beside
 * cpu_index_tuple_cost; and making the values of an index-only scan from it.  Fixed-length values are integers plus something, or bytes; of strings the
 * prefix is that of other rows, and what remains is coded.
 *
 * Measured on PostgreSQL 15 with tables in memory, in nanoseconds a row.  The
 * unit is what a sequential scan takes for what it is charged: 9.2 for
 * cpu_operator_cost = 0.0025.
 *
 *		index-only scan over			btree	hybrid	charged here
 *		int8, ascending					78		83		84
 *		int4, int4						79		104		94
 *		uuid							79		120		121
 *		text of 33 bytes, random		92		286		304
 */
#define ENTRY_OPERATORS			1.0
#define BYVAL_OPERATORS			1.0
#define FIXED_OPERATORS			2.0
#define STRING_OPERATORS		5.0
#define STRING_BYTE_OPERATORS	0.5

/* Merging in an entry of the log; pinning its page for an index-only scan */
#define MERGE_OPERATORS			1.0
#define LOG_PIN_OPERATORS		40.0

/* Bytes of a column of variable length, on average. */
static double
average_width(PlannerInfo *root, const IndexOptInfo *index, int column)
{
	const RelOptInfo *rel = index->rel;
	AttrNumber	attno = index->indexkeys[column];
	int			width = 0;

	if (attno >= rel->min_attr && attno <= rel->max_attr)
	{
		width = rel->attr_widths[attno - rel->min_attr];
		if (width <= 0)
			width = get_attavgwidth(planner_rt_fetch(rel->relid, root)->relid,
									attno);
	}
	return width > 0 ? width : get_typavgwidth(TEXTOID, -1);
}

/* Making the values of an index-only scan from an entry. */
static double
decoding_operators(PlannerInfo *root, const IndexOptInfo *index)
{
	double		operators = 0;
	int			column = 0;
	ListCell   *lc;

	foreach(lc, index->indextlist)
	{
		int16		length;
		bool		byval;

		get_typlenbyval(exprType((Node *) lfirst_node(TargetEntry, lc)->expr),
						&length, &byval);
		if (byval)
			operators += BYVAL_OPERATORS;
		else if (length > 0)
			operators += FIXED_OPERATORS;
		else
			operators += STRING_OPERATORS +
				STRING_BYTE_OPERATORS * average_width(root, index, column);
		column++;
	}
	return operators;
}

/*
 * What reading entries takes beyond cpu_index_tuple_cost.  Qualifiers see values
 * as they are stored, at the cost of their operators.
 */
Cost
hyb_reading_cost(PlannerInfo *root, const IndexPath *path,
				 const GenericCosts *costs, const HybSizes *sizes)
{
	double		entries = sizes->static_entries + sizes->dynamic_entries;
	double		in_log = entries > 0 ? sizes->dynamic_entries / entries : 0;
	double		returned = costs->indexSelectivity *
		path->indexinfo->rel->tuples;
	double		operators = costs->num_sa_scans * costs->numIndexTuples *
		in_log * MERGE_OPERATORS;

	operators += returned * ENTRY_OPERATORS;
	if (path->path.pathtype == T_IndexOnlyScan)
		operators += returned * (in_log * LOG_PIN_OPERATORS +
								 decoding_operators(root, path->indexinfo));
	return operators * cpu_operator_cost;
}
