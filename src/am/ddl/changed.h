/*
 * changed.h
 *		The tables whose columns a statement changes.
 */
#ifndef HYB_CHANGED_H
#define HYB_CHANGED_H

#include "nodes/pg_list.h"

/* Of ALTER TABLE or ALTER TYPE ... CASCADE; they are locked. */
extern List *hyb_changed_tables(Oid relid);

#endif
