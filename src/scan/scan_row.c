/*
 * scan_row.c
 *		Row comparisons, `(a, b) > (5, 7)`, as scan keys.
 *
 * A row comparison bounds its first column, `a >= 5`, and takes part as such in
 * whatever is done with conditions on columns (scan_keys.c).  Where that bound
 * becomes an end of the range, values of the columns that follow in the index
 * move the end to the very place, as far as these columns are sorted in the
 * direction of the first, and the constants are known as values of the columns'
 * types.  A qualifier does the rest; it is also needed where NULLs of a later
 * column lie within the range: they match no comparison that gets to them.
 *
 * As in SQL the first pair of values that are not equal decides, and a
 * comparison that gets to a NULL does not match: a comparison with (5, NULL)
 * is the strict one with 5 alone.
 *
 * From PostgreSQL 18 on the executor makes one key of it, whose argument is an
 * array of keys for the members.  Before, it makes them for btree only, and gets
 * a plain condition for each member here, with the comparison function for rows
 * in place of the operator's (rowcompare.c), or that for images of rows in the
 * last one.  No operator has these functions, which do not return a boolean.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "scan/scan.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

int
hyb_row_keys(const ScanKeyData *keys, int n)
{
	if (keys->sk_flags & SK_ROW_HEADER)
		return 1;
	for (int i = 1; i < n; i++)
	{
		if (keys[i].sk_func.fn_oid == F_BTRECORDIMAGECMP)
			return i + 1;
	}
	return n;
}

static bool
is_last(const ScanKeyData *member)
{
	return (member->sk_flags & SK_ROW_END) != 0 ||
		member->sk_func.fn_oid == F_BTRECORDIMAGECMP;
}

/* Does the comparison bound this column from above, in index order? */
static bool
is_upper(const HybScan *so, const HybRowComparison *row, int column)
{
	return row->less != so->ix->desc->cols[column].desc;
}

/* What compares a column with constants that are no values of its type. */
static void
look_up_order(const HybScan *so, HybRowMember *member)
{
	const HybColumn *col = &so->ix->desc->cols[member->column];
	Relation	rel = so->ix->rel;
	Oid			subtype = member->key->sk_subtype;
	Oid			proc;

	if (subtype == InvalidOid || subtype == col->opcintype)
	{
		fmgr_info_copy(&member->order, col->order_proc, CurrentMemoryContext);
		return;
	}
	proc = get_opfamily_proc(rel->rd_opfamily[member->column], col->opcintype,
							 subtype, BTORDER_PROC);
	if (!RegProcedureIsValid(proc))
		elog(ERROR, "missing support function %d(%u,%u) in opfamily %u",
			 BTORDER_PROC, col->opcintype, subtype,
			 rel->rd_opfamily[member->column]);
	fmgr_info(proc, &member->order);
}

/* The constant of a member; *lo and *hi as hyb_place_constant leaves them. */
static HybConstantPlace
add_member(HybScan *so, HybRowComparison *row, ScanKey key, Datum *lo,
		   Datum *hi)
{
	HybRowMember *member = &row->members[row->nmembers++];
	int			column = key->sk_attno - 1;
	HybConstantPlace conversion;

	if (column < 0 || column >= so->ix->desc->nkeys)
		elog(ERROR, "scan key on attribute %d of index \"%s\"",
			 key->sk_attno, RelationGetRelationName(so->ix->rel));
	member->column = column;
	member->key = key;
	conversion = hyb_place_constant(&so->ix->desc->cols[column],
									key->sk_subtype, key->sk_argument,
									lo, hi);
	if (conversion == HYB_CONSTANT_EXACT)
	{
		member->value = hyb_encode_constant(so, column, *lo, false);
		member->exact = member->value.len <= HYB_MAX_CONSTANT_SIZE;
		if (!member->exact)
			conversion = HYB_CONSTANT_UNKNOWN;
	}
	if (!member->exact)
		look_up_order(so, member);
	return conversion;
}

/* What a row comparison says about its first column. */
static void
bound_first(HybScan *so, const HybRowComparison *row, HybConstantPlace conversion,
			Datum lo, Datum hi)
{
	const HybRowMember *member = &row->members[row->first];
	bool		upper = is_upper(so, row, member->column);
	HybScanConst c;

	switch (conversion)
	{
		case HYB_CONSTANT_EXACT:
			hyb_tighten(so, member->column, upper, member->value,
						row->strict && row->first == row->nmembers - 1);
			break;
		case HYB_CONSTANT_BETWEEN:
		case HYB_CONSTANT_BESIDE:
			c = hyb_encode_constant(so, member->column, row->less ? lo : hi,
									false);
			if (c.len <= HYB_MAX_CONSTANT_SIZE)
				hyb_tighten(so, member->column, upper, c, false);
			break;
		case HYB_CONSTANT_BELOW:
			so->empty |= row->less;
			break;
		case HYB_CONSTANT_ABOVE:
			so->empty |= !row->less;
			break;
		case HYB_CONSTANT_UNKNOWN:
			break;
	}
}

void
hyb_row_process(HybScan *so, ScanKey keys)
{
	ScanKey		key = (keys->sk_flags & SK_ROW_HEADER) ?
		(ScanKey) DatumGetPointer(keys->sk_argument) : keys;
	StrategyNumber strategy = keys->sk_strategy;
	HybRowComparison *row;
	HybConstantPlace conversion = HYB_CONSTANT_UNKNOWN;
	Datum		first_lo = (Datum) 0;
	Datum		first_hi = (Datum) 0;
	int			nmembers = 1;

	if (key->sk_flags & SK_ISNULL)
	{
		so->empty = true;
		return;
	}
	while (!is_last(&key[nmembers - 1]))
		nmembers++;

	if (so->nrows == 0)
		so->rows = palloc(so->scan->numberOfKeys * sizeof(HybRowComparison));
	row = &so->rows[so->nrows++];
	row->less = strategy == BTLessStrategyNumber ||
		strategy == BTLessEqualStrategyNumber;
	row->strict = strategy == BTLessStrategyNumber ||
		strategy == BTGreaterStrategyNumber;
	row->first = 0;
	row->nmembers = 0;
	row->members = palloc0(nmembers * sizeof(HybRowMember));

	/* one after the other, so that the constants lie so too */
	for (int i = 0; i < nmembers; i++)
	{
		Datum		lo;
		Datum		hi;

		if (key[i].sk_flags & SK_ISNULL)
		{
			row->strict = true;
			break;
		}
		if (i == 0)
			conversion = add_member(so, row, &key[i], &first_lo, &first_hi);
		else
			(void) add_member(so, row, &key[i], &lo, &hi);
	}
	Assert(row->nmembers >= 1 && row->nmembers <= nmembers);
	so->columns[row->members[0].column].used = true;
	so->columns[row->members[0].column].notnull = true;
	bound_first(so, row, conversion, first_lo, first_hi);
}

/*
 * The column has just the value of its lower bound, and so has the first member
 * of a comparison: the next member is to be looked at.  Where that is a column
 * that has been settled before, the comparison remains a qualifier.
 */
bool
hyb_rows_reduce(HybScan *so, int column)
{
	for (int i = 0; i < so->nrows; i++)
	{
		HybRowComparison *row = &so->rows[i];
		HybRowMember *member = &row->members[row->first];

		if (row->first == row->nmembers || member->column != column ||
			!member->exact ||
			hyb_compare_constants(so, column, &member->value,
								  &so->columns[column].lower.value) != 0)
			continue;
		row->first++;
		Assert(row->first <= row->nmembers);
		member++;
		if (row->first == row->nmembers)
		{
			if (row->strict)
				return false;
			continue;
		}
		if (member->column <= column)
			continue;
		so->columns[member->column].used = true;
		so->columns[member->column].notnull = true;
		if (member->exact)
			bound_first(so, row, HYB_CONSTANT_EXACT, (Datum) 0, (Datum) 0);
	}
	return true;
}

/*
 * Move an end of the range, which is at the comparison's first value, to the
 * place of as many values as possible.  Returns true if the comparison holds
 * for all of the range.
 */
static bool
extend_bound(HybScan *so, const HybRowComparison *row, HybScanBound *bound,
			 uint32 size)
{
	HybKeyDesc *desc = so->ix->desc;
	const HybRowMember *member = &row->members[row->first];
	bool		upper = is_upper(so, row, so->nprefix);
	bool		nulls_inside = false;

	size += bound->value.len;
	for (int i = row->first + 1; i < row->nmembers; i++)
	{
		int			column = so->nprefix + bound->more + 1;

		member++;
		if (!member->exact || member->column != column ||
			is_upper(so, row, column) != upper ||
			size + member->value.len > HYB_MAX_BOUND_SIZE)
			return false;
		Assert(member->value.off == bound->value.off + bound->value.len);
		bound->more++;
		bound->value.len += member->value.len;
		size += member->value.len;
		nulls_inside |= desc->cols[column].nulls_first == upper;
	}
	Assert(size <= HYB_MAX_BOUND_SIZE);
	bound->strict = row->strict;
	return !nulls_inside;
}

/* Does an end of the range have the comparison's first value? */
static bool
is_bound_of(const HybScan *so, const HybRowComparison *row,
			const HybScanBound *bound)
{
	const HybRowMember *member = &row->members[row->first];

	return so->has_range && member->column == so->nprefix && member->exact &&
		bound->set && bound->more == 0 &&
		bound->value.off == member->value.off;
}

void
hyb_rows_settle(HybScan *so, uint32 size)
{
	for (int i = 0; i < so->nrows; i++)
	{
		HybRowComparison *row = &so->rows[i];
		HybScanColumn *sc;
		HybScanBound *bound;

		if (row->first == row->nmembers)
			continue;
		sc = &so->columns[row->members[row->first].column];
		bound = is_upper(so, row, row->members[row->first].column) ?
			&sc->upper : &sc->lower;
		if (is_bound_of(so, row, bound) && extend_bound(so, row, bound, size))
			continue;

		for (int j = row->first; j < row->nmembers; j++)
		{
			HybRowMember *member = &row->members[j];

			if (member->exact)
				hyb_constant_value(so, member->column, &member->value,
								   &member->val);
		}
		hyb_add_qual(so, HYB_QUAL_ROW,
					 row->members[row->first].column)->row = row;
	}
}

/* -1, 0 or 1 as the column's value is below the member's, in SQL's order */
static int
compare_member(HybScan *so, HybRowMember *member, const HybValue *val)
{
	const HybColumn *col = &so->ix->desc->cols[member->column];
	MemoryContext old;
	int			cmp;

	if (member->exact)
	{
		cmp = hyb_value_compare(col, val, &member->val);
		return col->desc ? -cmp : cmp;
	}
	old = MemoryContextSwitchTo(so->qual_context);
	cmp = DatumGetInt32(FunctionCall2Coll(&member->order, col->collation,
										  hyb_value_decode(col, val),
										  member->key->sk_argument));
	MemoryContextSwitchTo(old);
	return cmp;
}

bool
hyb_row_qualifies(HybScan *so, const HybRowComparison *row,
				  const HybValue *vals)
{
	Assert(row->first < row->nmembers);
	for (int i = row->first; i < row->nmembers; i++)
	{
		HybRowMember *member = &row->members[i];
		int			cmp;

		if (vals[member->column].isnull)
			return false;
		cmp = compare_member(so, member, &vals[member->column]);
		if (cmp != 0)
			return (cmp < 0) == row->less;
	}
	return !row->strict;
}
