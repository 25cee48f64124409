/*
 * wal.h
 *		Page changes as generic WAL records written by hand.
 *
 * A change set collects up to four exclusively locked buffers and, for each,
 * the byte ranges that the caller changes in place, inside one critical
 * section.  (GenericXLogStart and GenericXLogFinish copy and compare whole
 * pages, which costs ten times as much.)
 *
 *		hyb_wal_begin(&set, rel);
 *		... everything that can fail ...
 *		START_CRIT_SECTION();
 *		memcpy(page + off, ...);
 *		hyb_wal_range(&set, buf, off, len);		(HYB_WAL_MAX_RANGES of a buffer
 *												at most)
 *		hyb_wal_image(&set, buf);				(log the whole page instead)
 *		hyb_wal_commit(&set);					(marks dirty, logs, sets LSNs)
 *		END_CRIT_SECTION();
 *
 * Ranges are read from the page at commit.  With pd_lower changed, the range
 * of the page header that holds it must be given too: use
 * hyb_wal_lower().  Relations that need no WAL are only marked dirty.
 */
#ifndef HYB_WAL_H
#define HYB_WAL_H

#include "store/page.h"

#define HYB_WAL_MAX_BUFFERS	4
#define HYB_WAL_MAX_RANGES	16

typedef struct HybWalRange
{
	uint16		offset;
	uint16		length;
} HybWalRange;

typedef struct HybWalBuffer
{
	Buffer		buf;
	bool		image;
	int			nranges;
	HybWalRange ranges[HYB_WAL_MAX_RANGES];
} HybWalBuffer;

typedef struct HybWalSet
{
	Relation	rel;
	int			nbuffers;
	HybWalBuffer buffers[HYB_WAL_MAX_BUFFERS];
} HybWalSet;

extern void hyb_wal_begin(HybWalSet *set, Relation rel);
extern void hyb_wal_range(HybWalSet *set, Buffer buf, uint16 offset,
						  uint16 length);
extern void hyb_wal_lower(HybWalSet *set, Buffer buf);	/* pd_lower changed */
extern void hyb_wal_opaque(HybWalSet *set, Buffer buf); /* special space changed */
extern void hyb_wal_image(HybWalSet *set, Buffer buf);
extern void hyb_wal_commit(HybWalSet *set);

#endif							/* HYB_WAL_H */
