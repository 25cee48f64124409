/*
 * pure.h
 *		Which comparisons may run while an LWLock is held.
 *
 * A process with an LWLock must not wait for a lock that another session chooses: no
 * timeout would end that, and no deadlock would be noticed.  So a comparison that
 * runs then is *pure*: it reads no catalog and runs no code but the server's.
 *
 * HybKeyDesc.pure tells it of the keys of an index.  Where it is HYB_PURE,
 * searches compare on locked pages.  Otherwise they compare on copies of pages.
 * Shared trees hold pure keys only, and nothing else is sought in them.  What
 * remains is read through trees of the backend's own (log/open_stage.c).
 */
#ifndef HYB_PURE_H
#define HYB_PURE_H

#include "base/compat.h"

#include "fmgr.h"

/* Which keys may be compared while an LWLock is held?  Fewer and fewer of them. */
typedef enum HybPure
{
	HYB_PURE,					/* all */
	HYB_PURE_IN_PART,			/* those for which hyb_key_is_pure is true */
	HYB_IMPURE					/* none: comparisons may read a catalog, wait
								 * for a lock, or run any user's code */
} HybPure;

/*
 * Classifies the function that compares values of a type.  With HYB_PURE_IN_PART
 * *part is the type that pure arrays and ranges name, or InvalidOid for an enum.
 * Reads what the comparisons need once in a session.
 */
extern HybPure hyb_pure_classify(Oid function, Oid type, Oid collation, Oid *part);

/* Where the name of that type lies, in the bytes of a value behind its header. */
extern uint32 hyb_pure_part_offset(Oid function);

/* Have comparisons of pure values know that type. */
extern void hyb_pure_remember(FmgrInfo *function, Oid collation, Oid part);

#endif							/* HYB_PURE_H */
