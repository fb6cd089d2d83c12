/* open-fds.h - which descriptors a process has of a kind. */
#ifndef SMCO_OPEN_FDS_H
#define SMCO_OPEN_FDS_H

#include <stddef.h>
#include <sys/types.h>

#include "reports/base.h"

/*
 * Writes to @fd, of @cap elements, @pid's descriptors whose link in
 * /proc/PID/fd is @link, and returns how many; 0 also where that cannot be
 * read. 1 us for each descriptor that it has.
 */
size_t open_fds(pid_t pid, const char *link, int *fd, size_t cap);

/*
 * Has @pid a userfaultfd, or the device that makes them open? The kernel
 * registers memory with one only: who would guard it by another makes the
 * program's own registration fail with EBUSY. Then *err says so, SMCO_BUSY;
 * else 0.
 */
int own_uffd_look(pid_t pid, struct smco_err *err);

/* Why what stood before it made one was taken away. */
#define OWN_UFFD_WHY                                                           \
	"it uses userfaultfd itself, and memory can be registered with one "   \
	"only"

#endif
