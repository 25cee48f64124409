/*
 * filter_kind.h
 *		What a kind of filter does: a table of functions for each.
 *
 * A filter image holds the keys of a leaf.  Asked about two positions, it says
 * that no key lies between them, or that one may.  It begins with a
 * HybFilterImage, which names the kind; what follows belongs to the kind.
 *
 * Images may be damaged.  Whatever their bytes are, no function reads outside of
 * them or loops without end.
 */
#ifndef HYB_FILTER_KIND_H
#define HYB_FILTER_KIND_H

#include "algo/types.h"
#include "store/handle.h"
#include "store/page.h"
#include "store/settings.h"

/*
 * The beginning of an image, which lies at a multiple of eight.
 *
 * The filter of a leaf of prefixes holds strings that keys begin with:
 *
 *	- Where prefixes are numbers, the first `bits` bits of keys.
 *	- Where prefixes are strings, these, in all lengths from `bits` bits to `more`
 *	  bytes more.  A byte follows each, the fingerprint of the whole key.
 */
typedef struct HybFilterImage
{
	uint8		kind;			/* HybFilterKind */
	uint8		fingerprints;	/* 1: a fingerprint (leaf/prefixes.h) follows
								 * each string; otherwise 0 */
	uint16		bits;			/* bits of the shortest string, zeros follow
								 * the end of shorter keys; 0: the image holds
								 * whole keys */
	uint16		more;			/* bytes that the longest strings have beyond
								 * these bits */
	uint8		reserved2[2];	/* 0 */
} HybFilterImage;

/* An image on a filter page; an array of these begins its content. */
typedef struct HybFilterEntry
{
	BlockNumber block;			/* of the leaf */
	uint16		offset;			/* of the image, from the start of the page */
	uint16		len;			/* of the image */
	uint64		stamp;			/* of the leaf */
} HybFilterEntry;

/* Images lie at multiples of eight, on machines of 32 bits too. */
#define HYB_FILTER_ALIGN(len)	TYPEALIGN(8, len)

/* A leaf whose image would be larger has none. */
#define HYB_FILTER_MAX_IMAGE	((HYB_PAGE_CAPACITY / 2 & ~7) - sizeof(HybFilterEntry))

StaticAssertDecl(sizeof(HybFilterEntry) == 16, "docs/format.md says what a filter page is made of");
StaticAssertDecl(sizeof(HybFilterImage) % 8 == 0, "what follows is aligned");

/* What follows the beginning of an image: what its kind reads. */
#define hyb_filter_body(image) ((const void *) ((image) + 1))

/* `image` and `size` are what follows the HybFilterImage. */
typedef struct HybFilterRoutine
{
	/* In CurrentMemoryContext; for many images, one after the other. */
	void	   *(*builder_create) (const HybIndex *ix);

	/*
	 * Start an empty image.  Each question is going to ask it up to `times`
	 * times, so it is to be wrong less often by that factor, if the kind can.
	 */
	void		(*begin) (void *builder, uint32 times);

	/* Keys of an image at most; 0: there is no limit */
	uint32		max_keys;

	/*
	 * Keys ascend, and one may come twice.  Returns false if the builder sees
	 * that they do not ascend.
	 */
	bool		(*add) (void *builder, const uint8 *key, uint32 len);

	/* Returns the bytes of the image, or 0 if the leaf gets no filter. */
	Size		(*finish) (void *builder);
	void		(*write) (const void *builder, void *image);

	/*
	 * May a key lie between two positions?  `point`: they enclose a single
	 * whole key.  Returns HYB_ANSWER_UNKNOWN only if `point` is false.
	 */
	HybFilterAnswer (*probe) (const void *image, Size size, const HybPos *low,
							  const HybPos *high, bool point);

	/* Returns NULL, or which part of the image contradicts the rest. */
	const char *(*verify) (const void *image, Size size);
} HybFilterRoutine;

/* NULL: there is no such kind. */
extern const HybFilterRoutine *hyb_filter_routine(uint8 kind);

#endif							/* HYB_FILTER_KIND_H */
