/*
 * plain.h
 *		A layout for tests: rows one after the other, as they are.
 *
 * Behind the common header (static/leaf_layout.h), nothing aligned, integers
 * little-endian:
 *
 *		row starts, uint16 each: the first item of each row
 *		row ends, uint16 each: where the bytes of each row end, counted from
 *				the first row's first byte
 *		TIDs, as ItemPointerData
 *		rows, encoded as key/key.h describes
 *
 * It keeps nothing of an opened leaf but where these parts begin.
 */
#ifndef HYB_PLAIN_H
#define HYB_PLAIN_H

#include "static/leaf_layout.h"

extern const HybLeafLayout hyb_plain_layout;

#endif							/* HYB_PLAIN_H */
