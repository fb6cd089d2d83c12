/*
 * uring.h - what is known of a process's io_urings from outside: which memory
 * it has registered as their buffers. That stays pinned, and the kernel reads
 * and writes it by its own addresses, past any protection of the program's
 * pages: that nothing is seen there does not say that it is unused.
 */
#ifndef SMCO_URING_H
#define SMCO_URING_H

#include "supervisor/probe/robust.h"

/* Has it the descriptor of one? /proc/PID/fd is read. */
bool uring_has_fd(pid_t pid);

/*
 * Adds what is registered with the rings of @p (/proc/PID/fdinfo, UserBufs);
 * @maps are its mappings, which say whether there is one at all. Not found are
 * rings of which it has closed the descriptor, or that have no mapping of
 * their own (IORING_SETUP_NO_MMAP).
 */
void uring_add_buffers(struct tproc *p, const struct tmaps *maps,
		       struct addr_ranges *ret);

#endif
