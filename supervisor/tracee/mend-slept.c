/*
 * Since when a thread sleeps. se.exec_start is the scheduler's clock of the CPU
 * when the thread was last put on or taken off it. That clock is the CPU's own
 * and leaves out what a hypervisor stole: the difference between two of its
 * values is a time, and only that. So when a thread stands that slept until
 * PTRACE_INTERRUPT woke it, the second value is its own; and where it was woken
 * on another CPU, ours, when we have gone to the one where it slept.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* A value of another CPU's clock is used for so long: that much later a wait
 * may end. */
#define STILL_GOOD_NS (5 * NSEC_PER_MSEC)

static bool sched_field(const char *buf, const char *name, uint64_t *ret,
			unsigned long long *frac)
{
	unsigned long long whole;
	char *at = strstr(buf, name);
	*frac = 0;
	if (!at || !(at = strchr(at, ':')) ||
	    sscanf(at + 1, " %llu.%6llu", &whole, frac) < 1)
		return false;
	*ret = whole;
	return true;
}

static bool last_ran(pid_t tid, struct slept *ret)
{
	char path[PROCFS_PATH], buf[2048];
	procfs_path(path, sizeof(path), tid, "task/%d/sched", tid);
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return false;
	unsigned long long frac, none;
	if (!sched_field(buf, "\nnr_voluntary_switches", &ret->nr_sleeps,
			 &none) ||
	    !sched_field(buf, "\nse.nr_migrations", &ret->migrations, &none) ||
	    !sched_field(buf, "\nse.exec_start", &ret->ns, &frac))
		return false;
	ret->ns = ret->ns * NSEC_PER_MSEC + frac;
	return true;
}

bool slept_look(const struct task *t, struct slept *ret)
{
	if (!last_ran(t->tid, ret))
		ret->ns = 0;
	/* If it has slept once more by now, it is seen by their number. */
	return task_proc_place(t, &ret->cpu) == 'S';
}

/* The clock of @cpu when it was ->at_ns or, by some us, before. */
static bool ask_clock(struct tracer *tr, int cpu, struct cpu_clock *ret)
{
	/* Who comes from its sleep has begun to run at this moment. */
	const struct timespec short_sleep = {.tv_nsec = 1};
	struct slept own = {0};
	if (!follow_visit(tr, cpu))
		return false;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &short_sleep, NULL);
	bool known = last_ran(tr->tid, &own);
	*ret = (struct cpu_clock){
		.cpu = cpu, .ns = own.ns, .at_ns = smco_now_ns()};
	follow_return(tr);
	return known;
}

/* At @at_ns at the latest: of many threads that are stopped at once, not for
 * each. 0: not to be known. */
static uint64_t clock_until(struct tracer *tr, int cpu, uint64_t at_ns)
{
	struct cpu_clock *c = &tr->clock[(unsigned)cpu % ARRAY_SIZE(tr->clock)];
	if ((!c->ns || c->cpu != cpu || c->at_ns + STILL_GOOD_NS < at_ns) &&
	    !ask_clock(tr, cpu, c))
		return c->ns = 0;
	/* It has not gone faster than time. */
	uint64_t since = c->at_ns > at_ns ? c->at_ns - at_ns : 0;
	return c->ns > since ? c->ns - since : 0;
}

uint64_t mend_waited_ns(const struct task *t)
{
	const struct slept *then = &t->slept;
	struct slept now;
	/* It has slept once more, in our stop. More often: that wait was over
	 * before it was interrupted, and this is another one. */
	if (!then->ns || !last_ran(t->tid, &now) ||
	    now.nr_sleeps != then->nr_sleeps + 1)
		return 0;
	if (now.migrations == then->migrations)
		return now.ns > then->ns ? now.ns - then->ns : 0;
	now.ns = clock_until(t->tr, then->cpu, t->stop_ns);
	return now.ns > then->ns ? now.ns - then->ns : 0;
}
