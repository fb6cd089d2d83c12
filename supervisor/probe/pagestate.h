/*
 * pagestate.h - why a page's accessed bit could not be reset: what
 * /proc/PID/pagemap and /proc/kpageflags say of it (the kernel's
 * Documentation/admin-guide/mm/pagemap.rst).
 */
#ifndef SMCO_PAGESTATE_H
#define SMCO_PAGESTATE_H

#include "reports/base.h"

struct pagestate {
	uint32_t nr_shared;  /* mapped by others, too: never resettable */
	uint32_t nr_waiting; /* not in an LRU list yet (lrudrain.h); 0 where
				that cannot be known: it takes privilege */
};

/*
 * Look at the pages of [start, end), page-aligned: at the first 8192 whether
 * they are shared, at the first 256 of the others whether they wait.
 * @pagemap_fd: the process's. What cannot be read counts as neither.
 */
struct pagestate pagestate_get(int pagemap_fd, taddr_t start, taddr_t end);
/*
 * Has no other process the page at @addr? Of a forked copy's memory that is
 * what it has written since, or its parent, and all of it when that is gone.
 * PAGE_ABSENT: nothing is there, or it cannot be read.
 */
enum page_owner { PAGE_ABSENT, PAGE_SHARED, PAGE_OWN };
enum page_owner pagestate_owner(int pagemap_fd, taddr_t addr);

#endif
