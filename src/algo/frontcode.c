/*
 * frontcode.c
 *		Writing, reading and searching the front-coded strings of
 *		frontcode.h.
 */
#include "algo/frontcode.h"

#define INTERVAL HYB_FRONT_INTERVAL

static inline uint32_t
nrestarts(uint32_t n)
{
	return (n - 1) / INTERVAL;
}

/* ---- building ---- */

uint32_t
hyb_front_prefix(const HybStrings *in, uint32_t n)
{
	uint32_t	prefix = in->len[0];

	for (uint32_t i = 1; i < n; i++)
		prefix = in->lcp[i] < prefix ? in->lcp[i] : prefix;
	return prefix;
}

static inline uint32_t
shared_of(const HybStrings *in, uint32_t i, uint32_t prefix)
{
	return i % INTERVAL == 0 ? prefix : in->lcp[i];
}

/* Stored bytes of string i after its first `shared` bytes. */
static inline uint32_t
rest_size(const HybStrings *in, const HybFrontCode *code, uint32_t i,
		  uint32_t shared)
{
	if (!code->coded)
		return in->len[i] - shared;
	return hyb_huff_size(&code->huff, in->bytes + in->off[i] + shared,
						 in->len[i] - shared);
}

void
hyb_front_prepare(const HybStrings *in, uint32_t n, bool try_code,
				  HybFrontCode *code)
{
	uint32_t	freq[256];
	uint32_t	prefix;
	uint32_t	raw = 0;
	uint32_t	coded;

	code->coded = false;
	if (!try_code || n < 2)
		return;

	memset(freq, 0, sizeof(freq));
	prefix = hyb_front_prefix(in, n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	shared = shared_of(in, i, prefix);
		const uint8_t *s = in->bytes + in->off[i] + shared;
		uint32_t	len = in->len[i] - shared;

		for (uint32_t j = 0; j < len; j++)
			freq[s[j]]++;
		raw += len;
	}
	if (!hyb_huff_build(&code->huff, freq))
		return;

	code->coded = true;
	coded = code->huff.size;
	for (uint32_t i = 0; i < n; i++)
	{
		code->rest[i] = rest_size(in, code, i, shared_of(in, i, prefix));
		coded += code->rest[i];
	}
	/* decoding takes time: only for a clear gain */
	if (coded > raw - raw / 16)
		code->coded = false;
}

static inline uint32_t
field_size(uint32_t v, uint32_t max)
{
	return v < max ? 0 : hyb_varint_size(v - max);
}

/* The greatest k, at most 8, with v >= 2^k - 1. */
static inline unsigned
length_class(uint32_t v)
{
	return v >= 255 ? 8 : hyb_bit_width(v + 1) - 1;
}

uint32_t
hyb_front_least(const HybStrings *in, const HybFrontCode *code, uint32_t n)
{
	uint32_t	least = 3 + 2 * nrestarts(n) + n;

	if (code->coded)
		return 0;
	for (uint32_t i = 1; i < n; i++)
		least += in->len[i] - in->lcp[i];
	return least;
}

void
hyb_front_plan(const HybStrings *in, const HybFrontCode *code, uint32_t n,
			   HybFrontPlan *plan)
{
	/* how many strings have a shared length, or a rest, of 2^k - 1 or more */
	uint32_t	shared_from[9] = {0};
	uint32_t	rest_from[9] = {0};
	uint32_t	prefix = hyb_front_prefix(in, n);
	uint32_t	best = UINT32_MAX;
	uint32_t	max_shared;
	uint32_t	max_rest;
	uint32_t	data_len = 0;

	HYB_ASSERT(n > 0);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	rest;

		if (i % INTERVAL == 0)
			continue;
		rest = code->coded ? code->rest[i] : in->len[i] - in->lcp[i];
		rest_from[length_class(rest)]++;
		shared_from[length_class(in->lcp[i] - prefix)]++;
	}
	for (int k = 7; k >= 0; k--)
	{
		shared_from[k] += shared_from[k + 1];
		rest_from[k] += rest_from[k + 1];
	}
	plan->shared_bits = 4;
	for (unsigned k = 1; k <= 7; k++)
	{
		uint32_t	cost = shared_from[k] + rest_from[8 - k];

		if (cost < best)
		{
			best = cost;
			plan->shared_bits = (uint8_t) k;
		}
	}

	max_shared = (1u << plan->shared_bits) - 1;
	max_rest = (1u << (8 - plan->shared_bits)) - 1;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	rest;

		if (i % INTERVAL == 0)
		{
			rest = rest_size(in, code, i, prefix);
			data_len += hyb_varint_size(rest) + rest;
		}
		else
		{
			rest = code->coded ? code->rest[i] : in->len[i] - in->lcp[i];
			data_len += 1 + field_size(in->lcp[i] - prefix, max_shared) +
				field_size(rest, max_rest) + rest;
		}
	}
	plan->prefix_len = prefix;
	plan->data_len = data_len;
	plan->size = 3 + (code->coded ? code->huff.size : 0) + 2 * nrestarts(n) +
		data_len;
}

uint8_t *
hyb_front_write(const HybStrings *in, const HybFrontCode *code, uint32_t n,
				const HybFrontPlan *plan, uint8_t *out)
{
	uint32_t	max_shared = (1u << plan->shared_bits) - 1;
	uint32_t	max_rest = (1u << (8 - plan->shared_bits)) - 1;
	uint8_t    *restarts;
	uint8_t    *data;

	HYB_ASSERT(plan->shared_bits >= 1 && plan->shared_bits <= 7);
	HYB_ASSERT(plan->data_len <= UINT16_MAX);
	*out++ = (uint8_t) (plan->shared_bits | (code->coded ? 8 : 0));
	hyb_store16(out, plan->data_len);
	out += 2;
	if (code->coded)
		out = hyb_huff_write_code(&code->huff, out);
	restarts = out;
	data = out = restarts + 2 * nrestarts(n);

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	shared = shared_of(in, i, plan->prefix_len);
		const uint8_t *s = in->bytes + in->off[i] + shared;
		uint32_t	len = in->len[i] - shared;
		uint32_t	rest = code->coded && i % INTERVAL != 0 ? code->rest[i] :
			rest_size(in, code, i, shared);

		HYB_ASSERT(shared >= plan->prefix_len && shared <= in->len[i]);
		if (i % INTERVAL == 0)
		{
			if (i > 0)
				hyb_store16(restarts + 2 * (i / INTERVAL - 1),
							(uint32_t) (out - data));
			out = hyb_varint_write(out, rest);
		}
		else
		{
			uint32_t	a = shared - plan->prefix_len;
			uint8_t    *head = out++;

			*head = (uint8_t) ((a < max_shared ? a : max_shared) <<
							   (8 - plan->shared_bits));
			*head |= (uint8_t) (rest < max_rest ? rest : max_rest);
			if (a >= max_shared)
				out = hyb_varint_write(out, a - max_shared);
			if (rest >= max_rest)
				out = hyb_varint_write(out, rest - max_rest);
		}
		if (code->coded)
			out = hyb_huff_encode(&code->huff, s, len, out);
		else
		{
			memcpy(out, s, len);
			out += len;
		}
	}
	HYB_ASSERT(out == data + plan->data_len);
	return out;
}

/* ---- reading ---- */

const uint8_t *
hyb_front_open(HybFront *front, uint32_t n, const uint8_t *p,
			   const uint8_t *end)
{
	if (n == 0 || end - p < 3)
		return NULL;
	front->n = n;
	front->shared_bits = *p & 7;
	front->coded = (*p & 8) != 0;
	if (front->shared_bits == 0 || *p > 15)
		return NULL;
	front->data_len = hyb_load16(p + 1);
	p += 3;
	if (front->coded)
	{
		p = hyb_huff_open(&front->huff, p, end);
		if (p == NULL)
			return NULL;
	}
	if ((size_t) (end - p) < 2 * nrestarts(n) + front->data_len)
		return NULL;
	front->restarts = p;
	front->data = p + 2 * nrestarts(n);
	return front->data + front->data_len;
}

void
hyb_front_cursor_reset(const HybFront *front, HybFrontCursor *cursor)
{
	HYB_ASSERT(front->prefix_len <= cursor->cap);
	cursor->row = -1;
	cursor->len = 0;
	cursor->table_filled = false;
	cursor->decoded = 0;
	memcpy(cursor->buf, front->prefix, front->prefix_len);
}

typedef struct Entry
{
	uint32_t	shared;
	uint32_t	rest_len;
	const uint8_t *rest;
} Entry;

/*
 * The entry at offset *off of the data; *off moves behind it.  False if it
 * does not lie within the data.
 */
static inline bool
read_front_entry(const HybFront *front, bool restart, uint32_t *off, Entry *e)
{
	const uint8_t *end = front->data + front->data_len;
	const uint8_t *p = front->data + *off;

	if (*off >= front->data_len)
		return false;
	if (restart)
	{
		e->shared = 0;
		p = hyb_varint_read(p, end, &e->rest_len);
		if (p == NULL)
			return false;
	}
	else
	{
		unsigned	rest_bits = 8 - front->shared_bits;
		uint32_t	max_rest = (1u << rest_bits) - 1;
		uint32_t	more;

		e->shared = *p >> rest_bits;
		e->rest_len = *p & max_rest;
		p++;
		if (e->shared == (1u << front->shared_bits) - 1)
		{
			p = hyb_varint_read(p, end, &more);
			if (p == NULL || more > 0xFFFF)
				return false;
			e->shared += more;
		}
		if (e->rest_len == max_rest)
		{
			p = hyb_varint_read(p, end, &more);
			if (p == NULL || more > 0xFFFF)
				return false;
			e->rest_len += more;
		}
	}
	if ((size_t) (end - p) < e->rest_len)
		return false;
	e->rest = p;
	*off = (uint32_t) (p + e->rest_len - front->data);
	return true;
}

static inline uint32_t
restart_offset(const HybFront *front, uint32_t block)
{
	return block == 0 ? 0 : hyb_load16(front->restarts + 2 * (block - 1));
}

/* The first bytes of an entry's rest, at most max; returns their number. */
static inline uint32_t
read_rest(const HybFront *front, HybFrontCursor *cursor, const Entry *e,
		  uint8_t *out, uint32_t max)
{
	if (!front->coded)
	{
		uint32_t	len = e->rest_len < max ? e->rest_len : max;

		memcpy(out, e->rest, len);
		return len;
	}
	if (!cursor->table_filled && cursor->table != NULL)
	{
		cursor->decoded += e->rest_len;
		if (cursor->decoded > HYB_FRONT_TABLE_AFTER)
		{
			hyb_huff_fill_table(&front->huff, cursor->table);
			cursor->table_filled = true;
		}
	}
	return hyb_huff_decode(&front->huff,
						   cursor->table_filled ? cursor->table : NULL,
						   e->rest, e->rest_len, out, max);
}

/*
 * Decodes only the bytes that survive into the wanted string.  Entries whose bytes a
 * later entry overwrites are dropped from the stack.  The others contribute up to
 * the shared length of the next one.
 */
bool
hyb_front_read(const HybFront *front, HybFrontCursor *cursor, uint32_t row)
{
	Entry		stack[INTERVAL];
	int			depth = 0;
	uint32_t	r;
	uint32_t	off;
	uint32_t	base;			/* bytes in buf that the entries build on */
	uint32_t	pos;
	uint8_t    *buf = cursor->buf + front->prefix_len;
	uint32_t	cap = cursor->cap - front->prefix_len;

	HYB_ASSERT(row < front->n && front->prefix_len <= cursor->cap);
	if (cursor->row == (int) row)
		return true;
	if (cursor->row >= 0 && (uint32_t) cursor->row < row &&
		(uint32_t) cursor->row / INTERVAL == row / INTERVAL)
	{
		r = (uint32_t) cursor->row + 1;
		off = cursor->next;
		base = cursor->len - front->prefix_len;
	}
	else
	{
		r = row - row % INTERVAL;
		off = restart_offset(front, row / INTERVAL);
		base = 0;
	}
	cursor->row = -1;

	stack[0].shared = 0;
	for (; r <= row; r++)
	{
		Entry		e;

		if (!read_front_entry(front, r % INTERVAL == 0, &off, &e))
			return false;
		while (depth > 0 && stack[depth - 1].shared >= e.shared)
			depth--;
		HYB_ASSERT(depth < INTERVAL);
		stack[depth++] = e;
	}

	pos = stack[0].shared;
	if (pos > base)
		return false;
	for (int k = 0; k < depth; k++)
	{
		bool		last = k + 1 == depth;
		uint32_t	max = last ? cap - pos : stack[k + 1].shared - pos;
		uint32_t	got;

		if (max > cap - pos)
			return false;
		if (!front->coded && last && stack[k].rest_len > max)
			return false;
		got = read_rest(front, cursor, &stack[k], buf + pos, max);
		if (!last && got < max)
			return false;
		pos += got;
		HYB_ASSERT(pos <= cap);
	}
	cursor->row = (int) row;
	cursor->len = front->prefix_len + pos;
	cursor->next = off;
	return true;
}

/* ---- searching ---- */

/* Where the end of a string sorts, beside what goes on. */
typedef enum End
{
	END_LOW,
	END_HIGH,
	END_EQUAL					/* a string equals all that begins with it */
} End;

/*
 * Order of a string and the target, which agree on `*m` bytes, where the
 * string goes on with `rest`; *m becomes the length of their common prefix.
 */
static inline int
compare_rest(const HybFront *front, const Entry *e, const uint8_t *target,
			 uint32_t target_len, End end, uint32_t *m)
{
	HybHuffReader r;
	uint32_t	pos = 0;

	hyb_huff_reader_init(&r, e->rest, e->rest_len);
	for (;;)
	{
		int			c;

		if (front->coded)
			c = hyb_huff_next(&front->huff, &r);
		else
			c = pos < e->rest_len ? e->rest[pos++] : -1;

		if (*m == target_len)
			return c < 0 ? 0 : end == END_HIGH ? -1 : 1;
		if (c < 0)
			return end == END_EQUAL ? 0 : end == END_HIGH ? 1 : -1;
		if (c != target[*m])
			return c < target[*m] ? -1 : 1;
		(*m)++;
	}
}

/* What is looked for, without the common prefix. */
typedef struct Sought
{
	const uint8_t *bytes;
	uint32_t	len;
	End			end;
	bool		upper;
} Sought;

/* A walk stands before a string, and shares `m` bytes with the one before that. */
typedef struct FrontWalk
{
	uint32_t	row;
	uint32_t	off;			/* of its entry */
	uint32_t	m;
	uint32_t	found;			/* bytes that the string after that shares */
} FrontWalk;

/*
 * Leaves the common prefix out.  Returns false if that decides: all strings lie
 * below the target (*below), or none.
 */
static inline bool
leave_prefix(const HybFront *front, Sought *sought, bool *below)
{
	uint32_t	most = sought->len < front->prefix_len ? sought->len : front->prefix_len;
	uint32_t	common = hyb_common_prefix(front->prefix, sought->bytes, most);

	if (common < front->prefix_len)
	{
		*below = common < most ? front->prefix[common] < sought->bytes[common] :
			sought->end == END_HIGH;
		return false;
	}
	sought->bytes += front->prefix_len;
	sought->len -= front->prefix_len;
	return true;
}

/*
 * Begins at the last restart among [a, b] that lies below what is looked for, or at
 * the first one.  Returns false if the data is damaged.
 */
static inline bool
begin_walk(const HybFront *front, uint32_t a, uint32_t b, const Sought *sought, FrontWalk *walk)
{
	while (a < b)
	{
		uint32_t	mid = (a + b + 1) / 2;
		uint32_t	off = restart_offset(front, mid);
		uint32_t	m = 0;
		Entry		e;
		int			cmp;

		if (!read_front_entry(front, true, &off, &e))
			return false;
		cmp = compare_rest(front, &e, sought->bytes, sought->len, sought->end, &m);
		if (cmp < 0 || (sought->upper && cmp == 0))
			a = mid;
		else
			b = mid - 1;
	}
	walk->row = a * INTERVAL;
	walk->off = restart_offset(front, a);
	walk->m = walk->found = 0;
	return true;
}

/*
 * Walks to the first string of [lo, hi) that does not lie below what is looked for,
 * and stands before it.  A string that shares more than m bytes with the one before
 * compares like that one.  We look at other strings from the difference on.  Strings
 * below lo may be in any order.
 */
static inline int
walk_on(const HybFront *front, FrontWalk *walk, uint32_t lo, uint32_t hi, const Sought *sought,
		bool *equal)
{
	uint32_t	m = walk->m;
	int			cmp = -1;

	*equal = false;
	for (; walk->row < hi; walk->row++)
	{
		uint32_t	off = walk->off;
		Entry		e;

		if (!read_front_entry(front, walk->row % INTERVAL == 0, &off, &e))
			return -1;
		if (e.shared <= m)
		{
			m = e.shared;
			cmp = compare_rest(front, &e, sought->bytes, sought->len, sought->end, &m);
		}
		if (walk->row >= lo && (cmp > 0 || (cmp == 0 && !sought->upper)))
		{
			*equal = cmp == 0;
			walk->found = m;
			return (int) walk->row;
		}
		walk->off = off;
		walk->m = m;
	}
	return (int) hi;
}

/* hyb_front_search(), and what the string found shares with the target. */
static inline int
search(const HybFront *front, uint32_t lo, uint32_t hi, Sought *sought, bool *equal,
	   uint32_t *matched)
{
	FrontWalk	walk;
	bool		below;
	int			row;

	HYB_ASSERT(hi <= front->n);
	*equal = false;
	if (lo >= hi)
		return (int) hi;
	if (!leave_prefix(front, sought, &below))
		return (int) (below ? hi : lo);
	if (!begin_walk(front, lo / INTERVAL, (hi - 1) / INTERVAL, sought, &walk))
		return -1;
	row = walk_on(front, &walk, lo, hi, sought, equal);
	*matched = walk.found;
	return row;
}

int
hyb_front_search(const HybFront *front, uint32_t lo, uint32_t hi,
				 const uint8_t *target, uint32_t target_len, bool end_high,
				 bool upper, bool *equal)
{
	Sought		sought = {target, target_len, end_high ? END_HIGH : END_LOW, upper};
	uint32_t	matched;

	return search(front, lo, hi, &sought, equal, &matched);
}

int
hyb_front_search_beginning(const HybFront *front, const uint8_t *target,
						   uint32_t target_len, bool *begins, uint32_t *len)
{
	Sought		sought = {target, target_len, END_EQUAL, false};
	uint32_t	matched = 0;
	int			row = search(front, 0, front->n, &sought, begins, &matched);

	*len = front->prefix_len + matched;
	return row;
}

/*
 * Where to go on from a finger.  Returns false if what is looked for lies below what
 * was.  Let s be the string before the finger.  It lies below the old target, and
 * shares `matched` bytes with it.  The new target shares `common` bytes with the old
 * one.  If these are fewer, s has the old target's byte where the new one's is greater.
 * If they are more, s differs from both alike.  If they are as many, the byte of s is
 * less than the old target's, and that is less than the new one's.  So s shares the
 * lesser number with the new target, and lies below it.
 */
static inline bool
walk_from(const HybFrontFinger *finger, const Sought *sought, FrontWalk *walk)
{
	uint32_t	most = sought->len < finger->len ? sought->len : finger->len;
	uint32_t	common;

	if (!finger->set)
		return false;
	common = hyb_common_prefix(finger->sought, sought->bytes, most);
	if (common < most ? sought->bytes[common] < finger->sought[common] :
		sought->len != finger->len && (sought->len < finger->len) != (sought->end == END_HIGH))
		return false;
	walk->row = finger->row;
	walk->off = finger->off;
	walk->found = 0;
	walk->m = common < finger->matched ? common : finger->matched;
	return true;
}

int
hyb_front_search_on(const HybFront *front, HybFrontFinger *finger, const uint8_t *target,
					uint32_t target_len, bool end_high, bool *equal)
{
	Sought		sought = {target, target_len, end_high ? END_HIGH : END_LOW, false};
	uint32_t	first = 0;		/* restart to begin at */
	uint32_t	end = 0;
	int			row = 0;
	FrontWalk	walk = {0};
	bool		below;

	*equal = false;
	if (!leave_prefix(front, &sought, &below))
		return below ? (int) front->n : 0;
	if (walk_from(finger, &sought, &walk))
	{
		/* what lies beyond the next restart is found faster from there */
		first = walk.row / INTERVAL + 1;
		end = first * INTERVAL < front->n ? first * INTERVAL : front->n;
		row = walk_on(front, &walk, 0, end, &sought, equal);
	}
	if (row == (int) end && end < front->n)
	{
		if (!begin_walk(front, first, (front->n - 1) / INTERVAL, &sought, &walk))
			return -1;
		row = walk_on(front, &walk, 0, front->n, &sought, equal);
	}
	finger->set = row >= 0 && sought.len <= HYB_FRONT_FINGER_BYTES;
	if (finger->set)
	{
		finger->row = walk.row;
		finger->off = walk.off;
		finger->matched = walk.m;
		finger->len = sought.len;
		memcpy(finger->sought, sought.bytes, sought.len);
	}
	return row;
}
