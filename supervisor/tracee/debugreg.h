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
/* It goes, a child of ours until then; where a thread could not be left as it
 * should be it takes care of that, and is left to others. */
void after_end(void);
/* Somebody else has waited for child @pid, which has ended. */
void after_note_end(pid_t pid);
/* Of thread @tid, which is about to have some; 0: it cannot be done. */
unsigned after_add(pid_t tid);
/* What that said: it has none any more. 0 is fine. */
void after_drop(unsigned place);

#endif
