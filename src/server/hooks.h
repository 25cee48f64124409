/*
 * hooks.h
 *		Hooks of the server: errors in plain words where it gives an internal
 *		one (hooks.c), EXPLAIN (explain.c), replica identity (identity.c), ON
 *		CONFLICT (conflict.c) and its operator classes (arbiter.c), what the
 *		planner is shown (family.c), row comparisons (rowcompare.c), utility
 *		statements (ddl/utility.c), ON CONFLICT during a conversion
 *		(ddl/convert_arbiter.c).
 */
#ifndef HYB_HOOKS_H
#define HYB_HOOKS_H

extern void hyb_hooks_init(void);

extern void hyb_explain_init(void);

extern void hyb_identity_init(void);

extern void hyb_arbiter_init(void);

extern void hyb_conflict_init(void);

/* Has the server loaded the library at its start? */
extern bool hyb_preloaded;

/* The library is being loaded: an error if that is too late for ON CONFLICT. */
extern void hyb_conflict_loaded(void);

/* The texts of that error. */
#define HYB_LOADED_LATE \
	"the library \"hybridindex\", which INSERT ... ON CONFLICT needs for a unique hybrid index, was loaded too late"
#define HYB_LOADED_LATE_DETAIL \
	"Before PostgreSQL 18 it has to be there when such a statement starts, and this one was the first of its session to use a hybrid index."
#define HYB_LOADED_LATE_HINT \
	"Try it again, or add \"hybridindex\" to \"session_preload_libraries\"."

/* A background worker's first statement fails each time. */
#define HYB_LOADED_LATE_WORKER_HINT \
	"Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server. Background workers do not read \"session_preload_libraries\"."
#define HYB_IS_WORKER	(MyBackendType == B_BG_WORKER)

extern void hyb_family_init(void);

extern void hyb_rowcompare_init(void);

/* The planner considers a row comparison as condition of one of our indexes. */
extern void hyb_row_compare_planned(void);

extern void hyb_utility_init(void);

extern void hyb_convert_arbiter_init(void);

/*
 * The handler function calls this with its OID.  Returns true for the first
 * call in this session.
 */
extern bool hyb_hooks_handler_called(Oid handler);

#endif							/* HYB_HOOKS_H */
