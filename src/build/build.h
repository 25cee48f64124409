/*
 * build.h
 *		CREATE INDEX, as the server asks for it.
 */
#ifndef HYB_BUILD_H
#define HYB_BUILD_H

#include "access/amapi.h"

#include "key/desc.h"

extern IndexBuildResult *hyb_ambuild(Relation heap, Relation index,
									 struct IndexInfo *info);
extern void hyb_ambuildempty(Relation index);
extern char *hyb_ambuildphasename(int64 phase);

/* Why leaves of an index cannot hold the beginnings of keys. */
typedef struct HybTrieObstacle
{
	const char *detail;
	const char *hint;
} HybTrieObstacle;

/*
 * Returns true, and says why, if an index of this description cannot have layout =
 * trie.
 */
extern bool hyb_trie_obstacle(Relation index, const HybKeyDesc *desc,
							  HybTrieObstacle *obstacle);

/* How much shorter keys became: their bytes by those of their codes. */
static inline double
hyb_dictionary_rate(uint64 plain, uint64 stored)
{
	return stored > 0 ? (double) plain / (double) stored : 1.0;
}

#endif							/* HYB_BUILD_H */
