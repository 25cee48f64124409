/*
 * filter_zone.c
 *		The filter kind "zone", for tests of what goes through filter_kind.h:
 *		least and greatest key, and some bits of the hashes of all.
 *
 * Only in builds with assertions, where hybridindex.test_filter has merges and
 * builds use it in place of the kind that the index asks for.  It cannot count
 * keys.
 */
#include "base/compat.h"

#ifdef USE_ASSERT_CHECKING

#include "algo/bits.h"
#include "filter/filter_kind.h"

#define ZONE_BITS	2048

typedef struct Zone
{
	uint16		low_len;		/* of the least key, which follows */
	uint16		high_len;		/* of the greatest one, which follows that */
	uint32		nkeys;
	uint8		bits[ZONE_BITS / 8];	/* of the hash of each key one is set */
} Zone;

typedef struct ZoneBuilder
{
	Zone		zone;
	HybBuf		low;
	HybBuf		high;
} ZoneBuilder;

static void *
zone_builder_create(const HybIndex *ix)
{
	return palloc0(sizeof(ZoneBuilder));
}

static void
zone_begin(void *arg, uint32 probes)
{
	ZoneBuilder *builder = arg;

	memset(&builder->zone, 0, sizeof(Zone));
}

static int
compare_keys(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	int			c = memcmp(a, b, Min(alen, blen));

	return c != 0 ? c : (int) alen - (int) blen;
}

static uint32
bit_of(const uint8 *key, uint32 len)
{
	return (uint32) (hyb_byte_hash(key, len) % ZONE_BITS);
}

static bool
zone_add(void *arg, const uint8 *key, uint32 len)
{
	ZoneBuilder *builder = arg;
	Zone	   *zone = &builder->zone;
	uint32		bit = bit_of(key, len);

	if (zone->nkeys == 0)
	{
		builder->low.len = 0;
		hyb_buf_append(&builder->low, key, len);
	}
	else if (compare_keys(key, len, builder->high.data, builder->high.len) < 0)
		return false;
	builder->high.len = 0;
	hyb_buf_append(&builder->high, key, len);
	zone->bits[bit / 8] |= 1 << bit % 8;
	zone->nkeys++;
	return true;
}

static Size
zone_finish(void *arg)
{
	ZoneBuilder *builder = arg;

	if (builder->zone.nkeys == 0)
		return 0;
	builder->zone.low_len = (uint16) builder->low.len;
	builder->zone.high_len = (uint16) builder->high.len;
	return sizeof(Zone) + builder->low.len + builder->high.len;
}

static void
zone_write(const void *arg, void *image)
{
	const ZoneBuilder *builder = arg;
	char	   *p = image;

	memcpy(p, &builder->zone, sizeof(Zone));
	p += sizeof(Zone);
	memcpy(p, builder->low.data, builder->low.len);
	memcpy(p + builder->low.len, builder->high.data, builder->high.len);
}

static bool
is_zone(const Zone *zone, Size size)
{
	return size >= sizeof(Zone) && zone->nkeys > 0 &&
		size == sizeof(Zone) + zone->low_len + zone->high_len;
}

/* A key against a position; equal if the position is one of a prefix. */
static int
compare_prefix(const uint8 *key, uint32 len, const HybPos *pos)
{
	return compare_keys(key, Min(len, pos->len), pos->key, pos->len);
}

static HybFilterAnswer
zone_probe(const void *image, Size size, const HybPos *low, const HybPos *high,
		   bool point)
{
	const Zone *zone = image;
	const uint8 *keys = (const uint8 *) (zone + 1);
	int			c;

	if (!is_zone(zone, size))
		return HYB_ANSWER_NO_HEADER;
	if (point)
	{
		uint32		bit = bit_of(low->key, low->len);

		return (zone->bits[bit / 8] >> bit % 8 & 1) != 0 ? HYB_ANSWER_MAYBE :
			HYB_ANSWER_NO;
	}
	c = compare_prefix(keys, zone->low_len, high);
	if (c > 0 || (c == 0 && high->tie == HYB_BEFORE))
		return HYB_ANSWER_NO;
	c = compare_prefix(keys + zone->low_len, zone->high_len, low);
	if (c < 0 || (c == 0 && low->tie == HYB_AFTER))
		return HYB_ANSWER_NO;
	return HYB_ANSWER_MAYBE;
}

static HybFilterAnswer
zone_count(const void *image, Size size, const HybPos *low, const HybPos *high,
		   uint32 *count, uint32 *total)
{
	return HYB_ANSWER_NO;
}

static const char *
zone_verify(const void *image, Size size)
{
	const Zone *zone = image;
	const uint8 *keys = (const uint8 *) (zone + 1);
	uint32		nbits = 0;

	if (!is_zone(zone, size))
		return "the header";
	if (compare_keys(keys, zone->low_len, keys + zone->low_len, zone->high_len) > 0)
		return "the order of its keys";
	for (int i = 0; i < ZONE_BITS; i++)
		nbits += zone->bits[i / 8] >> i % 8 & 1;
	if (nbits == 0 || nbits > zone->nkeys)
		return "its bits";
	return NULL;
}

const HybFilterRoutine hyb_filter_zone = {
	.name = "zone",
	.builder_create = zone_builder_create,
	.begin = zone_begin,
	.add = zone_add,
	.finish = zone_finish,
	.write = zone_write,
	.probe = zone_probe,
	.count = zone_count,
	.verify = zone_verify,
};

#endif							/* USE_ASSERT_CHECKING */
