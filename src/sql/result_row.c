/*
 * result_row.c
 *		Rows that SQL functions return.
 *
 * The header says what becomes of them if the script and the library differ.  A
 * superuser may declare the functions too, in any way.  So each declared type is
 * checked before a value is put, and values without a place are left out.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "sql/result_row.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

static void
refuse_declaration(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("the function is not declared as the library has it"),
			 errdetail_internal("%s", detail),
			 errhint("The script of the extension hybridindex declares it.")));
}

void
hyb_result_begin(FunctionCallInfo fcinfo, bool set, HybResultRow *row)
{
	memset(row, 0, sizeof(*row));
	if (fcinfo->flinfo->fn_retset != set ||
		get_call_result_type(fcinfo, NULL, &row->tupdesc) != TYPEFUNC_COMPOSITE)
		refuse_declaration(set ? "It returns a set of rows." : "It returns one row.");
	if (set)
	{
		ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

		InitMaterializedSRF(fcinfo, 0);
		row->tupdesc = result->setDesc;
		row->set = result->setResult;
	}
	row->values = palloc0(row->tupdesc->natts * sizeof(Datum));
	row->nulls = palloc(row->tupdesc->natts * sizeof(bool));
	memset(row->nulls, true, row->tupdesc->natts * sizeof(bool));
}

void
hyb_result_put(HybResultRow *row, Oid type, bool known, Datum value)
{
	Form_pg_attribute att;

	while (row->next < row->tupdesc->natts &&
		   TupleDescAttr(row->tupdesc, row->next)->attisdropped)
		row->next++;
	if (row->next == row->tupdesc->natts)
		return;
	att = TupleDescAttr(row->tupdesc, row->next);
	if (att->atttypid != type)
		refuse_declaration(psprintf("Its column \"%s\" is of type %s, not %s.",
									NameStr(att->attname), format_type_be(type),
									format_type_be(att->atttypid)));
	row->values[row->next] = value;
	row->nulls[row->next] = !known;
	row->next++;
}

void
hyb_result_put_int8(HybResultRow *row, bool known, int64 number)
{
	hyb_result_put(row, INT8OID, known, Int64GetDatum(number));
}

Datum
hyb_result_datum(HybResultRow *row)
{
	Assert(row->set == NULL);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row->tupdesc),
											 row->values, row->nulls));
}

void
hyb_result_add(HybResultRow *row)
{
	Assert(row->set != NULL);
	tuplestore_putvalues(row->set, row->tupdesc, row->values, row->nulls);
	row->next = 0;
}
