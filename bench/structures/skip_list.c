/*
 * skip_list.c
 *		Skip list (Pugh, "Skip lists: a probabilistic alternative to balanced
 *		trees", CACM 33(6), 1990), with one node in four on the next level, and
 *		the references of a node just before its record.
 */
#include "region.h"

#define MAX_LEVELS	16

static Region region;
static Ref	head[MAX_LEVELS];
static int	levels;
static uint64_t seed;

static inline Record *
record_at(Ref node)
{
	return region_at(&region, node);
}

static inline Ref *
next_of(Ref node, int level)
{
	return node == 0 ? &head[level] : (Ref *) record_at(node) - 1 - level;
}

static int
random_levels(void)
{
	int			n = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	for (uint64_t bits = seed >> 20; n < MAX_LEVELS && (bits & 3) == 0; bits >>= 2)
		n++;
	return n;
}

/*
 * The last node below the key, 0 if there is none; before[]: the same on each
 * level.
 */
static inline Ref
find_before(const Key *key, Ref *before)
{
	Ref			node = 0;

	for (int level = levels - 1; level >= 0; level--)
	{
		Ref			next;

		while ((next = *next_of(node, level)) != 0)
		{
			const Record *record = record_at(next);

			if (key_compare(record->key, record->len, key->bytes, key->len) >= 0)
				break;
			node = next;
		}
		if (before != NULL)
			before[level] = node;
	}
	return node;
}

static void
skip_list_init(const Key *keys, uint32_t n)
{
	(void) keys;
	(void) n;
	region_init(&region);
	levels = 1;
	seed = 42;
}

static void
skip_list_insert(const Key *key)
{
	Ref			before[MAX_LEVELS] = {0};
	int			n = random_levels();
	Ref			node;

	find_before(key, before);
	if (n > levels)
		levels = n;
	node = region_alloc(&region, (size_t) n * sizeof(Ref) + sizeof(Record) + key->len) + (Ref) n;
	record_fill(record_at(node), key);
	for (int level = 0; level < n; level++)
	{
		*next_of(node, level) = *next_of(before[level], level);
		*next_of(before[level], level) = node;
	}
}

static uint32_t
skip_list_look_up(const Key *key)
{
	Ref			node = *next_of(find_before(key, NULL), 0);
	const Record *record;

	if (node == 0)
		return UINT32_MAX;
	record = record_at(node);
	return key_compare(record->key, record->len, key->bytes, key->len) == 0 ?
		record->block : UINT32_MAX;
}

static uint64_t
skip_list_scan(const Key *from, int n)
{
	uint64_t	sum = 0;

	for (Ref node = *next_of(find_before(from, NULL), 0); node != 0 && n > 0; n--)
	{
		sum += record_at(node)->block;
		node = *next_of(node, 0);
	}
	return sum;
}

static size_t
skip_list_bytes(void)
{
	return region.used;
}

const Structure skip_list_structure = {
	"skip list", skip_list_init, skip_list_insert, skip_list_look_up,
	skip_list_scan, skip_list_bytes
};
