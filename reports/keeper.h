/*
 * keeper.h - has the kernel put what was written to a file onto the disk, each
 * second at most, by a thread of its own: neither who writes the file nor
 * whoever hands that over waits for it. So a power loss costs what was written
 * in the last second or two, not the half minute that a kernel may keep it.
 */
#ifndef SMCO_KEEPER_H
#define SMCO_KEEPER_H

#include "reports/base.h"

struct keeper;

/* Of @fd, which must stay open until keeper_stop(). NULL if there is no memory
 * or no thread to be had: the kernel does it in its own time then. */
struct keeper *keeper_start(int fd);
/* More was written. Never waits for the disk. NULL is fine. */
void keeper_wrote(struct keeper *k);
/* Waits for what the thread is at, and no more; free. Only in the process that
 * started it. 0, or an errno value: what was written may not be on the disk.
 * NULL is fine. */
int keeper_stop(struct keeper *k);
/* In the child of a fork, where there is no such thread. */
void keeper_forget(struct keeper *k);

#endif
