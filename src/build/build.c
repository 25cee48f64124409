/*
 * build.c
 *		CREATE INDEX: sort all entries, then write the static stage bottom up.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "build/build.h"
#include "build/build_dictionary.h"
#include "build/build_layout.h"
#include "build/build_leaves.h"
#include "build/build_parallel.h"
#include "build/build_progress.h"
#include "build/build_scan.h"
#include "build/build_sort.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "filter/filter_choice.h"
#include "log/log.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "server/validate.h"
#include "store/handle.h"
#include "store/meta.h"
#include "store/settings.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Create the metapage of an empty index, and the dictionary pages if it needs
 * any.
 */
static void
create_metapage(HybIndex *ix, ForkNumber fork, Relation heap,
				struct IndexInfo *info)
{
	Buffer		buf;
	BlockNumber dictionary;

	hyb_index_draw_incarnation(ix);
	buf = ReadBufferExtended(ix->rel, fork, P_NEW, RBM_NORMAL, NULL);
	Assert(BufferGetBlockNumber(buf) == HYB_METAPAGE_BLKNO);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	hyb_meta_init(BufferGetPage(buf), ix);
	MarkBufferDirty(buf);
	END_CRIT_SECTION();
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);

	dictionary = fork == INIT_FORKNUM ? InvalidBlockNumber :
		hyb_build_dictionary(ix, heap, info);

	/* the merge that learns a dictionary needs keys */
	if (ix->desc->has_encoded && !BlockNumberIsValid(dictionary))
		ix->desc->truncated = false;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	hyb_page_meta(BufferGetPage(buf))->dictionary = dictionary;
	if (ix->desc->has_encoded && !BlockNumberIsValid(dictionary))
		hyb_page_meta(BufferGetPage(buf))->flags |= HYB_META_PLAIN;
	if (ix->desc->truncated)
		hyb_page_meta(BufferGetPage(buf))->flags |= HYB_META_TRUNCATED;
	MarkBufferDirty(buf);
	if (fork == INIT_FORKNUM)
		log_newpage_buffer(buf, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buf);
}

static HybIndex *
new_handle(Relation index)
{
	HybIndex   *ix = palloc0(sizeof(HybIndex));

	ix->rel = index;
	ix->context = CurrentMemoryContext;
	ix->desc = hyb_key_desc_create(index);
	ix->desc->truncated = hyb_build_is_truncated(index, ix->desc);
	return ix;
}

/*
 * A filter that the index is to have and cannot.  Said when the index is
 * created, not whenever it is rebuilt.
 */
static void
warn_without_filter(const HybIndex *ix)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);
	const HybKeyDesc *desc = ix->desc;
	int			column = 0;

	if (ReindexIsProcessingIndex(RelationGetRelid(ix->rel)))
		return;
	if (hyb_layout_option(ix->rel) == HYB_OPTION_TRIE &&
		kind != HYB_FILTER_NONE && kind != HYB_FILTER_AUTO &&
		!hyb_filter_fits_prefixes(ix, kind))
	{
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on the oldest level of index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Of the beginnings of keys there are filters for points only.")));
		return;
	}
	if (!hyb_filter_impossible(ix))
		return;
	while (column < desc->nkeys && desc->cols[column].compare == HYB_COMPARE_MEM)
		column++;
	if (!hyb_filter_has_ranges(kind))
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Equal keys may differ in their bytes.")));
	else if (column < desc->nkeys)
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Keys of column \"%s\" are not ordered by their bytes.",
						   NameStr(TupleDescAttr(RelationGetDescr(ix->rel), column)->attname))));
	else
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Values of the last key column, \"%s\", have no fixed length.",
						   NameStr(TupleDescAttr(RelationGetDescr(ix->rel), desc->nkeys - 1)->attname)),
				 errhint("Filters of kind \"surf\" take all of the key.")));
}

/*
 * Filters that the index is to have, and has only few of: a leaf of many entries
 * that take little room has none, since its filter would be as large as the leaf.
 */
static void
warn_of_few_filters(const HybIndex *ix, const HybBuildWritten *written)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);

	if (kind == HYB_FILTER_NONE || kind == HYB_FILTER_AUTO ||
		hyb_filter_impossible(ix) || !hyb_filter_fits_prefixes(ix, kind) ||
		ReindexIsProcessingIndex(RelationGetRelid(ix->rel)) ||
		written->leaf_pages <= 1 || written->filtered > written->leaf_pages / 2)
		return;
	ereport(NOTICE,
			(errmsg("storage parameter \"filter\" has little effect on index \"%s\"",
					RelationGetRelationName(ix->rel)),
			 errdetail("%llu of its %llu leaves have a filter, for they have %.0f entries on average, which is too many.",
					   (unsigned long long) written->filtered,
					   (unsigned long long) written->leaf_pages,
					   (double) written->entries / written->leaf_pages),
			 errhint("Leave the parameter out.")));
}

/*
 * Write internal nodes, and the tree's place into the metapage.
 */
static void
install_build(HybIndex *ix, const HybBuildWritten *written)
{
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	HybMetaPage *meta;
	HybLevel   *level;
	Buffer		metabuf;
	HybRoot		root;

	hyb_bulk_space_init(space, ix, 1, written->filters);
	hyb_static_build(space, &written->children, written->level, &root);

	HYB_POINT("build-written");
	Assert((root.height == 0) == (written->entries == 0));
	Assert((written->children.n == 0) == (written->leaf_pages == 0));
	Assert(written->leaf_pages <= written->entries);
	Assert(written->filtered <= written->leaf_pages);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	START_CRIT_SECTION();
	Assert(meta->nlevels == 1 && meta->npending == 0 && meta->next_stamp == 1);
	level = &meta->levels[0];
	level->root = root;
	level->tids = written->entries;
	level->leaf_pages = written->leaf_pages;
	level->inner_pages = written->inner_pages + space->new_inner;
	level->filter_pages = written->filter_pages;
	meta->next_stamp = 2;
	/* more of them than fit are for VACUUM to find */
	for (int i = 0; i < written->nspare && meta->npending < HYB_MAX_PENDING; i++)
		meta->pending[meta->npending++] = written->spare[i];
	MarkBufferDirty(metabuf);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}

/* Read the table and write leaves, all in this process. */
static double
build_alone(HybIndex *ix, Relation heap, struct IndexInfo *info,
			HybBuildWritten *written)
{
	HybBuildScan scan;
	double		rows;

	hyb_build_scan_init(&scan, ix, heap, info);
	if (ix->desc->all_mem)
		scan.byte_sort = hyb_sort_create(maintenance_work_mem, NULL, 0);
	else
		hyb_build_scan_begin_tuplesort(&scan, maintenance_work_mem, NULL);
	rows = table_index_build_scan(heap, ix->rel, info, true, true,
								  hyb_build_scan_add, &scan, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, scan.entries);
	hyb_build_all_leaves(&scan, info->ii_NullsNotDistinct, written);
	return rows;
}

/*
 * Runs functions of expressions and predicates, which are kept from the index.
 * Returns the number of rows.
 */
static double
write_entries(HybIndex *ix, Relation heap, struct IndexInfo *info,
			  HybBuildWritten *written)
{
	HybBeingBuilt built = {RelationGetRelid(ix->rel), hyb_being_built};
	volatile double rows = -1;

	hyb_being_built = &built;
	PG_TRY();
	{
		int			workers;

		create_metapage(ix, MAIN_FORKNUM, heap, info);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_SCAN);
		workers = HYB_BUILD_WORKERS(heap, ix->rel, info);
		if (workers > 0)
			rows = hyb_build_parallel(ix, heap, info, workers, written);
		if (rows < 0)
			rows = build_alone(ix, heap, info, written);
	}
	PG_FINALLY();
	{
		hyb_being_built = built.outer;
	}
	PG_END_TRY();
	return rows;
}

IndexBuildResult *
hyb_ambuild(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	HybBuildWritten written = {0};
	HybIndex   *ix;
	double		rows;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	hyb_check_column_classes(index, ERROR);
	ix = new_handle(index);
	warn_without_filter(ix);

	hyb_dynamic_forget(index);
	rows = write_entries(ix, heap, info, &written);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_FINISH);
	install_build(ix, &written);
	warn_of_few_filters(ix, &written);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0,
						  RelationGetNumberOfBlocks(index), true);

	Assert(rows >= 0);
	result->heap_tuples = rows;
	result->index_tuples = written.entries;
	return result;
}

void
hyb_ambuildempty(Relation index)
{
	create_metapage(new_handle(index), INIT_FORKNUM, NULL, NULL);
}
