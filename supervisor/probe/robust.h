/*
 * robust.h - memory that the kernel writes when a thread ends, with nobody
 * left to wait for: its robust mutexes, and the thread descriptor where its
 * id is cleared. A write that fails there is lost: a waiter never wakes.
 */
#ifndef SMCO_ROBUST_H
#define SMCO_ROBUST_H

#include "supervisor/tracee/tracee.h"

struct addr_range {
	taddr_t start;
	taddr_t end; /* exclusive */
};
struct addr_ranges { /* zero-initialise; a handful, looked at one by one */
	struct addr_range *v;
	size_t nr;
	size_t cap;
};
/* False when out of memory. */
bool addr_ranges_add(struct addr_ranges *r, taddr_t start, taddr_t end);
bool addr_ranges_hit(const struct addr_ranges *r, taddr_t start, taddr_t end);
void addr_ranges_free(struct addr_ranges *r);

/* Adds what is on @tid's robust list just now, and what surrounds the list's
 * head: the C library keeps that in the thread descriptor. */
void robust_list_add(struct tproc *p, pid_t tid, struct addr_ranges *ret);

#endif
