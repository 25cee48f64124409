/*
 * convert.h
 *		Replaces a live index by its twin of another access method: what the
 *		conversion in one transaction (convert.c), the concurrent one
 *		(convert_concurrent.c) and that of many indexes (convert_many.c) have in
 *		common (convert_open.c, convert_steps.c).
 */
#ifndef HYB_CONVERT_H
#define HYB_CONVERT_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

/* One index of a conversion: the one asked for, or one attached below it. */
typedef struct HybConvertPart
{
	Oid			table;
	Oid			index;			/* that is replaced */
	Oid			twin;			/* or InvalidOid, until it is created */
	bool		stored;			/* not a partitioned index */
	bool		safe;			/* building it runs no user's code */
	char	   *schema;
	char	   *twin_name;		/* until it has that of the index */
	char	   *old_name;		/* of the index from then on */
} HybConvertPart;

/* What stays if the conversion ends here. */
typedef enum HybConvertState
{
	HYB_CONVERT_UNDONE,			/* nothing */
	HYB_CONVERT_CREATED,		/* twins, which are invalid */
	HYB_CONVERT_SWAPPED			/* what was replaced, which is invalid */
} HybConvertState;

typedef struct HybConversion
{
	Oid			access_method;	/* to convert to */
	bool		concurrently;
	Oid			index;
	char	   *schema;
	char	   *name;
	List	   *tables;			/* OIDs, locked; partitions after their parent */
	List	   *parts;			/* likewise */
	bool		unique;
	HybConvertState state;

	/* why it cannot be done, if `message` is set */
	int			code;
	char	   *message;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* or NULL */
} HybConversion;

typedef enum HybConvertStatus
{
	HYB_CONVERT_READY,
	HYB_CONVERT_ALREADY,		/* is of that access method, perhaps by now */
	HYB_CONVERT_REFUSED			/* see the conversion's message */
} HybConvertStatus;

/*
 * Lock the index and its table, with what is attached to them, and find out
 * whether the conversion can be done.  The lock of the tables conflicts with
 * itself, and so with another conversion; while it is waited for, no snapshot
 * may be held in a concurrent one, since the other one waits for snapshots.
 */
extern HybConvertStatus hyb_conversion_open(HybConversion *conversion,
											Oid index, Oid access_method,
											bool concurrently);

/* The message as an error. */
extern void hyb_conversion_refuse(const HybConversion *conversion);

/* The message as a NOTICE. */
extern void hyb_conversion_skip(const HybConversion *conversion);

/* Tell that there is nothing to do. */
extern void hyb_conversion_already(const HybConversion *conversion);

/* Tell that it has been done, where that was not all that was asked for. */
extern void hyb_conversion_done(const HybConversion *conversion);

/*
 * Tell about invalid indexes of the table that an interrupted conversion, or
 * REINDEX CONCURRENTLY, of this index has left, and what other sessions may
 * meet.
 */
extern void hyb_conversion_tell(const HybConversion *conversion);

/*
 * Has an operation on the index, or on one attached to it, left an invalid index
 * that was to replace it?  Then it is refused.
 */
extern bool hyb_conversion_is_unfinished(HybConversion *conversion);

/* Steps, each in a transaction that holds the locks, with a snapshot. */
extern void hyb_conversion_create(HybConversion *conversion);
extern void hyb_conversion_swap(HybConversion *conversion);
extern void hyb_conversion_drop(HybConversion *conversion);

/* Set the progress view to a part and phase of a conversion. */
extern void hyb_conversion_progress(const HybConversion *conversion,
									const HybConvertPart *part, int phase);

/*
 * Convert one index in transactions of its own, within SPI_connect_ext with
 * SPI_OPT_NONATOMIC.  If it is refused, `conversion` says why, for the caller to
 * tell; it lasts as long as the memory context of the call.  With `again` it may
 * be one that has been tried already.
 */
extern HybConvertStatus hyb_convert_concurrently(HybConversion *conversion,
												 Oid index, Oid access_method,
												 bool again);

/*
 * Indexes of an access method in a table with its partitions, or in a schema:
 * those that are not attached to others, the largest ones first.
 */
extern List *hyb_table_indexes(Oid table, Oid access_method);
extern List *hyb_schema_indexes(Oid schema, Oid access_method);

/* Convert those that one of these finds, one after the other. */
extern void hyb_convert_many(Oid object,
							 List *(*candidates) (Oid object, Oid access_method),
							 bool to_hybrid);

/* Carry it out within the transaction at hand; returns the new index. */
extern Oid	hyb_conversion_now(HybConversion *conversion);

/* Open it, tell what is to be told, and carry it out. */
extern Oid	hyb_convert_now(Oid index, Oid access_method);

/* The access method's OID; it is an error if there is none. */
extern Oid	hyb_convert_target(bool to_hybrid);

#endif							/* HYB_CONVERT_H */
