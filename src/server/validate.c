/*
 * validate.c
 *		Checks of operator classes and families: amvalidate, amadjustmembers;
 *		and of the classes that an index has got for its columns.
 *
 * Families have btree's shape (nbtvalidate.c): for every pair of types five
 * operators and the order function, and all pairs of the family's types.
 */
#include "base/compat.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "server/validate.h"
#include "store/handle.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define HYB_AM_NAME		"hybrid"

#define HYB_ALL_STRATEGIES \
	((1 << BTLessStrategyNumber) | \
	 (1 << BTLessEqualStrategyNumber) | \
	 (1 << BTEqualStrategyNumber) | \
	 (1 << BTGreaterEqualStrategyNumber) | \
	 (1 << BTGreaterStrategyNumber))

/*
 * Has this function what the support function of this number is called with?
 * None has for a number that does not exist.  Unless types have to be exact, a
 * function of a type that they are coerced to without a function fits, too.
 */
static bool
function_fits(Oid function, int number, Oid lefttype, Oid righttype,
			  bool exact)
{
	switch (number)
	{
		case HYB_ORDER_PROC:
			return check_amproc_signature(function, INT4OID, exact, 2, 2,
										  lefttype, righttype);
		case HYB_SORTSUPPORT_PROC:
			return check_amproc_signature(function, VOIDOID, exact, 1, 1,
										  INTERNALOID);
		case HYB_INRANGE_PROC:
			return check_amproc_signature(function, BOOLOID, exact, 5, 5,
										  lefttype, lefttype, righttype,
										  BOOLOID, BOOLOID);
		case HYB_IMAGE_PROC:
			return check_amproc_signature(function, BOOLOID, exact, 1, 1,
										  OIDOID) ||
				check_amproc_signature(function, BOOLOID, exact, 1, 1,
									   INTERNALOID);
		case HYB_OPTIONS_PROC:
			return check_amoptsproc_signature(function);
		default:
			return false;
	}
}

/* Tell what is wrong, and note that something is. */
#define INVALID(valid, ...) \
	do { \
		ereport(INFO, \
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION), \
				 errmsg(__VA_ARGS__))); \
		(valid) = false; \
	} while (0)

/* Numbers and signatures of the family's support functions. */
static bool
validate_functions(const char *opfamilyname, CatCList *proclist)
{
	bool		result = true;

	for (int i = 0; i < proclist->n_members; i++)
	{
		HeapTuple	proctup = &proclist->members[i]->tuple;
		Form_pg_amproc procform = (Form_pg_amproc) GETSTRUCT(proctup);

		if (!function_fits(procform->amproc, procform->amprocnum,
						   procform->amproclefttype,
						   procform->amprocrighttype, true))
			INVALID(result, "operator family \"%s\" of access method %s contains function %s with wrong signature for support number %d",
					opfamilyname, HYB_AM_NAME,
					format_procedure(procform->amproc),
					procform->amprocnum);

		/* This serves a column, so it is of one type. */
		if (procform->amprocnum == HYB_IMAGE_PROC &&
			procform->amproclefttype != procform->amprocrighttype)
			INVALID(result, "operator family \"%s\" of access method %s contains support function %s with different left and right input types",
					opfamilyname, HYB_AM_NAME,
					format_procedure(procform->amproc));
	}
	return result;
}

/* Strategies, purposes and signatures of the family's operators. */
static bool
validate_operators(const char *opfamilyname, CatCList *oprlist)
{
	bool		result = true;

	for (int i = 0; i < oprlist->n_members; i++)
	{
		HeapTuple	oprtup = &oprlist->members[i]->tuple;
		Form_pg_amop oprform = (Form_pg_amop) GETSTRUCT(oprtup);

		if (oprform->amopstrategy < 1 ||
			oprform->amopstrategy > BTMaxStrategyNumber)
			INVALID(result, "operator family \"%s\" of access method %s contains operator %s with invalid strategy number %d",
					opfamilyname, HYB_AM_NAME,
					format_operator(oprform->amopopr),
					oprform->amopstrategy);

		if (oprform->amoppurpose != AMOP_SEARCH ||
			OidIsValid(oprform->amopsortfamily))
			INVALID(result, "operator family \"%s\" of access method %s contains invalid ORDER BY specification for operator %s",
					opfamilyname, HYB_AM_NAME,
					format_operator(oprform->amopopr));

		if (!check_amop_signature(oprform->amopopr, BOOLOID,
								  oprform->amoplefttype,
								  oprform->amoprighttype))
			INVALID(result, "operator family \"%s\" of access method %s contains operator %s with wrong signature",
					opfamilyname, HYB_AM_NAME,
					format_operator(oprform->amopopr));
	}
	return result;
}

/*
 * Is each pair of types complete, and are all pairs there?  *has_opclass: the
 * pair (opcintype, opcintype) is.
 */
static bool
validate_groups(const char *opfamilyname, List *grouplist, Oid opcintype,
				bool *has_opclass)
{
	bool		result = true;
	List	   *familytypes = NIL;
	int			ngroups = 0;
	ListCell   *lc;

	*has_opclass = false;
	foreach(lc, grouplist)
	{
		OpFamilyOpFuncGroup *group = (OpFamilyOpFuncGroup *) lfirst(lc);

		/* The offset type of an in_range function need not be the family's. */
		if (group->operatorset == 0 &&
			group->functionset == (1 << HYB_INRANGE_PROC))
			continue;
		ngroups++;

		if (group->lefttype == opcintype && group->righttype == opcintype)
			*has_opclass = true;

		familytypes = list_append_unique_oid(familytypes, group->lefttype);
		familytypes = list_append_unique_oid(familytypes, group->righttype);

		if (group->operatorset != HYB_ALL_STRATEGIES)
			INVALID(result, "operator family \"%s\" of access method %s is missing operator(s) for types %s and %s",
					opfamilyname, HYB_AM_NAME,
					format_type_be(group->lefttype),
					format_type_be(group->righttype));
		if ((group->functionset & (1 << HYB_ORDER_PROC)) == 0)
			INVALID(result, "operator family \"%s\" of access method %s is missing support function for types %s and %s",
					opfamilyname, HYB_AM_NAME,
					format_type_be(group->lefttype),
					format_type_be(group->righttype));
	}

	/*
	 * Missing pairs are not fatal, but limit what the planner can derive from
	 * equivalence classes: as strict as btree here.
	 */
	if (ngroups != list_length(familytypes) * list_length(familytypes))
		INVALID(result, "operator family \"%s\" of access method %s is missing cross-type operator(s)",
				opfamilyname, HYB_AM_NAME);
	return result;
}

bool
hyb_amvalidate(Oid opclassoid)
{
	bool		result = true;
	bool		has_opclass;
	HeapTuple	classtup;
	Form_pg_opclass classform;
	HeapTuple	familytup;
	char	   *opfamilyname;
	CatCList   *proclist;
	CatCList   *oprlist;

	classtup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	if (!HeapTupleIsValid(classtup))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	classform = (Form_pg_opclass) GETSTRUCT(classtup);

	familytup = SearchSysCache1(OPFAMILYOID,
								ObjectIdGetDatum(classform->opcfamily));
	if (!HeapTupleIsValid(familytup))
		elog(ERROR, "cache lookup failed for operator family %u",
			 classform->opcfamily);
	opfamilyname = NameStr(((Form_pg_opfamily) GETSTRUCT(familytup))->opfname);

	oprlist = SearchSysCacheList1(AMOPSTRATEGY,
								  ObjectIdGetDatum(classform->opcfamily));
	proclist = SearchSysCacheList1(AMPROCNUM,
								   ObjectIdGetDatum(classform->opcfamily));

	if (!validate_functions(opfamilyname, proclist))
		result = false;
	if (!validate_operators(opfamilyname, oprlist))
		result = false;
	if (!validate_groups(opfamilyname,
						 identify_opfamily_groups(oprlist, proclist),
						 classform->opcintype, &has_opclass))
		result = false;
	if (!has_opclass)
		INVALID(result, "operator class \"%s\" of access method %s is missing operator(s)",
				NameStr(classform->opcname), HYB_AM_NAME);

	ReleaseCatCacheList(proclist);
	ReleaseCatCacheList(oprlist);
	ReleaseSysCache(familytup);
	ReleaseSysCache(classtup);

	return result;
}

/* The access method that an operator family belongs to. */
static Oid
opfamily_method(Oid opfamilyoid)
{
	HeapTuple	tup = SearchSysCache1(OPFAMILYOID,
									  ObjectIdGetDatum(opfamilyoid));
	Oid			result;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator family %u", opfamilyoid);
	result = ((Form_pg_opfamily) GETSTRUCT(tup))->opfmethod;
	ReleaseSysCache(tup);
	return result;
}

/*
 * Does this class order values of a type, not a domain, by another rule than
 * the type's own, which is that of its default btree class?
 *
 * A class that was made for the type is right by definition, and a type
 * without a btree class has no rule.  Binary-coercible types (varchar) share
 * a class in both access methods.  If the default hybrid class is the right
 * one, another was asked for by name, which is the user's to decide, as with
 * btree.
 */
static bool
class_is_borrowed(Oid typid, Oid opclass)
{
	Oid			opcintype = get_opclass_input_type(opclass);
	Oid			own;
	Oid			own_type;
	Oid			usual;

	if (opcintype == typid)
		return false;
	own = GetDefaultOpClass(typid, BTREE_AM_OID);
	if (!OidIsValid(own))
		return false;
	own_type = get_opclass_input_type(own);
	if (opcintype == own_type)
		return false;
	usual = GetDefaultOpClass(typid,
							  opfamily_method(get_opclass_family(opclass)));
	if (OidIsValid(usual) && usual != opclass)
	{
		Oid			usual_type = get_opclass_input_type(usual);

		if (usual_type == typid || usual_type == own_type)
			return false;
	}
	return true;
}

/* The name of an operator class, without its schema. */
static char *
opclass_name(Oid opclass)
{
	HeapTuple	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	char	   *name;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	name = pstrdup(NameStr(((Form_pg_opclass) GETSTRUCT(tup))->opcname));
	ReleaseSysCache(tup);
	return name;
}

/*
 * Report, at this level, a key column that is ordered by a class of another
 * type although its own type has a rule for it: a value that is coerced to
 * text without a function gets text's class for lack of one of its own, but
 * need not be equal where text is.  The caller has locked the index.
 */
void
hyb_check_column_classes(Relation index, int elevel)
{
	oidvector  *indclass;
	Datum		datum;
	bool		isnull;

	datum = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
							Anum_pg_index_indclass, &isnull);
	Assert(!isnull);
	indclass = (oidvector *) DatumGetPointer(datum);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
		Oid			typid = getBaseType(att->atttypid);
		Oid			opclass = indclass->values[i];
		Oid			opcintype;

		if (!class_is_borrowed(typid, opclass))
			continue;
		opcintype = get_opclass_input_type(opclass);
		ereport(elevel,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("data type %s has no operator class of its own for access method \"%s\"",
						format_type_be_qualified(typid), HYB_AM_NAME),
				 errdetail("Column \"%s\" of index \"%s\" would be compared as %s by operator class \"%s\", not as by \"%s\", the type's operator class for access method \"btree\".",
						   NameStr(att->attname),
						   RelationGetRelationName(index),
						   format_type_be(opcintype), opclass_name(opclass),
						   opclass_name(GetDefaultOpClass(typid, BTREE_AM_OID))),
				 IsPolymorphicType(opcintype) ?
				 errhint("Make one with SELECT %s(%s::regtype), then create the index again.",
						 hyb_sql_function("hybrid_make_operator_classes"),
						 quote_literal_cstr(format_type_be_qualified(typid))) :
				 errhint("Make one with SELECT %s(%s::regtype), then create the index again, or index an expression that casts the column to type %s.",
						 hyb_sql_function("hybrid_make_operator_classes"),
						 quote_literal_cstr(format_type_be_qualified(typid)),
						 format_type_be(opcintype))));
	}
}

/*
 * Members that are being added: an error for a function that does not fit, and
 * dependencies as in btadjustmembers.  The operators and the order function of
 * one type belong to its operator class, if there is one; cross-type members
 * and optional functions are loose members of the family.  Only the codec is
 * optional but not loose: what indexes hold is in its form.
 */
void
hyb_amadjustmembers(Oid opfamilyoid, Oid opclassoid,
					List *operators, List *functions)
{
	Oid			opcintype = InvalidOid;
	ListCell   *lc;

	if (OidIsValid(opclassoid))
	{
		/* During CREATE OPERATOR CLASS, to see the pg_opclass row */
		CommandCounterIncrement();
		opcintype = get_opclass_input_type(opclassoid);
	}

	/*
	 * The server checks functions of some access methods itself, codecs
	 * never.  One that expects other arguments would crash.
	 */
	foreach(lc, functions)
	{
		OpFamilyMember *member = (OpFamilyMember *) lfirst(lc);

		if (!function_fits(member->object, member->number, member->lefttype,
						   member->righttype, false))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("function %s has the wrong signature for support number %d of access method %s",
							format_procedure(member->object), member->number,
							HYB_AM_NAME)));
	}

	foreach(lc, list_concat_copy(operators, functions))
	{
		OpFamilyMember *op = (OpFamilyMember *) lfirst(lc);
		bool		loose;

		loose = op->lefttype != op->righttype ||
			(op->is_func &&
			 op->number != HYB_ORDER_PROC && op->number != HYB_IMAGE_PROC);

		if (!loose && op->lefttype != opcintype)
		{
			/* Remember the answer, even if there is none */
			opcintype = op->lefttype;
			opclassoid =
				opclass_for_family_datatype(opfamily_method(opfamilyoid),
											opfamilyoid, opcintype);
		}

		if (!loose && OidIsValid(opclassoid))
		{
			op->ref_is_hard = true;
			op->ref_is_family = false;
			op->refobjid = opclassoid;
		}
		else
		{
			op->ref_is_hard = false;
			op->ref_is_family = true;
			op->refobjid = opfamilyoid;
		}
	}
}
