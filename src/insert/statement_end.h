/*
 * statement_end.h
 *		When statements that insert end, and others begin: for insert/gather.c.
 */
#ifndef HYB_STATEMENT_END_H
#define HYB_STATEMENT_END_H

#include "utils/palloc.h"

extern void hyb_statement_end_init(void);

/*
 * Will the end of the statement that inserts be noticed, while its indexes are
 * open?  Its memory context is that of the IndexInfo.
 */
extern bool hyb_statement_end_noticed(MemoryContext context);

#endif							/* HYB_STATEMENT_END_H */
