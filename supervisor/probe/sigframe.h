/*
 * sigframe.h - where threads will go on that are in a signal handler now: the
 * frames that the kernel put on their stacks.
 */
#ifndef SMCO_SIGFRAME_H
#define SMCO_SIGFRAME_H

#include "supervisor/tracee/tracee.h"

/*
 * Frames above @rsp, within 64 KiB, that return to a program counter in
 * [lo, hi); @fn (may be NULL) is told the address of the word that holds it.
 * Returns how many. A stack that a thread is not on is not looked at.
 */
size_t sigframes_find(struct tproc *p, taddr_t rsp, taddr_t lo, taddr_t hi,
		      void (*fn)(void *ctx, taddr_t slot, taddr_t pc),
		      void *ctx);
/* @t, of a stopped process, may run code in [lo, hi) when it goes on: it is
 * there, or will be after a handler, or it is not known where it is. */
bool sigframes_leads_to(struct task *t, taddr_t lo, taddr_t hi);

#endif
