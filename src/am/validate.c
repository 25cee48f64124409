/*
 * validate.c
 *		Checks of operator classes and families: amvalidate, amadjustmembers.
 *
 * Families have btree's shape (nbtvalidate.c): for every pair of types five
 * operators and the order function, and all pairs of the family's types.
 */
#include "compat.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#define HYB_AM_NAME		"hybrid"

#define HYB_ALL_STRATEGIES \
	((1 << BTLessStrategyNumber) | \
	 (1 << BTLessEqualStrategyNumber) | \
	 (1 << BTEqualStrategyNumber) | \
	 (1 << BTGreaterEqualStrategyNumber) | \
	 (1 << BTGreaterStrategyNumber))

/* Numbers and signatures of the family's support functions. */
static bool
validate_functions(const char *opfamilyname, CatCList *proclist)
{
	bool		result = true;

	for (int i = 0; i < proclist->n_members; i++)
	{
		HeapTuple	proctup = &proclist->members[i]->tuple;
		Form_pg_amproc procform = (Form_pg_amproc) GETSTRUCT(proctup);
		bool		ok;

		switch (procform->amprocnum)
		{
			case HYB_ORDER_PROC:
				ok = check_amproc_signature(procform->amproc, INT4OID, true,
											2, 2, procform->amproclefttype,
											procform->amprocrighttype);
				break;
			case HYB_SORTSUPPORT_PROC:
			case HYB_SKIPSUPPORT_PROC:
				ok = check_amproc_signature(procform->amproc, VOIDOID, true,
											1, 1, INTERNALOID);
				break;
			case HYB_INRANGE_PROC:
				ok = check_amproc_signature(procform->amproc, BOOLOID, true,
											5, 5,
											procform->amproclefttype,
											procform->amproclefttype,
											procform->amprocrighttype,
											BOOLOID, BOOLOID);
				break;
			case HYB_EQUALIMAGE_PROC:
				ok = check_amproc_signature(procform->amproc, BOOLOID, true,
											1, 1, OIDOID);
				break;
			case HYB_CODEC_PROC:
				ok = check_amproc_signature(procform->amproc, INTERNALOID,
											true, 1, 1, INTERNALOID);
				break;
			case HYB_OPTIONS_PROC:
				ok = check_amoptsproc_signature(procform->amproc);
				break;
			default:
				ereport(INFO,
						(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
						 errmsg("operator family \"%s\" of access method %s contains function %s with invalid support number %d",
								opfamilyname, HYB_AM_NAME,
								format_procedure(procform->amproc),
								procform->amprocnum)));
				result = false;
				continue;		/* don't want additional message */
		}

		if (!ok)
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains function %s with wrong signature for support number %d",
							opfamilyname, HYB_AM_NAME,
							format_procedure(procform->amproc),
							procform->amprocnum)));
			result = false;
		}

		/* A codec serves a column, so it is of one type. */
		if (procform->amprocnum == HYB_CODEC_PROC &&
			procform->amproclefttype != procform->amprocrighttype)
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains support function %s with different left and right input types",
							opfamilyname, HYB_AM_NAME,
							format_procedure(procform->amproc))));
			result = false;
		}
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
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains operator %s with invalid strategy number %d",
							opfamilyname, HYB_AM_NAME,
							format_operator(oprform->amopopr),
							oprform->amopstrategy)));
			result = false;
		}

		if (oprform->amoppurpose != AMOP_SEARCH ||
			OidIsValid(oprform->amopsortfamily))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains invalid ORDER BY specification for operator %s",
							opfamilyname, HYB_AM_NAME,
							format_operator(oprform->amopopr))));
			result = false;
		}

		if (!check_amop_signature(oprform->amopopr, BOOLOID,
								  oprform->amoplefttype,
								  oprform->amoprighttype))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains operator %s with wrong signature",
							opfamilyname, HYB_AM_NAME,
							format_operator(oprform->amopopr))));
			result = false;
		}
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
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s is missing operator(s) for types %s and %s",
							opfamilyname, HYB_AM_NAME,
							format_type_be(group->lefttype),
							format_type_be(group->righttype))));
			result = false;
		}
		if ((group->functionset & (1 << HYB_ORDER_PROC)) == 0)
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s is missing support function for types %s and %s",
							opfamilyname, HYB_AM_NAME,
							format_type_be(group->lefttype),
							format_type_be(group->righttype))));
			result = false;
		}
	}

	/*
	 * Missing pairs are not fatal, but limit what the planner can derive from
	 * equivalence classes: as strict as btree here.
	 */
	if (ngroups != list_length(familytypes) * list_length(familytypes))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s is missing cross-type operator(s)",
						opfamilyname, HYB_AM_NAME)));
		result = false;
	}
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
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is missing operator(s)",
						NameStr(classform->opcname), HYB_AM_NAME)));
		result = false;
	}

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
 * Dependencies of members that are being added, as in btadjustmembers: the
 * operators and the order function of one type belong to its operator class,
 * if there is one; cross-type members and optional functions are loose
 * members of the family.  Only the codec is optional but not loose: what
 * indexes hold is in its form.
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

	foreach(lc, list_concat_copy(operators, functions))
	{
		OpFamilyMember *op = (OpFamilyMember *) lfirst(lc);
		bool		loose;

		loose = op->lefttype != op->righttype ||
			(op->is_func &&
			 op->number != HYB_ORDER_PROC && op->number != HYB_CODEC_PROC);

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
