/*
 * database.c
 *		Lives of databases.
 *
 * What shared memory says of an index is worth something only while the files
 * are those it was said of.  The files of a database are replaced as a whole,
 * under the same name, by ALTER DATABASE SET TABLESPACE there and back, and by
 * DROP DATABASE and CREATE DATABASE with the same OID; copies of databases
 * carry incarnations, stamps and generation numbers along, so the pages cannot
 * tell.  So each database has a life, which is part of the key of its slots:
 * slots of an earlier life are never found again.
 *
 * A life ends if somebody enters the database while no process is in it, and
 * its row in pg_database is not the one that was seen last (xmin is that of
 * another transaction).  That is exact in the direction that matters:
 *
 *		- Files are replaced only while no process is connected to the
 *		  database, on a standby too, where replay terminates those that are.
 *		  So while nprocesses is above zero they are what they were.  (Replay
 *		  of a move lets processes in at the new place before it terminates
 *		  those at the old one; the place, that is the database's tablespace,
 *		  tells them apart.)
 *
 *		- Replacing them changes the row, or makes another, in a transaction
 *		  that is over before anybody can connect again.  Transaction numbers
 *		  do not repeat, and freezing keeps them.  The row is read by processes
 *		  that are connected, so it is at least as new as the files.
 *
 * Other changes of the row (renaming the database, say) end a life for
 * nothing, at the price of reading the logs again.  Everybody who is in the
 * database at a time is in the same life.
 *
 * A process leaves in a before_shmem_exit callback, and is waited for by those
 * who replace files until it is gone from the array of processes, which comes
 * later.  A process that is killed takes all of shared memory with it.
 *
 * There are as many entries as there can be processes.  One that nobody is in
 * is used again if there is no other.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "shared/database.h"
#include "shared/directory.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "store/handle.h"

/*
 * A database whose indexes are in use, or were.  Protected by the directory's
 * lock.
 */
typedef struct Database
{
	Oid			db;				/* InvalidOid: free */
	Oid			space;			/* its tablespace */
	TransactionId xmin;			/* of its row in pg_database when a process
								 * entered last */
	uint32		nprocesses;		/* connected to it that know its slots */
	uint64		life;			/* never repeats */
} Database;

typedef struct DatabaseTable
{
	uint64		lives;			/* given out so far */
	Database	entries[FLEXIBLE_ARRAY_MEMBER]; /* MaxBackends */
} DatabaseTable;

static DatabaseTable *table = NULL;
static Database *my_database = NULL;
static uint64 my_life = 0;

static Size
entries_size(void)
{
	return mul_size(MaxBackends, sizeof(Database));
}

const HybSharedPart hyb_database_part = {
	.address = (void **) &table,.size = sizeof(DatabaseTable),.more = entries_size
};

/* before_shmem_exit callback: no index is used after this. */
static void
leave_database(int code, Datum arg)
{
	if (my_database == NULL)
		return;
	LWLockAcquire(&hyb_directory->lock.lock, LW_EXCLUSIVE);
	Assert(my_database->db == MyDatabaseId && my_database->nprocesses > 0);
	my_database->nprocesses--;
	my_database = NULL;
	LWLockRelease(&hyb_directory->lock.lock);
}

/*
 * The entry of this process's database, or else one to use for it: a free one,
 * or one that nobody is in.  The directory is locked exclusively.
 */
static Database *
find_entry(void)
{
	Database   *spare = NULL;

	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	for (int i = 0; i < MaxBackends; i++)
	{
		Database   *database = &table->entries[i];

		if (database->db == MyDatabaseId &&
			database->space == MyDatabaseTableSpace)
			return database;
		if (database->nprocesses == 0 &&
			(spare == NULL || OidIsValid(spare->db)))
			spare = database;
	}
	return spare;
}

static void
enter_database(void)
{
	static bool registered = false;
	Database   *database;

	Assert(OidIsValid(MyDatabaseId));
	Assert(TransactionIdIsValid(hyb_database_xmin));
	if (!registered)
	{
		before_shmem_exit(leave_database, (Datum) 0);
		registered = true;
	}
	hyb_directory_lock(LW_EXCLUSIVE, true);
	database = find_entry();
	if (database == NULL)
		elog(ERROR, "more processes use hybridindex than there can be");
	if (database->nprocesses == 0 &&
		(database->db != MyDatabaseId ||
		 database->space != MyDatabaseTableSpace ||
		 database->xmin != hyb_database_xmin))
	{
		database->db = MyDatabaseId;
		database->space = MyDatabaseTableSpace;
		database->life = ++table->lives;
		hyb_directory_end_lives(MyDatabaseId, database->life);
	}
	Assert(my_database == NULL && database->nprocesses < MaxBackends);
	Assert(database->db == MyDatabaseId && database->life > 0 && database->life <= table->lives);
	database->xmin = hyb_database_xmin;
	database->nprocesses++;
	my_database = database;
	my_life = database->life;
	hyb_directory_unlock();
	hyb_arena_trim(&hyb_shared_arena);
}

uint64
hyb_database_life(void)
{
	if (unlikely(my_life == 0) && hyb_shared_init())
		enter_database();
	return my_life;
}
