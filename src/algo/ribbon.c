/*
 * ribbon.c
 *		Ribbon filters.
 */
#include "algo/bits.h"
#include "algo/ribbon.h"

/* Hash functions that are tried before there are more cells. */
#define FUNCTIONS_PER_SIZE	8
#define MAX_FUNCTIONS		256

/* What a key's hash says. */
typedef struct Equation
{
	uint32_t	start;			/* first of its cells */
	uint64_t	row;			/* which of them; bit 0 is set */
	uint16_t	fingerprint;	/* of HYB_RIBBON_MAX_BITS */
} Equation;

/*
 * The first and the last cell have fewer keys beside them than others.  So of
 * keys that would begin outside, up to half a ribbon, as many begin there as
 * to make up for it.
 */
static inline Equation
equation_of(uint64_t hash, uint32_t ncells, unsigned function)
{
	const uint32_t outside = HYB_RIBBON_WIDTH / 2 - 1;
	const uint32_t last = ncells - HYB_RIBBON_WIDTH;
	uint64_t	h = hyb_hash_mix(hash + (function + 1) * UINT64_C(0x9E3779B97F4A7C15));
	uint32_t	at = (uint32_t) (((h >> 32) * (last + 1 + 2 * outside)) >> 32);
	Equation	e;

	e.start = at < outside ? 0 : at - outside > last ? last : at - outside;
	e.fingerprint = (uint16_t) (h & ((1 << HYB_RIBBON_MAX_BITS) - 1));
	e.row = hyb_hash_mix(h + UINT64_C(0x9E3779B97F4A7C15)) | 1;
	HYB_ASSERT(e.start <= last);
	return e;
}

static inline uint32_t
round_up(uint32_t ncells)
{
	if (ncells < HYB_RIBBON_WIDTH)
		ncells = HYB_RIBBON_WIDTH;
	return (ncells + 7) & ~7u;
}

/*
 * With this many cells nearly every function works.  With fewer of them most are
 * taken, and an equation goes on for longer until it finds a free one.
 */
static inline uint32_t
least_cells(uint32_t nkeys)
{
	return round_up(nkeys + 4 + nkeys / 32);
}

static inline size_t
ribbon_size(uint32_t ncells, unsigned bits)
{
	return HYB_RIBBON_HEADER + (size_t) ncells / 8 * bits;
}

size_t
hyb_ribbon_least_size(uint32_t nkeys, unsigned bits)
{
	return ribbon_size(least_cells(nkeys), bits);
}

/* ---- building ---- */

/*
 * Gaussian elimination, an equation at a time: each ends up at the first cell
 * that no other begins at.  False if they contradict each other.
 */
static bool
eliminate(HybRibbonBuilder *builder, const uint64_t *hashes, uint32_t nkeys)
{
	uint32_t	ncells = builder->ncells;
	uint64_t   *rows = builder->rows;
	uint16_t   *fingerprints = builder->fingerprints;
	uint16_t	mask = (uint16_t) ((1 << builder->bits) - 1);

	memset(rows, 0, ncells * sizeof(uint64_t));
	memset(fingerprints, 0, ncells * sizeof(uint16_t));
	for (uint32_t i = 0; i < nkeys; i++)
	{
		Equation	e = equation_of(hashes[i], ncells, builder->function);

		e.fingerprint &= mask;

		while (rows[e.start] != 0)
		{
			unsigned	zeroes;

			e.row ^= rows[e.start];
			e.fingerprint ^= fingerprints[e.start];
			if (e.row == 0)
				break;
			zeroes = (unsigned) __builtin_ctzll(e.row);
			e.row >>= zeroes;
			e.start += zeroes;
		}
		if (e.row != 0)
		{
			HYB_ASSERT(e.start < ncells && (e.row & 1) != 0);
			rows[e.start] = e.row;
			fingerprints[e.start] = e.fingerprint;
		}
		else if (e.fingerprint != 0)
			return false;
	}
	return true;
}

size_t
hyb_ribbon_build(HybRibbonBuilder *builder, const uint64_t *hashes,
				 uint32_t nkeys, unsigned bits)
{
	if (nkeys == 0 || nkeys > HYB_RIBBON_MAX_KEYS ||
		bits < HYB_RIBBON_BITS || bits > HYB_RIBBON_MAX_BITS)
		return 0;
	builder->bits = (uint8_t) bits;
	builder->ncells = least_cells(nkeys);
	for (unsigned function = 0; function < MAX_FUNCTIONS; function++)
	{
		if (function > 0 && function % FUNCTIONS_PER_SIZE == 0)
			builder->ncells = round_up(builder->ncells + 1 + nkeys / 128);
		if (builder->ncells > HYB_RIBBON_MAX_CELLS)
			break;
		builder->function = (uint8_t) function;
		if (eliminate(builder, hashes, nkeys))
			return ribbon_size(builder->ncells, bits);
	}
	return 0;
}

/*
 * Back substitution, from the last cell to the first: a window slides over the
 * solution, a word for each bit of a cell.  Cells that no equation begins at
 * may have any content.
 */
void
hyb_ribbon_write(const HybRibbonBuilder *builder, uint8_t *image)
{
	uint64_t	window[HYB_RIBBON_MAX_BITS] = {0};
	uint32_t	ncells = builder->ncells;
	int			bits = builder->bits;
	uint8_t    *cells = image + HYB_RIBBON_HEADER;

	HYB_ASSERT(ncells % 8 == 0 && ncells >= HYB_RIBBON_WIDTH &&
			   ncells <= HYB_RIBBON_MAX_CELLS);
	HYB_ASSERT(bits >= HYB_RIBBON_BITS && bits <= HYB_RIBBON_MAX_BITS);
	hyb_store16(image, ncells);
	image[2] = builder->bits;
	image[3] = builder->function;
	for (uint32_t cell = ncells; cell-- > 0;)
	{
		/* bit 0 of the row is the cell that is wanted */
		uint64_t	others = builder->rows[cell] >> 1;
		unsigned	fingerprint = builder->fingerprints[cell];

		for (int b = 0; b < bits; b++)
			window[b] = window[b] << 1 |
				((uint64_t) __builtin_parityll(window[b] & others) ^
				 (fingerprint >> b & 1));
		if (cell % HYB_RIBBON_WIDTH == 0)
		{
			uint32_t	left = ncells - cell;
			size_t		bytes = left < HYB_RIBBON_WIDTH ? left / 8 : 8;
			uint8_t    *p = cells + (size_t) cell / 8 * bits;

			for (int b = 0; b < bits; b++)
			{
				uint64_t	word = HYB_LE64(window[b]);

				memcpy(p + b * bytes, &word, bytes);
			}
		}
	}
}

/* ---- asking ---- */

static inline bool
is_image(const uint8_t *image, size_t size)
{
	uint32_t	ncells;

	if (size < HYB_RIBBON_HEADER)
		return false;
	ncells = hyb_load16(image);
	return image[2] >= HYB_RIBBON_BITS && image[2] <= HYB_RIBBON_MAX_BITS &&
		ncells % 8 == 0 && ncells >= HYB_RIBBON_WIDTH &&
		size == ribbon_size(ncells, image[2]);
}

/* The first `bytes` bytes of a word; the others are 0. */
static inline uint64_t
load_word_zeroed(const uint8_t *p, size_t bytes)
{
	uint64_t	word = 0;

	if (bytes == 8)
		return hyb_load64le(p);
	memcpy(&word, p, bytes);
	return HYB_LE64(word);
}

HybFilterAnswer
hyb_ribbon_ask(const uint8_t *image, size_t size, uint64_t hash)
{
	uint32_t	ncells;
	uint32_t	first;			/* cell of the first words */
	uint32_t	left;			/* cells that are in the second ones */
	unsigned	shift;
	int			bits;
	size_t		bytes;
	uint64_t	low;
	uint64_t	high;
	const uint8_t *p;
	Equation	e;

	if (!is_image(image, size))
		return HYB_ANSWER_NO_HEADER;
	ncells = hyb_load16(image);
	e = equation_of(hash, ncells, image[3]);
	shift = e.start % HYB_RIBBON_WIDTH;
	first = e.start - shift;
	bits = image[2];
	p = image + HYB_RIBBON_HEADER + (size_t) first / 8 * bits;
	low = e.row << shift;
	high = shift == 0 ? 0 : e.row >> (HYB_RIBBON_WIDTH - shift);
	left = ncells - first - HYB_RIBBON_WIDTH;
	bytes = left < HYB_RIBBON_WIDTH ? left / 8 : 8;
	for (int b = 0; b < bits; b++)
	{
		uint64_t	sum = low & hyb_load64le(p + b * 8);

		if (high != 0)
			sum ^= high & load_word_zeroed(p + bits * 8 + b * bytes, bytes);
		if ((unsigned) __builtin_parityll(sum) != (e.fingerprint >> b & 1u))
			return HYB_ANSWER_NO;
	}
	return HYB_ANSWER_MAYBE;
}

const char *
hyb_ribbon_verify(const void *image, size_t size)
{
	return is_image(image, size) ? NULL : "the header";
}
