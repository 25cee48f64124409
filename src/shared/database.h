/*
 * database.h
 *		Lives of databases.
 */
#ifndef HYB_DATABASE_H
#define HYB_DATABASE_H

#include "shared/shared.h"

extern const HybSharedPart hyb_database_part;

/*
 * The life of the database that this process is connected to; 0 without a
 * control structure.  The first call enters the process into the table of
 * databases: not in a critical section, and with the directory not locked.
 */
extern uint64 hyb_database_life(void);

#endif							/* HYB_DATABASE_H */
