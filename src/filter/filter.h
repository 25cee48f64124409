/*
 * filter.h
 *		Filters of static leaves: the pages they lie on, building and asking them.
 *
 * Each leaf may have a filter image (filter_kind.h).  Images of neighbouring
 * leaves share a filter page; a leaf's entry in its level-1 node names the
 * page and the place there.  A filter page belongs to one level-1 node and never changes.  A merge
 * step builds images for the leaves that it writes, moves images that shared a
 * page with those of replaced leaves, and leaves other filter pages alone.
 *
 * The page names the leaf (block and stamp) of each image.  A reader that comes
 * after the page was used for something else notices that.
 */
#ifndef HYB_FILTER_H
#define HYB_FILTER_H

#include "filter/filter_kind.h"
#include "leaf/leaf.h"
#include "store/inner.h"

#define hyb_filter_entries(page) ((HybFilterEntry *) PageGetContents(page))
#define hyb_filter_count(page) ((int) hyb_page_opaque(page)->count)

/*
 * A leaf whose prefixes have more lengths has no filter: it would be wrong too
 * often, and slow to ask.
 */
#define HYB_FILTER_MAX_LENGTHS	64

/* ---- building ---- */

typedef struct HybFilterBuilder HybFilterBuilder;

/* In CurrentMemoryContext; NULL for HYB_FILTER_NONE. */
extern HybFilterBuilder *hyb_filter_builder_create(const HybIndex *ix,
												   HybFilterKind kind);

/*
 * The filter image of a leaf image, palloc'd, for child->filter_image and
 * _size; NULL if the leaf is to have none.
 */
extern void *hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
							  uint32 *size);

/* ---- asking ---- */

/*
 * Does an entry of the page's directory lie within it, as does its image?  Such an
 * image is aligned, and has at least a HybFilterImage.
 */
extern bool hyb_filter_entry_valid(Page page, int slot);

/* The image of such an entry, and its size without the HybFilterImage. */
static inline const HybFilterImage *
hyb_filter_image(Page page, int slot)
{
	return (const HybFilterImage *) (page + hyb_filter_entries(page)[slot].offset);
}

#define hyb_filter_body_size(entry) ((entry)->len - sizeof(HybFilterImage))

/* Ask an image as HybFilterRoutine.probe describes; size is that of its body. */
extern HybFilterAnswer hyb_filter_ask(const HybFilterImage *image, Size size,
									  const HybPos *low, const HybPos *high,
									  bool point);

/*
 * Ask the image of an opened leaf of prefixes for an item, which is of this row;
 * `prefix` is a buffer.  The answer is HYB_ANSWER_MAYBE unless it is damaged.
 */
extern HybFilterAnswer hyb_filter_ask_item(const HybFilterImage *image, Size size,
										   HybLeaf *leaf, int row, int item,
										   HybBuf *prefix);

/*
 * May the child's leaf hold an entry between two positions?  Returns NO, MAYBE,
 * or UNKNOWN if there is no filter (any more) or it cannot tell.  No lock is
 * held on entry or return.
 */
extern HybFilterAnswer hyb_filter_probe(const HybIndex *ix,
										const HybChild *child,
										const HybPos *low, const HybPos *high);

#endif							/* HYB_FILTER_H */
