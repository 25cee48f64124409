/*
 * build_layout.h
 *		Which layout an index is built with.
 */
#ifndef HYB_BUILD_LAYOUT_H
#define HYB_BUILD_LAYOUT_H

#include "store/handle.h"

/*
 * Do leaves of the oldest level hold the beginnings of keys, as the storage
 * parameter asks?  An error if they cannot.
 */
extern bool hyb_build_is_truncated(Relation index, const HybKeyDesc *desc);

#endif							/* HYB_BUILD_LAYOUT_H */
