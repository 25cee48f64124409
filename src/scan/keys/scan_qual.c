/*
 * scan_qual.c
 *		Row comparisons, `(a, b) > (5, 7)`, and the qualifiers of a scan.
 *
 * A row comparison bounds its first column: `a >= 5`.  That bound is treated
 * like any other condition on the column (scan_keys.c).  Where the bound becomes
 * an end of the range, values of the next index columns move the end to the very
 * place.  This goes on while these columns are sorted in the direction of the
 * first one and the constants are known as values of the columns' types.  A
 * qualifier does the rest.  It is also needed where NULLs of a later column lie
 * within the range: a comparison that gets to a NULL does not match.
 *
 * As in SQL the first pair of values that are not equal decides.  So a comparison
 * with (5, NULL) is the strict one with 5 alone.
 *
 * From PostgreSQL 18 on the executor makes one key of a row comparison, whose
 * argument is an array of keys for the members.  Before, the executor does so for
 * btree only.  This access method then gets a plain condition for each member,
 * with the comparison function of rows in place of the operator's
 * (rowcompare.c), or of images of rows in the last member.  No operator has
 * these functions, since they do not return a boolean.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "base/memory.h"
#include "scan/keys/conditions.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Qualifiers that there is room for once there is one. */
#define FIRST_QUALS	4

/* ---- row comparisons ---- */

HybScanQual *
hyb_add_qual(HybScanKeys *keys, HybScanQualKind kind, int column)
{
	HybScanQual *qual;

	if (keys->nquals >= keys->quals_alloc)
	{
		keys->quals_alloc = Max(keys->quals_alloc * 2, FIRST_QUALS);
		keys->quals = hyb_grow(keys->ix->context, keys->quals, keys->quals_alloc,
							   sizeof(HybScanQual));
	}
	qual = &keys->quals[keys->nquals++];
	memset(qual, 0, sizeof(HybScanQual));
	qual->kind = kind;
	qual->column = column;
	return qual;
}

void
hyb_add_function_qual(HybScanKeys *keys, ScanKey key, const Datum *elems, int nelems)
{
	HybScanQual *qual = hyb_add_qual(keys, HYB_QUAL_FUNCTION, key->sk_attno - 1);

	qual->key = key;
	qual->elems = elems;
	qual->nelems = nelems;
}

int
hyb_row_keys(const ScanKeyData *header, int n)
{
	if (header->sk_flags & SK_ROW_HEADER)
		return 1;
	for (int i = 1; i < n; i++)
	{
		if (header[i].sk_func.fn_oid == F_BTRECORDIMAGECMP)
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
is_upper(const HybScanKeys *keys, const HybRowComparison *row, int column)
{
	return row->less != keys->ix->desc->cols[column].desc;
}

/* Look up what compares a column with constants of other types. */
static void
look_up_order(const HybScanKeys *keys, HybRowMember *member)
{
	const HybColumn *col = &keys->ix->desc->cols[member->column];
	Relation	rel = keys->ix->rel;
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
add_member(HybScanKeys *keys, HybRowComparison *row, ScanKey key, Datum *lo,
		   Datum *hi)
{
	HybRowMember *member = &row->members[row->nmembers++];
	int			column = key->sk_attno - 1;
	HybConstantPlace conversion;

	if (column < 0 || column >= keys->ix->desc->nkeys)
		elog(ERROR, "scan key on attribute %d of index \"%s\"",
			 key->sk_attno, RelationGetRelationName(keys->ix->rel));
	member->column = column;
	member->key = key;
	conversion = hyb_place_constant(&keys->ix->desc->cols[column],
									key->sk_subtype, key->sk_argument,
									lo, hi);
	if (conversion == HYB_CONSTANT_EXACT)
	{
		member->value = hyb_encode_constant(keys, column, *lo, false);
		member->exact = member->value.len <= HYB_MAX_CONSTANT_SIZE;
		if (!member->exact)
			conversion = HYB_CONSTANT_UNKNOWN;
	}
	if (!member->exact)
		look_up_order(keys, member);
	return conversion;
}

/* What a row comparison says about its first column. */
static void
bound_first(HybScanKeys *keys, const HybRowComparison *row, HybConstantPlace conversion,
			Datum lo, Datum hi)
{
	const HybRowMember *member = &row->members[row->first];
	bool		upper = is_upper(keys, row, member->column);
	HybScanConst c;

	switch (conversion)
	{
		case HYB_CONSTANT_EXACT:
			hyb_tighten(keys, member->column, upper, member->value,
						row->strict && row->first == row->nmembers - 1);
			break;
		case HYB_CONSTANT_BETWEEN:
		case HYB_CONSTANT_BESIDE:
			c = hyb_encode_constant(keys, member->column, row->less ? lo : hi,
									false);
			if (c.len <= HYB_MAX_CONSTANT_SIZE)
				hyb_tighten(keys, member->column, upper, c, false);
			break;
		case HYB_CONSTANT_BELOW:
			keys->empty |= row->less;
			break;
		case HYB_CONSTANT_ABOVE:
			keys->empty |= !row->less;
			break;
		case HYB_CONSTANT_UNKNOWN:
			break;
	}
}

void
hyb_row_process(HybScanKeys *keys, ScanKey header)
{
	ScanKey		key = (header->sk_flags & SK_ROW_HEADER) ?
		(ScanKey) DatumGetPointer(header->sk_argument) : header;
	StrategyNumber strategy = header->sk_strategy;
	HybRowComparison *row;
	HybConstantPlace conversion = HYB_CONSTANT_UNKNOWN;
	Datum		first_lo = (Datum) 0;
	Datum		first_hi = (Datum) 0;
	int			nmembers = 1;

	if (key->sk_flags & SK_ISNULL)
	{
		keys->empty = true;
		return;
	}
	while (!is_last(&key[nmembers - 1]))
		nmembers++;

	if (keys->nrows == 0)
		keys->rows = palloc(keys->ngiven * sizeof(HybRowComparison));
	row = &keys->rows[keys->nrows++];
	row->less = strategy == BTLessStrategyNumber ||
		strategy == BTLessEqualStrategyNumber;
	row->strict = strategy == BTLessStrategyNumber ||
		strategy == BTGreaterStrategyNumber;
	row->first = 0;
	row->nmembers = 0;
	row->members = palloc0(nmembers * sizeof(HybRowMember));

	/* one after the other, so that their constants follow each other */
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
			conversion = add_member(keys, row, &key[i], &first_lo, &first_hi);
		else
			(void) add_member(keys, row, &key[i], &lo, &hi);
	}
	Assert(row->nmembers >= 1 && row->nmembers <= nmembers);
	keys->columns[row->members[0].column].used = true;
	keys->columns[row->members[0].column].notnull = true;
	bound_first(keys, row, conversion, first_lo, first_hi);
}

bool
hyb_rows_reduce(HybScanKeys *keys, int column)
{
	for (int i = 0; i < keys->nrows; i++)
	{
		HybRowComparison *row = &keys->rows[i];
		HybRowMember *member = &row->members[row->first];

		if (row->first == row->nmembers || member->column != column ||
			!member->exact ||
			hyb_compare_constants(keys, column, &member->value,
								  &keys->columns[column].lower.value) != 0)
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
		keys->columns[member->column].used = true;
		keys->columns[member->column].notnull = true;
		if (member->exact)
			bound_first(keys, row, HYB_CONSTANT_EXACT, (Datum) 0, (Datum) 0);
	}
	return true;
}

/*
 * Move an end of the range, which is at the comparison's first value, to the
 * place of as many values as possible.  Returns true if the comparison holds
 * for all of the range.
 */
static bool
extend_bound(HybScanKeys *keys, const HybRowComparison *row, HybScanBound *bound,
			 uint32 size)
{
	HybKeyDesc *desc = keys->ix->desc;
	const HybRowMember *member = &row->members[row->first];
	bool		upper = is_upper(keys, row, keys->nprefix);
	bool		nulls_inside = false;

	size += bound->value.len;
	for (int i = row->first + 1; i < row->nmembers; i++)
	{
		int			column = keys->nprefix + bound->more + 1;

		member++;
		if (!member->exact || member->column != column ||
			is_upper(keys, row, column) != upper ||
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
is_bound_of(const HybScanKeys *keys, const HybRowComparison *row,
			const HybScanBound *bound)
{
	const HybRowMember *member = &row->members[row->first];

	return keys->has_range && member->column == keys->nprefix && member->exact &&
		bound->set && bound->more == 0 &&
		bound->value.off == member->value.off;
}

void
hyb_rows_settle(HybScanKeys *keys, uint32 size)
{
	for (int i = 0; i < keys->nrows; i++)
	{
		HybRowComparison *row = &keys->rows[i];
		HybScanColumn *sc;
		HybScanBound *bound;

		if (row->first == row->nmembers)
			continue;
		sc = &keys->columns[row->members[row->first].column];
		bound = is_upper(keys, row, row->members[row->first].column) ?
			&sc->upper : &sc->lower;
		if (is_bound_of(keys, row, bound) && extend_bound(keys, row, bound, size))
			continue;

		for (int j = row->first; j < row->nmembers; j++)
		{
			HybRowMember *member = &row->members[j];

			if (member->exact)
				(void) hyb_constant_value(keys, member->column, &member->value,
										  &member->val);
		}
		hyb_add_qual(keys, HYB_QUAL_ROW,
					 row->members[row->first].column)->row = row;
	}
}

/* ---- qualifiers ---- */

/* -1, 0 or 1 as the column's value is below the member's, in SQL's order */
static int
compare_member(HybScanKeys *keys, HybRowMember *member, const HybValue *val)
{
	const HybColumn *col = &keys->ix->desc->cols[member->column];
	MemoryContext old;
	int			cmp;

	if (member->exact)
	{
		cmp = hyb_value_compare(col, val, &member->val);
		return col->desc ? -cmp : cmp;
	}
	old = MemoryContextSwitchTo(keys->qual_context);
	cmp = DatumGetInt32(FunctionCall2Coll(&member->order, col->collation,
										  hyb_value_decode(col, val),
										  member->key->sk_argument));
	MemoryContextSwitchTo(old);
	return cmp;
}

static bool
row_qualifies(HybScanKeys *keys, const HybRowComparison *row,
			  const HybValue *vals)
{
	Assert(row->first < row->nmembers);
	for (int i = row->first; i < row->nmembers; i++)
	{
		HybRowMember *member = &row->members[i];
		int			cmp;

		if (vals[member->column].isnull)
			return false;
		cmp = compare_member(keys, member, &vals[member->column]);
		if (cmp != 0)
			return (cmp < 0) == row->less;
	}
	return !row->strict;
}

static bool
function_qual(HybScanKeys *keys, const HybColumn *col, const HybScanQual *qual,
			  const HybValue *val)
{
	ScanKey		key = qual->key;
	MemoryContext old = MemoryContextSwitchTo(keys->qual_context);
	Datum		value = hyb_value_decode(col, val);
	bool		pass = false;

	for (int i = 0; i < qual->nelems && !pass; i++)
		pass = DatumGetBool(FunctionCall2Coll(&key->sk_func,
											  key->sk_collation,
											  value, qual->elems[i]));
	MemoryContextSwitchTo(old);
	return pass;
}

bool
hyb_scan_qualifies(HybScanKeys *keys, const HybValue *vals)
{
	for (int i = 0; i < keys->nquals; i++)
	{
		const HybScanQual *qual = &keys->quals[i];
		const HybColumn *col = &keys->ix->desc->cols[qual->column];
		const HybValue *val = &vals[qual->column];
		bool		pass = false;
		int			cmp;

		Assert(qual->column < keys->ix->desc->nkeys);
		if (val->isnull || qual->kind == HYB_QUAL_NULL)
		{
			if (val->isnull && qual->kind == HYB_QUAL_NULL)
				continue;
			return false;
		}
		switch (qual->kind)
		{
			case HYB_QUAL_NULL:
				break;
			case HYB_QUAL_NOT_NULL:
				pass = true;
				break;
			case HYB_QUAL_LOWER:
				cmp = hyb_value_compare(col, val, &qual->val);
				pass = cmp > 0 || (cmp == 0 && !qual->strict);
				break;
			case HYB_QUAL_UPPER:
				cmp = hyb_value_compare(col, val, &qual->val);
				pass = cmp < 0 || (cmp == 0 && !qual->strict);
				break;
			case HYB_QUAL_ARRAY:
				(void) hyb_array_search(col, qual->array, val, &pass);
				break;
			case HYB_QUAL_ROW:
				pass = row_qualifies(keys, qual->row, vals);
				break;
			case HYB_QUAL_FUNCTION:
				pass = function_qual(keys, col, qual, val);
				break;
		}
		if (!pass)
			return false;
	}
	return true;
}
