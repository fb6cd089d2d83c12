/*
 * uffd.h - private to the userfaultfd mechanism: how a
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

#endif
