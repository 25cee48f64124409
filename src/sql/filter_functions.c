/*
 * filter_functions.c
 *		SQL functions that answer from filters: hybrid_may_contain and
 *		hybrid_approx_count.
 *
 * Casts of their arguments run as the caller, everything else as the table's owner.
 */
#include "base/compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "filter/filter.h"
#include "filter/filter_choice.h"
#include "log/log.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "sql/inspect.h"
#include "storage/bufmgr.h"
#include "store/handle.h"
#include "store/meta.h"
#include "tree/descend.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

PG_FUNCTION_INFO_V1(hybrid_may_contain);
PG_FUNCTION_INFO_V1(hybrid_approx_count);

/*
 * hybrid_approx_count counts entries of the log in batches of COUNT_BATCH, and stops
 * at COUNT_DYNAMIC.
 */
#define COUNT_BATCH		512
#define COUNT_DYNAMIC	8192

/* ---- keys ---- */

/* Values for the first key columns of an index, of the columns' types. */
typedef struct KeyValues
{
	int			n;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} KeyValues;

/*
 * Returns the type of values of a key column: the operator class's, or the column's
 * if that class is for many types.
 */
static Oid
key_type(Relation index, int column)
{
	Oid			opcintype = index->rd_opcintype[column];

	return getBaseType(get_typtype(opcintype) == TYPTYPE_PSEUDO ?
					   TupleDescAttr(RelationGetDescr(index), column)->atttypid :
					   opcintype);
}

/* Returns true if the owner of a type has all privileges of the caller. */
static bool
is_trusted(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(getBaseType(type)));
	bool		trusted;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	trusted = has_privs_of_role(((Form_pg_type) GETSTRUCT(tuple))->typowner,
								GetUserId());
	ReleaseSysCache(tuple);
	return trusted;
}

/*
 * Fails if a cast could run code of a role that the caller need not trust.  The owners
 * of both types choose the functions of casts, and those of domains in composite
 * types, arrays and ranges.  The server's code reads literals of enums and base types.
 */
static void
check_owners(Oid type, Oid target)
{
	char		kind = get_typtype(target);

	if ((is_trusted(type) && is_trusted(target)) ||
		(type == UNKNOWNOID && !type_is_array(target) &&
		 (kind == TYPTYPE_ENUM || kind == TYPTYPE_BASE)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to cast a value of type %s to type %s implicitly",
					format_type_be(type), format_type_be(target)),
			 errdetail("One of the types belongs to a role that lacks privileges of yours, and the cast could run functions of that role."),
			 errhint("Cast the value to type %s explicitly if you trust that role.",
					 format_type_be(target))));
}

/* Returns the cast that the parser would choose in an assignment, or NULL. */
static Node *
find_cast(Oid type, Datum value, Oid target)
{
	int16		typlen;
	bool		typbyval;
	Node	   *expr;

	get_typlenbyval(type, &typlen, &typbyval);
	expr = (Node *) makeConst(type, -1, get_typcollation(type), typlen, value,
							  false, typbyval);
	expr = coerce_to_target_type(NULL, expr, type, target, -1,
								 COERCION_IMPLICIT, COERCE_IMPLICIT_CAST, -1);
	if (expr != NULL)
		assign_expr_collations(NULL, expr);
	return expr;
}

/* Adds a value, cast to the type of the next key column.  The cast may return NULL. */
static void
add_value(Relation index, Oid type, Datum value, KeyValues *keys)
{
	Oid			target = key_type(index, keys->n);
	Node	   *expr;
	Const	   *result;

	Assert(OidIsValid(type));
	keys->values[keys->n] = value;
	keys->isnull[keys->n] = false;
	if (!IsBinaryCoercible(type, target))
	{
		check_owners(type, target);
		expr = find_cast(type, value, target);
		if (expr == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("a value of type %s cannot be sought in index \"%s\"",
							format_type_be(type), RelationGetRelationName(index)),
					 errdetail("Its column is of type %s.", format_type_be(target))));
		if (!IsA(expr, Const))
			expr = (Node *) evaluate_expr((Expr *) expr, target, -1,
										  get_typcollation(target));
		result = castNode(Const, expr);
		keys->values[keys->n] = result->constvalue;
		keys->isnull[keys->n] = result->constisnull;
	}
	keys->n++;
}

/*
 * Returns the type of an argument.  A selectivity estimator calls the function without
 * an expression: then the type is unknown, and the value may be of any type.
 */
static Oid
argument_type(FunctionCallInfo fcinfo, int arg)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, arg);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine data type for argument %d", arg + 1)));
	return type;
}

static void
add_argument(FunctionCallInfo fcinfo, int arg, Relation index, KeyValues *keys)
{
	if (PG_ARGISNULL(arg))
		keys->isnull[keys->n++] = true;
	else
		add_value(index, argument_type(fcinfo, arg), PG_GETARG_DATUM(arg), keys);
}

static void
check_columns(Relation index, int ncols)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	if (ncols > nkeys)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_plural("index \"%s\" has only %d key column",
							   "index \"%s\" has only %d key columns",
							   nkeys, RelationGetRelationName(index), nkeys)));
}

/*
 * Adds the values of a row but for dropped columns.  The row may have more columns
 * than any index.
 */
static void
add_row(Relation index, HeapTupleHeader row, KeyValues *keys)
{
	TupleDesc	tupdesc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row),
												 HeapTupleHeaderGetTypMod(row));
	HeapTupleData tuple = {.t_data = row,.t_len = HeapTupleHeaderGetDatumLength(row)};
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc(tupdesc->natts * sizeof(bool));
	int			n = 0;

	for (int i = 0; i < tupdesc->natts; i++)
		n += !TupleDescAttr(tupdesc, i)->attisdropped;
	check_columns(index, n);
	heap_deform_tuple(&tuple, tupdesc, values, isnull);
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (att->attisdropped)
			continue;
		if (!isnull[i])
			add_value(index, att->atttypid, values[i], keys);
		if (isnull[i] || keys->isnull[keys->n - 1])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a row that is a bound must not have NULLs")));
	}
	ReleaseTupleDesc(tupdesc);
}

/* Returns true if an argument of this type is a row, not a value of column 1. */
static bool
is_row(Relation index, Oid type)
{
	Oid			target = key_type(index, 0);

	return type == RECORDOID ||
		(type_is_rowtype(type) &&
		 !can_coerce_type(1, &type, &target, COERCION_IMPLICIT));
}

static void
encode_keys(const HybIndex *ix, const KeyValues *keys, HybBuf *out)
{
	for (int i = 0; i < keys->n; i++)
		hyb_key_encode_column(&ix->desc->cols[i], keys->values[i],
							  keys->isnull[i], out);
}

static void
set_range_end(HybPos *pos, const HybBuf *key, int ncols, HybTie tie)
{
	if (key->len > HYB_MAX_ENTRY_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the key is longer than any key of a hybrid index")));
	hyb_pos_set(pos, key, ncols, tie);
}

/* ---- hybrid_may_contain ---- */

/* Has a leaf without a filter items between two positions?  Unlocks it. */
static bool
leaf_has_range(HybIndex *ix, HybDescent *descent, const HybPos *low, const HybPos *high)
{
	HybLeaf		leaf = {0};
	int			first;
	int			last;
	int			row;

	hyb_leaf_open(&leaf, ix->desc, descent->page, ix->rel, descent->block);
	first = hyb_leaf_search(&leaf, low, &row);
	last = hyb_leaf_search(&leaf, high, &row);
	while (first < last && hyb_leaf_is_tombstone(&leaf, first))
		first++;
	hyb_descent_release(descent);
	hyb_leaf_close(&leaf);
	return first < last;
}

/*
 * Finds out whether a static level may hold something in the range of `fetch`.
 * Returns false if the version is no longer current.
 */
static bool
level_may_contain(HybIndex *ix, const HybVersion *version, int level,
				  const HybFetch *fetch, bool *found)
{
	HybDescent	descent = {0};
	HybPos		pos = *fetch->lo;
	HybBuf		pos_key = {0};
	HybSought	sought = {
		.level = level,
		.pos = &pos,
		.want_fence = true,
		.bound = fetch->hi,
		.stop_at_filter = true
	};
	HybFilterAsker asker = fetch->lo->ncols == ix->desc->nkeys ? HYB_ASK_POINT :
		HYB_ASK_RANGE;

	*found = false;
	if (version->levels[level].height == 0)
		return true;
	while (hyb_static_descend(ix, version, &sought, &descent))
	{
		if (BufferIsValid(descent.buf))
			*found = leaf_has_range(ix, &descent, &pos, fetch->hi);
		else
		{
			*found = !descent.skipped;
			hyb_filter_note(ix, asker, level,
							*found ? HYB_PROBE_HIT : HYB_PROBE_NEGATIVE);
		}
		if (*found || hyb_pos_compare(ix->desc, &descent.fence, fetch->hi) >= 0)
			return true;

		/* copied, since the next descent reuses the fence's memory */
		hyb_pos_copy(&pos, &pos_key, &descent.fence);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/*
 * hybrid_may_contain(index regclass, VARIADIC keys "any") RETURNS boolean
 *
 * False if no entry has these values in its first key columns.  NULL is a key.
 */
Datum
hybrid_may_contain(PG_FUNCTION_ARGS)
{
	HybInspected inspected;
	HybIndex   *ix;
	HybVersion *version = palloc(sizeof(HybVersion));
	HybFetched	batch = {0};
	KeyValues	keys = {0};
	HybBuf		key = {0};
	HybPos		low;
	HybPos		high;
	HybFetch	fetch = {
		.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
		.lo = &low,
		.hi = &high,
		.limit = 1
	};
	int			ncols = PG_NARGS() - 1;
	bool		valid;
	bool		found;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (get_fn_expr_variadic(fcinfo->flinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys cannot be given as a VARIADIC array")));
	hyb_inspect_open_as_caller(PG_GETARG_OID(0), AccessShareLock,
							   HYB_ACCESS_KEYS, &inspected);
	check_columns(inspected.index, ncols);
	for (int i = 1; i <= ncols; i++)
		add_argument(fcinfo, i, inspected.index, &keys);
	hyb_inspect_become_owner(&inspected);
	ix = hyb_index_create_handle(inspected.index);
	encode_keys(ix, &keys, &key);

	/*
	 * No entry has this length.  But a shorter one may be equal to this key,
	 * or be this key, encoded by a dictionary or packed by another pglz.
	 */
	if (key.len > HYB_MAX_ENTRY_SIZE)
	{
		found = !ix->desc->all_mem || ix->desc->has_encoded;
		hyb_inspect_close(&inspected);
		PG_RETURN_BOOL(found);
	}
	hyb_pos_set(&low, &key, ncols, HYB_BEFORE);
	hyb_pos_set(&high, &key, ncols, HYB_AFTER);
	if (ncols == ix->desc->nkeys)
		fetch.point_hash = hyb_key_point_hash(ix->desc, key.data, key.len);
	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(ix, version);
		found = false;
		valid = true;
		for (int i = version->nlevels; i-- > 0 && valid && !found;)
			valid = level_may_contain(ix, version, i, &fetch, &found);
		if (valid && !found)
		{
			valid = hyb_log_fetch(ix, version, &fetch, &batch);
			found = batch.nitems > 0;
		}
	} while (!valid);
	hyb_fetched_free(&batch);
	hyb_inspect_close(&inspected);
	PG_RETURN_BOOL(found);
}

/* ---- hybrid_approx_count ---- */

typedef struct CountState
{
	HybIndex   *ix;
	const HybPos *low;
	const HybPos *high;
	double		count;
	BlockNumber stale;			/* the last block that was read */
	HybLeaf		leaf;
} CountState;

/*
 * Counts the entries of a leaf that lie in the range.  The filter knows keys, so it
 * answers only if each has one TID.  Returns false if the leaf is gone.
 */
static bool
count_range_leaf(CountState *state, const HybChild *child)
{
	HybIndex   *ix = state->ix;
	uint32		count;
	uint32		total;
	PGAlignedBlock page;
	int			first;
	int			last;
	int			row;

	if (hyb_filter_count_keys(ix, child, state->low, state->high, &count,
							  &total) && child->tids == total)
	{
		state->count += count;
		return true;
	}
	state->stale = child->block;
	if (!hyb_page_copy(ix, child->block, InvalidBlockNumber, HYB_PAGE_LEAF,
					   child->stamp, page.data))
		return false;
	hyb_leaf_open(&state->leaf, ix->desc, page.data, ix->rel, child->block);
	first = hyb_leaf_search(&state->leaf, state->low, &row);
	last = hyb_leaf_search(&state->leaf, state->high, &row);
	if (last > first)
		state->count += last - first;
	return true;
}

/*
 * Counts the entries below a child of this height.  `low_end` and `high_end` say that
 * the range may begin or end there.  Returns false if the version is not current.
 */
static bool
count_below(CountState *state, const HybChild *child, int height,
			bool low_end, bool high_end)
{
	HybIndex   *ix = state->ix;
	char	   *page;
	int			first = 0;
	int			last;

	CHECK_FOR_INTERRUPTS();
	if (!low_end && !high_end)
	{
		state->count += (double) child->tids;
		return true;
	}
	if (height == 0)
		return count_range_leaf(state, child);

	page = palloc(BLCKSZ);
	state->stale = child->block;
	if (!hyb_page_copy(ix, child->block, InvalidBlockNumber, HYB_PAGE_INNER,
					   child->stamp, page))
		return false;
	last = hyb_inner_count((Page) page) - 1;
	if (low_end)
		first = hyb_inner_search(ix->desc, (Page) page, state->low, false,
								 ix->rel, child->block);
	if (high_end)
		last = hyb_inner_search(ix->desc, (Page) page, state->high, true,
								ix->rel, child->block);
	for (int i = first; i <= last; i++)
	{
		HybChild	below;

		hyb_inner_get((Page) page, i, &below, ix->rel, child->block);
		if (!count_below(state, &below, height - 1, low_end && i == first,
						 high_end && i == last))
			return false;
	}
	pfree(page);
	return true;
}

/* Counts those of all levels, likewise. */
static bool
count_static(CountState *state, const HybVersion *version)
{
	state->count = 0;
	for (int i = 0; i < version->nlevels; i++)
	{
		const HybRoot *root = &version->levels[i];
		HybChild	child = {.block = root->block,.stamp = root->stamp,
		.filter_block = InvalidBlockNumber};

		if (root->height > 0 &&
			!count_below(state, &child, (int) root->height - 1, true, true))
			return false;
	}
	return true;
}

/*
 * Estimates the entries of the log between two positions.  Beyond COUNT_DYNAMIC it
 * assumes that the range has the same share of them as of the static entries.  Returns
 * false if the version is not current.
 */
static bool
estimate_log(HybIndex *ix, const HybVersion *version, const HybPos *low,
			 const HybPos *high, double share, double *count)
{
	double		all = (double) (version->active.nentries +
								version->frozen.nentries);
	HybFetched	batch;
	HybPos		from = *low;
	HybFetch	fetch = {
		.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
		.lo = &from,
		.hi = high,
		.limit = COUNT_BATCH
	};
	HybBuf		last = {0};
	bool		valid;

	*count = 0;
	memset(&batch, 0, sizeof(batch));
	do
	{
		CHECK_FOR_INTERRUPTS();
		valid = hyb_log_fetch(ix, version, &fetch, &batch);
		if (!valid)
			break;
		*count += batch.nitems;
		if (!batch.complete && batch.nitems > 0)
			hyb_fetched_last(ix, &batch, &from, &last);
	} while (!batch.complete && batch.nitems > 0 && *count < COUNT_DYNAMIC);
	if (valid && !batch.complete)
		*count += Max(all - *count, 0) * share;
	hyb_fetched_free(&batch);
	return valid;
}

/*
 * Reads the values where the range begins in the index, or ends if `end`.  There are
 * none if the bound is NULL.
 */
static void
read_bound(FunctionCallInfo fcinfo, Relation index, bool end, KeyValues *bound)
{
	bool		desc = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	int			arg = end == desc ? 1 : 2;
	Oid			type;

	bound->n = 0;
	if (PG_ARGISNULL(arg))
		return;
	type = argument_type(fcinfo, arg);
	if (is_row(index, type))
		add_row(index, PG_GETARG_HEAPTUPLEHEADER(arg), bound);
	else
	{
		add_value(index, type, PG_GETARG_DATUM(arg), bound);
		if (bound->isnull[0])
			bound->n = 0;
	}
}

/*
 * Returns the bound as a position.  Without a bound that is where the values of column
 * 1 begin or end, without NULLs.  Between two rows lies one range only if their columns
 * are sorted the same way.
 */
static void
bound_pos(const HybIndex *ix, const KeyValues *bound, bool end, HybPos *pos,
		  HybBuf *key)
{
	const HybColumn *col = &ix->desc->cols[0];

	if (bound->n == 0)
	{
		if (end != col->nulls_first)
			hyb_key_encode_column(col, (Datum) 0, true, key);
		set_range_end(pos, key, key->len > 0,
					  end == (key->len > 0) ? HYB_BEFORE : HYB_AFTER);
		return;
	}
	for (int i = 1; i < bound->n; i++)
		if (ix->desc->cols[i].desc != col->desc)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the first %d columns of index \"%s\" are not sorted in the same direction",
							bound->n, RelationGetRelationName(ix->rel))));
	encode_keys(ix, bound, key);
	set_range_end(pos, key, bound->n, end ? HYB_AFTER : HYB_BEFORE);
}

/*
 * hybrid_approx_count(index regclass, low anycompatible, high anycompatible)
 * RETURNS bigint
 *
 * Counts entries whose first key column lies between the two values, or their first
 * columns between two rows, both included.  NULL stands for no bound.
 */
Datum
hybrid_approx_count(PG_FUNCTION_ARGS)
{
	HybInspected inspected;
	HybIndex   *ix;
	HybVersion *version = palloc(sizeof(HybVersion));
	HybMetaPage meta;
	KeyValues	bounds[2] = {{0}, {0}};
	HybBuf		keys[2] = {{0}, {0}};
	HybPos		pos[2];
	CountState	state;
	double		static_tids;
	double		result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	hyb_inspect_open_as_caller(PG_GETARG_OID(0), AccessShareLock,
							   HYB_ACCESS_KEYS, &inspected);
	for (int i = 0; i < 2; i++)
		read_bound(fcinfo, inspected.index, i == 1, &bounds[i]);
	hyb_inspect_become_owner(&inspected);
	ix = hyb_index_create_handle(inspected.index);
	for (int i = 0; i < 2; i++)
		bound_pos(ix, &bounds[i], i == 1, &pos[i], &keys[i]);

	hyb_meta_copy(ix, &meta);
	memset(&state, 0, sizeof(state));
	state.ix = ix;
	state.low = &pos[0];
	state.high = &pos[1];
	static_tids = (double) hyb_meta_static(&meta).tids;

	if (hyb_pos_compare(ix->desc, &pos[0], &pos[1]) >= 0)
		result = 0;
	else
		for (;;)
		{
			double		dynamic;

			CHECK_FOR_INTERRUPTS();
			hyb_version_capture(ix, version);
			if (!count_static(&state, version))
			{
				hyb_check_stale(ix, version, state.stale);
				continue;
			}
			if (!estimate_log(ix, version, &pos[0], &pos[1],
							  static_tids > 0 ? state.count / static_tids : 1,
							  &dynamic))
				continue;
			result = state.count + dynamic;
			break;
		}
	hyb_leaf_close(&state.leaf);
	hyb_inspect_close(&inspected);
	PG_RETURN_INT64((int64) rint(result));
}
