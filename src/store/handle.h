/*
 * handle.h
 *		A backend's handle on an open index.
 */
#ifndef HYB_HANDLE_H
#define HYB_HANDLE_H

#include "key/position.h"
#include "storage/block.h"

struct HybCache;
struct HybDictionaries;

/*
 * A backend's handle on an open index; lives in the memory context of the
 * scan, statement or call that uses it.
 */
typedef struct HybIndex
{
	Relation	rel;
	HybKeyDesc *desc;
	uint64		incarnation;
	struct HybCache *cache;		/* what the backend keeps about the index;
								 * NULL until first needed */
	uint64		cache_serial;	/* tells whether `cache` still is what it was */
	MemoryContext context;		/* that the handle lives in */
	const struct HybDictionaries *dictionaries; /* NULL without encoded
												 * columns, and while they are
												 * plain */
} HybIndex;

/*
 * Opens a handle, one chunk, in the current memory context.  An error if this
 * session is building the index.
 */
extern HybIndex *hyb_index_create_handle(Relation rel);

#define HYB_HANDLE_SIZE(natts) \
	(MAXALIGN(sizeof(HybIndex)) + hyb_key_desc_size(natts))

/*
 * The same in the caller's memory of `size` bytes.  Returns false if that is too
 * small, or the index has encoded columns.  Allocates nothing once the relation cache
 * knows the index.
 */
extern bool hyb_index_make_handle(Relation rel, HybIndex *ix, Size size);

/*
 * An index that this session is building, on the builder's stack: functions of
 * expressions and predicates may come to the same index, or build others.
 */
typedef struct HybBeingBuilt
{
	Oid			index;
	struct HybBeingBuilt *outer;
} HybBeingBuilt;

extern HybBeingBuilt *hyb_being_built;

extern bool hyb_index_is_being_built(Oid index);

/*
 * Do leaves of its oldest level hold the beginnings of keys only?  Raises no
 * error if the metapage cannot be read.
 */
extern bool hyb_index_is_truncated(Relation rel);

/*
 * Let handles that are made from now on begin with the cache of this one.
 * cache_serial tells its user whether it still is this index's.
 */
extern void hyb_index_remember_cache(const HybIndex *ix);

/*
 * Draw the incarnation of a new index into its handle.  May fail, so it comes
 * before the critical section.
 */
extern void hyb_index_draw_incarnation(HybIndex *ix);

/* Called, if set, before each handle is made.  It may raise an error. */
extern void (*hyb_index_use) (Relation rel);

/*
 * The transaction that wrote the row of this process's database in pg_database.
 * We read it when the first handle is made, since shared/directory.c, which needs
 * it, may hold locks.
 */
extern TransactionId hyb_database_xmin;

#endif							/* HYB_HANDLE_H */
