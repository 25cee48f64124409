/*
 * art.c
 *		Adaptive radix tree (Leis, Kemper, Neumann, "The adaptive radix tree:
 *		ARTful indexing for main-memory databases", ICDE 2013).
 *
 * It has four sizes of nodes, lazy expansion, and path compression with up to eight
 * bytes in the node.  Beyond these it goes the paper's optimistic way: a record tells.
 *
 * No key is a prefix of another, so a record never lies at an inner node.
 */
#include "region.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PREFIX_BYTES	8

typedef enum NodeKind
{
	NODE4,
	NODE16,
	NODE48,
	NODE256,
	NODE_KINDS
} NodeKind;

typedef struct Node
{
	uint8_t		kind;
	uint8_t		unused;
	uint16_t	count;
	uint32_t	prefix_len;
	uint8_t		prefix[PREFIX_BYTES];
} Node;

/* A Ref twice, plus one if it is a record's; 0: none. */
typedef uint32_t Child;

typedef struct Node4
{
	Node		node;
	uint8_t		key[4];			/* ascending */
	Child		child[4];
} Node4;

typedef struct Node16
{
	Node		node;
	uint8_t		key[16];		/* ascending */
	Child		child[16];
} Node16;

typedef struct Node48
{
	Node		node;
	uint8_t		slot[256];		/* plus one; 0: none */
	Child		child[48];
} Node48;

typedef struct Node256
{
	Node		node;
	Child		child[256];
} Node256;

static const size_t node_bytes[NODE_KINDS] = {
	sizeof(Node4), sizeof(Node16), sizeof(Node48), sizeof(Node256)
};
static const int node_room[NODE_KINDS] = {4, 16, 48, 256};

static Region region;
static Child root;
static Ref	spare[NODE_KINDS];	/* nodes that were outgrown */

static inline int
is_record(Child child)
{
	return child & 1;
}

static inline void *
child_at(Child child)
{
	return region_at(&region, child >> 1);
}

static Child
new_node(NodeKind kind)
{
	Ref			ref = spare[kind];
	Node	   *node;

	if (ref != 0)
		memcpy(&spare[kind], region_at(&region, ref), sizeof(Ref));
	else
		ref = region_alloc(&region, node_bytes[kind]);
	node = region_at(&region, ref);
	memset(node, 0, node_bytes[kind]);
	node->kind = kind;
	return ref << 1;
}

static void
free_node(Child child)
{
	Node	   *node = child_at(child);
	NodeKind	kind = node->kind;

	memcpy(node, &spare[kind], sizeof(Ref));
	spare[kind] = child >> 1;
}

static Child
new_record(const Key *key)
{
	Ref			ref = region_alloc(&region, sizeof(Record) + key->len);

	record_fill(region_at(&region, ref), key);
	return ref << 1 | 1;
}

/* ---- children ---- */

static Child *
find_child(Node *node, uint8_t byte)
{
	switch (node->kind)
	{
		case NODE4:
			{
				Node4	   *n = (Node4 *) node;

				for (int i = 0; i < node->count; i++)
					if (n->key[i] == byte)
						return &n->child[i];
				return NULL;
			}
		case NODE16:
			{
				Node16	   *n = (Node16 *) node;
#ifdef __SSE2__
				__m128i		equal = _mm_cmpeq_epi8(_mm_set1_epi8((char) byte),
												   _mm_loadu_si128((const __m128i *) n->key));
				unsigned	bits = (unsigned) _mm_movemask_epi8(equal) & ((1u << node->count) - 1);

				return bits != 0 ? &n->child[__builtin_ctz(bits)] : NULL;
#else
				for (int i = 0; i < node->count; i++)
					if (n->key[i] == byte)
						return &n->child[i];
				return NULL;
#endif
			}
		case NODE48:
			{
				Node48	   *n = (Node48 *) node;

				return n->slot[byte] != 0 ? &n->child[n->slot[byte] - 1] : NULL;
			}
		default:
			{
				Node256    *n = (Node256 *) node;

				return n->child[byte] != 0 ? &n->child[byte] : NULL;
			}
	}
}

static void
add_sorted(uint8_t *keys, Child *children, int count, uint8_t byte, Child child)
{
	int			i = count;

	while (i > 0 && keys[i - 1] > byte)
	{
		keys[i] = keys[i - 1];
		children[i] = children[i - 1];
		i--;
	}
	keys[i] = byte;
	children[i] = child;
}

/* There is room. */
static void
put_child(Node *node, uint8_t byte, Child child)
{
	switch (node->kind)
	{
		case NODE4:
			add_sorted(((Node4 *) node)->key, ((Node4 *) node)->child, node->count, byte, child);
			break;
		case NODE16:
			add_sorted(((Node16 *) node)->key, ((Node16 *) node)->child, node->count, byte, child);
			break;
		case NODE48:
			((Node48 *) node)->child[node->count] = child;
			((Node48 *) node)->slot[byte] = (uint8_t) (node->count + 1);
			break;
		default:
			((Node256 *) node)->child[byte] = child;
			break;
	}
	node->count++;
}

/* The child with the least byte from `byte` on, which is set to it. */
static Child
next_child(Node *node, int *byte)
{
	const uint8_t *keys = node->kind == NODE4 ? ((Node4 *) node)->key : ((Node16 *) node)->key;
	const Child *children = node->kind == NODE4 ? ((Node4 *) node)->child : ((Node16 *) node)->child;

	if (node->kind == NODE4 || node->kind == NODE16)
	{
		for (int i = 0; i < node->count; i++)
			if (keys[i] >= *byte)
			{
				*byte = keys[i];
				return children[i];
			}
		return 0;
	}
	for (; *byte < 256; (*byte)++)
	{
		Child	   *child = find_child(node, (uint8_t) *byte);

		if (child != NULL)
			return *child;
	}
	return 0;
}

/* Replace a full node by one of the next size. */
static void
grow(Child *place)
{
	Node	   *old = child_at(*place);
	Child		larger = new_node(old->kind + 1);
	Node	   *node = child_at(larger);
	int			byte = 0;
	Child		child;

	node->prefix_len = old->prefix_len;
	memcpy(node->prefix, old->prefix, PREFIX_BYTES);
	for (; byte < 256 && (child = next_child(old, &byte)) != 0; byte++)
		put_child(node, (uint8_t) byte, child);
	free_node(*place);
	*place = larger;
}

/* ---- prefixes ---- */

/* Any record below. */
static const Record *
some_record(Child child)
{
	while (!is_record(child))
	{
		int			byte = 0;

		child = next_child(child_at(child), &byte);
	}
	return child_at(child);
}

/* All of a node's prefix: what is beyond the node's bytes, a record has. */
static const uint8_t *
whole_prefix(Child child, uint32_t depth)
{
	const Node *node = child_at(child);

	return node->prefix_len <= PREFIX_BYTES ? node->prefix :
		some_record(child)->key + depth;
}

static uint32_t
common_bytes(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t	i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return i;
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void
set_prefix(Node *node, const uint8_t *bytes, uint32_t len)
{
	node->prefix_len = len;
	memmove(node->prefix, bytes, least(len, PREFIX_BYTES));
}

/* ---- the structure ---- */

static void
art_init(const Key *keys, uint32_t n)
{
	(void) keys;
	(void) n;
	region_init(&region);
	root = 0;
}

/* Put a node above *place, whose keys have `common` bytes of its prefix. */
static void
split(Child *place, const uint8_t *below, uint32_t depth, uint32_t common, const Key *key)
{
	Child		parent = new_node(NODE4);
	Node	   *node = child_at(parent);

	set_prefix(node, key->bytes + depth, common);
	put_child(node, below[common], *place);
	put_child(node, key->bytes[depth + common], new_record(key));
	*place = parent;
}

static void
art_insert(const Key *key)
{
	Child	   *place = &root;
	uint32_t	depth = 0;

	for (;;)
	{
		Node	   *node;
		Child	   *next;

		if (*place == 0)
		{
			*place = new_record(key);
			return;
		}
		if (is_record(*place))
		{
			const Record *record = child_at(*place);

			split(place, record->key + depth, depth,
				  common_bytes(record->key + depth, key->bytes + depth,
							   least(record->len, key->len) - depth), key);
			return;
		}
		node = child_at(*place);
		if (node->prefix_len > 0)
		{
			const uint8_t *prefix = whole_prefix(*place, depth);
			uint32_t	common = common_bytes(prefix, key->bytes + depth,
											  least(node->prefix_len, key->len - depth));

			if (common < node->prefix_len)
			{
				Child		below = *place;

				split(place, prefix, depth, common, key);
				node = child_at(below);
				set_prefix(node, prefix + common + 1, node->prefix_len - common - 1);
				return;
			}
			depth += node->prefix_len;
		}
		next = find_child(node, key->bytes[depth]);
		if (next == NULL)
		{
			if (node->count == node_room[node->kind])
			{
				grow(place);
				node = child_at(*place);
			}
			put_child(node, key->bytes[depth], new_record(key));
			return;
		}
		place = next;
		depth++;
	}
}

static uint32_t
art_look_up(const Key *key)
{
	Child		child = root;
	uint32_t	depth = 0;
	const Record *record;

	while (child != 0 && !is_record(child))
	{
		Node	   *node = child_at(child);
		Child	   *next;
		uint32_t	known = least(node->prefix_len, PREFIX_BYTES);

		if (depth + node->prefix_len >= key->len ||
			memcmp(node->prefix, key->bytes + depth, known) != 0)
			return UINT32_MAX;
		depth += node->prefix_len;
		next = find_child(node, key->bytes[depth]);
		child = next != NULL ? *next : 0;
		depth++;
	}
	if (child == 0)
		return UINT32_MAX;
	record = child_at(child);
	return key_compare(record->key, record->len, key->bytes, key->len) == 0 ?
		record->block : UINT32_MAX;
}

typedef struct Scan
{
	const Key  *from;
	int			left;
	uint64_t	sum;
} Scan;

/* All below a child, in order; bounded: from the scan's key on. */
static void
scan_below(Scan *scan, Child child, uint32_t depth, int bounded)
{
	Node	   *node;
	int			byte = 0;
	int			first;

	if (is_record(child))
	{
		const Record *record = child_at(child);

		if (bounded && key_compare(record->key, record->len, scan->from->bytes, scan->from->len) < 0)
			return;
		scan->sum += record->block;
		scan->left--;
		return;
	}
	node = child_at(child);
	if (bounded && node->prefix_len > 0)
	{
		uint32_t	n = least(node->prefix_len, scan->from->len - depth);
		int			c = memcmp(whole_prefix(child, depth), scan->from->bytes + depth, n);

		if (c < 0)
			return;
		bounded = c == 0;
	}
	depth += node->prefix_len;
	first = bounded && depth < scan->from->len ? scan->from->bytes[depth] : -1;
	if (first >= 0)
		byte = first;
	for (; scan->left > 0 && byte < 256; byte++)
	{
		Child		next = next_child(node, &byte);

		if (next == 0)
			break;
		scan_below(scan, next, depth + 1, byte == first);
	}
}

static uint64_t
art_scan(const Key *from, int n)
{
	Scan		scan = {.from = from,.left = n};

	if (root != 0)
		scan_below(&scan, root, 0, 1);
	return scan.sum;
}

static size_t
art_bytes(void)
{
	return region.used;
}

const Structure art_structure = {
	"ART", art_init, art_insert, art_look_up, art_scan, art_bytes
};
