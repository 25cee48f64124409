/*
 * predicate_target.c
 *		What stands for a range of keys among the server's predicate locks.
 */
#include "base/compat.h"

#include "tree/predicate_target.h"

bool
hyb_target_of_pos(const HybIndex *ix, const HybVersion *version, const HybPos *pos,
				  bool backward, BlockNumber *target)
{
	const HybRoot *root = &version->levels[0];
	HybDescent	descent = {0};
	HybSought	sought = {
		.level = 0,
		.pos = pos,
		.backward = backward,
		.only_fence = true
	};

	if (root->height <= 1)
	{
		*target = root->height == 0 ? HYB_TARGET_NO_LEAF :
			hyb_target_of_leaf(root->block, root->stamp);
		return true;
	}
	if (!hyb_static_descend(ix, version, &sought, &descent))
		return false;
	Assert(!BufferIsValid(descent.buf));
	*target = hyb_target_of_leaf(descent.block, descent.stamp);
	return true;
}
