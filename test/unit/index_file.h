/*
 * index_file.h
 *		An index's file in memory, for tests of code that reads and writes pages.
 *
 * It stands in for the server's buffer manager and for store/wal.c.  Each block
 * has one buffer.  A lock or pin that a process must not take, or a change without
 * an exclusive lock, ends the test.
 *
 * A second copy of the file gets nothing but what is logged, as a standby does.
 */
#ifndef HYB_INDEX_FILE_H
#define HYB_INDEX_FILE_H

#include "fuzz/server.h"

#include "store/meta.h"

#define INDEX_FILE_BLOCKS	8192

/* A new file with a metapage; ends the one before. */
extern HybIndex *index_file_create(HybKeyDesc *desc);

extern Page index_file_page(BlockNumber block);
extern HybMetaPage *index_file_meta(void);
extern BlockNumber index_file_length(void);

/* A page of zeroes at the end, as a crash may leave one. */
extern BlockNumber index_file_extend(void);

/* Another process pins a block, or lets go of it again. */
extern void index_file_pin(BlockNumber block);
extern void index_file_unpin(BlockNumber block);
extern bool index_file_is_pinned(BlockNumber block);

/* Buffers that are locked, or pinned but by index_file_pin. */
extern int	index_file_held(void);

/* Has the standby the same bytes on this page? */
extern bool index_file_is_logged(BlockNumber block);

/* Write a page, and log all of it. */
extern void index_file_log(BlockNumber block);

#endif							/* HYB_INDEX_FILE_H */
