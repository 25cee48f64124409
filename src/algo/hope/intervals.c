/*
 * intervals.c
 *		Cutting the axis of all strings into intervals with common prefixes.
 *
 * The strings that start with a pattern form an interval, and two of these
 * are disjoint or one contains the other.  So a sweep over the sorted
 * patterns, with a stack of those that the sweep is inside of, gives all
 * bounds in order.
 */
#include "algo/hope/internal.h"

static int
compare_bounds(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? c : (alen > blen) - (alen < blen);
}

int
hyb_hope_pattern_compare(const void *a, const void *b)
{
	const HybHopePattern *pa = a;
	const HybHopePattern *pb = b;

	return compare_bounds(pa->bytes, pa->len, pb->bytes, pb->len);
}

static void
add_bound(HybHopeIntervals *iv, const uint8_t *bytes, uint32_t len)
{
	uint32_t	start = iv->off[iv->n];

	/* bounds come in order */
	HYB_ASSERT(iv->n == 0 ||
			   compare_bounds(iv->bytes + iv->off[iv->n - 1],
							  start - iv->off[iv->n - 1], bytes, len) <= 0);
	if (iv->n > 0 &&
		compare_bounds(iv->bytes + iv->off[iv->n - 1],
					   start - iv->off[iv->n - 1], bytes, len) == 0)
		return;
	memcpy(iv->bytes + start, bytes, len);
	iv->n++;
	iv->off[iv->n] = start + len;
}

/*
 * The least string above all that start with the pattern; length 0 if there
 * is none.
 */
static void
pattern_end(const HybHopePattern *pattern, HybHopePattern *end)
{
	*end = *pattern;
	while (end->len > 0 && end->bytes[end->len - 1] == 0xFF)
		end->len--;
	if (end->len > 0)
		end->bytes[end->len - 1]++;
}

void
hyb_hope_make_intervals(HybHopeIntervals *iv, const HybHopePattern *patterns,
						uint32_t n, const HybHopeMemory *memory)
{
	HybHopePattern open[HYB_HOPE_MAX_SYMBOL];
	int			nopen = 0;
	size_t		total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += patterns[i].len;
	iv->n = 0;
	iv->bytes = memory->alloc(memory->context, 2 * total + 16);
	iv->off = memory->alloc(memory->context, (2 * (size_t) n + 1) * sizeof(uint32_t));
	iv->symlen = memory->alloc(memory->context, 2 * (size_t) n + 1);
	iv->off[0] = 0;

	for (uint32_t i = 0; i <= n; i++)
	{
		while (nopen > 0 &&
			   (i == n ||
				hyb_hope_pattern_compare(&open[nopen - 1], &patterns[i]) <= 0))
		{
			nopen--;
			add_bound(iv, open[nopen].bytes, open[nopen].len);
		}
		if (i < n)
		{
			HYB_ASSERT(i == 0 ||
					   hyb_hope_pattern_compare(&patterns[i - 1], &patterns[i]) < 0);
			HYB_ASSERT(nopen < HYB_HOPE_MAX_SYMBOL);
			add_bound(iv, patterns[i].bytes, patterns[i].len);

			/* Patterns that end together end once. */
			pattern_end(&patterns[i], &open[nopen]);
			if (open[nopen].len > 0 &&
				(nopen == 0 ||
				 hyb_hope_pattern_compare(&open[nopen - 1], &open[nopen]) != 0))
				nopen++;
		}
	}
	HYB_ASSERT(iv->n <= 2 * n && iv->off[iv->n] <= 2 * total);
	memset(iv->bytes + iv->off[iv->n], 0, 16);
	(void) hyb_hope_make_symbols(iv);
}

bool
hyb_hope_make_symbols(HybHopeIntervals *iv)
{
	for (uint32_t i = 0; i < iv->n; i++)
	{
		const uint8_t *low = iv->bytes + iv->off[i];
		uint32_t	lowlen = iv->off[i + 1] - iv->off[i];
		uint32_t	len;

		if (i + 1 == iv->n)
		{
			/* up to the end of the axis */
			for (len = 0; len < lowlen && low[len] == 0xFF;)
				len++;
		}
		else
		{
			const uint8_t *high = iv->bytes + iv->off[i + 1];
			uint32_t	highlen = iv->off[i + 2] - iv->off[i + 1];

			len = hyb_common_prefix(low, high,
									lowlen < highlen ? lowlen : highlen);
			if (len == highlen || (len < lowlen && low[len] > high[len]))
				return false;
			if (len < lowlen && highlen == len + 1 &&
				high[len] == low[len] + 1)
			{
				len++;
				while (len < lowlen && low[len] == 0xFF)
					len++;
			}
		}
		if (len == 0 || len > HYB_HOPE_MAX_SYMBOL)
			return false;
		iv->symlen[i] = (uint8_t) len;
	}
	return true;
}

void
hyb_hope_free_intervals(HybHopeIntervals *iv, const HybHopeMemory *memory)
{
	if (iv->symlen != NULL)
		memory->release(memory->context, iv->symlen);
	if (iv->off != NULL)
		memory->release(memory->context, iv->off);
	if (iv->bytes != NULL)
		memory->release(memory->context, iv->bytes);
	memset(iv, 0, sizeof(*iv));
}
