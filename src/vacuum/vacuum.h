/*
 * vacuum.h
 *		The functions that the server calls for VACUUM.
 */
#ifndef HYB_VACUUM_H
#define HYB_VACUUM_H

#include "access/amapi.h"

extern IndexBulkDeleteResult *hyb_ambulkdelete(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats,
											   IndexBulkDeleteCallback callback,
											   void *callback_state);
extern IndexBulkDeleteResult *hyb_amvacuumcleanup(IndexVacuumInfo *info,
												  IndexBulkDeleteResult *stats);

#endif							/* HYB_VACUUM_H */
