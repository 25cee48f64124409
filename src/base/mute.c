/*
 * mute.c
 *		Keeping messages from the client while others need our locks.
 *
 * The server sends its messages through a table of functions, which is another one
 * while we are mute.  In parallel workers the messages go to the leader's queue,
 * which is filled in the same way if the leader's client does not read.
 *
 * The main loop reports an error before it aborts the transaction, thus with all
 * locks held.  So after an error the process stays mute until the locks are gone.
 */
#include "base/compat.h"

/*
 * libpq.h declares a connection with the types of these libraries, whose headers
 * need not be installed to build an extension.  Nothing here reads a connection.
 */
#undef ENABLE_GSS
#undef USE_OPENSSL

#include "access/xact.h"
#include "base/memory.h"
#include "base/mute.h"
#include "libpq/libpq.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#define NOTICE_RESPONSE		'N' /* of the protocol */

/* A message to be sent later. */
typedef struct KeptMessage
{
	struct KeptMessage *next;
	size_t		len;
	char		type;
	char		bytes[FLEXIBLE_ARRAY_MEMBER];
} KeptMessage;

static KeptMessage *kept = NULL;	/* in the order in which they came */
static const PQcommMethods *methods;	/* that send messages, while mute */

/* The nest level of the transaction at each hyb_mute_begin that has not ended. */
static int *levels = NULL;
static int	levels_alloc = 0;
static int	depth = 0;

static void
mute_reset(void)
{
	methods->comm_reset();
}

static int
mute_flush(void)
{
	return 0;
}

static bool
mute_is_send_pending(void)
{
	return false;
}

static int
mute_putmessage(char type, const char *bytes, size_t len)
{
	KeptMessage **end = &kept;
	KeptMessage *message;

	if (type == NOTICE_RESPONSE)
		return 0;
	message = MemoryContextAllocHuge(TopMemoryContext, offsetof(KeptMessage, bytes) + len);
	message->next = NULL;
	message->type = type;
	message->len = len;
	memcpy(message->bytes, bytes, len);
	while (*end != NULL)
		end = &(*end)->next;
	*end = message;
	return 0;
}

static void
mute_putmessage_noblock(char type, const char *bytes, size_t len)
{
	(void) mute_putmessage(type, bytes, len);
}

static const PQcommMethods mute_methods = {
	.comm_reset = mute_reset,
	.flush = mute_flush,
	.flush_if_writable = mute_flush,
	.is_send_pending = mute_is_send_pending,
	.putmessage = mute_putmessage,
	.putmessage_noblock = mute_putmessage_noblock
};

void
hyb_mute_until_abort(void)
{
	if (PqCommMethods == &mute_methods)
		return;
	methods = PqCommMethods;
	PqCommMethods = &mute_methods;
}

void
hyb_mute_not_needed(void)
{
	if (depth == 0 && PqCommMethods == &mute_methods)
		PqCommMethods = methods;
}

void
hyb_mute_begin(void)
{
	if (depth == levels_alloc)
	{
		levels = hyb_grow(TopMemoryContext, levels, levels_alloc + 8, sizeof(int));
		levels_alloc += 8;
	}
	levels[depth++] = GetCurrentTransactionNestLevel();
	hyb_mute_until_abort();
}

void
hyb_mute_end(void)
{
	Assert(depth > 0 && levels[depth - 1] == GetCurrentTransactionNestLevel());
	Assert(kept == NULL);
	depth--;
	hyb_mute_not_needed();
}

/*
 * Hand over what was kept, without waiting for a client: the main loop flushes it.  A
 * process that ends has no other chance to.  The queue of a leader takes messages
 * only by waiting.
 */
static void
send_kept(void)
{
	bool		any = kept != NULL;

	while (kept != NULL)
	{
		KeptMessage *message = kept;

		kept = message->next;
		if (MyBgworkerEntry != NULL)
			(void) pq_putmessage(message->type, message->bytes, message->len);
		else
			pq_putmessage_noblock(message->type, message->bytes, message->len);
		pfree(message);
	}
	if (any && proc_exit_inprogress)
		(void) pq_flush_if_writable();
}

/*
 * After an error, the locks of a (sub)transaction are gone.  One that a user's code
 * began and aborted within is not ours.  But it has let go of all LWLocks.
 */
static void
locks_released(ResourceReleasePhase phase, bool commit, bool top_level, void *arg)
{
	if (PqCommMethods != &mute_methods || phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	Assert(!(commit && top_level));
	if (commit)
		return;
	while (depth > 0 && levels[depth - 1] >= GetCurrentTransactionNestLevel())
		depth--;
	if (depth > 0)
		return;
	PqCommMethods = methods;
	send_kept();
}

void
hyb_mute_init(void)
{
	RegisterResourceReleaseCallback(locks_released, NULL);
}
