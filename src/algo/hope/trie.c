/*
 * trie.c
 *		Finding the interval of a string: a trie over the intervals' lower
 *		bounds.
 *
 * The first two bytes are looked up in an array; from then on each node has a
 * bitmap of the bytes that its strings go on with, and ranks, so that a
 * missing byte leads to the next one present, whose subtree's first interval
 * comes right after the one looked for.
 */
#include "algo/hope/internal.h"

typedef struct TrieBuild
{
	HybHopeTrie *trie;
	const HybHopeIntervals *iv;
} TrieBuild;

static inline uint32_t
bound_len(const HybHopeIntervals *iv, uint32_t i)
{
	return iv->off[i + 1] - iv->off[i];
}

static inline uint8_t
bound_byte(const HybHopeIntervals *iv, uint32_t i, uint32_t at)
{
	return iv->bytes[iv->off[i] + at];
}

/* End of the run of bounds from i on, before end, that agree at this depth. */
static uint32_t
run_end(const HybHopeIntervals *iv, uint32_t i, uint32_t end, uint32_t depth)
{
	uint8_t		c = bound_byte(iv, i, depth);

	while (++i < end && bound_byte(iv, i, depth) == c)
		;
	return i;
}

/*
 * A node for the bounds [from, to), which have their first depth bytes in
 * common.  Depth is at most HYB_HOPE_MAX_SYMBOL.
 */
static uint32_t
make_node(TrieBuild *build, uint32_t from, uint32_t to, uint32_t depth)
{
	HybHopeTrie *trie = build->trie;
	const HybHopeIntervals *iv = build->iv;
	uint32_t	self = ++trie->nnodes;
	HybHopeNode *node = &trie->nodes[self];
	uint32_t	i = from;
	uint32_t	k = 0;
	uint32_t	count = 0;

	memset(node, 0, sizeof(*node));
	if (bound_len(iv, i) == depth)
		node->at_end = i++;
	else
		node->at_end = i - 1;

	/* The children's places first: theirs follow. */
	for (uint32_t j = i; j < to; j = run_end(iv, j, to, depth))
	{
		uint8_t		c = bound_byte(iv, j, depth);

		node->bits[c >> 6] |= UINT64_C(1) << (c & 63);
		count++;
	}
	for (int w = 1; w < 4; w++)
		node->rank[w] = (uint8_t) (node->rank[w - 1] +
								   hyb_popcount64(node->bits[w - 1]));
	node->children = trie->nchildren;
	trie->nchildren += count + 1;
	while (i < to)
	{
		uint32_t	end = run_end(iv, i, to, depth);
		HybHopeChild *child = &trie->children[node->children + k++];

		child->first = i;
		child->node = 0;
		if (end - i > 1 || bound_len(iv, i) > depth + 1)
			child->node = make_node(build, i, end, depth + 1);
		i = end;
	}
	trie->children[node->children + k].first = to;
	trie->children[node->children + k].node = 0;
	return self;
}

void
hyb_hope_make_trie(HybHopeTrie *trie, const HybHopeIntervals *iv,
				   const HybHopeMemory *memory)
{
	TrieBuild	build = {trie, iv};
	size_t		most = 1;
	uint32_t	i = 0;

	/*
	 * A bound needs at most one node for each byte after the second that it
	 * does not share with the one before.
	 */
	for (uint32_t b = 1; b < iv->n; b++)
	{
		uint32_t	len = bound_len(iv, b);
		uint32_t	before = bound_len(iv, b - 1);
		uint32_t	common = hyb_common_prefix(iv->bytes + iv->off[b],
											   iv->bytes + iv->off[b - 1],
											   len < before ? len : before);

		if (common < 2)
			common = 1;
		if (len > common + 1)
			most += len - common - 1;
		most++;
	}
	trie->nnodes = trie->nchildren = 0;
	trie->two = memory->alloc(memory->context, 65536 * sizeof(uint32_t));
	trie->nodes = memory->alloc(memory->context, (most + 1) * sizeof(HybHopeNode));
	trie->children = memory->alloc(memory->context,
								   (2 * most + iv->n + 1) * sizeof(HybHopeChild));

	for (uint32_t c = 0; c < 256; c++)
	{
		uint32_t	end = run_end(iv, i, iv->n, 0);
		uint32_t	last = i++;

		trie->one[c] = last;
		for (uint32_t d = 0; d < 256; d++)
		{
			uint32_t	t = last;

			if (i < end && bound_byte(iv, i, 1) == d)
			{
				uint32_t	stop = run_end(iv, i, end, 1);

				t = last = i;
				if (stop - i > 1 || bound_len(iv, i) > 2)
				{
					t = make_node(&build, i, stop, 2) | HYB_HOPE_IS_NODE;
					last = stop - 1;
				}
				i = stop;
			}
			trie->two[c | (d << 8)] = t;
		}
	}
}

void
hyb_hope_free_trie(HybHopeTrie *trie, const HybHopeMemory *memory)
{
	if (trie->two != NULL)
		memory->release(memory->context, trie->two);
	if (trie->nodes != NULL)
		memory->release(memory->context, trie->nodes);
	if (trie->children != NULL)
		memory->release(memory->context, trie->children);
	trie->two = NULL;
	trie->nodes = NULL;
	trie->children = NULL;
}
