/*
 * leftover.h - what a supervisor that was killed has left in a program. Its
 * sensors harm nobody, but each costs a little, nobody would ever take them
 * out, and those of the next supervisor would be put in front of them. So the
 * next one begins with taking out what is there.
 */
#ifndef SMCO_LEFTOVER_H
#define SMCO_LEFTOVER_H

#include "supervisor/tracee/tracee.h"

/* True if @p has memory of ours, or code of ours in its vdso. Its tasks may
 * run: best asked when nobody else can supervise it any more, and before it is
 * stopped. */
bool leftover_is_there(struct tproc *p);
/*
 * What waits for the libraries goes (tproc_drop_left_call()). Text gets the
 * bytes of its file back wherever a jump leads to memory of ours, and that
 * memory goes as soon as no thread is in it. All tasks of @p stopped, nothing
 * planted by us yet; they may run for a moment meanwhile. Returns the number of
 * areas taken out, or a negative smco_code. What cannot be taken out (a thread
 * stays in it, the file is not to be had) is left as it was, and *err says so.
 */
int leftover_remove(struct tproc *p, struct smco_err *err);

#endif
