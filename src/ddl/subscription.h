/*
 * subscription.h
 *		Tables that a subscription writes to.
 */
#ifndef HYB_SUBSCRIPTION_H
#define HYB_SUBSCRIPTION_H

#include "postgres.h"

/* Does one put rows into the table, or a partitioned one above? */
extern bool hyb_has_subscription(Oid table);

#endif							/* HYB_SUBSCRIPTION_H */
