/*
 * layouts.c
 *		The layouts that there are, and which one an index gets.
 */
#include "base/compat.h"

#include "leaf/layouts.h"
#include "store/settings.h"

const HybLeafLayout *const hyb_leaf_layouts[HYB_LAYOUTS] = {
	&hyb_columnar_layout,
	&hyb_trie_layout,
	&hyb_strings_layout,
};

const HybLeafLayout *
hyb_leaf_layout_for(const HybIndex *ix, int level)
{
	if (level == 0 && ix->desc->truncated)
		return hyb_key_is_fixed(ix->desc) ? &hyb_trie_layout : &hyb_strings_layout;
	return &hyb_columnar_layout;
}
