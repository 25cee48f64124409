/*
 * adopt.h
 *		Blocks that a crash has left to nobody.
 */
#ifndef HYB_ADOPT_H
#define HYB_ADOPT_H

#include "storage/buf.h"
#include "store/handle.h"

/*
 * Blocks that no structure of the index knows: a crash between extending the
 * relation and the WAL record that puts the block to use leaves them, all
 * zeroes or as an empty free-list page.  VACUUM frees them.  Gives up where
 * somebody is merging.
 */
extern void hyb_adopt_lost_blocks(HybIndex *ix, BufferAccessStrategy strategy);

#endif							/* HYB_ADOPT_H */
