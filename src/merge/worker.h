/*
 * worker.h
 *		The background worker that merges an index.
 */
#ifndef HYB_WORKER_H
#define HYB_WORKER_H

#include "postgres.h"

/* Start a worker; false if no worker slot is free. */
extern bool hyb_worker_start(Oid dbid, Oid relid);

extern PGDLLEXPORT void hybrid_merge_worker_main(Datum arg);

#endif							/* HYB_WORKER_H */
