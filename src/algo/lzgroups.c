/*
 * lzgroups.c
 *		Strings compressed by LZ4, a group of them at a time.
 */
#include "algo/lzgroups.h"

#include <lz4.h>
#include <string.h>

static uint32_t
min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- building ---- */

/* Where strings [from, to) begin, and their bytes. */
static const uint8_t *
group_strings(const HybStrings *in, uint32_t from, uint32_t to, uint32_t *len)
{
	HYB_ASSERT(from < to && to <= in->n);
	*len = in->off[to - 1] + in->len[to - 1] - in->off[from];
	return in->bytes + in->off[from];
}

static bool
groups_fit(const HybStrings *in, uint8_t shift)
{
	uint32_t	step = (uint32_t) 1 << shift;

	for (uint32_t i = 0; i < in->n; i += step)
	{
		uint32_t	len;

		group_strings(in, i, min32(i + step, in->n), &len);
		if (len > HYB_LZ_MAX_GROUP)
			return false;
	}
	return true;
}

void
hyb_lz_prepare(const HybStrings *in, bool more, HybLzWork *work)
{
	uint8_t		shift = 0;
	uint32_t	len;

	if (more && work->ngroups > 0 && groups_fit(in, work->shift))
		return;
	group_strings(in, 0, in->n, &len);
	while (shift < HYB_LZ_MAX_SHIFT &&
		   ((uint64_t) len << (shift + 1)) <= (uint64_t) in->n * HYB_LZ_GROUP)
		shift++;
	while (shift > 0 && !groups_fit(in, shift))
		shift--;
	work->shift = shift;
	work->ngroups = 0;
}

/*
 * Compress strings [from, to), which are not more than fit a group; returns how
 * many bytes there are, at most as many as the strings have.
 */
static uint32_t
compress_group(const HybStrings *in, HybLzWork *work, uint32_t from,
			   uint32_t to, uint8_t *out)
{
	LZ4_stream_t stream;
	uint32_t	len;
	const uint8_t *bytes = group_strings(in, from, to, &len);
	int			size;

	HYB_ASSERT(len <= HYB_LZ_MAX_GROUP);
	LZ4_initStream(&stream, sizeof(stream));
	if (from > 0)
	{
		uint32_t	dict_len;
		const uint8_t *dict = group_strings(in, 0, (uint32_t) 1 << work->shift, &dict_len);

		LZ4_loadDict(&stream, (const char *) dict, (int) dict_len);
	}
	size = LZ4_compress_fast_continue(&stream, (const char *) bytes,
									  (char *) out, (int) len, (int) len - 1, 1);
	if (size > 0)
		return (uint32_t) size;
	memcpy(out, bytes, len);
	return len;
}

/*
 * Compress what is not yet of the first n strings; returns the bytes that the
 * group takes which they leave unfinished.
 */
static uint32_t
compress(const HybStrings *in, HybLzWork *work, uint32_t n)
{
	uint32_t	whole = n >> work->shift;

	HYB_ASSERT(n > 0 && n <= in->n && work->shift <= HYB_LZ_MAX_SHIFT);
	for (uint32_t i = work->ngroups; i < whole; i++)
	{
		uint32_t	start = i == 0 ? 0 : work->ends[i - 1];

		work->ends[i] = start + compress_group(in, work, i << work->shift,
											   (i + 1) << work->shift,
											   work->data + start);
		work->ngroups = i + 1;
	}
	return whole << work->shift == n ? 0 :
		compress_group(in, work, whole << work->shift, n, work->last);
}

static void
lz_string_ends(const HybStrings *in, uint32_t n, uint64_t *values)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = in->off[i] + in->len[i] - in->off[0];
}

void
hyb_lz_plan(const HybStrings *in, HybLzWork *work, uint32_t n,
			uint64_t *values, HybLzPlan *plan)
{
	uint32_t	data = compress(in, work, n);
	uint32_t	whole = n >> work->shift;
	uint32_t	ngroups = whole + (whole << work->shift != n);

	if (whole > 0)
		data += work->ends[whole - 1];
	lz_string_ends(in, n, values);
	hyb_seq_plan(values, n, &plan->ends);
	plan->size = data > HYB_LZ_MAX_DATA ? UINT32_MAX :
		1 + plan->ends.size + 2 * ngroups + data;
}

uint8_t *
hyb_lz_write(const HybStrings *in, HybLzWork *work, uint32_t n,
			 uint64_t *values, const HybLzPlan *plan, uint8_t *out)
{
	uint32_t	last = compress(in, work, n);
	uint32_t	whole = n >> work->shift;
	uint32_t	end = 0;

	*out++ = work->shift;
	lz_string_ends(in, n, values);
	out = hyb_seq_write(&plan->ends, values, n, out);
	for (uint32_t i = 0; i < whole; i++)
	{
		end = work->ends[i];
		hyb_store16(out, end);
		out += 2;
	}
	if (last > 0)
	{
		hyb_store16(out, end + last);
		out += 2;
	}
	HYB_ASSERT(end + last <= HYB_LZ_MAX_DATA);
	memcpy(out, work->data, end);
	memcpy(out + end, work->last, last);
	return out + end + last;
}

/* ---- reading ---- */

const uint8_t *
hyb_lz_open(HybLz *lz, uint32_t n, const uint8_t *p, const uint8_t *end)
{
	uint32_t	size;

	if (n == 0 || p >= end || *p > HYB_LZ_MAX_SHIFT)
		return NULL;
	lz->n = n;
	lz->shift = *p++;
	lz->ngroups = ((n - 1) >> lz->shift) + 1;
	p = hyb_seq_open(&lz->ends, n, p, end);
	if (p == NULL || (uint32_t) (end - p) / 2 < lz->ngroups)
		return NULL;
	lz->group_ends = p;
	lz->data = p + 2 * lz->ngroups;
	size = hyb_load16(lz->group_ends + 2 * (lz->ngroups - 1));
	if ((uint32_t) (end - lz->data) < size)
		return NULL;
	return lz->data + size;
}

static inline uint64_t
string_start(const HybLz *lz, uint32_t row)
{
	return row == 0 ? 0 : hyb_seq_get(&lz->ends, row - 1);
}

/* Decompress a group; returns its length, 0 if it is damaged. */
static uint32_t
decompress_group(const HybLz *lz, const HybLzCursor *cursor, uint32_t group,
				 uint64_t start, uint8_t *out)
{
	uint32_t	from = group == 0 ? 0 : hyb_load16(lz->group_ends + 2 * (group - 1));
	uint32_t	to = hyb_load16(lz->group_ends + 2 * group);
	uint64_t	end = hyb_seq_get(&lz->ends, min32((group + 1) << lz->shift, lz->n) - 1);
	uint32_t	size = to - from;
	uint32_t	len = (uint32_t) (end - start);

	/* the last group's end is known to lie in the page */
	if (to < from || to > hyb_load16(lz->group_ends + 2 * (lz->ngroups - 1)) ||
		end <= start || end - start > HYB_LZ_MAX_GROUP)
		return 0;
	if (size == len)
		memcpy(out, lz->data + from, len);
	else if (LZ4_decompress_safe_usingDict((const char *) lz->data + from,
										   (char *) out, (int) size, (int) len,
										   (const char *) cursor->buffers->bytes,
										   group == 0 ? 0 : (int) cursor->first_len) != (int) len)
		return 0;
	return len;
}

/* Have the cursor hold the group of a string. */
static bool
read_group(const HybLz *lz, HybLzCursor *cursor, uint32_t group)
{
	cursor->group = -1;
	if (cursor->first_len == 0)
		cursor->first_len = decompress_group(lz, cursor, 0, 0, cursor->buffers->bytes);
	if (cursor->first_len == 0)
		return false;
	cursor->start = (uint32_t) string_start(lz, group << lz->shift);
	cursor->len = group == 0 ? cursor->first_len :
		decompress_group(lz, cursor, group, cursor->start,
						 cursor->buffers->bytes + cursor->first_len);
	if (cursor->len == 0)
		return false;
	cursor->group = (int) group;
	return true;
}

const uint8_t *
hyb_lz_read(const HybLz *lz, HybLzCursor *cursor, uint32_t row, uint32_t *len)
{
	uint32_t	group = row >> lz->shift;
	uint64_t	start;
	uint64_t	end;

	HYB_ASSERT(row < lz->n && group < lz->ngroups);
	if ((int) group != cursor->group && !read_group(lz, cursor, group))
		return NULL;
	start = string_start(lz, row) - cursor->start;
	end = hyb_seq_get(&lz->ends, row) - cursor->start;
	if (start > end || end > cursor->len)
		return NULL;
	*len = (uint32_t) (end - start);
	return cursor->buffers->bytes + (group == 0 ? 0 : cursor->first_len) + start;
}
