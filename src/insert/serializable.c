/*
 * serializable.c
 *		Notes the conflicts of insertions in serializable transactions.
 *
 * An insertion first appends its entry, and then asks for predicate locks on it
 * (tree/descend.h).  A scan first locks, and then reads the log.  So the
 * scan finds the entry, or the insertion finds the lock.  docs/writes.md,
 * "Serializable transactions", says what merges may do in between.
 */
#include "base/compat.h"

#include "insert/insertion.h"
#include "key/key.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "tree/descend.h"
#include "utils/rel.h"

/*
 * Conflicts with scans that have locked the first bytes of a key.  Mostly there
 * are none, and one look tells.
 */
static inline void
ask_key_target(const HybIndex *ix, const uint8 *key, uint32 len)
{
	BlockNumber target = hyb_target_of_key(key, len);

	if (PageIsPredicateLocked(ix->rel, target))
		CheckForSerializableConflictIn(ix->rel, NULL, target);
}

static void
ask_key_targets(const HybIndex *ix, const HybEntry *entry)
{
	const HybKeyDesc *desc = ix->desc;
	const uint8 *key = entry->bytes;
	const uint8 *end = key;
	uint32		most = desc->all_mem ? HYB_TARGET_MAX_BYTES : 0;

	for (uint32 len = HYB_TARGET_MIN_BYTES; len <= Min(most, entry->keylen); len++)
		ask_key_target(ix, key, len);
	for (int i = 0; i < desc->nkeys; i++)
	{
		HybValue	val;

		end = hyb_parse_column(&desc->cols[i], end, key + entry->keylen, &val);
		Assert(end != NULL);
		if (end - key < HYB_TARGET_MIN_BYTES || end - key > most)
			ask_key_target(ix, key, end - key);
	}
}

void
hyb_note_conflicts(HybIndex *ix, Relation heap, const HybEntry *entry)
{
	HybPos		pos = hyb_pos_at(ix->desc, entry->bytes, entry->keylen, entry->tid);
	HybVersion	version;
	BlockNumber leaf;

	HYB_ASSERT_NO_LWLOCK();
	HYB_POINT("conflict-in");
	if (ix->desc->exact)
		ask_key_targets(ix, entry);
	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(ix, &version);
	} while (!hyb_target_of_pos(ix, &version, &pos, false, &leaf));
	HYB_POINT("conflict-leaf");
	CheckForSerializableConflictIn(ix->rel, NULL, leaf);

	/*
	 * The table comes last: locks on an index may become locks on its table
	 * at any moment (merge/install.c).  The server has asked for the table
	 * before the entry was appended.
	 */
	CheckForSerializableConflictIn(heap, NULL, InvalidBlockNumber);
}
