/*
 * status.h - the one line that says how the run is going, while it goes. Only
 * on a terminal, and only while smco-trace is in its foreground and nobody
 * reads keys one by one or unseen there (vim, less, a password); redrawn at
 * most five times a second; never waits for a terminal that was stopped with
 * Ctrl-S, since the monitored program would wait with it.
 */
#ifndef SMCO_STATUS_H
#define SMCO_STATUS_H

#include "reports/base.h"

#define STATUS_INTERVAL_NS (200 * NSEC_PER_MSEC)

struct status_facts {
	uint64_t elapsed_ns;
	int64_t overhead_ppb; /* now, of the last seconds */
	int64_t target_ppb;   /* INT64_MAX = unlimited */
	uint64_t nr_armed;
	uint64_t nr_known; /* objects alive */
	uint64_t nr_naps;
};

/*
 * The line, without control characters, in at most @width columns (what does
 * not fit is said more shortly, then left out). Returns its length; @buf is
 * always terminated.
 */
size_t status_format(const struct status_facts *f, unsigned width, char *buf,
		     size_t size);

struct status;

/*
 * @fd: where diagnostics go, usually 2; not changed in any way, and not
 * needed after this call. If it is no terminal, or @quiet, everything below
 * does nothing. 0 or SMCO_NOMEM.
 */
int status_create(int fd, bool quiet, struct status **ret,
		  struct smco_err *err);
void status_destroy(struct status *s); /* erases; NULL is fine */

/* When status_show would draw: no need to gather facts before. UINT64_MAX if
 * never. */
uint64_t status_due_ns(const struct status *s);
void status_show(struct status *s, uint64_t now_ns,
		 const struct status_facts *f);
/* Before anything else is written to the terminal. */
void status_erase(struct status *s);

#endif
