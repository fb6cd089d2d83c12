/*
 * forker.h - a thread that stays as we were at our start: it forks the command.
 *
 * What a thread is bound to its children are bound to, and a mask of CPUs that
 * was once set is copied at each fork of theirs, whatever it says: there is no
 * way to have none again. This one never sets any, nor a policy or a priority.
 * The first thread of a process that has others changes what libc's own signals
 * do; who is forked here has them as they were.
 */
#ifndef SMCO_TRACEE_FORKER_H
#define SMCO_TRACEE_FORKER_H

#include <sys/types.h>

#include "reports/base.h"

/* Before this process has threads, and before the calling one binds itself to a
 * CPU for the first time. Does nothing if this process has one already; it
 * stays until the process ends. SMCO_SYS. */
int forker_prepare(struct smco_err *err);
/*
 * A child of this process that does @child, with all signals blocked; only
 * async-signal-safe calls may be made there, and it must not return. As
 * fork(2): the child's number, or -1 and errno. After forker_prepare; by one
 * thread at a time.
 */
pid_t forker_fork(void (*child)(void *ctx), void *ctx);

#endif
