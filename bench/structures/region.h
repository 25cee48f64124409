/*
 * region.h
 *		Memory in one piece, with references of 32 bits to places in it.
 *
 * In the server memory comes in chunks that processes map one by one, so each
 * reference would cost a look at a table more, as it does in the tree.
 */
#ifndef REGION_H
#define REGION_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "structure.h"

/* In units of 4 bytes; 0 means that there is no reference. */
typedef uint32_t Ref;

#define REGION_BYTES	((size_t) 4 << 30)

typedef struct Region
{
	char	   *base;
	size_t		used;
} Region;

static inline void
region_init(Region *region)
{
	region->base = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region->base == MAP_FAILED)
	{
		perror("mmap");
		exit(1);
	}
	region->used = 4;
}

static inline Ref
region_alloc(Region *region, size_t bytes)
{
	Ref			ref = (Ref) (region->used / 4);

	region->used += (bytes + 3) & ~(size_t) 3;
	if (region->used > REGION_BYTES)
	{
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return ref;
}

static inline void *
region_at(const Region *region, Ref ref)
{
	return region->base + (size_t) ref * 4;
}

/* Fill the record at `ref`, which has room for it. */
static inline void
record_fill(Record *record, const Key *key)
{
	memset(record, 0, sizeof(Record));
	record->block = key->number;
	record->len = record->keylen = (uint16_t) key->len;
	memcpy(record->key, key->bytes, key->len);
}

static inline int
key_compare(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? c : (alen > blen) - (alen < blen);
}

#endif							/* REGION_H */
