/*
 * pager.h - standard output through $PAGER, as git does it: less quits at
 * once if all of it fits on the screen.
 */
#ifndef SMCO_PAGER_H
#define SMCO_PAGER_H

#include <sys/types.h>

struct pager {
	pid_t pid; /* 0 = none */
};

/* Standard output goes to the pager from here on, and SIGPIPE is ignored. If
 * there is none (PAGER empty or "cat", or no process for it) nothing happens;
 * if there is no such command the shell says so and the text goes on as it is.
 */
void pager_start(struct pager *p);
/* Close standard output and wait until the user has left the pager. */
void pager_wait(struct pager *p);

#endif
