/*
 * scan_hints.c
 *		Which items of a leaf are known to be dead.
 *
 * Kill hints lie in the hole of a leaf, until VACUUM makes tombstones of the bits
 * there.  From then on the leaf has no room for hints, and a scan would look again
 * and again at rows that have died since.  So a backend keeps the hints of a few such
 * leaves for itself.
 *
 * An item whose row was found dead to all is dead as long as the leaf is there: its
 * TID is not used again before VACUUM has set its tombstone.
 */
#include "base/compat.h"

#include "scan/scan.h"

/*
 * Leaves of an index whose hints a backend keeps.  A clock hand evicts: each use
 * raises a leaf's count to OWN_USES, each visit of the hand lowers it.  So a scan
 * of more leaves keeps the hints of some, and passes over these the next time.
 */
#define OWN_LEAVES		4
#define OWN_USES		3

typedef struct OwnHints
{
	BlockNumber block;
	uint64		stamp;			/* of the leaf; 0: there are none */
	int			uses;
	int			bytes;
	uint8	   *bits;			/* tombstones are among them */
} OwnHints;

typedef struct HybOwnHints
{
	int			hand;
	OwnHints	leaves[OWN_LEAVES];
} HybOwnHints;

void
hyb_hints_forget(HybScanHabits *habits)
{
	HybOwnHints *own = habits->own_hints;

	if (own == NULL)
		return;
	for (int i = 0; i < OWN_LEAVES; i++)
		if (own->leaves[i].bits != NULL)
			pfree(own->leaves[i].bits);
	pfree(own);
	habits->own_hints = NULL;
}

/* The hints of a leaf, or NULL. */
static OwnHints *
find_own(HybOwnHints *own, BlockNumber block, uint64 stamp)
{
	for (int i = 0; i < OWN_LEAVES && own != NULL; i++)
		if (own->leaves[i].block == block && own->leaves[i].stamp == stamp)
		{
			own->leaves[i].uses = OWN_USES;
			return &own->leaves[i];
		}
	return NULL;
}

/* Make room for those of a leaf.  NULL: the hand has found a leaf in use. */
static OwnHints *
make_own(HybOwnHints *own, BlockNumber block, uint64 stamp, int nitems)
{
	OwnHints   *hints = &own->leaves[own->hand];

	own->hand = (own->hand + 1) % OWN_LEAVES;
	if (hints->stamp != 0 && hints->uses-- > 0)
		return NULL;
	hints->stamp = 0;
	if (hints->bits != NULL)
		pfree(hints->bits);
	hints->bits = NULL;
	hints->bytes = hyb_leaf_hint_bytes(nitems);
	hints->bits = MemoryContextAllocZero(TopMemoryContext, hints->bytes);
	hints->block = block;
	hints->stamp = stamp;
	hints->uses = OWN_USES;
	return hints;
}

void
hyb_hints_keep(const HybIndex *ix, BlockNumber block, uint64 stamp, int nitems,
			   const int *items, int n)
{
	HybScanHabits *habits = hyb_scan_habits(ix);
	OwnHints   *hints;

	Assert(stamp != 0);
	if (habits->own_hints == NULL)
		habits->own_hints = MemoryContextAllocZero(TopMemoryContext, sizeof(HybOwnHints));
	hints = find_own(habits->own_hints, block, stamp);
	if (hints == NULL)
		hints = make_own(habits->own_hints, block, stamp, nitems);
	for (int i = 0; i < n && hints != NULL; i++)
	{
		Assert(items[i] >= 0 && items[i] < nitems);
		hints->bits[items[i] >> 3] |= 1 << (items[i] & 7);
	}
}

const uint8 *
hyb_hints_of(const HybIndex *ix, const HybLeaf *leaf, uint64 stamp, Page page)
{
	const uint8 *tombstones = leaf->tombstones;
	OwnHints   *hints;

	if (tombstones == NULL)
		return hyb_leaf_hints(page);
	hints = find_own(hyb_scan_habits(ix)->own_hints, leaf->blkno, stamp);
	if (hints == NULL)
		return tombstones;
	Assert(hints->bytes == hyb_leaf_hint_bytes(leaf->nitems));
	for (int i = 0; i < hints->bytes; i++)
		hints->bits[i] |= tombstones[i];
	return hints->bits;
}
