/*
 * uffd.h - private to the userfaultfd mechanism: which memory, and how a
 * program that must not create userfaultfds itself (not root,
 * vm.unprivileged_userfaultfd 0) gets one made by /dev/userfaultfd, which the
 * supervisor may open and hands over through a socket.
 */
#ifndef SMCO_UFFD_H
#define SMCO_UFFD_H

#include "supervisor/tracee/tracee.h"

/* One task of @p stopped. *fd_ret is the descriptor's number in @p, or a
 * negative errno of the call that failed there. */
int uffd_by_device(struct tproc *p, int64_t *fd_ret, struct smco_err *err);

/* Why [start, end) must not be guarded; NULL if it may: private anonymous
 * memory that can be written. */
const char *uffd_place(const struct tmaps *maps, taddr_t start, taddr_t end);

#endif
