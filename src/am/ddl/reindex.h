/*
 * reindex.h
 *		REINDEX while the setting hybridindex.replace_btree is on.
 */
#ifndef HYB_REINDEX_H
#define HYB_REINDEX_H

#include "am/ddl/utility_call.h"

/*
 * Makes hybrid the btree indexes that the statement would build anew, and has
 * the others built anew.  False if there are none, and nothing has been done.
 * May begin transactions, where the server's own REINDEX would.
 */
extern bool hyb_reindex(const HybUtilityCall *call);

#endif							/* HYB_REINDEX_H */
