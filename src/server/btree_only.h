/*
 * btree_only.h
 *		What the server is told of hybrid indexes where it asks about btree only.
 *
 * am/hooks.c calls most of these from hooks of the server.
 */
#ifndef HYB_BTREE_ONLY_H
#define HYB_BTREE_ONLY_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"

/* ---- errors.c: errors of the server in plain words ---- */

/* When the library is loaded. */
extern void hyb_errors_init(void);

/*
 * The handler function calls this with its OID.  Returns true for the first
 * call in this session.
 */
extern bool hyb_errors_handler_called(Oid handler);

/*
 * An error is being reported that has a message_id.  Nothing here looks at
 * catalogs, or can fail for lack of anything but memory.
 */
extern void hyb_explain_error(ErrorData *error);

/* Does the error end the statement that loaded the library? */
extern bool hyb_error_of_first_use(void);

/* `format` may have a place for the name of one of our functions. */
extern void hyb_error_set_hint(ErrorData *error, const char *format,
							   const char *function);

/* A background worker's first statement fails each time. */
#define HYB_LOADED_LATE_WORKER_HINT \
	"Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server. Background workers do not read \"session_preload_libraries\"."
#define HYB_IS_WORKER	(MyBackendType == B_BG_WORKER)

/* ---- families.c: operator classes and families ---- */

/*
 * Before planning: classes of ON CONFLICT become those of our indexes.  The
 * query's relations are locked.
 */
extern void hyb_replace_conflict_classes(Query *query);

/* The planner has collected the indexes of a table. */
extern void hyb_show_as_btree(PlannerInfo *root, RelOptInfo *rel);

/* ---- validate.c ---- */

extern bool hyb_amvalidate(Oid opclassoid);

/*
 * Members are being added to a family.  An error for a function that does not
 * fit, and dependencies as in btadjustmembers: the operators and the order
 * function of one type belong to its operator class, if there is one.  Cross-type
 * members and optional functions are loose members of the family.  Only the codec
 * is optional but not loose, since indexes hold values in its form.
 */
extern void hyb_amadjustmembers(Oid opfamilyoid, Oid opclassoid,
								List *operators, List *functions);

/*
 * Reports, at this level, a key column that is ordered by the class of another
 * type although its own type has another order.  A type that is binary-coercible
 * to text, for example, gets text's class if it has none of its own; but its
 * equal values may be different texts.  The caller has locked the index.
 */
extern void hyb_check_column_classes(Relation index, int elevel);

#endif							/* HYB_BTREE_ONLY_H */
