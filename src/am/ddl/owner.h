/*
 * owner.h
 *		Functions of indexes run as the owner of the table.
 */
#ifndef HYB_OWNER_H
#define HYB_OWNER_H

#include "postgres.h"

/* Who is to go on afterwards. */
typedef struct HybCaller
{
	Oid			user;
	int			security_context;
	int			nest_level;
} HybCaller;

/* An error in between takes it back with the transaction. */
extern void hyb_become_owner(HybCaller *caller, Oid owner);
extern void hyb_become_caller(const HybCaller *caller);

/* Who owns a relation. */
extern Oid	hyb_owner_of(Oid relid);

#endif							/* HYB_OWNER_H */
