/*
 * server.h
 *		Stand-ins for the few things of the server that the page readers call.
 *
 * Memory comes from malloc, so that the sanitizer sees each piece, and is
 * given back by hyb_fuzz_reset.  An ereport(ERROR) jumps to hyb_fuzz_error.
 */
#ifndef HYB_FUZZ_SERVER_H
#define HYB_FUZZ_SERVER_H

#include "base/compat.h"

#include <setjmp.h>

#include "storage/smgr.h"
#include "store/page.h"

#if PG_MAJORVERSION_NUM < 16
typedef RelFileNode RelFileLocator;
#endif
#if PG_MAJORVERSION_NUM < 17
typedef BackendId ProcNumber;
#endif

extern jmp_buf hyb_fuzz_error;
extern Relation hyb_fuzz_relation(void);
extern void hyb_fuzz_reset(void);

#endif							/* HYB_FUZZ_SERVER_H */
