/*
 * subscription.c
 *		Tables that a subscription writes to.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/partition.h"
#include "catalog/pg_subscription_rel.h"
#include "ddl/subscription.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

bool
hyb_has_subscription(Oid table)
{
	List	   *tables = list_make1_oid(table);
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(rel, 0, NULL);
	HeapTuple	tuple;
	bool		found = false;

	if (get_rel_relispartition(table))
		tables = list_concat(tables, get_partition_ancestors(table));
	while (!found &&
		   (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		found = list_member_oid(tables,
								((Form_pg_subscription_rel) GETSTRUCT(tuple))->srrelid);
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}
