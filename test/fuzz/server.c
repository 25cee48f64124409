/*
 * server.c
 *		See server.h.
 */
#include "server.h"

#include "access/amapi.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "pgtime.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

jmp_buf		hyb_fuzz_error;
MemoryContext CurrentMemoryContext;
MemoryContext TopMemoryContext;
ErrorContextCallback *error_context_stack;
sigjmp_buf *PG_exception_stack;

/* ---- memory ---- */

typedef struct Piece
{
	struct Piece *next;
	struct Piece *prev;
} Piece;

static Piece pieces = {&pieces, &pieces};

static void *
piece_alloc(Size size)
{
	Piece	   *piece = malloc(sizeof(Piece) + size);

	if (piece == NULL)
		abort();
	piece->next = pieces.next;
	piece->prev = &pieces;
	piece->next->prev = piece;
	pieces.next = piece;
	return piece + 1;
}

void
hyb_fuzz_reset(void)
{
	while (pieces.next != &pieces)
		pfree(pieces.next + 1);
}

void *
palloc(Size size)
{
	return piece_alloc(size);
}

void *
palloc0(Size size)
{
	return memset(piece_alloc(size), 0, size);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return piece_alloc(size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return palloc0(size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return piece_alloc(size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return piece_alloc(size);
}

void *
palloc_extended(Size size, int flags)
{
	return piece_alloc(size);
}

/* All pieces go with hyb_fuzz_reset. */
MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name,
							  Size min, Size initial, Size max)
{
	return NULL;
}

/* All memory goes at once, with hyb_fuzz_reset: nothing is called for that. */
void
MemoryContextRegisterResetCallback(MemoryContext context,
								   MemoryContextCallback *cb)
{
}

void
MemoryContextDelete(MemoryContext context)
{
}

void
MemoryContextReset(MemoryContext context)
{
}

void
pfree(void *pointer)
{
	Piece	   *piece = (Piece *) pointer - 1;

	piece->next->prev = piece->prev;
	piece->prev->next = piece->next;
	free(piece);
}

void *
repalloc(void *pointer, Size size)
{
	Piece	   *piece = realloc((Piece *) pointer - 1, sizeof(Piece) + size);

	if (piece == NULL)
		abort();
	piece->next->prev = piece;
	piece->prev->next = piece;
	return piece + 1;
}

void *
repalloc_huge(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

char *
psprintf(const char *format,...)
{
	return strcpy(palloc(strlen(format) + 1), format);
}

char *
pstrdup(const char *s)
{
	return strcpy(palloc(strlen(s) + 1), s);
}

#ifndef USE_FLOAT8_BYVAL
Datum
Int64GetDatum(int64 value)
{
	int64	   *copy = palloc(sizeof(int64));

	*copy = value;
	return PointerGetDatum(copy);
}

Datum
Float8GetDatum(float8 value)
{
	float8	   *copy = palloc(sizeof(float8));

	*copy = value;
	return PointerGetDatum(copy);
}
#endif

/* ---- errors ---- */

bool
errstart(int elevel, const char *domain)
{
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return true;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	longjmp(hyb_fuzz_error, 1);
}

int
errcode(int code)
{
	return 0;
}

int
errmsg(const char *format,...)
{
	return 0;
}

int
errmsg_internal(const char *format,...)
{
	return 0;
}

int
errdetail(const char *format,...)
{
	return 0;
}

int
errdetail_internal(const char *format,...)
{
	return 0;
}

int
errhint(const char *format,...)
{
	return 0;
}

/* With a server built with assertions these are the readers' too. */
void
ExceptionalCondition(const char *condition,
#if PG_MAJORVERSION_NUM < 16
					 const char *type,
#endif
					 const char *file, int line)
{
	abort();
}

/* ---- others ---- */

/* What the includes declare, in servers that have injection points. */
bool		IsInjectionPointAttached(const char *name);

bool
IsInjectionPointAttached(const char *name)
{
	return false;
}

/* There are no catalogs; the targets have no collation but "C". */
#if PG_MAJORVERSION_NUM < 19
typedef int SysCacheIdentifier;
#endif

HeapTuple
SearchSysCache1(SysCacheIdentifier cacheId, Datum key1)
{
	abort();
}

void
ReleaseSysCache(HeapTuple tuple)
{
	abort();
}

Datum
SysCacheGetAttr(SysCacheIdentifier cacheId, HeapTuple tup, AttrNumber attributeNumber, bool *isNull)
{
	abort();
}

#if PG_MAJORVERSION_NUM >= 16
Datum
SysCacheGetAttrNotNull(SysCacheIdentifier cacheId, HeapTuple tup, AttrNumber attributeNumber)
{
	abort();
}
#endif

char *
text_to_cstring(const text *t)
{
	abort();
}

/* Only comparator columns call functions; the targets have none. */
Datum
FunctionCall2Coll(FmgrInfo *flinfo, Oid collation, Datum arg1, Datum arg2)
{
	abort();
}

volatile sig_atomic_t InterruptPending;
bool		ignore_checksum_failure = true; /* nothing is asserted of damaged pages */
volatile uint32 InterruptHoldoffCount;
volatile uint32 CritSectionCount;

void
ProcessInterrupts(void)
{
}

/* there is no client */
void
hyb_mute_until_abort(void)
{
}

void
hyb_mute_not_needed(void)
{
}

void
hyb_mute_begin(void)
{
}

void
hyb_mute_end(void)
{
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

text *
cstring_to_text_with_len(const char *s, int len)
{
	text	   *result = palloc(len + VARHDRSZ);

	SET_VARSIZE(result, len + VARHDRSZ);
	memcpy(VARDATA(result), s, len);
	return result;
}

text *
cstring_to_text(const char *s)
{
	return cstring_to_text_with_len(s, (int) strlen(s));
}

int
bpchartruelen(char *s, int len)
{
	while (len > 0 && s[len - 1] == ' ')
		len--;
	return len;
}

/* A single-byte encoding */
int
pg_mbstrlen_with_len(const char *mbstr, int limit)
{
	return limit;
}

/* All collations are "C". */
#if PG_MAJORVERSION_NUM >= 18
pg_locale_t
pg_newlocale_from_collation(Oid collation)
{
	static struct pg_locale_struct c_locale = {.collate_is_c = true};

	return &c_locale;
}
#else
bool
lc_collate_is_c(Oid collation)
{
	return true;
}
#endif

char *
get_func_name(Oid function)
{
	return NULL;
}

char *
get_collation_name(Oid collation)
{
	return NULL;
}

bool
get_collation_isdeterministic(Oid collation)
{
	return true;
}

/* Constants of other types are converted by no target. */
pg_tz	   *session_timezone;

int
pg_next_dst_boundary(const pg_time_t *timep, long int *before_gmtoff,
					 int *before_isdst, pg_time_t *boundary,
					 long int *after_gmtoff, int *after_isdst, const pg_tz *tz)
{
	abort();
}

pg_time_t
timestamptz_to_time_t(TimestampTz t)
{
	abort();
}

#if PG_MAJORVERSION_NUM >= 19
#define CONVERSION(name, type) name##_safe(type value, Node *escontext)
typedef const ItemPointerData *ComparedTid;
#else
#define CONVERSION(name, type) name##_opt_overflow(type value, int *overflow)
typedef ItemPointer ComparedTid;
#endif

Timestamp
CONVERSION(date2timestamp, DateADT)
{
	abort();
}

TimestampTz
CONVERSION(date2timestamptz, DateADT)
{
	abort();
}

TimestampTz
CONVERSION(timestamp2timestamptz, Timestamp)
{
	abort();
}

int32
ItemPointerCompare(ComparedTid a, ComparedTid b)
{
	BlockNumber x = ItemPointerGetBlockNumberNoCheck(a);
	BlockNumber y = ItemPointerGetBlockNumberNoCheck(b);

	if (x != y)
		return x < y ? -1 : 1;
	return (int) ItemPointerGetOffsetNumberNoCheck(a) -
		(int) ItemPointerGetOffsetNumberNoCheck(b);
}

void
ItemPointerInc(ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	if (offset < PG_UINT16_MAX)
		ItemPointerSet(tid, block, offset + 1);
	else if (block != InvalidBlockNumber)
		ItemPointerSet(tid, block + 1, 0);
}

void
ItemPointerDec(ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	if (offset > 0)
		ItemPointerSet(tid, block, offset - 1);
	else if (block != 0)
		ItemPointerSet(tid, block - 1, PG_UINT16_MAX);
}

void
PageInit(Page page, Size page_size, Size special_size)
{
	PageHeader	header = (PageHeader) page;

	special_size = MAXALIGN(special_size);
	memset(page, 0, page_size);
	header->pd_lower = SizeOfPageHeaderData;
	header->pd_upper = page_size - special_size;
	header->pd_special = page_size - special_size;
	PageSetPageSizeAndVersion(page, page_size, PG_PAGE_LAYOUT_VERSION);
}

Relation
hyb_fuzz_relation(void)
{
	static FormData_pg_class form;
	static FormData_pg_index index = {.indnkeyatts = INDEX_MAX_KEYS};
	static IndexAmRoutine method;	/* not a summarizing one */
	static RelationData relation = {.rd_rel = &form,.rd_index = &index,.rd_indam = &method};

	return &relation;
}

/* ---- files whose pages are local buffers ---- */

char	   *BufferBlocks;
int			NBuffers = 0;
bool		pgstat_track_counts = false;

bool
RecoveryInProgress(void)
{
	return false;
}

/* These are for shared relations, and never called. */
SMgrRelation
smgropen(RelFileLocator locator, ProcNumber backend)
{
	abort();
}

#if PG_MAJORVERSION_NUM < 17
void
smgrsetowner(SMgrRelation *owner, SMgrRelation reln)
#else
void
smgrpin(SMgrRelation reln)
#endif
{
	abort();
}

void
pgstat_assoc_relation(Relation rel)
{
	abort();
}

void
LockRelationForExtension(Relation rel, LOCKMODE mode)
{
	abort();
}
