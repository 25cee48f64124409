/*
 * toast_value.h
 *		Values in a TOAST table that may be gone.
 */
#ifndef HYB_TOAST_VALUE_H
#define HYB_TOAST_VALUE_H

/*
 * Replace a value that is in a TOAST table by what is there, palloc'd, which may be
 * compressed still; others are left alone.  False if some of it is gone.
 *
 * VACUUM, and whoever prunes a page, cleans a TOAST table independently of the
 * table.  So where a value is gone the row is dead to everybody, or its insertion
 * was undone, though the row may be there still.  What cleaned the TOAST table has
 * logged the conflict with snapshots of standbys that could see the row.
 *
 * No LWLock is held on entry or exit.
 */
extern bool hyb_toast_fetch(Datum *value);

#endif							/* HYB_TOAST_VALUE_H */
