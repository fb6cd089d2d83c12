/*
 * own-tid.h - where threads keep their own number in memory, so that sensors
 * read it there and need not ask the kernel. A thread that was made without a
 * thread area of its own (a raw clone) finds its creator's number there.
 */
#ifndef SMCO_OWN_TID_H
#define SMCO_OWN_TID_H

#include "supervisor/tracee/tracee.h"

/* Distance from the thread pointer, as the first of @p's threads has it that
 * has one (all stopped); 0: it is not found. */
uint32_t own_tid_offset(struct tproc *p);
/* What @t, stopped, reads there: 0 if that cannot be told. As the program
 * numbers its threads, see task_own_tid(). */
uint32_t own_tid_there(struct task *t, uint32_t offset);

#endif
