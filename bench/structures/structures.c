/*
 * structures.c
 *		One structure, one file of keys: insert all in random order, look up,
 *		scan; prints memory.  What it costs is counted from outside, by the
 *		names of the functions (count.py).
 *
 *	structures STRUCTURE FILE		a key a line
 *	structures STRUCTURE --integers N
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure.h"

#define LOOK_UPS	20000
#define SCANS		500
#define SCAN_LENGTH	100

/* What a key begins with in an index: a value, not NULL. */
#define FLAG_VALUE	1

static const Structure *const structures[] = {
	&tree_structure, &compact_tree_structure, &art_structure, &skip_list_structure
};

static Key *keys;				/* in order of insertion */
static uint32_t nkeys;
static uint64_t seed = 7;

static uint32_t
below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t) ((seed >> 33) % n);
}

static void
die(const char *why)
{
	fprintf(stderr, "structures: %s\n", why);
	exit(1);
}

static void
add_key(const void *bytes, uint32_t len, int terminated)
{
	uint8_t    *copy = malloc(len + 2);

	if (nkeys % 1024 == 0)
		keys = realloc(keys, (nkeys + 1024) * sizeof(Key));
	if (copy == NULL || keys == NULL)
		die("out of memory");
	copy[0] = FLAG_VALUE;
	memcpy(copy + 1, bytes, len);
	copy[len + 1] = 0;
	keys[nkeys++] = (Key)
	{
		.bytes = copy,.len = len + 1 + (terminated != 0)
	};
}

static void
read_keys(const char *file)
{
	FILE	   *f = fopen(file, "r");
	char	   *line = NULL;
	size_t		room = 0;
	ssize_t		len;

	if (f == NULL)
		die("no such file");
	while ((len = getline(&line, &room, f)) > 0)
	{
		if (line[len - 1] == '\n')
			len--;
		if (len > 0 && len < 2000)
			add_key(line, (uint32_t) len, 1);
	}
	free(line);
	fclose(f);
}

/* Random ones; in index order as they are, so that the sign does not matter. */
static void
make_integers(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint8_t		bytes[8];
		uint64_t	value = (uint64_t) below(UINT32_MAX) << 32 | (below(UINT32_MAX) ^ i);

		for (int j = 0; j < 8; j++)
			bytes[j] = (uint8_t) (value >> (56 - 8 * j));
		add_key(bytes, 8, 0);
	}
}

static int
compare_keys(const void *a, const void *b)
{
	const Key  *x = a;
	const Key  *y = b;
	int			c = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/* Each key once, in random order, with its number. */
static void
shuffle(void)
{
	uint32_t	n = 0;

	qsort(keys, nkeys, sizeof(Key), compare_keys);
	for (uint32_t i = 0; i < nkeys; i++)
		if (i == 0 || compare_keys(&keys[i], &keys[n - 1]) != 0)
			keys[n++] = keys[i];
	nkeys = n;
	for (uint32_t i = nkeys; i > 1; i--)
	{
		uint32_t	j = below(i);
		Key			key = keys[i - 1];

		keys[i - 1] = keys[j];
		keys[j] = key;
	}
	for (uint32_t i = 0; i < nkeys; i++)
		keys[i].number = i;
}

/* ---- what is counted ---- */

__attribute__((noinline, noclone)) void
measured_insert(const Structure *structure)
{
	for (uint32_t i = 0; i < nkeys; i++)
		structure->insert(&keys[i]);
}

__attribute__((noinline, noclone)) void
measured_look_up(const Structure *structure, const uint32_t *which)
{
	for (int i = 0; i < LOOK_UPS; i++)
		if (structure->look_up(&keys[which[i]]) != which[i])
			die("a key is not found");
}

__attribute__((noinline, noclone)) uint64_t
measured_scan(const Structure *structure, const uint32_t *which)
{
	uint64_t	sum = 0;

	for (int i = 0; i < SCANS; i++)
		sum += structure->scan(&keys[which[i]], SCAN_LENGTH);
	return sum;
}

/* ---- */

/* The same from a sorted copy: are the answers right? */
static uint64_t
expected_sum(const uint32_t *which)
{
	Key		   *sorted = malloc(nkeys * sizeof(Key));
	uint64_t	sum = 0;

	if (sorted == NULL)
		die("out of memory");
	memcpy(sorted, keys, nkeys * sizeof(Key));
	qsort(sorted, nkeys, sizeof(Key), compare_keys);
	for (int i = 0; i < SCANS; i++)
	{
		const Key  *from = bsearch(&keys[which[i]], sorted, nkeys, sizeof(Key), compare_keys);

		for (int j = 0; j < SCAN_LENGTH && from + j < sorted + nkeys; j++)
			sum += from[j].number;
	}
	free(sorted);
	return sum;
}

int
main(int argc, char **argv)
{
	const Structure *structure = NULL;
	uint32_t   *which = malloc(LOOK_UPS * sizeof(uint32_t));
	uint64_t	key_bytes = 0;

	for (size_t i = 0; argc >= 3 && i < sizeof(structures) / sizeof(structures[0]); i++)
		if (strcmp(structures[i]->name, argv[1]) == 0)
			structure = structures[i];
	if (structure == NULL || which == NULL)
		die("usage: structures STRUCTURE FILE, or STRUCTURE --integers N");
	if (strcmp(argv[2], "--integers") == 0 && argc > 3)
		make_integers((uint32_t) atoi(argv[3]));
	else
		read_keys(argv[2]);
	shuffle();
	if (nkeys == 0)
		die("there are no keys");
	for (uint32_t i = 0; i < nkeys; i++)
		key_bytes += keys[i].len;
	for (int i = 0; i < LOOK_UPS; i++)
		which[i] = below(nkeys);

	structure->init(keys, nkeys);
	measured_insert(structure);
	measured_look_up(structure, which);
	if (measured_scan(structure, which) != expected_sum(which))
		die("a scan's answer is wrong");
	printf("%u keys, %.1f bytes a key, of these the key itself %.1f\n", nkeys,
		   (double) structure->bytes() / nkeys, (double) key_bytes / nkeys);
	return 0;
}
