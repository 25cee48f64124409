/*
 * filter.h
 *		Filters of static leaves.
 *
 * Each leaf may have a filter of its keys (filter_kind.h).  The images of
 * neighbouring leaves share filter pages; the leaf's entry in its level-1
 * node says where its image is.  A filter page belongs to one level-1 node
 * and, like everything in the static stage, is never changed: a merge step
 * builds filters for the leaves it writes, moves those that shared a page with
 * the filters of leaves it replaced, and leaves other pages alone.
 *
 * A page names the leaf (block and stamp) of each image, so a reader who
 * comes late, when the page has been used for something else, notices.
 */
#ifndef HYB_FILTER_H
#define HYB_FILTER_H

#include "filter/filter_kind.h"
#include "leaf/leaf.h"
#include "store/inner.h"

/* One image on a filter page; an array of these begins its content. */
typedef struct HybFilterEntry
{
	BlockNumber block;			/* of the leaf */
	uint16		offset;			/* of the image (filter_kind.h), from the
								 * start of the page */
	uint16		len;
	uint64		stamp;			/* of the leaf */
} HybFilterEntry;

#define hyb_filter_entries(page) ((HybFilterEntry *) PageGetContents(page))
#define hyb_filter_count(page) ((int) hyb_page_opaque(page)->count)

/* A leaf whose filter would take more than that has none. */
#define HYB_FILTER_MAX_IMAGE	((HYB_PAGE_CAPACITY / 2 & ~7) - sizeof(HybFilterEntry))

StaticAssertDecl(sizeof(HybFilterEntry) == 16, "docs/format.md says what a filter page is made of");
StaticAssertDecl(sizeof(HybFilterImage) % 8 == 0, "what follows is aligned");

/* ---- building ---- */

typedef struct HybFilterBuilder HybFilterBuilder;

/*
 * In CurrentMemoryContext.  The kind is what hyb_filter_kind_of_level
 * (filter/filter_choice.h) says; NULL if that is HYB_FILTER_NONE.
 */
extern HybFilterBuilder *hyb_filter_builder_create(const HybIndex *ix,
												   HybFilterKind kind);

/*
 * The filter of a leaf image, palloc'd, for child->filter_image and _size;
 * NULL if it would be too large.
 */
extern void *hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
							  uint32 *size);

/* ---- reading ---- */

/* The image of an entry that is valid. */
static inline const HybFilterImage *
hyb_filter_image(Page page, int slot)
{
	return (const HybFilterImage *) (page + hyb_filter_entries(page)[slot].offset);
}

/* Bytes behind its beginning. */
#define hyb_filter_body_size(entry) ((entry)->len - sizeof(HybFilterImage))

/*
 * What an image says, size bytes behind its beginning (hyb_filter_body_size);
 * the other arguments are as in the table.
 */
extern HybFilterAnswer hyb_filter_ask(const HybFilterImage *image, Size size,
									  const HybPos *low, const HybPos *high,
									  bool point);

/*
 * May the child's leaf hold an entry between two positions?  NO, MAYBE, or
 * UNKNOWN, also if there is no filter (any more).  No lock is held on entry or
 * return.
 */
extern HybFilterAnswer hyb_filter_probe(const HybIndex *ix,
										const HybChild *child,
										const HybPos *low, const HybPos *high);

/* Entries of the leaf between two positions, about: keys, not TIDs.  False if
 * there is no filter. */
extern bool hyb_filter_count_keys(const HybIndex *ix, const HybChild *child,
								  const HybPos *low, const HybPos *high,
								  uint32 *count, uint32 *total);

/*
 * Does the entry lie within the page, and is it one of an image?  That is
 * 8-byte aligned then, and has its beginning.
 */
extern bool hyb_filter_entry_valid(Page page, int slot);

#endif							/* HYB_FILTER_H */
