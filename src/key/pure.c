/*
 * pure.c
 *		Which comparisons may run while an LWLock is held.
 *
 * The server's functions are known by their OID, and those of modules that come with
 * it by library and symbol.  Any other function is impure, and so are those of rows,
 * which open the row type's table.
 *
 * Strings need their collation, which a session loads once.  Functions of arrays and
 * ranges look for the function of what is in them, by the type that a value names, and
 * keep what they found last.  A value is pure if it names the column's own type: before
 * the LWLock is taken, a comparison of two empty values makes the function look that
 * type up.
 *
 * Enums are compared by their numbers if both are even, as all are that CREATE TYPE
 * has made.  Otherwise a catalog is read.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "key/pure.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/pg_locale.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* Functions of modules that the server comes with. */
static const struct
{
	const char *library;
	const char *symbol;
}			pure_symbols[] = {
	{"$libdir/citext", "citext_cmp"},
	{"$libdir/cube", "cube_cmp"},
	{"$libdir/hstore", "hstore_cmp"},
	{"$libdir/ltree", "ltree_cmp"},
	{"$libdir/seg", "seg_cmp"}
};

static bool is_pure_function(Oid function);

/* A function that is not the server's: is it one of those, or another name of one? */
static bool
is_pure_code(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		pure = false;
	bool		no_library;
	bool		no_source;
	Form_pg_proc form;
	Datum		library;
	char	   *source;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	library = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &no_library);
	source = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc,
												 &no_source));
	/* what runs around the code is not known */
	if (form->prosecdef || !heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL))
		pure = false;
	else if (form->prolang == INTERNALlanguageId)
		pure = is_pure_function(fmgr_internal_function(source));
	else if (form->prolang == ClanguageId && !no_library)
		for (int i = 0; i < lengthof(pure_symbols) && !pure; i++)
			pure = strcmp(TextDatumGetCString(library), pure_symbols[i].library) == 0 &&
				strcmp(source, pure_symbols[i].symbol) == 0;
	ReleaseSysCache(tuple);
	return pure;
}

/* Does the function read no catalog, once the collation is known? */
static bool
is_pure_function(Oid function)
{
	switch (function)
	{
		case F_BITCMP:
		case F_BPCHARCMP:
		case F_BTBOOLCMP:
		case F_BTBPCHAR_PATTERN_CMP:
		case F_BTCHARCMP:
		case F_BTFLOAT4CMP:
		case F_BTFLOAT8CMP:
		case F_BTINT2CMP:
		case F_BTINT4CMP:
		case F_BTINT8CMP:
		case F_BTNAMECMP:
		case F_BTOIDCMP:
		case F_BTOIDVECTORCMP:
		case F_BTTEXTCMP:
		case F_BTTEXT_PATTERN_CMP:
		case F_BTTIDCMP:
		case F_BYTEACMP:
		case F_CASH_CMP:
		case F_DATE_CMP:
		case F_INTERVAL_CMP:
		case F_JSONB_CMP:
		case F_MACADDR8_CMP:
		case F_MACADDR_CMP:
		case F_NETWORK_CMP:
		case F_NUMERIC_CMP:
		case F_PG_LSN_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMETZ_CMP:
		case F_TIME_CMP:
		case F_TSQUERY_CMP:
		case F_TSVECTOR_CMP:
		case F_UUID_CMP:
		case F_VARBITCMP:
		case F_XID8CMP:
			return true;
		default:
			return function >= FirstNormalObjectId && is_pure_code(function);
	}
}

static void
read_collation(Oid collation)
{
	if (OidIsValid(collation) && !HYB_COLLATE_IS_C(collation))
		(void) pg_newlocale_from_collation(collation);
}

/* The range type of a function's type, or NULL if the function is not of ranges. */
static TypeCacheEntry *
range_entry(Oid function, Oid type)
{
	if (function == F_RANGE_CMP)
		return lookup_type_cache(type, TYPECACHE_RANGE_INFO);
	if (function == F_MULTIRANGE_CMP)
		return lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO)->rngtype;
	return NULL;
}

void
hyb_pure_read_collations(Oid function, Oid collation, Oid part)
{
	TypeCacheEntry *entry;

	HYB_ASSERT_NO_LWLOCK();
	read_collation(collation);
	if (OidIsValid(part) && (entry = range_entry(function, part)) != NULL)
		read_collation(entry->rng_collation);
}

/*
 * The type that pure values of a type of containers name, or InvalidOid if there are
 * none.  Opens no table.
 */
static Oid
pure_part(Oid function, Oid type, Oid *part_cmp)
{
	TypeCacheEntry *entry;

	if (function == F_BTARRAYCMP)
	{
		type = get_element_type(type);
		if (!OidIsValid(type) || type_is_rowtype(type))
			return InvalidOid;
		*part_cmp = lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc;
		return is_pure_function(*part_cmp) ? type : InvalidOid;
	}
	entry = range_entry(function, type);
	return entry != NULL && entry->rngelemtype != NULL &&
		is_pure_function(entry->rng_cmp_proc_finfo.fn_oid) ? type : InvalidOid;
}

HybPure
hyb_pure_classify(Oid function, Oid type, Oid *part, Oid *part_cmp)
{
	*part = *part_cmp = InvalidOid;
	if (is_pure_function(function))
		return HYB_PURE;
	*part = pure_part(function, getBaseType(type), part_cmp);
	return OidIsValid(*part) || function == F_ENUM_CMP ? HYB_PURE_IN_PART : HYB_IMPURE;
}

uint32
hyb_pure_part_offset(Oid function)
{
	return function == F_BTARRAYCMP ? offsetof(ArrayType, elemtype) - VARHDRSZ : 0;
}

/* A comparison of two empty values. */
bool
hyb_pure_remember(FmgrInfo *function, Oid collation, Oid part, Oid part_cmp)
{
	union
	{
		char		bytes[32];
		ArrayType	array;
		RangeType	range;
		MultirangeType multirange;
	}			empty = {{0}};

	switch (function->fn_oid)
	{
		case F_BTARRAYCMP:
			/* the function calls what this entry says now */
			if (lookup_type_cache(part, TYPECACHE_CMP_PROC_FINFO)->cmp_proc != part_cmp)
				return false;
			SET_VARSIZE(&empty, ARR_OVERHEAD_NONULLS(0));
			break;
		case F_RANGE_CMP:
			SET_VARSIZE(&empty, sizeof(RangeType) + sizeof(char));
			empty.bytes[sizeof(RangeType)] = RANGE_EMPTY;
			break;
		default:
			Assert(function->fn_oid == F_MULTIRANGE_CMP);
			SET_VARSIZE(&empty, sizeof(MultirangeType));
			break;
	}
	memcpy(VARDATA(&empty) + hyb_pure_part_offset(function->fn_oid), &part, sizeof(Oid));
	(void) FunctionCall2Coll(function, collation,
							 PointerGetDatum(&empty), PointerGetDatum(&empty));
	return true;
}
