/*
 * config.h
 *		Settings and storage parameters, defined in am/options.c.
 */
#ifndef HYB_CONFIG_H
#define HYB_CONFIG_H

#include "postgres.h"

#include "utils/rel.h"

/* GUCs, hybridindex.* */
extern int	hyb_dynamic_memory_kb;	/* dynamic_memory, 64 MB */
extern int	hyb_merge_floor;	/* merge_floor: entries below which the ratio
								 * does not ask for a merge */
extern int	hyb_merge_step_pages;	/* leaves a merge step reads */
extern bool hyb_background_merge;	/* start workers */

/* Storage parameters (WITH); first field as reloptions.c wants it */
typedef struct HybOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			merge_ratio;	/* static : dynamic entries that triggers a
								 * merge */
} HybOptions;

#define HYB_DEFAULT_MERGE_RATIO 10
#define HYB_MIN_MERGE_RATIO 1
#define HYB_MAX_MERGE_RATIO 1000

#define hyb_merge_ratio(rel) \
	((rel)->rd_options ? ((HybOptions *) (rel)->rd_options)->merge_ratio : \
	 HYB_DEFAULT_MERGE_RATIO)

#endif							/* HYB_CONFIG_H */
