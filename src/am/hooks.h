/*
 * hooks.h
 *		Errors in plain words where the server gives an internal one.
 */
#ifndef HYB_HOOKS_H
#define HYB_HOOKS_H

extern void hyb_hooks_init(void);

/* To be called by the handler function. */
extern void hyb_hooks_handler_called(void);

#endif							/* HYB_HOOKS_H */
