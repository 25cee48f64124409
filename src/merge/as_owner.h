/*
 * as_owner.h
 *		Functions of indexes run as the owner of the table.
 */
#ifndef HYB_AS_OWNER_H
#define HYB_AS_OWNER_H

#include "postgres.h"

/* The role that goes on afterwards. */
typedef struct HybCaller
{
	Oid			user;
	int			security_context;
	int			nest_level;
} HybCaller;

/*
 * Comparison functions and index expressions may be anybody's code.  They run
 * between these two calls: as the owner of the table, in a security-restricted
 * operation, with a search path that nobody else can write to.  The caller's
 * own code (casts of arguments) runs before.  After an error the end of the
 * (sub)transaction brings the caller back.
 */
extern void hyb_become_owner(HybCaller *caller, Oid owner);
extern void hyb_become_caller(const HybCaller *caller);

/* Does the relation belong to the caller?  No, if it is gone. */
extern bool hyb_owns(Oid relid);

#endif							/* HYB_AS_OWNER_H */
