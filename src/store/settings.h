/*
 * settings.h
 *		Storage parameters (WITH), of all layers, and settings that no layer has.
 */
#ifndef HYB_SETTINGS_H
#define HYB_SETTINGS_H

#include "postgres.h"

#include "utils/rel.h"

extern bool hyb_prefetch;		/* ask for pages ahead */

#ifdef USE_ASSERT_CHECKING
extern bool hyb_test_trie;		/* test_trie: indexes have layout = trie where
								 * that is possible */
#endif

/*
 * test_short_logs: log/fetch.c takes memory for short.  Servers without
 * assertions do not have the setting.
 */
extern bool hyb_test_short_logs;

/*
 * What a filter is: on disk (filter/filter_kind.h), and the parameter.  2 and 4 were
 * kinds of early versions.
 */
typedef enum HybFilterKind
{
	HYB_FILTER_NONE = 0,
	HYB_FILTER_SURF = 1,
	HYB_FILTER_POINTS = 3,
	HYB_FILTER_AUTO = 5			/* a value of the parameter only: points, or
								 * none (filter/filter_choice.h) */
} HybFilterKind;

/* Does the kind say anything about ranges? */
#define hyb_filter_has_ranges(kind) ((kind) == HYB_FILTER_SURF)

/* How leaves that are built keep INCLUDE columns of variable length. */
typedef enum HybCompression
{
	HYB_COMPRESSION_NONE,
	HYB_COMPRESSION_LZ4			/* symbols, or algo/lzgroups.h where it pays */
} HybCompression;

/* What leaves of the oldest level hold: docs/trie.md. */
typedef enum HybLayoutOption
{
	HYB_OPTION_COLUMNAR,		/* keys */
	HYB_OPTION_TRIE				/* the beginnings of keys */
} HybLayoutOption;

/* Storage parameters (WITH); first field as reloptions.c wants it */
typedef struct HybOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			merge_ratio;	/* static : dynamic entries that triggers a
								 * merge */
	int			levels;			/* static levels at most; HYB_LEVELS_AUTO: as
								 * many as pay */
	int			filter;			/* HybFilterKind */
	int			filter_suffix_bits;
	int			compression;	/* HybCompression */
	int			layout;			/* HybLayoutOption, for the next build */
	int			access_method;	/* offset of a string, which says "hybrid" */
	int			fillfactor;		/* btree's, without effect */
	bool		deduplicate_items;	/* the same */
} HybOptions;

/*
 * The storage parameter that indexes of PRIMARY KEY and UNIQUE constraints
 * have (ddl/twin/twin.h).
 */
#define HYB_ACCESS_METHOD_PARAMETER "access_method"

#define HYB_DEFAULT_FILTER HYB_FILTER_AUTO
#define HYB_DEFAULT_FILTER_SUFFIX_BITS 4

#define HYB_DEFAULT_MERGE_RATIO 10
#define HYB_MIN_MERGE_RATIO 1
#define HYB_MAX_MERGE_RATIO 1000

#define HYB_LEVELS_AUTO 0
#define HYB_DEFAULT_COMPRESSION HYB_COMPRESSION_LZ4
#define HYB_DEFAULT_LAYOUT HYB_OPTION_COLUMNAR

/* The options of an index, or the defaults. */
static inline const HybOptions *
hyb_options(Relation rel)
{
	static const HybOptions defaults = {
		.merge_ratio = HYB_DEFAULT_MERGE_RATIO,
		.levels = HYB_LEVELS_AUTO,
		.filter = HYB_DEFAULT_FILTER,
		.filter_suffix_bits = HYB_DEFAULT_FILTER_SUFFIX_BITS,
		.compression = HYB_DEFAULT_COMPRESSION,
		.layout = HYB_DEFAULT_LAYOUT
	};

	return rel->rd_options != NULL ? (const HybOptions *) rel->rd_options : &defaults;
}

#define hyb_merge_ratio(rel) (hyb_options(rel)->merge_ratio)
#define hyb_levels_option(rel) (hyb_options(rel)->levels)
#define hyb_filter_option(rel) ((HybFilterKind) hyb_options(rel)->filter)
#define hyb_filter_suffix_bits(rel) (hyb_options(rel)->filter_suffix_bits)
#define hyb_compression(rel) ((HybCompression) hyb_options(rel)->compression)
#define hyb_layout_option(rel) ((HybLayoutOption) hyb_options(rel)->layout)

/* Defines them.  Called once, when the library is loaded. */
extern void hyb_settings_init(void);

/* amoptions of the access method: see the server's IndexAmRoutine. */
extern bytea *hyb_amoptions(Datum reloptions, bool validate);

#endif							/* HYB_SETTINGS_H */
