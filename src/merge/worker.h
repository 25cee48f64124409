/*
 * worker.h
 *		The background worker that merges an index.
 */
#ifndef HYB_WORKER_H
#define HYB_WORKER_H

#include "postgres.h"

/*
 * Ask for a worker to merge an index.  False if none will: the caller sees to
 * it itself.
 */
extern bool hyb_worker_ask(Oid dbid, Oid relid);

extern PGDLLEXPORT void hybrid_merge_worker_main(Datum arg);

#endif							/* HYB_WORKER_H */
