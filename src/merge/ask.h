/*
 * ask.h
 *		Asking for merge workers, and starting them.
 */
#ifndef HYB_ASK_H
#define HYB_ASK_H

#include "shared/workers.h"

/*
 * Ask for a worker to merge an index, whose owner may be left out.  False if none
 * will: the caller sees to it itself.
 */
extern bool hyb_worker_ask(Oid dbid, Oid relid, Oid owner);

/* Start the process of an entry; false if the server has none to spare. */
extern bool hyb_worker_start(const HybWorkerRef *ref);

#endif							/* HYB_ASK_H */
