/*
 * worker.h
 *		The background worker that merges an index.
 */
#ifndef HYB_WORKER_H
#define HYB_WORKER_H

#include "postgres.h"

extern PGDLLEXPORT void hybrid_merge_worker_main(Datum arg);

#endif							/* HYB_WORKER_H */
