/*
 * scan_dead.c
 *		Passing over leaves whose entries are all dead.
 *
 * A queue takes its entries in order, so the dead ones lie where each scan begins,
 * until VACUUM and a merge come.  A scan leaves out those at the near end of what it
 * finds in a leaf (scan_leaf.c).  Where nothing is left it goes on to the next leaf
 * here, and does not ask the logs in between.  A backend remembers stretches of such
 * leaves, and its next scan begins behind them.
 *
 * What is dead to all stays dead, and a level that gets entries gets a new root.  So a
 * stretch holds as long as versions have the root that it was found below.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "miscadmin.h"
#include "scan/scan.h"

/* Stretches that a backend remembers of an index, for ranges that begin differently. */
#define STRETCHES		8

/* An end with a longer key is not remembered. */
#define STRETCH_KEY		64

typedef struct StretchEnd
{
	HybPos		pos;			/* without its key */
	uint8		key[STRETCH_KEY];
} StretchEnd;

/* Everything that a level has between two positions is dead. */
typedef struct HybDeadStretch
{
	int			level;
	HybRoot		root;			/* of the level; height 0: none is remembered */
	StretchEnd	low;
	StretchEnd	high;
} HybDeadStretch;

void
hyb_forget_stretches(HybScanHabits *habits)
{
	if (habits->stretches != NULL)
		pfree(habits->stretches);
	habits->stretches = NULL;
}

/* The place of the range at hand among the stretches, which are there. */
static HybDeadStretch *
stretch_place(const HybScan *so, int level)
{
	const HybPos *start = &so->keys.start;
	uint64		hash = hyb_byte_hash(start->key, start->len);

	return &hyb_scan_habits(so->ix)->stretches[(hash + level) % STRETCHES];
}

/*
 * A copy of the stretch around a position, since comparison functions may drop what
 * the backend remembers.  Returns false if there is none.
 */
static bool
find_stretch(const HybScan *so, const HybRoot *root, int level, const HybPos *pos,
			 HybDeadStretch *stretch)
{
	if (hyb_scan_habits(so->ix)->stretches == NULL)
		return false;
	*stretch = *stretch_place(so, level);
	if (stretch->level != level || stretch->root.height == 0 ||
		stretch->root.block != root->block || stretch->root.stamp != root->stamp)
		return false;
	stretch->low.pos.key = stretch->low.key;
	stretch->high.pos.key = stretch->high.key;
	return hyb_pos_compare(so->ix->desc, pos, &stretch->low.pos) >= 0 &&
		hyb_pos_compare(so->ix->desc, pos, &stretch->high.pos) <= 0;
}

static bool
set_end(StretchEnd *end, const HybPos *pos)
{
	if (pos->len > STRETCH_KEY)
		return false;
	end->pos = *pos;
	if (pos->len > 0)
		memcpy(end->key, pos->key, pos->len);
	return true;
}

/*
 * Everything between the position where a batch begins and a fence is dead.  This
 * makes a stretch that the batch began in longer.
 */
static void
remember(const HybScan *so, const HybRoot *root, int level, const HybPos *pos,
		 const HybPos *fence, bool forward)
{
	HybScanHabits *habits;
	HybDeadStretch stretch;

	if (!find_stretch(so, root, level, pos, &stretch))
	{
		stretch.level = level;
		stretch.root = *root;
		if (!set_end(forward ? &stretch.low : &stretch.high, pos))
			return;
	}
	if (!set_end(forward ? &stretch.high : &stretch.low, fence))
		return;
	habits = hyb_scan_habits(so->ix);
	if (habits->stretches == NULL)
		habits->stretches = MemoryContextAllocZero(TopMemoryContext,
												   STRETCHES * sizeof(HybDeadStretch));
	*stretch_place(so, level) = stretch;
}

static inline bool
lies_before(const HybKeyDesc *desc, const HybPos *pos, const HybPos *end, bool forward)
{
	int			c = hyb_pos_compare(desc, pos, end);

	return forward ? c < 0 : c > 0;
}

/*
 * Leaves that one batch passes over.  It is loaded again if the version has changed
 * meanwhile, so it has to end before merges install the next one.
 */
#define MOST_PASSED		32

/*
 * A serializable transaction locks the leaf where a batch begins, so its batches end
 * at each fence.
 */
bool
hyb_part_load_live(HybScan *so, const HybVersion *version, int level,
				   const HybPos *pos, bool forward, HybScanEdge *far)
{
	const HybKeyDesc *desc = so->ix->desc;
	const HybRoot *root = &version->levels[level];
	HybScanPart *part = so->batch->parts[level];
	HybScanEdge *end = &so->dead_end;
	HybScanEdge *at = &so->dead_at;
	const HybPos *begin = pos;
	HybDeadStretch stretch;
	int			passed = 0;

	if (so->mode.locks || !so->scan->ignore_killed_tuples)
		return hyb_part_load(so, version, level, pos, forward, far);
	hyb_edge_copy(end, far);
	if (find_stretch(so, root, level, pos, &stretch))
	{
		hyb_edge_set_pos(at, forward ? &stretch.high.pos : &stretch.low.pos);
		begin = &at->pos;
	}
	while (begin == pos || lies_before(desc, begin, hyb_edge_pos(&so->keys, end), forward))
	{
		if (!hyb_part_load(so, version, level, begin, forward, far))
			return false;
		if (!part->all_dead || passed++ == MOST_PASSED)
			return true;
		remember(so, root, level, pos, &far->pos, forward);
		hyb_part_finish(part);
		hyb_edge_copy(at, far);
		hyb_edge_copy(far, end);
		begin = &at->pos;
		CHECK_FOR_INTERRUPTS();
	}
	hyb_part_empty(part);
	return true;
}
