/*
 * setup.c
 *		What is shared, put together when the library is loaded.
 */
#include "base/compat.h"

#include "am/am.h"
#include "hot/hot_table.h"
#include "log/unique_lock.h"
#include "shared/directory.h"
#include "shared/shared_arena.h"
#include "shared/workers.h"
#include "store/handle.h"

static void
attach(void)
{
	(void) hyb_shared_init();
}

void
hyb_dynamic_init(void)
{
	static const HybSharedPart *const parts[] = {
		&hyb_directory_part, &hyb_arena_part, &hyb_database_part,
		&hyb_unique_part, &hyb_workers_part, &hyb_progress_part, &hyb_hot_part
	};

	hyb_arena_init();
	hyb_hot_init();
	hyb_shared_define(parts, lengthof(parts));
	hyb_index_first_use = attach;
}
