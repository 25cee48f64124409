/*
 * setup.c
 *		What is shared, put together when the library is loaded.
 */
#include "compat.h"

#include "dynamic/database.h"
#include "dynamic/directory.h"
#include "dynamic/hot_table.h"
#include "dynamic/progress.h"
#include "dynamic/unique_lock.h"
#include "dynamic/workers.h"
#include "page/open.h"

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

	hyb_hot_init();
	hyb_shared_define(parts, lengthof(parts));
	hyb_index_first_use = attach;
}
