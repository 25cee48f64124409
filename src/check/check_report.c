/*
 * check_report.c
 *		What all parts of hybrid_index_check call: reports, locks, claims, copies of
 *		pages, and what holds for each entry.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "check/check.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "tree/descend.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static const char *const use_names[] = {
	"nothing", "the metapage", "a free block", "an internal node", "a leaf",
	"a delta page", "a dictionary page", "a filter page"
};

void
hyb_check_fail(HybCheck *check, BlockNumber blkno, const char *format,...)
{
	StringInfoData detail;

	initStringInfo(&detail);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&detail, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&detail, needed);
	}

	hyb_corrupted(check->ix->rel, blkno, detail.data);
}

void
hyb_check_lock(HybCheck *check)
{
	CHECK_FOR_INTERRUPTS();
	Assert(!check->locked);
	check->locked = !RecoveryInProgress();
	if (check->locked)
		(void) hyb_merge_lock(check->ix->rel, true);
	hyb_version_capture(check->ix, check->version);
}

void
hyb_check_unlock(HybCheck *check)
{
	Assert(check->locked != RecoveryInProgress() || !check->locked);
	if (check->locked)
		hyb_merge_unlock(check->ix->rel);
	check->locked = false;
}

void
hyb_check_claim(HybCheck *check, BlockNumber block, HybBlockUse use,
				BlockNumber from)
{
	if (block == InvalidBlockNumber || block >= check->survey.nblocks)
		hyb_check_fail(check, from,
					   "It points to block %u as %s, outside the index of %u blocks.",
					   block, use_names[use], check->survey.nblocks);
	if (check->use[block] != HYB_USE_NONE)
		hyb_check_fail(check, from,
					   "It points to block %u as %s, but that is %s already.",
					   block, use_names[use], use_names[check->use[block]]);
	Assert(use > HYB_USE_NONE && (Size) use < lengthof(use_names));
	check->use[block] = use;
}

void
hyb_check_copy(HybCheck *check, const HybCheckPage *to, HybPageKind kind,
			   char *copy)
{
	HybPageOpaque *opaque;

	CHECK_FOR_INTERRUPTS();
	(void) hyb_page_copy(check->ix, to->block, to->from, kind, to->stamp, copy);
	opaque = hyb_page_opaque((Page) copy);
	if (opaque->kind != kind)
		hyb_check_fail(check, to->block,
					   "Block %u points to it as a page of kind %d, but it is of kind %d.",
					   to->from, kind, opaque->kind);
	if (opaque->stamp != to->stamp)
		hyb_check_fail(check, to->block,
					   "Block %u expects stamp " UINT64_FORMAT ", but it has stamp " UINT64_FORMAT ".",
					   to->from, to->stamp, opaque->stamp);
	if (opaque->level != to->level)
		hyb_check_fail(check, to->block,
					   "Block %u expects level %d, but it has level %d.",
					   to->from, to->level, opaque->level);
}

bool
hyb_check_open_leaf(HybCheck *check, int level, const HybPos *pos, char *copy)
{
	HybSought	sought = {.level = level,.pos = pos};
	HybDescent	descent = {0};
	MemoryContext old_context;

	Assert(level >= 0 && level < check->version->nlevels);
	if (check->version->levels[level].height == 0)
		return false;
	/* comparison functions may leak */
	old_context = MemoryContextSwitchTo(check->page_context);
	if (!hyb_static_descend(check->ix, check->version, &sought, &descent))
		hyb_check_fail(check, HYB_METAPAGE_BLKNO, "The static stage cannot be searched.");
	memcpy(copy, descent.page, BLCKSZ);
	hyb_descent_release(&descent);
	MemoryContextSwitchTo(old_context);
	hyb_leaf_open(&check->leaf, check->ix->desc, copy, check->ix->rel, descent.block);
	return true;
}

uint32
hyb_check_entry(HybCheck *check, BlockNumber blkno, int position,
				const uint8 *entry, uint32 len, const ItemPointerData *tid)
{
	const HybKeyDesc *desc = check->ix->desc;
	HybValue	vals[INDEX_MAX_KEYS];
	uint32		keylen;

	if (len == 0 || len > HYB_MAX_ENTRY_SIZE)
		hyb_check_fail(check, blkno, "The entry at position %d has length %u.",
					   position, len);
	if (hyb_key_split(desc, entry, len, desc->natts, vals) != len)
		hyb_check_fail(check, blkno, "The entry at position %d is malformed.",
					   position);
	keylen = hyb_key_length(desc, entry, len);
	if (keylen == 0 || keylen > len)
		hyb_check_fail(check, blkno, "The key at position %d is malformed.",
					   position);
	if (!ItemPointerIsValid(unconstify(ItemPointerData *, tid)))
		hyb_check_fail(check, blkno, "The heap TID at position %d is invalid.",
					   position);
	return keylen;
}

void
hyb_check_position(HybCheck *check, BlockNumber blkno, int position,
				   const HybPos *pos)
{
	const HybKeyDesc *desc = check->ix->desc;
	HybValue	vals[INDEX_MAX_KEYS];
	bool		good;

	good = pos->tie >= HYB_BEFORE && pos->tie <= HYB_AFTER &&
		pos->len <= HYB_MAX_ENTRY_SIZE && pos->ncols <= desc->nkeys;
	if (good && pos->ncols > 0)
		good = hyb_key_split(desc, pos->key, pos->len, pos->ncols, vals) == pos->len;
	else if (good && pos->len > 0)
		good = desc->all_mem;
	/* the TID may be one below a real one, with offset 0 */
	if (good && pos->tie == HYB_AT)
		good = pos->ncols == desc->nkeys &&
			BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(&pos->tid));
	if (!good)
		hyb_check_fail(check, blkno, "The separator at position %d is malformed.",
					   position);
}

/*
 * Was the insertion of a tuple aborted?  A merge went by the tuple's hint bit,
 * which a crash may have undone, and which a standby need not have.
 */
static bool
insertion_aborted(HeapTupleHeader tuple)
{
	TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple);

	if (HeapTupleHeaderXminCommitted(tuple))
		return false;
	return HeapTupleHeaderXminInvalid(tuple) ||
		(!TransactionIdIsInProgress(xmin) && !TransactionIdDidCommit(xmin));
}

bool
hyb_check_heap_dead(HybCheck *check, ItemPointer tid)
{
	Buffer		buf;
	Page		page;
	bool		dead = true;

	/* what other access methods keep in their tables is theirs to read */
	if (check->heap->rd_tableam != GetHeapamTableAmRoutine() ||
		ItemPointerGetBlockNumber(tid) >= RelationGetNumberOfBlocks(check->heap))
		return true;
	buf = ReadBuffer(check->heap, ItemPointerGetBlockNumber(tid));
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (!PageIsNew(page) &&
		ItemPointerGetOffsetNumber(tid) <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, ItemPointerGetOffsetNumber(tid));

		if (ItemIdIsNormal(item))
			dead = insertion_aborted((HeapTupleHeader) PageGetItem(page, item));
		else
			dead = !ItemIdIsRedirected(item);
	}
	UnlockReleaseBuffer(buf);
	return dead;
}
