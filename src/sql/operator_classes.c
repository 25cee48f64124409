/*
 * operator_classes.c
 *		Makes operator classes of hybrid from those of btree.
 *
 * Operators and support functions have the same numbers in both.  So we copy btree
 * families, with the classes that we lack, by the server's own statements: it checks
 * privileges and records dependencies.  A copy is in the schema of the original, as an
 * object of its own that is dumped, but not in pg_catalog.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "base/server.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "key/key.h"
#include "sql/result_row.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(hybrid_make_operator_classes);
PG_FUNCTION_INFO_V1(hybrid_complete_operator_families);
PG_FUNCTION_INFO_V1(hybrid_copy_operator_classes);

typedef struct OpClass
{
	Oid			oid;
	Oid			family;
	Oid			type;
	Oid			schema;
	bool		is_default;
	NameData	name;
} OpClass;

typedef struct FamilyCopy
{
	Oid			from;			/* the original */
	Oid			method;			/* access method of the copy */
	Oid			to;				/* the copy */
	Oid			schema;			/* of the copy */
	const char *name;
} FamilyCopy;

static void
run(const char *statement)
{
	int			result = SPI_execute(statement, false, 0);

	if (result < 0)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(result));
}

/* Returns all operator classes of an access method (OpClass). */
static List *
classes_of(Oid method)
{
	CatCList   *all = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(method));
	List	   *result = NIL;

	for (int i = 0; i < all->n_members; i++)
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(&all->members[i]->tuple);
		OpClass    *class = palloc(sizeof(OpClass));

		class->oid = form->oid;
		class->family = form->opcfamily;
		class->type = form->opcintype;
		class->schema = form->opcnamespace;
		class->is_default = form->opcdefault;
		class->name = form->opcname;
		result = lappend(result, class);
	}
	ReleaseCatCacheList(all);
	return result;
}

/*
 * Returns true if a btree class has a counterpart among ours.  That of a default class
 * has to be the default, unless another class is.
 */
static bool
has_counterpart(const OpClass *class, List *ours)
{
	bool		same = false;
	bool		same_default = false;
	bool		any_default = false;
	ListCell   *lc;

	foreach(lc, ours)
	{
		const OpClass *other = lfirst(lc);

		if (other->type != class->type)
			continue;
		any_default |= other->is_default;
		if (!hyb_same_operators(class->family, other->family, class->type))
			continue;
		same = true;
		same_default |= other->is_default;
	}
	return same && (!class->is_default || same_default || any_default);
}

/* Returns true if the type itself has a default class of the access method. */
static bool
has_default(Oid type, Oid method)
{
	Oid			class = GetDefaultOpClass(type, method);

	return OidIsValid(class) && get_opclass_input_type(class) == type;
}

/* Returns false for an extension's family, whose new members would not be dumped. */
static bool
is_extensible(Oid family)
{
	Oid			extension = getExtensionOfObject(OperatorFamilyRelationId,
												 family);

	return !OidIsValid(extension) ||
		(creating_extension && extension == CurrentExtensionObject);
}

static char *
qualified(Oid schema, const char *name)
{
	return quote_qualified_identifier(get_namespace_name(schema), name);
}

/* Returns a name like the original that is free. */
static const char *
free_class_name(Oid method, const char *original, Oid schema)
{
	const char *name = original;

	for (int n = 1; SearchSysCacheExists3(CLAAMNAMENSP,
										  ObjectIdGetDatum(method),
										  CStringGetDatum(name),
										  ObjectIdGetDatum(schema)); n++)
		name = makeObjectName(original, NULL, psprintf("%d", n));
	return name;
}

static char *
family_name(Oid family)
{
	HeapTuple	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator family %u", family);
	name = pstrdup(NameStr(((Form_pg_opfamily) GETSTRUCT(tuple))->opfname));
	ReleaseSysCache(tuple);
	return name;
}

static Oid
find_family(Oid method, const char *name, Oid schema)
{
	return GetSysCacheOid3(OPFAMILYAMNAMENSP, Anum_pg_opfamily_oid,
						   ObjectIdGetDatum(method), CStringGetDatum(name),
						   ObjectIdGetDatum(schema));
}

/*
 * Finds what a btree family was copied to in this schema.  Else returns false, and
 * copy->name is free.
 */
static bool
find_copy(Oid from, Oid method, Oid schema, FamilyCopy *copy)
{
	const char *original = family_name(from);
	const char *name = original;

	copy->from = from;
	copy->method = method;
	copy->schema = schema;
	for (int n = 1;; n++)
	{
		copy->to = find_family(method, name, schema);
		copy->name = name;
		if (!OidIsValid(copy->to))
			return false;

		/* only what we copied a family to is part of it */
		if (is_extensible(copy->to) &&
			hyb_family_has_members(from, copy->to, NIL))
			return true;
		name = makeObjectName(original, NULL, psprintf("%d", n));
	}
}

/* Creates an empty copy if there is none.  It is dropped with the extension, if any. */
static void
open_copy(Oid from, Oid method, Oid schema, Oid extension, FamilyCopy *copy)
{
	if (find_copy(from, method, schema, copy))
		return;
	run(psprintf("CREATE OPERATOR FAMILY %s USING %s",
				 qualified(schema, copy->name), get_am_name(method)));
	copy->to = find_family(method, copy->name, schema);
	if (OidIsValid(extension) && !creating_extension &&
		extension != get_extension_oid("hybridindex", true))
	{
		ObjectAddress ours = {OperatorFamilyRelationId, copy->to};
		ObjectAddress theirs = {ExtensionRelationId, extension};

		recordDependencyOn(&ours, &theirs, DEPENDENCY_AUTO_EXTENSION);
	}
}

/*
 * Appends the members of btree's family that ours lacks, in the syntax of CREATE
 * OPERATOR CLASS: those of a type and itself, or all if the type is invalid.  With
 * `ours_stay` the family was written for our access method.  Then it gets only what
 * makes it faster, for equal images of btree need not be equal as we store values.
 */
static void
append_missing(const FamilyCopy *copy, Oid type, bool ours_stay,
			   StringInfo list)
{
	CatCList   *operators = SearchSysCacheList1(AMOPSTRATEGY,
												ObjectIdGetDatum(copy->from));
	CatCList   *functions = SearchSysCacheList1(AMPROCNUM,
												ObjectIdGetDatum(copy->from));

	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop)
			GETSTRUCT(&operators->members[i]->tuple);

		if ((OidIsValid(type) &&
			 (op->amoplefttype != type || op->amoprighttype != type)) ||
			OidIsValid(get_opfamily_member(copy->to, op->amoplefttype,
										   op->amoprighttype,
										   op->amopstrategy)))
			continue;
		appendStringInfo(list, "%s OPERATOR %d %s", list->len > 0 ? "," : "",
						 op->amopstrategy,
						 format_operator_qualified(op->amopopr));
	}
	for (int i = 0; i < functions->n_members; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc)
			GETSTRUCT(&functions->members[i]->tuple);

		if ((OidIsValid(type) && (proc->amproclefttype != type ||
								  proc->amprocrighttype != type)) ||
			proc->amprocnum > HYB_NSUPPORT ||
			(ours_stay && proc->amprocnum > HYB_INRANGE_PROC) ||
			OidIsValid(get_opfamily_proc(copy->to, proc->amproclefttype,
										 proc->amprocrighttype,
										 proc->amprocnum)))
			continue;
		appendStringInfo(list, "%s FUNCTION %d (%s, %s) %s",
						 list->len > 0 ? "," : "", proc->amprocnum,
						 format_type_be_qualified(proc->amproclefttype),
						 format_type_be_qualified(proc->amprocrighttype),
						 format_procedure_qualified(proc->amproc));
	}
	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);
}

/* Adds members of two types, and of types added since. */
static void
add_loose_members(const FamilyCopy *copy, bool ours_stay)
{
	StringInfoData list;

	initStringInfo(&list);
	append_missing(copy, InvalidOid, ours_stay, &list);
	if (list.len > 0)
		run(psprintf("ALTER OPERATOR FAMILY %s USING %s ADD%s",
					 qualified(copy->schema, copy->name), get_am_name(copy->method),
					 list.data));
}

/* The extension that a class goes with: it is a member, or a copy of a member. */
static Oid
extension_of(const OpClass *class)
{
	Oid			extension = getExtensionOfObject(OperatorClassRelationId, class->oid);
	List	   *followed = getAutoExtensionsOfObject(OperatorFamilyRelationId, class->family);

	return OidIsValid(extension) || followed == NIL ? extension : linitial_oid(followed);
}

/*
 * Makes the class of an access method for one of another's, and returns it as a row
 * unless `row` is NULL.
 */
static void
make_class(const OpClass *class, Oid method, Oid schema,
		   HybResultRow *row)
{
	bool		is_default = class->is_default &&
		!has_default(class->type, method);
	char	   *name = qualified(schema, free_class_name(method, NameStr(class->name),
														 schema));
	FamilyCopy	copy;
	StringInfoData members;

	open_copy(class->family, method, schema, extension_of(class), &copy);

	/* a second class for a type has its members from the first one */
	initStringInfo(&members);
	append_missing(&copy, class->type, false, &members);
	if (members.len == 0)
		appendStringInfo(&members, " STORAGE %s",
						 format_type_be_qualified(class->type));
	run(psprintf("CREATE OPERATOR CLASS %s%s FOR TYPE %s USING %s FAMILY %s AS%s",
				 name, is_default ? " DEFAULT" : "",
				 format_type_be_qualified(class->type), get_am_name(method),
				 qualified(schema, copy.name), members.data));
	if (row == NULL)
		return;

	hyb_result_put(row, TEXTOID, true, CStringGetTextDatum(name));
	hyb_result_put(row, REGTYPEOID, true, ObjectIdGetDatum(class->type));
	hyb_result_put(row, BOOLOID, true, BoolGetDatum(is_default));
	hyb_result_add(row);
}

static bool
is_ours(Oid catalog, Oid object)
{
	return getExtensionOfObject(catalog, object) == get_extension_oid("hybridindex", false);
}

/* Adds a class of hybrid_hot and its family to the extension: a script does that by itself. */
static void
add_to_extension(const OpClass *class, Oid hot)
{
	Oid			copy = get_opclass_oid(hot, list_make2(makeString(get_namespace_name(class->schema)),
													   makeString(pstrdup(NameStr(class->name)))), false);
	Oid			family = get_opclass_family(copy);

	if (creating_extension || is_ours(OperatorClassRelationId, copy))
		return;
	run(psprintf("ALTER EXTENSION hybridindex ADD OPERATOR CLASS %s USING hybrid_hot",
				 qualified(class->schema, NameStr(class->name))));
	if (!is_ours(OperatorFamilyRelationId, family))
		run(psprintf("ALTER EXTENSION hybridindex ADD OPERATOR FAMILY %s USING hybrid_hot",
					 qualified(class->schema, family_name(family))));
}

/*
 * hybrid_hot has the operator classes of hybrid, by the same names.  This copies those of
 * the extension, which belong to it here too, or the others.  Servers before 16 have no
 * such access method.
 */
static void
copy_to_hot(bool of_extension)
{
	Oid			hot = get_index_am_oid("hybrid_hot", true);
	List	   *theirs = OidIsValid(hot) ?
		classes_of(get_index_am_oid("hybrid", false)) : NIL;
	ListCell   *lc;

	foreach(lc, theirs)
	{
		const OpClass *class = lfirst(lc);

		if (is_ours(OperatorClassRelationId, class->oid) != of_extension)
			theirs = foreach_delete_current(theirs, lc);
		else if (!SearchSysCacheExists3(CLAAMNAMENSP, ObjectIdGetDatum(hot),
										NameGetDatum(&class->name),
										ObjectIdGetDatum(class->schema)))
			make_class(class, hot, class->schema, NULL);
	}
	foreach(lc, theirs)
	{
		const OpClass *class = lfirst(lc);
		FamilyCopy	copy;

		if (find_copy(class->family, hot, class->schema, &copy))
			add_loose_members(&copy, false);
	}

	/* at last, since families of an extension get no more members */
	foreach(lc, theirs)
		if (of_extension)
		add_to_extension(lfirst(lc), hot);
}

#ifdef HYB_HAVE_SUMMARIZING
/*
 * Makes the access method as the extension's script does from server 16 on: pg_upgrade
 * may have brought the extension from 15.  Not for the script of 1.0, whose update makes
 * it.  `like` is a C function of the extension.
 */
static void
make_hot(Oid like)
{
	char	   *schema = get_namespace_name(get_func_namespace(like));
	char	   *handler = quote_qualified_identifier(schema, "hybrid_hot_handler");
	Oid			types[] = {REGCLASSOID};
	HeapTuple	tuple;

	if (OidIsValid(get_index_am_oid("hybrid_hot", true)) ||
		!SearchSysCacheExists3(PROCNAMEARGSNSP, CStringGetDatum("hybrid_convert_hot"),
							   PointerGetDatum(buildoidvector(types, 1)),
							   ObjectIdGetDatum(get_func_namespace(like))))
		return;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(like));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", like);
	run(psprintf("CREATE FUNCTION %s(internal) RETURNS index_am_handler AS %s LANGUAGE C",
				 handler,
				 quote_literal_cstr(TextDatumGetCString(SysCacheGetAttrNotNull(PROCOID, tuple, Anum_pg_proc_probin)))));
	ReleaseSysCache(tuple);
	run(psprintf("COMMENT ON FUNCTION %s(internal) IS 'hybrid_hot index access method handler'", handler));
	run(psprintf("CREATE ACCESS METHOD hybrid_hot TYPE INDEX HANDLER %s", handler));
	run(psprintf("ALTER EXTENSION hybridindex ADD FUNCTION %s(internal)", handler));
	run("COMMENT ON ACCESS METHOD hybrid_hot IS 'ordered index access method whose columns may change in HOT updates'");
	run("ALTER EXTENSION hybridindex ADD ACCESS METHOD hybrid_hot");
}
#else
#define make_hot(like) ((void) (like))
#endif

/*
 * hybrid_make_operator_classes(type regtype DEFAULT NULL)
 *		RETURNS TABLE (operator_class text, type regtype, is_default boolean)
 *
 * Copies families whole.  An older copy gets what has been added to btree's since.
 */
Datum
hybrid_make_operator_classes(PG_FUNCTION_ARGS)
{
	HybResultRow row;
	Oid			type = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	Oid			method = get_index_am_oid("hybrid", false);
	List	   *theirs = classes_of(BTREE_AM_OID);
	List	   *ours = classes_of(method);
	ListCell   *lc;

	hyb_result_begin(fcinfo, true, &row);
	SPI_connect();
	foreach(lc, theirs)
	{
		OpClass    *class = lfirst(lc);

		/* pg_dump leaves out whatever is in pg_catalog */
		if (class->schema == PG_CATALOG_NAMESPACE)
			class->schema = get_func_namespace(fcinfo->flinfo->fn_oid);
		if ((OidIsValid(type) && class->type != type) ||
			isAnyTempNamespace(class->schema))
			theirs = foreach_delete_current(theirs, lc);
		else if (!has_counterpart(class, ours))
			make_class(class, method, class->schema, &row);
	}
	foreach(lc, theirs)
	{
		const OpClass *class = lfirst(lc);
		FamilyCopy	copy;

		if (find_copy(class->family, method, class->schema, &copy))
			add_loose_members(&copy, false);
	}
	make_hot(fcinfo->flinfo->fn_oid);
	copy_to_hot(true);
	copy_to_hot(false);
	SPI_finish();
	return (Datum) 0;
}

/*
 * hybrid_copy_operator_classes() RETURNS void
 *
 * Of the extension's script: the classes of hybrid_hot.  Others of users' types come with
 * hybrid_make_operator_classes(), since a script would make them the extension's.
 */
Datum
hybrid_copy_operator_classes(PG_FUNCTION_ARGS)
{
	SPI_connect();
	copy_to_hot(true);
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * hybrid_complete_operator_families() RETURNS void
 *
 * Adds to families of the extension's script what btree's of the same name have on
 * this server.
 */
Datum
hybrid_complete_operator_families(PG_FUNCTION_ARGS)
{
	Oid			method = get_index_am_oid("hybrid", false);
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	ListCell   *lc;

	SPI_connect();
	foreach(lc, classes_of(BTREE_AM_OID))
	{
		const OpClass *class = lfirst(lc);
		FamilyCopy	copy = {.from = class->family,.method = method,.schema = schema};

		if (class->schema != PG_CATALOG_NAMESPACE)
			continue;
		copy.name = family_name(class->family);
		copy.to = find_family(method, copy.name, schema);
		if (OidIsValid(copy.to))
			add_loose_members(&copy, true);
	}
	SPI_finish();
	PG_RETURN_VOID();
}
