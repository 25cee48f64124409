/*
 * fuzz_index.c
 *		Fuzz target: readers that follow pointers from page to page, on the file of
 *		an index with changed bytes.
 *
 * The file has two levels, the newer one with filters for points, and a log.  In
 * one half of the templates a pass over the levels is under way, in the other a
 * generation is frozen.
 *
 * The first byte of the input says which template, the second where readers begin.
 * Changes follow: a byte with the block, one with the part of the page and the
 * length, two with the place in that part, and then the new bytes.
 *
 * Whatever the pages hold, the readers return something or report damage, come
 * to an end, and read nothing but the pages: each is a piece of memory of its
 * own.
 */
#include "server.h"

/* their functions for one file only are called here */
#include "../../src/merge/pass.c"

#include "filter/filter_place.h"
#include "leaf/leaf.h"
#include "log/delta.h"
#include "log/stage_access.h"
#include "merge/facts.h"

#define NDESCS		4
#define NTEMPLATES	(2 * NDESCS)
#define MAX_BLOCKS	96
#define LEAF_ROWS	40
#define LONG_PREFIX	700			/* so that there are several level-1 nodes */

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

/* ---- the file ---- */

typedef struct Template
{
	HybIndex   *ix;
	Block		pages[MAX_BLOCKS];
	BlockNumber nblocks;
	int			nlog;			/* entries of the log */
} Template;

static Template templates[NTEMPLATES];
static Template *current;		/* whose file it is */
static Block blocks[MAX_BLOCKS];	/* its pages, or changed copies */
static SMgrRelationData smgr;

Block	   *LocalBufferBlockPointers = blocks;
int			NLocBuffer = MAX_BLOCKS;

/* The settings that facts are made of; src/merge/trigger.c has the defaults. */
int			hyb_merge_floor = 8192;
int			hyb_merge_step_pages = 32;

/* Nothing is known of statements here. */
bool
hyb_slot_together(const HybIndex *ix)
{
	return false;
}

Buffer
ReadBuffer(Relation rel, BlockNumber block)
{
	if (block == P_NEW)
	{
		block = current->nblocks++;
		if (block >= MAX_BLOCKS)
			abort();
		current->pages[block] = blocks[block] = aligned_alloc(64, BLCKSZ);
		memset(blocks[block], 0, BLCKSZ);
		smgr.smgr_cached_nblocks[MAIN_FORKNUM] = current->nblocks;
	}
	if (block >= current->nblocks)
		abort();
	return -(Buffer) block - 1;
}

BlockNumber
BufferGetBlockNumber(Buffer buf)
{
	return (BlockNumber) (-buf - 1);
}

bool
ReadRecentBuffer(RelFileLocator locator, ForkNumber fork, BlockNumber block,
				 Buffer recent)
{
	return false;
}

BlockNumber
RelationGetNumberOfBlocksInFork(Relation rel, ForkNumber fork)
{
	return current->nblocks;
}

#if PG_MAJORVERSION_NUM >= 19
void
LockBufferInternal(Buffer buf, BufferLockMode mode)
{
}

void
UnlockBuffer(Buffer buf)
{
}

bool
BufferIsLockedByMe(Buffer buf)
{
	return false;
}
#else
void
LockBuffer(Buffer buf, int mode)
{
}
#endif

void
ReleaseBuffer(Buffer buf)
{
}

void
UnlockReleaseBuffer(Buffer buf)
{
}

void
MarkBufferDirty(Buffer buf)
{
}

/* ---- functions that write, which are never called ---- */

void
hyb_wal_begin(HybWalSet *set, Relation rel)
{
	abort();
}

void
hyb_wal_image(HybWalSet *set, Buffer buf)
{
	abort();
}

void
hyb_wal_commit(HybWalSet *set)
{
	abort();
}

int
hyb_space_reserve(const HybIndex *ix, int wanted, int spare, BlockNumber *reserved)
{
	abort();
}

Buffer
hyb_space_open(const HybIndex *ix, BlockNumber block, BlockNumber from)
{
	abort();
}

/* of an index that several processes build */
Buffer
ReadBufferExtended(Relation rel, ForkNumber fork, BlockNumber block,
				   ReadBufferMode mode, BufferAccessStrategy strategy)
{
	abort();
}

void
UnlockRelationForExtension(Relation rel, LOCKMODE mode)
{
	abort();
}

/* ---- templates ---- */

/* 0: int4; 1: text, int8; 2: long text; 3: text DESC, with an int4 included */
static HybKeyDesc *
make_desc(int i)
{
	HybKeyDesc *desc = calloc(1, offsetof(HybKeyDesc, cols) + 2 * sizeof(HybColumn));

	desc->natts = i % 2 + 1;
	desc->nkeys = i == 1 ? 2 : 1;
	desc->all_mem = desc->exact = true;
	for (int c = 0; c < desc->natts; c++)
	{
		HybColumn  *col = &desc->cols[c];

		col->compare = HYB_COMPARE_MEM;
		col->store = i == 0 || c > 0 ? HYB_STORE_INT : HYB_STORE_BYTES;
		col->width = col->store == HYB_STORE_BYTES ? 0 : i == 1 ? 8 : 4;
		col->terminated = col->store == HYB_STORE_BYTES;
		col->desc = col->nulls_first = i == 3 && c == 0;
	}
	return desc;
}

/* The values of the e-th row, in order. */
static void
make_row(const HybKeyDesc *desc, uint32 e, bool prefix, HybValue *vals)
{
	static uint8 space[LONG_PREFIX + 16];

	for (int c = 0; c < desc->natts; c++)
	{
		int			len = prefix ? LONG_PREFIX : 4;

		memset(&vals[c], 0, sizeof(HybValue));
		if (desc->cols[c].store == HYB_STORE_INT)
		{
			vals[c].ival = e;
			continue;
		}
		memset(space, 'x', len);
		for (uint32 i = 0, rest = e; i < 8; i++, rest /= 10)
			space[len + 7 - i] = (uint8) ('0' + rest % 10);
		if (desc->cols[c].desc)
			for (int i = 0; i < len + 8; i++)
				space[i] = (uint8) ~(i < len ? space[i] : '9' - (space[i] - '0'));
		vals[c].ptr = space;
		vals[c].len = len + 8;
	}
}

/* Leaves of a level as they come from the builder. */
typedef struct Leaves
{
	HybChildList list;
	HybPos		low;
	HybFilterBuilder *filter;
} Leaves;

static void
emit(void *arg, Page page, const HybPos *low)
{
	Leaves	   *leaves = arg;

	hyb_child_list_add_image(&leaves->list, page, &leaves->low, leaves->filter);
}

/* A level of small leaves with every other row, and what lies above them. */
static void
make_level(HybIndex *ix, bool prefix, int level, int nleaves, HybLevel *to)
{
	const HybKeyDesc *desc = ix->desc;
	Leaves		leaves = {.low = {.tie = HYB_BEFORE}};
	HybStepSpace space;
	HybFilterPacker packer;
	HybPath		path = {.high = {.tie = HYB_AFTER}};
	HybBuf		key = {0};
	uint32		e = level;

	leaves.filter = hyb_filter_builder_create(ix, level > 0 ?
											  HYB_FILTER_POINTS : HYB_FILTER_NONE);
	for (int i = 0; i < nleaves; i++)
	{
		HybLeafBuilder *builder = hyb_leaf_builder_create(ix, &hyb_columnar_layout,
														  5, emit, &leaves);

		for (int row = 0; row < LEAF_ROWS; row++, e += 2 * (level + 1))
		{
			HybValue	vals[2];
			ItemPointerData tid;

			make_row(desc, e, prefix, vals);
			if (row == 0 && i > 0)
			{
				key.len = 0;
				hyb_key_join(desc, vals, desc->nkeys, &key);
				leaves.low.key = key.data;
				leaves.low.len = (uint16) key.len;
				leaves.low.ncols = (uint8) desc->nkeys;
			}
			ItemPointerSet(&tid, e / 50, (OffsetNumber) (e % 50 + 1));
			hyb_leaf_builder_add(builder, vals, &tid);
			to->tids++;
		}
		hyb_leaf_builder_finish(builder);
	}
	hyb_bulk_space_init(&space, ix, 5, true);
	hyb_step_write_leaves(&space, &leaves.list);
	hyb_filter_packer_init(&packer, &space, &leaves.list);
	for (int i = 0; i < leaves.list.n; i++)
	{
		leaves.list.children[i].rent = (uint16) (level > 0 ? i * 3 : 0);
		if (leaves.list.children[i].filter_image != NULL)
			hyb_filter_pack(&packer, i);
	}
	hyb_filter_pack_write(&packer);
	hyb_static_replace(&space, &path, &leaves.list, &to->root);
	to->leaf_pages = leaves.list.n;
	to->inner_pages = space.new_inner;
	to->filter_pages = space.new_filter;
}

/* Some pages of the log, in two lanes. */
static void
make_generation(Template *t, HybGeneration *generation, uint64 number, bool prefix)
{
	const HybKeyDesc *desc = t->ix->desc;
	HybBuf		bytes = {0};

	hyb_generation_init(generation, number);
	for (int i = 0; i < 4; i++)
	{
		int			lane = i % 2;
		Buffer		buf = ReadBuffer(t->ix->rel, P_NEW);
		Page		page = BufferGetPage(buf);
		PageHeader	header = (PageHeader) page;

		hyb_page_init(page, t->ix, HYB_PAGE_DELTA, 0, number);
		if (i < 2)
			generation->head[lane] = BufferGetBlockNumber(buf);
		else
			hyb_page_opaque(blocks[generation->tail[lane]])->link = BufferGetBlockNumber(buf);
		generation->tail[lane] = BufferGetBlockNumber(buf);
		generation->npages++;
		for (int e = 0; e < (prefix ? 10 : 60); e++)
		{
			HybValue	vals[2];
			HybEntry	entry;

			make_row(desc, (uint32) (e * 7919 + i) % 2000, prefix, vals);
			bytes.len = 0;
			hyb_key_join(desc, vals, desc->natts, &bytes);
			entry.bytes = bytes.data;
			entry.len = bytes.len;
			ItemPointerSet(&entry.tid, e, 1 + i);
			header->pd_lower += hyb_delta_image(&entry, (uint8 *) page + header->pd_lower);
			generation->nentries++;
			t->nlog++;
		}
		header->pd_lower = Min(TYPEALIGN(HYB_DELTA_STEP, header->pd_lower), header->pd_upper);
	}
}

static void
make_template(Template *t, int i)
{
	bool		prefix = i / 2 == 2;
	HybMetaPage *meta;
	HybBuf		key = {0};
	HybValue	vals[2];

	current = t;
	t->ix = calloc(1, sizeof(HybIndex));
	t->ix->rel = hyb_fuzz_relation();
	t->ix->desc = make_desc(i / 2);
	t->ix->incarnation = 77;
	(void) ReadBuffer(t->ix->rel, P_NEW);
	hyb_meta_init((Page) blocks[0], t->ix);
	meta = hyb_page_meta((Page) blocks[0]);
	meta->nlevels = meta->wanted_levels = 2;
	make_level(t->ix, prefix, 0, 30, &meta->levels[0]);
	make_level(t->ix, prefix, 1, 12, &meta->levels[1]);
	meta->next_stamp = 6;
	meta->next_generation = 4;
	make_generation(t, &meta->active, 3, prefix);
	if (i % 2 == 0)
	{
		/* leaves that no pass has looked at, or all that one has */
		meta->pass_level = 1;
		meta->pass_stamp = 6;
		meta->surveyed[1] = i % 4 == 0 ? 4 : 6;
	}
	else
		make_generation(t, &meta->frozen, 2, prefix);
	meta->freeze_entries = 100;
	meta->written_pages = meta->earned_pages = 70;

	make_row(t->ix->desc, 100, prefix, vals);
	hyb_key_join(t->ix->desc, vals, t->ix->desc->nkeys, &key);
	meta->wm_len = (uint16) key.len;
	meta->wm_ncols = (uint8) t->ix->desc->nkeys;
	memcpy(meta->wm_key, key.data, key.len);
}

static Template *
template_of(int i)
{
	Template   *t = &templates[i];
	Relation	rel = hyb_fuzz_relation();

	rel->rd_smgr = &smgr;
	if (t->nblocks == 0)
	{
		if (setjmp(hyb_fuzz_error) != 0)
			abort();
		make_template(t, i);
		hyb_fuzz_reset();
	}
	rel->rd_index->indnkeyatts = (int16) t->ix->desc->nkeys;
	smgr.smgr_cached_nblocks[MAIN_FORKNUM] = t->nblocks;
	memcpy(blocks, t->pages, sizeof(blocks));
	current = t;
	return t;
}

/* Part of a page: where it begins, and its length. */
static const uint16 parts[4][2] = {
	{0, BLCKSZ}, {0, SizeOfPageHeaderData + 104}, {BLCKSZ - sizeof(HybPageOpaque), sizeof(HybPageOpaque)},
	{SizeOfPageHeaderData, 600}
};

static void
change_pages(const Template *t, const uint8_t *data, size_t size)
{
	while (size > 4)
	{
		BlockNumber block = data[0] % t->nblocks;
		const uint16 *part = parts[data[1] & 3];
		size_t		at = part[0] + (data[2] | data[3] << 8) % part[1];
		size_t		len = Min(Min((size_t) (data[1] >> 2) % 24 + 1, size - 4), BLCKSZ - at);

		if (blocks[block] == t->pages[block])
			blocks[block] = memcpy(aligned_alloc(64, BLCKSZ), t->pages[block], BLCKSZ);
		memcpy((char *) blocks[block] + at, data + 4, len);
		data += 4 + len;
		size -= 4 + len;
	}
}

/* ---- reading ---- */

static HybPos
some_position(const HybIndex *ix, uint32 e)
{
	HybBuf		key = {0};
	HybValue	vals[2];
	ItemPointerData tid;

	make_row(ix->desc, e, ix == templates[4].ix || ix == templates[5].ix, vals);
	hyb_key_join(ix->desc, vals, ix->desc->nkeys, &key);
	ItemPointerSet(&tid, e / 50, (OffsetNumber) (e % 50 + 1));
	return hyb_pos_at(ix->desc, key.data, key.len, tid);
}

/* The leaves below a node, and their filters. */
static void
read_leaves(const HybIndex *ix, const HybPath *path, const HybPos *pos)
{
	const HybChildList *list = &path->nodes[0].children;
	char	   *page = palloc(BLCKSZ);
	HybPos		low = *pos;
	HybPos		high = *pos;

	low.tie = HYB_BEFORE;
	high.tie = HYB_AFTER;
	for (int i = path->nodes[0].index; i < list->n && i < path->nodes[0].index + 4; i++)
	{
		HybLeaf		leaf = {0};
		int			row;

		if (setjmp(hyb_fuzz_error) == 0)
			(void) hyb_filter_probe(ix, &list->children[i], &low, &high);
		if (setjmp(hyb_fuzz_error) == 0)
		{
			hyb_child_copy_leaf(ix, &list->children[i], page);
			hyb_leaf_open(&leaf, ix->desc, page, ix->rel, list->children[i].block);
			(void) hyb_leaf_search(&leaf, pos, &row);
		}
	}
}

/* Go over a level as VACUUM does. */
static void
read_level(const HybIndex *ix, const HybRoot *root, uint32 e)
{
	HybPos		pos = some_position(ix, e);
	HybPos		at = {.tie = HYB_BEFORE};
	HybBuf		at_key = {0};
	HybPath    *path = palloc(sizeof(HybPath));

	if (setjmp(hyb_fuzz_error) == 0)
	{
		hyb_path_load(ix, root, &pos, path);
		if (path->height > 0)
			read_leaves(ix, path, &pos);
	}
	if (setjmp(hyb_fuzz_error) == 0)
		do
		{
			hyb_path_load(ix, root, &at, path);
			if (path->height == 0)
				break;
			hyb_path_go_on(ix, path, &path->high, &at, &at_key);
		} while (!HYB_POS_MAX(&at));
}

static void
read_log(HybIndex *ix, const HybGeneration *generation, const HybPos *watermark,
		 bool whole)
{
	HybDeltaWalk walk;
	char	   *copy = palloc(BLCKSZ);
	HybLogReader *reader = palloc(sizeof(HybLogReader));
	HybTree		tree = {.generation = generation->number};
	HybTreeUse	use;

	hyb_tree_use(&use, ix, &tree, NULL, reader);
	hyb_delta_walk_start(&walk, ix, generation, whole);
	for (;;)
	{
		/* what an error may come between */
		static HybTreeLogPage where;
		static HybEntry entry;
		static HybEntry loaded;
		static uint16 offset;

		if (setjmp(hyb_fuzz_error) != 0 || !hyb_delta_walk_next(&walk) ||
			!hyb_delta_walk_copy(&walk, copy))
			return;
		where = (HybTreeLogPage) {.block = walk.block};
		entry = (HybEntry) {.block = walk.block};
		if (setjmp(hyb_fuzz_error) == 0)
		{
			(void) hyb_delta_count_live(ix, (Page) copy, walk.block, watermark);
			while (hyb_delta_next(ix->rel, (Page) copy, &entry))
				(void) use.log->load(use.log, &where, entry.offset, &loaded);
		}
		offset = HYB_DELTA_FIRST;
		if (setjmp(hyb_fuzz_error) == 0 || (offset += 37) < BLCKSZ)
			for (; offset < BLCKSZ; offset += 37)
				(void) use.log->load(use.log, &where, offset, &loaded);
	}
}

/* The units that a pass would move, as far as it looks; none is moved. */
static void
read_pass(HybIndex *ix, HybMetaPage *meta, const HybVersion *version)
{
	if (setjmp(hyb_fuzz_error) != 0)
		return;
	for (int steps = 0; meta->pass_level > 0 && meta->frozen.number == 0; steps++)
	{
		HybMergeStep *step = hyb_step_create(ix, meta, 0);
		HybPos		at;

		if (steps > 300)
			abort();
		step->version = *version;
		hyb_version_from_meta(meta, &step->version);
		at = hyb_pass_choose(step, meta) ? hyb_pos_below(&step->end) : step->from;
		if (HYB_POS_MAX(&at))
			break;
		if (at.len > HYB_MAX_ENTRY_SIZE)
			abort();
		meta->flags &= ~HYB_META_MOVING;
		meta->wm_len = at.len;
		meta->wm_ncols = at.ncols;
		meta->wm_tie = at.tie;
		meta->wm_tid = at.tid;
		if (at.len > 0)
			memmove(meta->wm_key, at.key, at.len);
	}
}

static void
ask_policy(const HybIndex *ix, const HybMetaPage *meta)
{
	HybMergeFacts facts;

	hyb_merge_facts_of_meta(ix, meta, &facts);
	facts.memory_budget = 64 * 1024;
	(void) hyb_policy_need(&facts);
	(void) hyb_policy_step(&facts);
	(void) hyb_policy_levels(&facts);
	(void) hyb_policy_compact(&facts, 10, 5);
	(void) hyb_policy_quiet(&facts);
	for (int i = 0; i < meta->nlevels; i++)
		(void) hyb_meta_given_up(meta, 100);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static HybMetaPage meta;
	static HybVersion version;
	Template   *t;

	if (size < 2)
		return 0;
	t = template_of(data[0] % NTEMPLATES);
	change_pages(t, data + 2, size - 2);
	if (setjmp(hyb_fuzz_error) == 0)
	{
		uint32		e = data[1] * 8;

		hyb_meta_copy(t->ix, &meta);
		hyb_version_from_meta(&meta, &version);
		for (int i = 0; i < version.nlevels; i++)
			read_level(t->ix, &version.levels[i], e);
		read_log(t->ix, &version.active, NULL, false);
		read_log(t->ix, &version.frozen, &version.watermark, true);
		read_log(t->ix, &meta.retiring, NULL, true);
		ask_policy(t->ix, &meta);
		read_pass(t->ix, &meta, &version);
	}
	for (BlockNumber i = 0; i < t->nblocks; i++)
		if (blocks[i] != t->pages[i])
			free(blocks[i]);
	hyb_fuzz_reset();
	return 0;
}

/* ---- seeds: a byte of each page, in each part of it ---- */

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	unsigned	template = i % NTEMPLATES;
	unsigned	block = i / NTEMPLATES / 4;
	unsigned	part = i / NTEMPLATES % 4;

	if (block >= template_of((int) template)->nblocks)
		return block >= MAX_BLOCKS ? 0 : 2;
	data[0] = (uint8_t) template;
	data[1] = (uint8_t) (17 * i);
	data[2] = (uint8_t) block;
	data[3] = (uint8_t) part;
	data[4] = (uint8_t) (i * 29);
	data[5] = (uint8_t) (i * 5 % 32);
	data[6] = (uint8_t) (i * 31);
	return 7;
}
