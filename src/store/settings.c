/*
 * settings.c
 *		Settings (hybridindex.*) and storage parameters (WITH).
 */
#include "base/compat.h"

#include <limits.h>

#include "access/nbtree.h"
#include "access/reloptions.h"
#include "algo/surf.h"
#include "miscadmin.h"
#include "store/meta.h"
#include "store/settings.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

int			hyb_dynamic_memory_kb = 64 * 1024;
int			hyb_merge_floor = 8192;
int			hyb_merge_step_pages = 32;
bool		hyb_background_merge = true;
int			hyb_max_merge_workers = 2;
int			hyb_log_merge_ms = -1;
int			hyb_quiet_time = 5000;
bool		hyb_replace_btree = false;
bool		hyb_prefetch = true;
int			hyb_hot_memory_kb = HYB_DEFAULT_HOT_KB;
TimestampTz hyb_hot_memory_since = 0;
bool		hyb_hot_memory_changed = true;
#ifdef HYB_TEST_LAYOUT
bool		hyb_test_layout = false;
#endif
#ifdef USE_ASSERT_CHECKING
bool		hyb_test_trie = false;
bool		hyb_test_filter = false;
#endif
int			hyb_test_levels = 1;
int			hyb_test_pressure = 0;
bool		hyb_test_short_logs = false;

static relopt_kind hyb_relopt_kind;

static relopt_enum_elt_def filter_values[] = {
	{"auto", HYB_FILTER_AUTO},
	{"grafite", HYB_FILTER_GRAFITE},
	{"none", HYB_FILTER_NONE},
	{"points", HYB_FILTER_POINTS},
	{"surf", HYB_FILTER_SURF},
	{NULL}
};

static relopt_enum_elt_def compression_values[] = {
	{"lz4", HYB_COMPRESSION_LZ4},
	{"none", HYB_COMPRESSION_NONE},
	{NULL}
};

static relopt_enum_elt_def layout_values[] = {
	{"columnar", HYB_OPTION_COLUMNAR},
	{"trie", HYB_OPTION_TRIE},
	{NULL}
};

static relopt_enum_elt_def levels_values[] = {
	{"auto", HYB_LEVELS_AUTO},
	{"1", 1},
	{"2", 2},
	{"3", 3},
	{NULL}
};

/* `real` without quotes is a type name to the grammar, with this spelling */
static relopt_enum_elt_def filter_suffix_values[] = {
	{"real", HYB_SURF_REAL},
	{"pg_catalog.float4", HYB_SURF_REAL},
	{"hash", HYB_SURF_HASH},
	{"mixed", HYB_SURF_MIXED},
	{NULL}
};

/*
 * The value changes nothing: the parameter says in definitions that have no
 * other place for it what the access method is.
 */
static void
check_access_method(const char *value)
{
	if (value == NULL || pg_strcasecmp(value, "hybrid") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for storage parameter \"%s\": \"%s\"",
						HYB_ACCESS_METHOD_PARAMETER, value ? value : ""),
				 errdetail("The only value is \"hybrid\".")));
}

static void
define_storage_parameters(void)
{
	hyb_relopt_kind = add_reloption_kind();
	add_int_reloption(hyb_relopt_kind, "merge_ratio",
					  "Merges start when the static stage holds at most this many times the entries of the dynamic stage.",
					  HYB_DEFAULT_MERGE_RATIO, HYB_MIN_MERGE_RATIO,
					  HYB_MAX_MERGE_RATIO, ShareUpdateExclusiveLock);
	add_enum_reloption(hyb_relopt_kind, "levels",
					   "Static levels at most; auto has as many as save writing.",
					   levels_values, HYB_LEVELS_AUTO,
					   "Valid values are \"auto\", \"1\", \"2\" and \"3\".",
					   ShareUpdateExclusiveLock);
	add_enum_reloption(hyb_relopt_kind, "filter",
					   "Filters that tell that a key or range is not there without reading a leaf.",
					   filter_values, HYB_DEFAULT_FILTER,
					   "Valid values are \"auto\", \"grafite\", \"none\", \"points\" and \"surf\".",
					   ShareUpdateExclusiveLock);
	add_enum_reloption(hyb_relopt_kind, "filter_suffix",
					   "Kind of the suffix that filters keep of each key.",
					   filter_suffix_values, HYB_SURF_REAL,
					   "Valid values are \"real\", \"hash\" and \"mixed\".",
					   ShareUpdateExclusiveLock);
	add_int_reloption(hyb_relopt_kind, "filter_suffix_bits",
					  "Bits of the suffix that filters keep of each key.",
					  HYB_DEFAULT_FILTER_SUFFIX_BITS, 0,
					  HYB_SURF_MAX_SUFFIX, ShareUpdateExclusiveLock);
	add_int_reloption(hyb_relopt_kind, "filter_range",
					  "Length of the ranges that filters of kind \"grafite\" are made for.",
					  HYB_DEFAULT_FILTER_RANGE, 1, INT_MAX,
					  ShareUpdateExclusiveLock);

	add_enum_reloption(hyb_relopt_kind, "compression",
					   "Compression of INCLUDE columns of variable length, where it saves a tenth.",
					   compression_values, HYB_DEFAULT_COMPRESSION,
					   "Valid values are \"lz4\" and \"none\".",
					   ShareUpdateExclusiveLock);
	add_enum_reloption(hyb_relopt_kind, "layout",
					   "What leaves hold, once the index is built: keys, or as much of them as tells rows apart.",
					   layout_values, HYB_DEFAULT_LAYOUT,
					   "Valid values are \"columnar\" and \"trie\".",
					   ShareUpdateExclusiveLock);
	add_string_reloption(hyb_relopt_kind, HYB_ACCESS_METHOD_PARAMETER,
						 "Says that the index of a constraint is of this access method.",
						 "hybrid", check_access_method, AccessExclusiveLock);

	/* btree's, so that its DDL is good for us: checked as there, no effect */
	add_int_reloption(hyb_relopt_kind, "fillfactor",
					  "Accepted for compatibility with btree; has no effect.",
					  BTREE_DEFAULT_FILLFACTOR, BTREE_MIN_FILLFACTOR, 100,
					  ShareUpdateExclusiveLock);
	add_bool_reloption(hyb_relopt_kind, "deduplicate_items",
					   "Accepted for compatibility with btree; has no effect.",
					   true, ShareUpdateExclusiveLock);
}

/* Hidden ones. */
static void
define_test_settings(void)
{
#ifdef HYB_TEST_LAYOUT
	DefineCustomBoolVariable("hybridindex.test_layout",
							 "Leaves that are built have the layout for tests.",
							 NULL,
							 &hyb_test_layout,
							 false,
							 PGC_USERSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
#endif
#ifdef USE_ASSERT_CHECKING
	DefineCustomBoolVariable("hybridindex.test_trie",
							 "Gives indexes that are built layout = trie where that is possible, for tests.",
							 NULL,
							 &hyb_test_trie,
							 false,
							 PGC_USERSET,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.test_filter",
							 "Gives leaves filters of a kind that is only for tests.",
							 NULL,
							 &hyb_test_filter,
							 false,
							 PGC_USERSET,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.test_levels",
							"Has merges begin new static levels, up to this number, for tests.",
							NULL,
							&hyb_test_levels,
							1, 1, HYB_MAX_LEVELS,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.test_pressure",
							"Has trees be as if memory was plentiful (1) up to scarce (3), for tests.",
							NULL,
							&hyb_test_pressure,
							0, 0, 3,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.test_short_logs",
							 "Has short logs read in place as if memory was short, for tests.",
							 NULL,
							 &hyb_test_short_logs,
							 false,
							 PGC_USERSET,
							 GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
#endif
}

/*
 * When the setting is defined, its value is one that the process may have had
 * since it began.
 */
static void
assign_hot_memory(int kb, void *extra)
{
	hyb_hot_memory_since = hyb_hot_memory_since == 0 ? Max(MyStartTimestamp, 1) :
		GetCurrentTimestamp();
	hyb_hot_memory_changed = true;
}

/*
 * All may be set in parallel mode: a session that set one before the library
 * was loaded, may load it there.
 */
static void
define_settings(void)
{
	/* One pool serves the whole server, so no session may size it. */
	DefineCustomIntVariable("hybridindex.dynamic_memory",
							"Sets the memory for the dynamic stages of all hybrid indexes together.",
							"Where it does not suffice, merges start earlier; no insertion fails for lack of it.",
							&hyb_dynamic_memory_kb,
							64 * 1024, 64, HYB_MAX_DYNAMIC_KB,
							PGC_SIGHUP,
							GUC_UNIT_KB | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.merge_floor",
							"Sets the number of dynamic entries below which merge_ratio starts no merge.",
							NULL,
							&hyb_merge_floor,
							8192, 0, INT_MAX,
							PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.merge_step_pages",
							"Sets the number of static leaf pages that one step of a merge reads.",
							"Larger steps write less, smaller ones wait for less.",
							&hyb_merge_step_pages,
							32, 1, 128,
							PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.background_merge",
							 "Starts background workers to merge hybrid indexes.",
							 "If off, insertions and VACUUM do the steps of merges themselves.",
							 &hyb_background_merge,
							 true,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.max_merge_workers",
							"Sets the number of background workers that merge hybrid indexes at a time, in all databases.",
							"They count against max_worker_processes.",
							&hyb_max_merge_workers,
							2, 0, HYB_MAX_WORKERS,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.quiet_time",
							"Sets the time without insertions after which workers merge what is left of an index's log and shrink its file.",
							"They do it where that is worth what it writes. -1 turns it off.",
							&hyb_quiet_time,
							5000, -1, 3600 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.log_merge_min_duration",
							"Sets the time above which merges by background workers are logged.",
							"-1 logs none, 0 all of them.",
							&hyb_log_merge_ms,
							-1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.prefetch",
							 "Lets index scans and VACUUM ask for pages before they get to them.",
							 "How many is said by effective_io_concurrency, for VACUUM by maintenance_io_concurrency.",
							 &hyb_prefetch,
							 true,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.hot_memory",
							"Sets the memory for hot copies: keys of hybrid indexes that are looked up often.",
							"Look-ups of them read no page of the index. 0 has none.",
							&hyb_hot_memory_kb,
							HYB_DEFAULT_HOT_KB, 0, HYB_MAX_HOT_KB,
							PGC_SIGHUP,
							GUC_UNIT_KB | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, assign_hot_memory, NULL);
	DefineCustomBoolVariable("hybridindex.replace_btree",
							 "Makes hybrid indexes where btree ones would be made by default.",
							 "This holds for indexes without USING, and for primary keys and other constraints.",
							 &hyb_replace_btree,
							 false,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	define_test_settings();
	MarkGUCPrefixReserved("hybridindex");
}

void
hyb_settings_init(void)
{
	define_storage_parameters();
	define_settings();
}

bytea *
hyb_amoptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"merge_ratio", RELOPT_TYPE_INT, offsetof(HybOptions, merge_ratio)},
		{"levels", RELOPT_TYPE_ENUM, offsetof(HybOptions, levels)},
		{"filter", RELOPT_TYPE_ENUM, offsetof(HybOptions, filter)},
		{"filter_suffix", RELOPT_TYPE_ENUM, offsetof(HybOptions, filter_suffix)},
		{"filter_suffix_bits", RELOPT_TYPE_INT, offsetof(HybOptions, filter_suffix_bits)},
		{"filter_range", RELOPT_TYPE_INT, offsetof(HybOptions, filter_range)},
		{"compression", RELOPT_TYPE_ENUM, offsetof(HybOptions, compression)},
		{"layout", RELOPT_TYPE_ENUM, offsetof(HybOptions, layout)},
		{HYB_ACCESS_METHOD_PARAMETER, RELOPT_TYPE_STRING, offsetof(HybOptions, access_method)},
		{"fillfactor", RELOPT_TYPE_INT, offsetof(HybOptions, fillfactor)},
		{"deduplicate_items", RELOPT_TYPE_BOOL, offsetof(HybOptions, deduplicate_items)}
	};

	return (bytea *) build_reloptions(reloptions, validate, hyb_relopt_kind,
									  sizeof(HybOptions), tab, lengthof(tab));
}
