/*
 * validate.c
 *		Checks operator families, and the classes of a new index's columns.
 *
 * Families have btree's shape (nbtvalidate.c): five operators and the order
 * function for every pair of the family's types.
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
#include "server/btree_only.h"
#include "store/handle.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define HYB_ALL_STRATEGIES \
	((1 << BTLessStrategyNumber) | \
	 (1 << BTLessEqualStrategyNumber) | \
	 (1 << BTEqualStrategyNumber) | \
	 (1 << BTGreaterEqualStrategyNumber) | \
	 (1 << BTGreaterStrategyNumber))

/*
 * Does this function take what the support function of this number is called
 * with?  False for a number that does not exist.  Unless `exact`, a function of a
 * type that is binary-coercible fits, too.
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

/* An operator family that is being checked. */
typedef struct Family
{
	const char *method;			/* name of its access method */
	const char *name;
	Oid			opcintype;		/* of the class that amvalidate was called for */
	CatCList   *operators;
	CatCList   *functions;
	bool		valid;
} Family;

/* Reports what is wrong with the family. */
#define INVALID(family, format, ...) \
	do { \
		ereport(INFO, \
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION), \
				 errmsg("operator family \"%s\" of access method %s " format, \
						(family)->name, (family)->method, ##__VA_ARGS__))); \
		(family)->valid = false; \
	} while (0)

/* Checks numbers and signatures of the family's support functions. */
static void
validate_functions(Family *family)
{
	for (int i = 0; i < family->functions->n_members; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc)
			GETSTRUCT(&family->functions->members[i]->tuple);

		if (!function_fits(proc->amproc, proc->amprocnum, proc->amproclefttype,
						   proc->amprocrighttype, true))
			INVALID(family, "contains function %s with wrong signature for support number %d",
					format_procedure(proc->amproc), proc->amprocnum);

		/* it serves a column, which has one type */
		if (proc->amprocnum == HYB_IMAGE_PROC &&
			proc->amproclefttype != proc->amprocrighttype)
			INVALID(family, "contains support function %s with different left and right input types",
					format_procedure(proc->amproc));
	}
}

/* Checks strategies, purposes and signatures of the family's operators. */
static void
validate_operators(Family *family)
{
	for (int i = 0; i < family->operators->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop)
			GETSTRUCT(&family->operators->members[i]->tuple);

		if (op->amopstrategy < 1 || op->amopstrategy > BTMaxStrategyNumber)
			INVALID(family, "contains operator %s with invalid strategy number %d",
					format_operator(op->amopopr), op->amopstrategy);
		if (op->amoppurpose != AMOP_SEARCH || OidIsValid(op->amopsortfamily))
			INVALID(family, "contains invalid ORDER BY specification for operator %s",
					format_operator(op->amopopr));
		if (!check_amop_signature(op->amopopr, BOOLOID, op->amoplefttype,
								  op->amoprighttype))
			INVALID(family, "contains operator %s with wrong signature",
					format_operator(op->amopopr));
	}
}

/*
 * Is each pair of types complete, and are all pairs there?  Returns true if the
 * pair (opcintype, opcintype) is there.
 */
static bool
validate_groups(Family *family)
{
	bool		has_opclass = false;
	List	   *types = NIL;
	int			ngroups = 0;
	ListCell   *lc;

	foreach(lc, identify_opfamily_groups(family->operators, family->functions))
	{
		OpFamilyOpFuncGroup *group = lfirst(lc);

		/* the offset type of an in_range function need not be the family's */
		if (group->operatorset == 0 &&
			group->functionset == (1 << HYB_INRANGE_PROC))
			continue;
		ngroups++;
		has_opclass |= group->lefttype == family->opcintype &&
			group->righttype == family->opcintype;
		types = list_append_unique_oid(types, group->lefttype);
		types = list_append_unique_oid(types, group->righttype);

		if (group->operatorset != HYB_ALL_STRATEGIES)
			INVALID(family, "is missing operator(s) for types %s and %s",
					format_type_be(group->lefttype),
					format_type_be(group->righttype));
		if ((group->functionset & (1 << HYB_ORDER_PROC)) == 0)
			INVALID(family, "is missing support function for types %s and %s",
					format_type_be(group->lefttype),
					format_type_be(group->righttype));
	}

	/*
	 * Missing pairs limit what the planner can derive from equivalence
	 * classes.  We are as strict as btree here.
	 */
	if (ngroups != list_length(types) * list_length(types))
		INVALID(family, "is missing cross-type operator(s)");
	return has_opclass;
}

bool
hyb_amvalidate(Oid opclassoid)
{
	HeapTuple	class_tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	Form_pg_opclass class;
	HeapTuple	family_tuple;
	Family		family = {.valid = true};

	if (!HeapTupleIsValid(class_tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(class_tuple);
	family_tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(family_tuple))
		elog(ERROR, "cache lookup failed for operator family %u", class->opcfamily);
	family.method = get_am_name(class->opcmethod);
	family.name = NameStr(((Form_pg_opfamily) GETSTRUCT(family_tuple))->opfname);
	family.opcintype = class->opcintype;
	family.operators = SearchSysCacheList1(AMOPSTRATEGY,
										   ObjectIdGetDatum(class->opcfamily));
	family.functions = SearchSysCacheList1(AMPROCNUM,
										   ObjectIdGetDatum(class->opcfamily));

	validate_functions(&family);
	validate_operators(&family);
	if (!validate_groups(&family))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is missing operator(s)",
						NameStr(class->opcname), family.method)));
		family.valid = false;
	}

	ReleaseCatCacheList(family.functions);
	ReleaseCatCacheList(family.operators);
	ReleaseSysCache(family_tuple);
	ReleaseSysCache(class_tuple);
	return family.valid;
}

/*
 * Does this class order values of a type by another rule than the type's own?  The
 * type is not a domain.  Its rule is that of its default btree class; a type without
 * one has no rule.
 *
 * Binary-coercible types (varchar) share a class in both access methods.  If the
 * default hybrid class is the right one, the user has named another one, as is
 * possible with btree.
 */
static bool
class_is_borrowed(Oid typid, Oid opclass, Oid access_method)
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
	usual = GetDefaultOpClass(typid, access_method);
	if (OidIsValid(usual) && usual != opclass)
	{
		Oid			usual_type = get_opclass_input_type(usual);

		if (usual_type == typid || usual_type == own_type)
			return false;
	}
	return true;
}

void
hyb_check_column_classes(Relation index, int elevel)
{
	oidvector  *indclass = hyb_index_classes(index);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
		Oid			typid = getBaseType(att->atttypid);
		Oid			opclass = indclass->values[i];
		Oid			opcintype;

		if (!class_is_borrowed(typid, opclass, index->rd_rel->relam))
			continue;
		opcintype = get_opclass_input_type(opclass);
		ereport(elevel,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("data type %s has no operator class of its own for access method \"%s\"",
						format_type_be_qualified(typid), get_am_name(index->rd_rel->relam)),
				 errdetail("Column \"%s\" of index \"%s\" would be compared as %s by operator class \"%s\", not as by \"%s\", the type's operator class for access method \"btree\".",
						   NameStr(att->attname),
						   RelationGetRelationName(index),
						   format_type_be(opcintype), strVal(llast(hyb_class_name(opclass))),
						   strVal(llast(hyb_class_name(GetDefaultOpClass(typid, BTREE_AM_OID))))),
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

static Oid
method_of_family(Oid family)
{
	HeapTuple	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	Oid			method;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator family %u", family);
	method = ((Form_pg_opfamily) GETSTRUCT(tuple))->opfmethod;
	ReleaseSysCache(tuple);
	return method;
}

void
hyb_amadjustmembers(Oid opfamilyoid, Oid opclassoid,
					List *operators, List *functions)
{
	Oid			method;
	Oid			opcintype = InvalidOid;
	ListCell   *lc;

	if (OidIsValid(opclassoid))
	{
		/* CREATE OPERATOR CLASS has just made the row of pg_opclass */
		CommandCounterIncrement();
		opcintype = get_opclass_input_type(opclassoid);
	}
	method = method_of_family(opfamilyoid);

	/* the server does not check codecs: one with other arguments would crash */
	foreach(lc, functions)
	{
		OpFamilyMember *member = (OpFamilyMember *) lfirst(lc);

		if (!function_fits(member->object, member->number, member->lefttype,
						   member->righttype, false))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("function %s has the wrong signature for support number %d of access method %s",
							format_procedure(member->object), member->number,
							get_am_name(method))));
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
			/* remember the answer, even if there is none */
			opcintype = op->lefttype;
			opclassoid =
				opclass_for_family_datatype(method, opfamilyoid, opcintype);
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
