/*
 * tree_node.c
 *		Heads of keys in the nodes of the B+tree.
 */
#include "base/compat.h"

#include "memtree/tree_node.h"
#include "port/pg_bswap.h"

/*
 * A float's encoding as an integer, equal for -0 and +0, whose encodings are
 * neighbours, the former odd.
 */
static uint64
float_prefix(const HybColumn *col, const uint8 *bytes)
{
	uint64		value = 0;

	for (int i = 0; i < col->width; i++)
		value = value << 8 | bytes[i];
	value = value / 2 + (value & 1);
	return col->desc ? ~value : value;
}

/*
 * The bytes at `key` that belong to the first column, if that is fewer than
 * len: what follows is not ordered by its bytes.
 */
static uint32
first_column_bytes(const HybColumn *col, const uint8 *key, uint32 len)
{
	const uint8 *end;

	if (col->width > 0)
		return Min(len, col->width);
	end = memchr(key, col->desc ? 0xFF : 0x00, Min(len, sizeof(uint64)));
	return end != NULL ? end - key + 1 : len;
}

void
hyb_tree_key_head(const HybKeyDesc *desc, const uint8 *key, uint32 len,
				  uint32 skip, uint64 *low, uint64 *high)
{
	const HybColumn *col = &desc->cols[0];
	uint64		head = 0;
	uint32		n;

	*low = 0;
	*high = PG_UINT64_MAX;
	if (skip > 0)
	{
		Assert(desc->all_mem && len >= skip);
		key += skip - 1;
		len -= skip - 1;
	}
	else if (len == 0 || col->compare == HYB_COMPARE_PROC ||
			 (col->width == 0 && !col->terminated))
		return;
	else if (key[0] != HYB_FLAG_VALUE)
	{
		*low = *high = key[0] == HYB_FLAG_NULL_FIRST ? 0 : PG_UINT64_MAX;
		return;
	}
	key++;
	len--;
	if (col->compare == HYB_COMPARE_FLOAT)
	{
		*low = *high = float_prefix(col, key);
		return;
	}

	if (likely(len >= sizeof(uint64) && desc->all_mem))
	{
		memcpy(&head, key, sizeof(head));
		*low = *high = pg_ntoh64(head);
		return;
	}
	if (!desc->all_mem)
		len = first_column_bytes(col, key, len);
	n = Min(len, sizeof(uint64));
	if (n > 0)
	{
		for (uint32 i = 0; i < n; i++)
			head = head << 8 | key[i];
		head <<= 8 * (sizeof(uint64) - n);
	}

	/* a position of an all_mem index may end inside a column */
	*low = head;
	*high = head;
	if (desc->all_mem && n < sizeof(uint64))
		*high |= PG_UINT64_MAX >> (8 * n);
}
