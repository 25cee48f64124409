/*
 * pure.h
 *		Which comparisons may run while an LWLock is held.
 *
 * A process with an LWLock must not wait for a lock that another session chooses: no
 * timeout would end that, and no deadlock would be noticed.  So a comparison that
 * runs then is *pure*: it reads no catalog and runs no code but the server's.
 *
 * HybKeyDesc.pure says which keys of an index have pure comparisons.  Where all
 * have, searches compare on locked pages.  Otherwise they compare on copies of pages.
 * Shared trees hold pure keys only, and nothing else is sought in them.  What
 * remains is read through trees of the backend's own (log/open_stage.c).
 */
#ifndef HYB_PURE_H
#define HYB_PURE_H

#include "base/compat.h"

#include "fmgr.h"

/* Which keys may be compared while an LWLock is held?  Strictest last. */
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
 * *part_cmp is the function that compares elements of arrays, else InvalidOid.
 * Loads no collation, which may fail.
 */
extern HybPure hyb_pure_classify(Oid function, Oid type, Oid *part, Oid *part_cmp);

/*
 * Loads the collations that comparisons of pure values use, before an LWLock is
 * taken.  Raises an error if the server cannot load one.
 */
extern void hyb_pure_read_collations(Oid function, Oid collation, Oid part);

/* Where the name of that type lies, in the bytes of a value behind its header. */
extern uint32 hyb_pure_part_offset(Oid function);

/*
 * Have the comparison function look up that type before an LWLock is taken.  Returns
 * false if elements of arrays are no longer compared by part_cmp: the default operator
 * class has changed, and no value is pure.
 */
extern bool hyb_pure_remember(FmgrInfo *function, Oid collation, Oid part, Oid part_cmp);

#endif							/* HYB_PURE_H */
