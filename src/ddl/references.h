/*
 * references.h
 *		Who may make a foreign key, asked before the referenced table is locked.
 */
#ifndef HYB_REFERENCES_H
#define HYB_REFERENCES_H

#include "nodes/pg_list.h"

/* Numbers of the columns of a table's primary key. */
extern List *hyb_primary_key_numbers(Oid relid);

/*
 * May the caller make a foreign key that references these columns?  As the
 * server's checkFkeyPermissions (commands/tablecmds.c).
 */
extern bool hyb_may_reference(Oid relid, const List *attnums);

#endif							/* HYB_REFERENCES_H */
