/*
 * settings.c
 *		Storage parameters (WITH), of all layers, and settings that no layer has.
 *
 * The server wants the storage parameters of an access method in one struct.
 * Each layer defines its own settings (hybridindex.*), with GUC_ALLOW_IN_PARALLEL:
 * a session that set one before the library was loaded may load it in a parallel
 * worker.
 */
#include "base/compat.h"

#include "access/nbtree.h"
#include "access/reloptions.h"
#include "algo/fst.h"
#include "store/meta.h"
#include "store/settings.h"
#include "utils/guc.h"

bool		hyb_prefetch = true;
#ifdef USE_ASSERT_CHECKING
bool		hyb_test_trie = false;
#endif
bool		hyb_test_short_logs = false;

static relopt_kind hyb_relopt_kind;

static relopt_enum_elt_def filter_values[] = {
	{"auto", HYB_FILTER_AUTO},
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
					   "Valid values are \"auto\", \"none\", \"points\" and \"surf\".",
					   ShareUpdateExclusiveLock);
	add_int_reloption(hyb_relopt_kind, "filter_suffix_bits",
					  "Bits of a key that SuRF keeps beyond those that tell it from its neighbours.",
					  HYB_DEFAULT_FILTER_SUFFIX_BITS, 0,
					  HYB_FST_MAX_SUFFIX, ShareUpdateExclusiveLock);
	add_enum_reloption(hyb_relopt_kind, "compression",
					   "Compression of INCLUDE columns of variable length, where it saves an eighth.",
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
#ifdef USE_ASSERT_CHECKING
	DefineCustomBoolVariable("hybridindex.test_trie",
							 "Gives indexes that are built layout = trie where that is possible, for tests.",
							 NULL,
							 &hyb_test_trie,
							 false,
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

void
hyb_settings_init(void)
{
	define_storage_parameters();
	DefineCustomBoolVariable("hybridindex.prefetch",
							 "Lets index scans and VACUUM ask for pages before they get to them.",
							 "How many is said by effective_io_concurrency, for VACUUM by maintenance_io_concurrency.",
							 &hyb_prefetch,
							 true,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	define_test_settings();
}

bytea *
hyb_amoptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"merge_ratio", RELOPT_TYPE_INT, offsetof(HybOptions, merge_ratio)},
		{"levels", RELOPT_TYPE_ENUM, offsetof(HybOptions, levels)},
		{"filter", RELOPT_TYPE_ENUM, offsetof(HybOptions, filter)},
		{"filter_suffix_bits", RELOPT_TYPE_INT, offsetof(HybOptions, filter_suffix_bits)},
		{"compression", RELOPT_TYPE_ENUM, offsetof(HybOptions, compression)},
		{"layout", RELOPT_TYPE_ENUM, offsetof(HybOptions, layout)},
		{HYB_ACCESS_METHOD_PARAMETER, RELOPT_TYPE_STRING, offsetof(HybOptions, access_method)},
		{"fillfactor", RELOPT_TYPE_INT, offsetof(HybOptions, fillfactor)},
		{"deduplicate_items", RELOPT_TYPE_BOOL, offsetof(HybOptions, deduplicate_items)}
	};

	return (bytea *) build_reloptions(reloptions, validate, hyb_relopt_kind,
									  sizeof(HybOptions), tab, lengthof(tab));
}
