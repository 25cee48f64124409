/*
 * check_filter.c
 *		hybrid_index_check: filter pages, and the membership filter.
 *
 * A filter page belongs to one level-1 node, its images to neighbouring
 * leaves; each image is sound by itself, and denies no key of its leaf.
 */
#include "base/compat.h"

#include "check/check.h"
#include "log/unique_lock.h"
#include "storage/bufmgr.h"

/*
 * Where the children from i on stop sharing a filter page: leaves that have no
 * filter may lie between those that do.  *used is the number of those.
 */
static int
end_of_page(const HybCheckPage *node, int i, int *used)
{
	const HybChild *children = node->children;
	BlockNumber block = children[i].filter_block;
	int			next = i + 1;

	*used = 1;
	for (; BlockNumberIsValid(block) && next < node->n; next++)
	{
		if (children[next].filter_block == block)
			(*used)++;
		else if (BlockNumberIsValid(children[next].filter_block))
			break;
	}
	return next;
}

void
hyb_check_filter_claim(HybCheck *check, const HybCheckPage *node)
{
	int			used;

	Assert(node->level == 1 && check->level < HYB_MAX_LEVELS);
	for (int i = 0; i < node->n; i = end_of_page(node, i, &used))
		if (BlockNumberIsValid(node->children[i].filter_block))
		{
			hyb_check_claim(check, node->children[i].filter_block,
							HYB_USE_FILTER, node->block);
			check->found[check->level].filter_pages++;
		}
}

/* The filter of a leaf, at the slot of a page that comes next. */
static void
check_filter(HybCheck *check, const HybChild *leaf, Page page, int slot,
			 Size offset)
{
	BlockNumber block = leaf->filter_block;
	const HybFilterEntry *entry = &hyb_filter_entries(page)[slot];
	const HybFilterImage *image;
	const HybFilterRoutine *routine;
	const char *wrong;
	bool		damaged;

	if (leaf->filter_slot != slot)
		hyb_check_fail(check, block,
					   "The filters are not in the order of their leaves.");
	if (!hyb_filter_entry_valid(page, slot) || entry->offset != offset)
		hyb_check_fail(check, block,
					   "The filter at position %d lies outside the content of its page.", slot);
	if (entry->block != leaf->block || entry->stamp != leaf->stamp)
		hyb_check_fail(check, block,
					   "The filter at position %d is of leaf %u, not %u.",
					   slot, entry->block, leaf->block);
	image = hyb_filter_image(page, slot);
	routine = hyb_filter_routine(image->kind);
	if (routine == NULL)
		hyb_check_fail(check, block,
					   "The filter at position %d is of an unknown kind.", slot);
	damaged = image->fingerprints > 1 || image->more >= HYB_FILTER_MAX_LENGTHS ||
		image->bits + 8 * image->more > 8 * HYB_MAX_ENTRY_SIZE ||
		(image->bits > 0 && (check->level > 0 || !check->ix->desc->truncated));

	/*
	 * strings are of whole bytes; of numbers there is one length, and no more
	 * to say
	 */
	if (image->bits == 0 || hyb_key_is_fixed(check->ix->desc))
		damaged |= image->more > 0 || image->fingerprints > 0;
	else
		damaged |= image->bits % 8 != 0;
	for (int i = 0; i < lengthof(image->reserved2); i++)
		damaged |= image->reserved2[i] != 0;
	if (damaged)
		hyb_check_fail(check, block,
					   "The header of the filter at position %d is damaged.", slot);
	wrong = routine->verify(hyb_filter_body(image),
							hyb_filter_body_size(entry));
	if (wrong != NULL)
		hyb_check_fail(check, block,
					   "The filter at position %d is damaged: %s.", slot, wrong);
}

void
hyb_check_filter_pages(HybCheck *check, const HybCheckPage *node, int from,
					   int to)
{
	const HybChild *children = node->children;
	PGAlignedBlock copy;
	Page		page = (Page) copy.data;
	int			next;

	Assert(from >= 0 && to <= node->n);
	for (int i = 0; i < to; i = next)
	{
		BlockNumber block = children[i].filter_block;
		HybPageOpaque *opaque;
		Size		end;
		int			used;

		next = end_of_page(node, i, &used);
		if (!BlockNumberIsValid(block) || i < from)
			continue;
		if (!hyb_page_copy(check->ix, block, node->block, HYB_PAGE_FILTER, 0, copy.data))
			hyb_check_fail(check, block,
						   "Block %u points to it as a filter page, but it is of kind %d.",
						   node->block, hyb_page_opaque(page)->kind);
		opaque = hyb_page_opaque(page);
		if (opaque->level != 0 || opaque->flags != 0 ||
			opaque->link != InvalidBlockNumber || opaque->stamp > node->stamp)
			hyb_check_fail(check, block, "The trailer of a filter page is damaged.");
		if (opaque->count != used)
			hyb_check_fail(check, block,
						   "A filter page has %u filters, but %d leaves of block %u use it.",
						   opaque->count, used, node->block);
		end = SizeOfPageHeaderData + opaque->count * sizeof(HybFilterEntry);
		for (int j = i, slot = -1; j < next; j++)
		{
			if (children[j].filter_block != block)
				continue;
			check_filter(check, &children[j], page, ++slot, end);
			end += HYB_FILTER_ALIGN(hyb_filter_entries(page)[slot].len);
		}
		if (end != ((PageHeader) page)->pd_lower)
			hyb_check_fail(check, block, "A filter page has bytes that are not in use.");
	}
}

void
hyb_check_filter_open(HybCheck *check, const HybChild *child)
{
	check->filter_child = child;
	check->filter_open = false;
	if (child == NULL || !BlockNumberIsValid(child->filter_block))
		return;
	if (check->filter_copy_block != child->filter_block)
	{
		(void) hyb_page_copy(check->ix, child->filter_block, InvalidBlockNumber,
							 HYB_PAGE_FILTER, 0, check->filter_copy);
		check->filter_copy_block = child->filter_block;
	}
	if (hyb_filter_entry_valid((Page) check->filter_copy, child->filter_slot))
	{
		check->filter_image = hyb_filter_image((Page) check->filter_copy,
											   child->filter_slot);
		check->filter_size = hyb_filter_body_size(&hyb_filter_entries((Page) check->filter_copy)[child->filter_slot]);
		check->filter_open = hyb_filter_routine(check->filter_image->kind) != NULL;
	}
	if (!check->filter_open)
		hyb_check_fail(check, child->filter_block,
					   "The filter at position %d changed.", child->filter_slot);
}

void
hyb_check_filter_leaf(HybCheck *check)
{
	if (check->filter_open &&
		(check->filter_image->bits == 0) != hyb_leaf_keeps_keys(&check->leaf))
		hyb_check_fail(check, check->filter_child->filter_block,
					   "The filter at position %d is not about what leaf %u holds.",
					   check->filter_child->filter_slot, check->filter_child->block);
}

static void
denies(HybCheck *check, int position)
{
	hyb_check_fail(check, check->filter_child->filter_block,
				   "The filter at position %d denies the key at position %d of leaf %u.",
				   check->filter_child->filter_slot, position,
				   check->filter_child->block);
}

void
hyb_check_membership(HybCheck *check, BlockNumber block, const uint8 *key,
					 uint32 keylen, const ItemPointerData *tid)
{
	if (tid != NULL && hyb_unique_is_denied(check->ix, key, keylen))
		hyb_check_fail(check, block,
					   "The membership filter denies the key of the entry that leads to heap tuple (%u,%u).",
					   HYB_TID_PARTS(tid));
}

void
hyb_check_filter_key(HybCheck *check, const uint8 *key, uint32 keylen,
					 int position)
{
	HybPos		low = {.key = key,.len = (uint16) keylen,.tie = HYB_BEFORE};
	HybPos		high = {.key = key,.len = (uint16) keylen,.tie = HYB_AFTER};

	if (!check->filter_open)
		return;
	low.ncols = high.ncols = (uint8) check->ix->desc->nkeys;
	if (hyb_filter_ask(check->filter_image, check->filter_size,
					   &low, &high, true) != HYB_ANSWER_MAYBE ||
		hyb_filter_ask(check->filter_image, check->filter_size,
					   &low, &high, false) < HYB_ANSWER_MAYBE)
		denies(check, position);
}

void
hyb_check_filter_items(HybCheck *check, int row, int first, int last)
{
	for (int item = first; check->filter_open && item < last; item++)
		if (hyb_filter_ask_item(check->filter_image, check->filter_size,
								&check->leaf, row, item, &check->row_key) != HYB_ANSWER_MAYBE)
			denies(check, item);
}
