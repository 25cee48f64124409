/*
 * layouts.h
 *		The layouts that there are, and which one an index gets.
 */
#ifndef HYB_LAYOUTS_H
#define HYB_LAYOUTS_H

#include "leaf/leaf_layout.h"

/* By number - 1. */
extern const HybLeafLayout *const hyb_leaf_layouts[HYB_LAYOUTS];

/* The layout of leaves that are built for a level from here on. */
extern const HybLeafLayout *hyb_leaf_layout_for(const HybIndex *ix, int level);

#endif							/* HYB_LAYOUTS_H */
