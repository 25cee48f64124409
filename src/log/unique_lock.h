/*
 * unique_lock.h
 *		Where inserters of one key into a unique index meet.
 *
 * docs/entry.md, "Insert", has the protocol.  A ticket is one inserter's part in it.
 *
 * One inserter always succeeds: a check is repeated only because another has
 * appended.  Taking turns makes sure that this is not always the same one.  An
 * inserter that has lost several times takes a heavyweight lock of the index
 * and leaves a mark in the partition.  An inserter that finds the mark of its
 * hash takes that lock first.  It is waited for with interrupts on, and the
 * deadlock detector knows it.  It is released before the inserter waits for
 * another transaction.
 *
 * Where there is no shared memory for partitions, that lock is held from the
 * beginning of a search until the entry is in the log.  No process has partitions
 * while another one works without (shared/shared.c).
 */
#ifndef HYB_UNIQUE_LOCK_H
#define HYB_UNIQUE_LOCK_H

#include "port/atomics.h"
#include "shared/shared.h"
#include "storage/lwlock.h"
#include "store/page.h"

/* What fills a cache line. */
#define HYB_UNIQUE_RECENT	9

/* Protected by the lock but for `appends`, which is read without. */
typedef struct HybUniquePartition
{
	LWLock		lock;			/* held for comparing hashes and the append */
	pg_atomic_uint64 appends;	/* entries appended under this lock */
	uint32		turn;			/* hash whose inserters take turns, or 0 */
	uint32		recent[HYB_UNIQUE_RECENT];	/* hash of append n, from 0, in
											 * place n modulo their number */
} HybUniquePartition;

/* As many partitions as `max_connections` and the like ask for. */
extern const HybSharedPart hyb_unique_part;

/* One insertion. */
typedef struct HybUniqueTicket
{
	HybIndex   *ix;				/* NULL: no other inserter is to be met */
	HybUniquePartition *partition;	/* NULL: none, or no shared memory */
	uint32		hash;			/* 0: no key to compare */
	uint64		key_hash;		/* hyb_key_point_hash: 0 if equal keys may
								 * have other bytes */
	uint64		seen;			/* appends that the search at hand knows of */
	int			lost;			/* searches in vain */
	bool		in_turn;		/* the heavyweight lock is held */
	bool		maybe;			/* the membership filter has said so */
} HybUniqueTicket;

/* An insertion that meets no other: no key to compare, or a temporary table. */
#define HYB_UNIQUE_NO_TICKET	{0}

/* Begin with the hash of the key, equal for equal keys.  Takes nothing. */
extern void hyb_unique_begin(HybIndex *ix, uint64 hash,
							 HybUniqueTicket *ticket);

/*
 * Does the index's membership filter prove that no run has the key?  Then the entry
 * may be appended, as if after hyb_unique_note and a search: returns true with the
 * partition locked.  Returns false if it does not, or there is no filter.  No LWLock
 * is held then, nor on entry.
 */
extern bool hyb_unique_enter_absent(HybUniqueTicket *ticket);

/*
 * Unlocks the partition without an append.  What hyb_unique_enter_absent has proved, or
 * hyb_unique_enter compared, is kept in the ticket, as after a search.
 */
extern void hyb_unique_keep(HybUniqueTicket *ticket);

/* A search of the index begins.  No LWLock is held. */
extern void hyb_unique_note(HybUniqueTicket *ticket);

/*
 * The search is over and the entry may be appended.  Returns true, with the
 * partition locked, if the search still counts: no entry with this hash was
 * appended since hyb_unique_note.  With `anyhow` they may have.  Returns
 * false, with no LWLock held, if the caller has to search again; it may have
 * waited for others then.
 */
extern bool hyb_unique_enter(HybUniqueTicket *ticket, bool anyhow);

/* The entry has been appended.  Lets go of everything. */
extern void hyb_unique_leave(HybUniqueTicket *ticket);

/* Tickets that are entered together, at most. */
#define HYB_UNIQUE_TOGETHER	64

/*
 * The same for several tickets of one index, whose entries are appended together:
 * none with an equal hash.  Returns true, with all their partitions locked, if all
 * searches still count; otherwise false, with none locked.
 */
extern bool hyb_unique_enter_all(HybIndex *ix, const HybUniqueTicket *tickets, int n);

/*
 * The entry of one of them has been appended.  Called before anything can fail: the
 * rows may outlive an error.
 */
extern void hyb_unique_appended(const HybUniqueTicket *ticket);

/* Lets go of what was entered together. */
extern void hyb_unique_leave_all(const HybUniqueTicket *tickets, int n);

/* The caller is going to wait for a transaction, or to give up. */
extern void hyb_unique_yield(HybUniqueTicket *ticket);

/*
 * Locks some partition: for a process that reads or changes a membership filter
 * (shared/membership.h).  No LWLock is held.
 */
extern void hyb_membership_lock(void);
extern void hyb_membership_unlock(void);

/* Does the membership filter deny the key of an entry?  It must not.  No LWLock is held. */
extern bool hyb_unique_is_denied(HybIndex *ix, const uint8 *key, uint32 keylen);

#ifdef USE_ASSERT_CHECKING
/* An entry of a unique index is appended: membership filters have its key. */
extern void hyb_unique_assert_added(HybIndex *ix, const uint8 *key, uint32 keylen);
#else
#define hyb_unique_assert_added(ix, key, keylen) ((void) 0)
#endif

#endif							/* HYB_UNIQUE_LOCK_H */
