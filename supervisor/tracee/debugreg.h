/*
 * debugreg.h - debug registers by ptrace, see tproc_watch(): when what a thread
 * has of them changes. Shared by the files of this room.
 */
#ifndef SMCO_TRACEE_DEBUGREG_H
#define SMCO_TRACEE_DEBUGREG_H

#include "supervisor/tracee/internal.h"

/* --- debugreg.c --- */
/* Stopped @t is about to go on: its registers become what is wanted. */
void debugreg_sync(struct task *t);
/* Is anything of @p watched? */
bool debugreg_any(const struct tproc *p);
/* It is about to be left: they are cleared. */
void debugreg_leave(struct task *t);
/* It has ended, or called exec: the kernel has cleared them. */
void debugreg_forget(struct task *t);
/* @t stands at a SIGTRAP of a debug register: who watches is told. False:
 * nobody does. */
bool debugreg_hit(struct task *t);

/* --- debugreg-after.c --- */
/* A process is made that takes debug registers out when we are killed; where
 * that cannot be, nobody does. */
void after_prepare(void);
/* Of thread @tid, which is about to have some; 0: it cannot be done. */
unsigned after_add(pid_t tid);
/* What that said: it has none any more. 0 is fine. */
void after_drop(unsigned place);

#endif
