/*
 * preload.c
 *		The library $libdir/plugins/hybridindex, which loads $libdir/hybridindex as
 *		the extension's functions do.
 *
 * Any role may load what lies in $libdir/plugins, by LOAD and by
 * local_preload_libraries.  So the owner of a database can have all its sessions load
 * hybridindex.  docs/notes/release.md says why that is safe.
 *
 * A link to the library would not do.  The server knows a library by its path or,
 * while the file is the same, by its inode.  Once a package had replaced the file,
 * the first call of a function of the extension would load the new library beside
 * the old one.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	(void) load_external_function("$libdir/hybridindex", "hybrid_version", true, NULL);
}
