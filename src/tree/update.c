/*
 * update.c
 *		Copy-on-write replacement of children in the static stage.
 *
 * A merge step changes the children of one level-1 node.  It packs that node
 * anew, and each of its ancestors up to a new root, as a copy-on-write B-tree
 * does.  This is the non-blocking merge of the Hybrid Index (Zhang et al., SIGMOD
 * 2016, and Zhang's dissertation, chapter 8).
 */
#include "base/compat.h"

#include "filter/filter_place.h"
#include "miscadmin.h"
#include "tree/update.h"
#include "utils/rel.h"

/*
 * A node that fills less than HYB_NODE_SMALL of its page joins a neighbour if
 * both together fill HYB_NODE_JOINED at most.
 */
#define HYB_NODE_SMALL	0.33
#define HYB_NODE_JOINED	0.8

HybChild *
hyb_child_list_add_leaf(HybChildList *list, Page page, const HybPos *low)
{
	HybChild	child;

	Assert(hyb_page_opaque(page)->kind == HYB_PAGE_LEAF);
	Assert(hyb_page_opaque(page)->count > 0);
	memset(&child, 0, sizeof(child));
	child.block = InvalidBlockNumber;
	child.filter_block = InvalidBlockNumber;
	child.stamp = hyb_page_opaque(page)->stamp;
	child.low = *low;
	hyb_child_list_add(list, &child);
	return &list->children[list->n - 1];
}

void
hyb_child_list_add_image(HybChildList *list, Page page, const HybPos *low,
						 HybFilterBuilder *filter)
{
	HybChild   *child = hyb_child_list_add_leaf(list, page, low);

	child->image = palloc(BLCKSZ);
	memcpy(child->image, page, BLCKSZ);
	if (filter != NULL)
		child->filter_image = hyb_filter_build(filter, child->image,
											   &child->filter_size);
}

void
hyb_child_copy_leaf(const HybIndex *ix, const HybChild *child, char *page)
{
	if (!hyb_page_copy(ix, child->block, InvalidBlockNumber, HYB_PAGE_LEAF,
					   child->stamp, page))
		hyb_corrupted(ix->rel, child->block,
					  "This is not the leaf that its parent points to.");
}

static void
load_node(const HybIndex *ix, BlockNumber block, uint64 stamp, int level,
		  BlockNumber from, HybPathNode *node)
{
	Buffer		buf = hyb_page_lock(ix, block, from, BUFFER_LOCK_SHARE,
									HYB_PAGE_INNER, stamp);
	Page		page;
	int			n;

	Assert(level >= 1 && level < HYB_MAX_HEIGHT);
	if (!BufferIsValid(buf) ||
		hyb_page_opaque(BufferGetPage(buf))->level != level)
		hyb_corrupted(ix->rel, block, "This is not the internal node that its parent points to.");
	page = BufferGetPage(buf);
	node->block = block;
	memset(&node->children, 0, sizeof(HybChildList));
	n = hyb_inner_count(page);
	for (int i = 0; i < n; i++)
	{
		HybChild	child;

		hyb_inner_get(page, i, &child, ix->rel, block);
		hyb_child_list_add(&node->children, &child);
	}
	if (n == 0)
		hyb_corrupted(ix->rel, block, "An internal node has no children.");
	UnlockReleaseBuffer(buf);
}

/* As hyb_inner_search, forward, on a copied node. */
static int
search_node(const HybKeyDesc *desc, const HybChildList *list,
			const HybPos *pos)
{
	int			low = 0;
	int			high = list->n - 1;

	Assert(list->n > 0);
	while (low < high)
	{
		int			mid = low + (high - low + 1) / 2;

		if (hyb_pos_compare(desc, &list->children[mid].low, pos) <= 0)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static void
visit_page(const HybIndex *ix, const HybChild *node, int height, BlockNumber from,
		   HybVisit visit, void *arg)
{
	char	   *page;

	CHECK_FOR_INTERRUPTS();
	visit(arg, node, height);
	if (height == 1)
		return;
	page = palloc(BLCKSZ);
	if (!hyb_page_copy(ix, node->block, from, HYB_PAGE_INNER, node->stamp, page) ||
		hyb_page_opaque((Page) page)->level != height - 1)
		hyb_corrupted(ix->rel, node->block, "This is not the internal node that its parent points to.");
	for (int i = 0; i < hyb_inner_count((Page) page); i++)
	{
		HybChild	child;

		hyb_inner_get((Page) page, i, &child, ix->rel, node->block);
		visit_page(ix, &child, height - 1, node->block, visit, arg);
	}
	pfree(page);
}

void
hyb_static_visit(const HybIndex *ix, const HybRoot *root, HybVisit visit, void *arg)
{
	HybChild	top = {.block = root->block,.stamp = root->stamp,.filter_block = InvalidBlockNumber};
	int			height = hyb_root_height(ix, root);

	if (height > 0)
		visit_page(ix, &top, height, HYB_METAPAGE_BLKNO, visit, arg);
}

void
hyb_path_load(const HybIndex *ix, const HybRoot *root, const HybPos *pos,
			  HybPath *path)
{
	HybPos		low = {.tie = HYB_BEFORE};
	HybChild	at;

	memset(path, 0, sizeof(*path));
	path->height = hyb_root_height(ix, root);
	path->high.tie = HYB_AFTER;
	if (path->height == 0)
		return;

	memset(&at, 0, sizeof(at));
	at.block = root->block;
	at.stamp = root->stamp;
	at.low.tie = HYB_BEFORE;
	at.filter_block = InvalidBlockNumber;
	if (path->height == 1)
	{
		path->nodes[0].block = InvalidBlockNumber;
		hyb_child_list_add(&path->nodes[0].children, &at);
		return;
	}

	for (int level = path->height - 1; level >= 1; level--)
	{
		HybPathNode *node = &path->nodes[level - 1];
		HybChildList *list = &node->children;

		CHECK_FOR_INTERRUPTS();
		load_node(ix, at.block, at.stamp, level,
				  level == path->height - 1 ? HYB_METAPAGE_BLKNO : path->nodes[level].block,
				  node);

		/*
		 * A node that lost its first children has a lower fence below the
		 * separator of its first one.  What lies between belongs to that
		 * child, and may be cut into several.
		 */
		list->children[0].low = low;
		node->index = search_node(ix->desc, list, pos);
		if (level > 1 && node->index + 1 < list->n)
			path->high = list->children[node->index + 1].low;
		low = list->children[node->index].low;
		at = list->children[node->index];
	}
	hyb_path_assert_valid(path);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_path_assert_valid(const HybPath *path)
{
	Assert(path->height >= 0 && path->height <= HYB_MAX_HEIGHT);
	for (int level = 1; level < path->height; level++)
	{
		const HybPathNode *node = &path->nodes[level - 1];

		Assert(BlockNumberIsValid(node->block) && node->block != HYB_METAPAGE_BLKNO);
		Assert(node->index >= 0 && node->index < node->children.n);
		/* the path leads from each node to the next one */
		Assert(level == 1 ||
			   node->children.children[node->index].block == path->nodes[level - 2].block);
	}
	/* a root that is a leaf is the only child of a node that there is not */
	Assert(path->height != 1 ||
		   (!BlockNumberIsValid(path->nodes[0].block) && path->nodes[0].children.n == 1));
}
#endif

void
hyb_step_write_leaves(HybStepSpace *space, HybChildList *list)
{
	for (int i = 0; i < list->n; i++)
	{
		const HybChild *child = &list->children[i];

		/* a leaf has an image exactly while it has no block */
		Assert((child->image == NULL) == BlockNumberIsValid(child->block));
		Assert(child->image == NULL || child->stamp == space->stamp);
		if (child->image != NULL)
			list->children[i].block = hyb_step_write(space, child->image);
	}
}

static Size
list_size(const HybChildList *list, bool filters)
{
	Size		total = 0;

	for (int i = 0; i < list->n; i++)
		total += hyb_inner_child_size(&list->children[i], filters);
	return total;
}

/*
 * Are all nodes of a path from this height on the first child of their parent, or
 * the last child if `right`?
 */
static bool
at_edge(const HybPath *path, int level, bool right)
{
	for (int l = level; l < path->height - 1; l++)
		if (path->nodes[l].index != (right ? path->nodes[l].children.n - 1 : 0))
			return false;
	return true;
}

HybPos
hyb_path_lower_fence(const HybPath *path)
{
	HybPos		low = {.tie = HYB_BEFORE};

	for (int i = 1; i < path->height - 1; i++)
	{
		const HybPathNode *node = &path->nodes[i];

		Assert(node->index >= 0 && node->index < node->children.n);
		if (node->index > 0)
			return node->children.children[node->index].low;
	}
	return low;
}

HybPos
hyb_path_upper_fence(const HybPath *path, int child)
{
	const HybChildList *list = &path->nodes[0].children;

	Assert(child >= 0 && child < list->n);
	return child + 1 < list->n ? list->children[child + 1].low : path->high;
}

void
hyb_path_go_on(const HybIndex *ix, const HybPath *path, const HybPos *fence,
			   HybPos *at, HybBuf *at_key)
{
	if (!HYB_POS_MAX(fence) && hyb_pos_compare(ix->desc, fence, at) <= 0)
		hyb_corrupted(ix->rel, path->height > 1 ?
					  path->nodes[0].block : HYB_METAPAGE_BLKNO,
					  "The separators below this node do not ascend.");
	hyb_pos_copy(at, at_key, fence);
}

/*
 * Pack what the path's node of a height becomes; *nodes gets a child for each new
 * node.  At the right edge of the tree nodes are packed full, since ascending
 * keys do not come back to them.  Elsewhere they share evenly.
 */
static void
pack_level(HybStepSpace *space, HybFilterPlace *place, const HybPath *path,
		   int level, HybChildList *list, HybChildList *nodes)
{
	HybPos		low = {.tie = HYB_BEFORE};
	bool		filters = level == 1 && space->filters;
	Size		total = list_size(list, filters);
	Size		target;
	int			npages;
	int			start = 0;
	PGAlignedBlock image;

	hyb_child_list_assert_valid(list, space->ix->desc);
	npages = (int) ((total + HYB_PAGE_CAPACITY - 1) / HYB_PAGE_CAPACITY);
	target = npages <= 1 || at_edge(path, level, true) ?
		HYB_PAGE_CAPACITY : total / npages;
	if (level < path->height - 1)
		low = path->nodes[level].children.children[path->nodes[level].index].low;

	while (start < list->n)
	{
		Size		size = 0;
		int			end = start;
		HybChild	node;

		while (end < list->n)
		{
			Size		add = hyb_inner_child_size(&list->children[end], filters);

			if (size + add > HYB_PAGE_CAPACITY || (end > start && size >= target))
				break;
			size += add;
			end++;
		}
		/* a node has a child at least: a separator is a third of a page */
		Assert(end > start && size <= HYB_PAGE_CAPACITY);
		if (level == 1 && !space->bulk)
			hyb_filter_place_node(place, list, start, end);
		hyb_page_init(image.data, space->ix, HYB_PAGE_INNER, level, space->stamp);
		hyb_inner_fill(image.data, list->children + start, end - start, filters);

		memset(&node, 0, sizeof(node));
		node.filter_block = InvalidBlockNumber;
		node.block = hyb_step_write(space, image.data);
		node.stamp = space->stamp;
		node.low = start == 0 ? low : list->children[start].low;
		hyb_child_list_add(nodes, &node);
		space->new_inner++;
		start = end;
	}
}

/*
 * `list` is what the path's node of this height becomes.  If it is short, it takes
 * the children of a neighbour below the same parent, which is retired and leaves
 * its parent.  A leftmost node that lost all its children always does so: the
 * neighbour becomes the leftmost one, and its first separator has to change.
 */
static void
join_neighbour(HybStepSpace *space, HybFilterPlace *place, HybPath *path,
			   int level, bool left_edge, HybChildList *list)
{
	HybPathNode *parent = &path->nodes[level];
	HybChildList *siblings = &parent->children;
	bool		must = list->n == 0 && left_edge;
	bool		right = parent->index + 1 < siblings->n;
	int			at = right ? parent->index + 1 : parent->index - 1;
	bool		filters = level == 1 && space->filters;
	Size		size = list_size(list, filters);
	HybPathNode neighbour;
	HybChildList joined = {0};

	Assert(parent->index >= 0 && parent->index < siblings->n);
	Assert(list->n == 0 || size > 0);
	if (siblings->n < 2 || size > HYB_PAGE_CAPACITY * HYB_NODE_SMALL ||
		(list->n == 0 && !must))
		return;
	load_node(space->ix, siblings->children[at].block,
			  siblings->children[at].stamp, level, parent->block, &neighbour);
	if (!must && size + list_size(&neighbour.children, filters) >
		HYB_PAGE_CAPACITY * HYB_NODE_JOINED)
		return;

	/* a node's lower fence may lie below the separator of its first child */
	if (right)
		neighbour.children.children[0].low = siblings->children[at].low;
	else if (list->n > 0)
		list->children[0].low = siblings->children[parent->index].low;
	for (int i = 0; i < neighbour.children.n && !right; i++)
		hyb_child_list_add(&joined, &neighbour.children.children[i]);
	for (int i = 0; i < list->n; i++)
		hyb_child_list_add(&joined, &list->children[i]);
	for (int i = 0; i < neighbour.children.n && right; i++)
		hyb_child_list_add(&joined, &neighbour.children.children[i]);
	*list = joined;

	if (level == 1)
		hyb_filter_place_add_old(place, &neighbour.children);
	hyb_step_retire(space, neighbour.block);
	space->old_inner++;

	/* both are one child of the parent, with the lower of their fences */
	if (right)
		siblings->children[at].low = siblings->children[parent->index].low;
	else
		parent->index = at;
	memmove(&siblings->children[parent->index + (right ? 0 : 1)],
			&siblings->children[parent->index + (right ? 1 : 2)],
			(siblings->n - parent->index - (right ? 1 : 2)) * sizeof(HybChild));
	siblings->n--;
	Assert(parent->index >= 0 && parent->index < siblings->n);
}

/* The children of a node, with others in the place of the path's. */
static HybChildList
replace_child(const HybPathNode *node, const HybChildList *nodes)
{
	HybChildList replaced = {0};

	for (int i = 0; i < node->children.n; i++)
	{
		if (i != node->index)
			hyb_child_list_add(&replaced, &node->children.children[i]);
		else
			for (int j = 0; j < nodes->n; j++)
				hyb_child_list_add(&replaced, &nodes->children[j]);
	}
	Assert(replaced.n == node->children.n - 1 + nodes->n);
	return replaced;
}

static void
set_root(HybRoot *root, const HybChildList *list, int height)
{
	Assert(list->n <= 1);
	memset(root, 0, sizeof(*root));
	root->block = InvalidBlockNumber;
	if (list->n > 0)
	{
		Assert(height >= 1 && height <= HYB_MAX_HEIGHT);
		root->block = list->children[0].block;
		root->stamp = list->children[0].stamp;
		root->height = height;
	}
}

void
hyb_static_pack(HybStepSpace *space, HybChildList *leaves, HybChildList *nodes)
{
	HybPath    *path = palloc0(sizeof(HybPath));

	Assert(space->bulk);
	pack_level(space, NULL, path, 1, leaves, nodes);
	if (nodes->n > 0)
		nodes->children[0].low = leaves->children[0].low;
	pfree(path);
}

void
hyb_static_build(HybStepSpace *space, const HybChildList *list, int level,
				 HybRoot *root)
{
	HybPath    *path = palloc0(sizeof(HybPath));
	HybChildList current = *list;

	Assert(space->bulk);
	for (; current.n > 1; level++)
	{
		HybChildList nodes = {0};

		pack_level(space, NULL, path, level, &current, &nodes);
		current = nodes;
	}
	set_root(root, &current, level);
	pfree(path);
}

void
hyb_static_replace(HybStepSpace *space, HybPath *path, HybChildList *list,
				   HybRoot *root)
{
	HybPos		minus_infinity = {.tie = HYB_BEFORE};
	HybChildList current = *list;
	HybFilterPlace *place = palloc(sizeof(HybFilterPlace));
	int			level;

	Assert(!space->bulk);
	hyb_path_assert_valid(path);
	hyb_filter_place_init(place, space, path->height > 1 ?
						  &path->nodes[0].children : NULL);
	for (level = 1; !space->full; level++)
	{
		HybChildList nodes = {0};
		bool		has_parent = level < path->height - 1;
		bool		left_edge = at_edge(path, level, false);

		if (level <= path->height - 1)
		{
			hyb_step_retire(space, path->nodes[level - 1].block);
			space->old_inner++;
		}
		/* the root itself, or what is left of it */
		if (!has_parent && current.n <= 1)
			break;

		if (has_parent)
			join_neighbour(space, place, path, level, left_edge, &current);
		if (current.n > 0 && left_edge)
			current.children[0].low = minus_infinity;
		pack_level(space, place, path, level, &current, &nodes);
		current = has_parent ? replace_child(&path->nodes[level], &nodes) : nodes;
	}
	if (!space->full)
	{
		hyb_filter_place_finish(place);
		set_root(root, &current, level);
	}
	pfree(place);
}
