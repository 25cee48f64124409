/*
 * filter_kind.h
 *		What a leaf's filter image is: a table of functions for each kind.
 *
 * An image begins with a HybFilterImage, which names the kind; what follows
 * belongs to the kind.  A filter holds the keys of a leaf and says of two
 * positions that nothing lies between them, or that something may.  A new kind
 * is a file of its own, a line in filter.c, and a value of the storage
 * parameter (store/settings.c).
 *
 * Images may be damaged: whatever their bytes are, no function reads outside
 * of them or runs for ever.
 */
#ifndef HYB_FILTER_KIND_H
#define HYB_FILTER_KIND_H

#include "store/handle.h"
#include "store/settings.h"

/*
 * The beginning of an image, which is 8-byte aligned.
 *
 * A leaf that does not keep keys has a filter of what its keys begin with.  Of
 * prefixes that are numbers these are the first bits, so many as nearly all of its
 * rows have; of those that are strings each in its own length, with the fingerprint
 * of the whole key behind it, a key being in the filter if one of its beginnings is.
 */
typedef struct HybFilterImage
{
	uint8		kind;			/* HybFilterKind */
	uint8		fingerprints;	/* 1: behind each string is a byte, the
								 * fingerprint (leaf/prefixes.h) of the key;
								 * otherwise 0 */
	uint16		bits;			/* it is about the first bits of keys, so
								 * many, zeros behind the end of shorter ones;
								 * 0: about whole keys */
	uint16		more;			/* and about the first bits + 8, bits + 16, up
								 * to bits + 8 * more of those that have so
								 * many */
	uint8		reserved2[2];	/* 0 */
} HybFilterImage;

/* What follows the beginning of an image: what its kind reads. */
#define hyb_filter_body(image) ((const void *) ((image) + 1))

typedef enum HybFilterAnswer
{
	HYB_ANSWER_NO_HEADER = -2,	/* the image does not even begin as one */
	HYB_ANSWER_DAMAGED = -1,
	HYB_ANSWER_NO = 0,
	HYB_ANSWER_MAYBE = 1,
	HYB_ANSWER_UNKNOWN = 2		/* it says nothing about such questions */
} HybFilterAnswer;

/* `image` and `size` are what follows the HybFilterImage. */
typedef struct HybFilterRoutine
{
	const char *name;

	/* In CurrentMemoryContext; for many images, one after the other. */
	void	   *(*builder_create) (const HybIndex *ix);

	/*
	 * Start over with an empty image, which is to be wrong so many times as
	 * seldom as one for keys that are asked for once.
	 */
	void		(*begin) (void *builder, uint32 times);

	/* An image takes so many keys; 0: they may be any number */
	uint32		max_keys;

	/*
	 * Keys ascend, and one may come twice.  False if they are seen not to, or
	 * are more than an image takes.
	 */
	bool		(*add) (void *builder, const uint8 *key, uint32 len);

	/* Bytes of the image; 0: there is none. */
	Size		(*finish) (void *builder);
	void		(*write) (const void *builder, void *image);

	/*
	 * May a key lie between two positions?  `point`: they enclose a single
	 * key, and nothing that it is a prefix of.  HYB_ANSWER_UNKNOWN only where
	 * that is false.
	 */
	HybFilterAnswer (*probe) (const void *image, Size size, const HybPos *low,
							  const HybPos *high, bool point);

	/*
	 * Keys between two positions, about, and in all: HYB_ANSWER_MAYBE if it
	 * knows, HYB_ANSWER_NO if not.
	 */
	HybFilterAnswer (*count) (const void *image, Size size, const HybPos *low,
							  const HybPos *high, uint32 *count, uint32 *total);

	/* Does everything in the image agree?  NULL, or what is wrong. */
	const char *(*verify) (const void *image, Size size);
} HybFilterRoutine;

extern const HybFilterRoutine hyb_filter_surf;
extern const HybFilterRoutine hyb_filter_points;
extern const HybFilterRoutine hyb_filter_grafite;

/* NULL: there is no such kind. */
extern const HybFilterRoutine *hyb_filter_routine(uint8 kind);

#endif							/* HYB_FILTER_KIND_H */
