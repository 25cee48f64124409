/*
 * convert.h
 *		Conversion: replaces a live index by its twin of another access method.
 *
 * conversion.c has the steps and the conversion in one transaction,
 * convert_concurrent.c the one that other sessions hardly notice.
 */
#ifndef HYB_CONVERT_H
#define HYB_CONVERT_H

#include "ddl/twin/twin.h"

/* One index of a conversion: the one asked for, or one attached or corresponding. */
typedef struct HybConvertPart
{
	Oid			table;
	Oid			owner;			/* of the table: builds run as this role */
	Oid			index;			/* that is replaced */
	Oid			twin;			/* or InvalidOid, until it is created */
	bool		stored;			/* not a partitioned index */
	bool		safe;			/* building it runs no user's code */
	char	   *schema;
	char	   *twin_name;		/* until it has that of the index */
	char	   *old_name;		/* of the index from then on */
} HybConvertPart;

/* What an error would leave now. */
typedef enum HybConvertState
{
	HYB_CONVERT_UNDONE,			/* nothing */
	HYB_CONVERT_CREATED,		/* invalid twins */
	HYB_CONVERT_SWAPPED			/* the old indexes, invalid */
} HybConvertState;

typedef struct HybConversion
{
	Oid			access_method;	/* to convert to */
	const char *layout;			/* of the hybrid index; NULL: what the storage
								 * parameters say */
	bool		concurrently;
	bool		with_children;	/* with what corresponds to the index below */
	Oid			index;
	char	   *schema;
	char	   *name;			/* NULL if there is no such index */
	List	   *tables;			/* OIDs, locked; those below after their
								 * parent */
	List	   *parts;			/* HybConvertPart, in the order of tables */
	bool		unique;
	HybConvertState state;
	HybRefusal	refusal;		/* of HYB_CONVERT_REFUSED */
} HybConversion;

typedef enum HybConvertStatus
{
	HYB_CONVERT_READY,
	HYB_CONVERT_ALREADY,		/* is of that access method, perhaps by now */
	HYB_CONVERT_REFUSED
} HybConvertStatus;

/* Returns the OID of hybrid or btree; it is an error if there is none. */
extern Oid	hyb_convert_target(bool to_hybrid);

/*
 * Locks the index and its table, with what is attached to them, and finds out
 * whether the conversion can be done.  An index of that access method is converted
 * too if it has another layout.  The lock of the tables conflicts with itself,
 * and so with another conversion.  A concurrent one must hold no snapshot here: the
 * other one waits for snapshots.
 *
 * with_children: indexes of inheritance children that correspond to the index
 * (match.h) are converted with it, and are refused alone.
 */
extern HybConvertStatus hyb_conversion_open(HybConversion *conversion,
											Oid index, Oid access_method,
											const char *layout,
											bool concurrently,
											bool with_children);

/*
 * Refuses, as hyb_conversion_open, if an operation on the index or on one attached to
 * it has left an invalid index that was to replace it.
 */
extern bool hyb_conversion_is_unfinished(HybConversion *conversion);

/* Messages: the refusal as a NOTICE, and that there is nothing to do. */
extern void hyb_conversion_skip(const HybConversion *conversion);
extern void hyb_conversion_already(const HybConversion *conversion);

/*
 * Messages: invalid indexes that interrupted operations on the index have left, and
 * what other sessions may meet.
 */
extern void hyb_conversion_tell(const HybConversion *conversion);

/* Steps, each in a transaction that holds the locks, with a snapshot. */
extern void hyb_conversion_create(HybConversion *conversion);
extern void hyb_conversion_swap(HybConversion *conversion);
extern void hyb_conversion_drop(HybConversion *conversion);

/* Sets the progress view to a part and phase of a conversion. */
extern void hyb_conversion_progress(const HybConversion *conversion,
									const HybConvertPart *part, int phase);

/* Carries out the conversion in the current transaction; returns the new index. */
extern Oid	hyb_conversion_now(HybConversion *conversion);

/* Opens a conversion, sends its messages, and carries it out likewise. */
extern Oid	hyb_convert_now(Oid index, Oid access_method, const char *layout,
							bool with_children);

/*
 * Converts one index in transactions of its own, within SPI_connect_ext with
 * SPI_OPT_NONATOMIC.  If it is refused, the caller sends the message; `conversion`
 * lasts as long as the memory context of the call.  Without `again` an unfinished
 * conversion is refused.
 */
extern HybConvertStatus hyb_convert_concurrently(HybConversion *conversion,
												 Oid index, Oid access_method,
												 const char *layout, bool again);

#endif							/* HYB_CONVERT_H */
