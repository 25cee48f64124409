/*
 * hooks.h
 *		Hooks of the server: errors in plain words where it gives an internal
 *		one (hooks.c), EXPLAIN (explain.c), replica identity (identity.c), ON
 *		CONFLICT (conflict.c) and its operator classes (arbiter.c), operator
 *		families in the planner (family.c).
 */
#ifndef HYB_HOOKS_H
#define HYB_HOOKS_H

extern void hyb_hooks_init(void);

extern void hyb_explain_init(void);

extern void hyb_identity_init(void);

extern void hyb_arbiter_init(void);

extern void hyb_conflict_init(void);

extern void hyb_family_init(void);

/* To be called by the handler function. */
extern void hyb_hooks_handler_called(void);

#endif							/* HYB_HOOKS_H */
