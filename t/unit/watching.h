/* A puppet whose debug registers are tried, for u-watch and u-break. */
#ifndef SMCO_T_WATCHING_H
#define SMCO_T_WATCHING_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "supervisor/probe/watch.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;
static struct watchpoints *ws;
static struct puppet pup;
static struct tproc *proc;

static struct watchpoint *armed(const struct watch_what *what, int64_t limit)
{
	struct smco_err err = {0};
	struct watchpoint *w = NULL;
	if (!check_int(watchpoint_arm(&w, ws, proc, what, limit, &err), 0))
		printf("# %s\n", err.msg);
	return w;
}

static bool is_range(struct watchpoint *w, size_t i, int64_t lo, int64_t hi)
{
	int64_t smallest, largest;
	if (!watchpoint_read(w, i, &smallest, &largest))
		return false;
	printf("# %jd to %jd\n", (intmax_t)smallest, (intmax_t)largest);
	return smallest == lo && largest == hi;
}

/* Registers of the puppet's first thread that anybody could have now, of
 * @type (HW_BREAKPOINT_X or _W) for the eight bytes at @addr. */
static inline unsigned nr_free(uint32_t type, const volatile void *addr)
{
	int fd[8];
	unsigned nr = 0;
	for (; nr < 8; nr++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_BREAKPOINT,
			.size = sizeof(attr),
			.bp_type = type,
			.bp_addr = (uint64_t)(uintptr_t)addr,
			.bp_len = sizeof(long),
		};
		fd[nr] = (int)syscall(SYS_perf_event_open, &attr, pup.pid, -1,
				      -1, 0);
		if (fd[nr] < 0)
			break;
	}
	for (unsigned i = 0; i < nr; i++)
		close(fd[i]);
	return nr;
}

#endif
