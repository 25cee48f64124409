/*
 * hand_over_locks.c
 *		Predicate locks on leaves that a step replaces.
 *
 * A leaf of the oldest level stands for a range of keys among the server's
 * predicate locks (tree/predicate_target.h).  When a step replaces it, who has
 * locked the old leaf has to hold locks on all new leaves that overlap its range.
 * That is done with the metapage locked exclusively, right before the version is
 * switched: a scan locks a leaf only with the metapage locked, in the version that
 * is current then (scan/scan_lock.c), so no lock comes to the old leaf later.
 *
 * The old leaf keeps its locks.  An insertion that still is in the old version asks
 * for that leaf, and finds them.
 *
 * Keys are compared before the metapage is locked.  If no old leaf has a lock, as
 * where there are no serializable transactions, nothing is compared.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "merge/hand_over.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "storage/predicate_internals.h"
#include "tree/predicate_target.h"
#include "utils/rel.h"

/* From this part of its places on the server's table of locks is nearly full. */
#define NEARLY_FULL		0.75

/* An index has a good part of the locks if it has more than 1 of GOOD_PART. */
#define GOOD_PART		16

/* The next of the new leaves. */
typedef struct NewLeaf
{
	const HybRoot *root;
	HybPath    *path;			/* to the level-1 node above it */
	int			child;			/* of that node */
	BlockNumber target;			/* that stands for its range */
	HybPos		high;			/* its upper fence */
} NewLeaf;

typedef struct Move
{
	BlockNumber from;
	BlockNumber to;
} Move;

typedef struct Moves
{
	Move	   *moves;
	int			n;
	int			alloc;
} Moves;

static BlockNumber
target_of_child(const HybChild *child)
{
	return hyb_target_of_leaf(child->block, child->stamp);
}

static void
set_leaf(NewLeaf *leaf, int child)
{
	Assert(leaf->path->height == 0 ||
		   (child >= 0 && child < leaf->path->nodes[0].children.n));
	leaf->child = child;
	leaf->target = leaf->path->height == 0 ? HYB_TARGET_NO_LEAF :
		target_of_child(&leaf->path->nodes[0].children.children[child]);
	leaf->high = leaf->path->height == 0 ? leaf->path->high :
		hyb_path_upper_fence(leaf->path, child);
}

/* Read the path to the new leaf that a position lies in. */
static void
load_new_leaf(const HybIndex *ix, NewLeaf *leaf, const HybPos *pos)
{
	leaf->path = palloc(sizeof(HybPath));
	hyb_path_load(ix, leaf->root, pos, leaf->path);
	set_leaf(leaf, leaf->path->nodes[0].index);
}

/* Go on to the next leaf. */
static void
next_leaf(const HybIndex *ix, NewLeaf *leaf)
{
	HybPos		high = leaf->high;

	CHECK_FOR_INTERRUPTS();
	if (leaf->child + 1 < leaf->path->nodes[0].children.n)
		set_leaf(leaf, leaf->child + 1);
	else
		load_new_leaf(ix, leaf, &high);
}

static void
add_move(Moves *moves, BlockNumber from, BlockNumber to)
{
	if (moves->n == moves->alloc)
	{
		moves->alloc = Max(2 * moves->alloc, 64);
		moves->moves = hyb_grow(CurrentMemoryContext, moves->moves, moves->alloc,
								sizeof(Move));
	}
	moves->moves[moves->n].from = from;
	moves->moves[moves->n++].to = to;
}

/*
 * The locks on an old leaf, or what stood for it, go to new ones: to those that
 * overlap its range, from the leaf at hand on.
 */
static void
add_moves(const HybIndex *ix, Moves *moves, BlockNumber from, const HybPos *low,
		  const HybPos *high, NewLeaf *leaf)
{
	while (hyb_pos_compare(ix->desc, &leaf->high, low) <= 0)
		next_leaf(ix, leaf);
	add_move(moves, from, leaf->target);
	while (hyb_pos_compare(ix->desc, &leaf->high, high) < 0)
	{
		next_leaf(ix, leaf);
		add_move(moves, from, leaf->target);
	}
}

/* Which locks go where? */
static void
find_moves(const HybIndex *ix, const HybReplacedLeaves *replaced, Moves *moves)
{
	const HybPath *path = replaced->path;
	const HybChildList *list = &path->nodes[0].children;
	HybPos		low = {.tie = HYB_BEFORE};
	NewLeaf		leaf = {.root = replaced->root};
	int			next = 0;

	if (path->height == 0)
	{
		load_new_leaf(ix, &leaf, &low);
		add_moves(ix, moves, HYB_TARGET_NO_LEAF, &low, &path->high, &leaf);
		return;
	}
	for (int i = 0; i < list->n && next < replaced->nretired; i++)
	{
		HybPos		high = hyb_path_upper_fence(path, i);

		if (list->children[i].block != replaced->retired[next])
			continue;
		if (next++ == 0)
			load_new_leaf(ix, &leaf, &list->children[i].low);
		add_moves(ix, moves, target_of_child(&list->children[i]),
				  &list->children[i].low, &high, &leaf);
	}
	Assert(next == replaced->nretired);
}

/* Has anybody locked an old leaf? */
static bool
is_locked(const HybIndex *ix, const HybReplacedLeaves *replaced)
{
	const HybChildList *list = &replaced->path->nodes[0].children;
	int			next = 0;

	if (replaced->path->height == 0)
		return PageIsPredicateLocked(ix->rel, HYB_TARGET_NO_LEAF);
	for (int i = 0; i < list->n && next < replaced->nretired; i++)
	{
		if (list->children[i].block != replaced->retired[next])
			continue;
		next++;
		if (PageIsPredicateLocked(ix->rel, target_of_child(&list->children[i])))
			return true;
	}
	Assert(next == replaced->nretired);
	return false;
}

/*
 * Each merge copies the locks of a transaction that goes on for long, and the
 * server's table of locks is of fixed size.  Is it nearly full, and does this index
 * have a good part of the locks?  Several indexes may fill it together.
 */
static bool
has_too_many(const HybIndex *ix)
{
	PredicateLockData *data = GetPredicateLockStatusData();
	int			n = 0;

	for (int i = 0; i < data->nelements; i++)
		n += GET_PREDICATELOCKTARGETTAG_DB(data->locktags[i]) == MyDatabaseId &&
			GET_PREDICATELOCKTARGETTAG_RELATION(data->locktags[i]) == RelationGetRelid(ix->rel);
	return data->nelements > NEARLY_FULL * max_predicate_locks_per_xact * MaxBackends &&
		n > data->nelements / GOOD_PART;
}

/*
 * Where the server has no room for a copy it makes the old leaf's locks one on the
 * index.  To undo half a copy it removes all locks of the new leaf, also those that
 * came from another leaf.  All locks that are left go to the table then: each
 * transaction still has those on its old leaf.
 */
static void
hand_over_locks(const HybIndex *ix, const Moves *moves)
{
	bool		full = false;

	for (int i = 0; i < moves->n; i++)
	{
		const Move *move = &moves->moves[i];

		/* an index without leaves may stay one */
		if (move->from == move->to || !PageIsPredicateLocked(ix->rel, move->from))
			continue;
		PredicateLockPageSplit(ix->rel, move->from, move->to);
		full |= !PageIsPredicateLocked(ix->rel, move->from);
	}
	if (full)
		TransferPredicateLocksToHeapRelation(ix->rel);
}

/*
 * Locks on an index may become locks on its table at any moment, since insertions
 * ask for the index before the table.
 */
Buffer
hyb_meta_lock_to_replace(HybIndex *ix, const HybReplacedLeaves *replaced,
						 HybMetaPage **meta)
{
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, meta);
	Moves		moves = {0};

	if (!is_locked(ix, replaced))
		return metabuf;
	UnlockReleaseBuffer(metabuf);
	if (has_too_many(ix))
		TransferPredicateLocksToHeapRelation(ix->rel);
	find_moves(ix, replaced, &moves);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, meta);
	hand_over_locks(ix, &moves);
	return metabuf;
}
