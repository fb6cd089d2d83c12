/* What a thread did before its counters could be opened, as the kernel tells
 * it by itself. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmu/counter-private.h"
#include "reports/procfs.h"

/* So long the time stamp counter is looked at, once. */
#define TSC_NS (2 * NSEC_PER_MSEC)

/* Number @nr (from 1) behind the command's name in a stat line, or 0. */
static uint64_t stat_field(const char *stat, unsigned nr)
{
	const char *p = strrchr(stat, ')');
	for (unsigned i = 2; p && i < nr; i++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static bool read_task_file(pid_t tid, const char *file, char *buf, size_t size)
{
	char path[PROCFS_PATH];
	/* Not /proc/TID/FILE, which has the sums of the process. */
	procfs_path(path, sizeof(path), tid, "task/%d/%s", (int)tid, file);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

static uint64_t status_number(const char *status, const char *key)
{
	const char *p = strstr(status, key);
	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Ticks of the time stamp counter in a ns of a thread's time on a CPU, which
 * is all that its event counts. 0: it is not known. */
static double tsc_per_ns(void)
{
	static double ret = -1; /* a property of the machine */
	struct pmu_event ev;
	struct counter_plan p = {.event = &ev, .nr_events = 1, .nr_groups = 1};
	struct counter_reading first, last;
	struct open_group o;
	if (ret >= 0)
		return ret;
	ret = 0;
	p.group[0].nr = 1;
	if (pmu_event_parse("msr/tsc/", &ev, NULL) ||
	    counter_open_group(&p, 0, gettid(), -1, COUNTER_NOW, &o, NULL))
		return ret;
	int rc = counter_read_group(&o, &first);
	do
		rc = rc > 0 ? counter_read_group(&o, &last) : rc;
	while (rc > 0 && last.running_ns - first.running_ns < TSC_NS);
	if (rc > 0)
		ret = (double)(last.value[0] - first.value[0]) /
		      (double)(last.running_ns - first.running_ns);
	counter_close_group(&o);
	return ret;
}

static void read_past(pid_t tid, struct counter_past *p)
{
	char buf[4096];
	*p = (struct counter_past){0};
	if (read_task_file(tid, "stat", buf, sizeof(buf))) {
		p->minor_faults = stat_field(buf, 10);
		p->major_faults = stat_field(buf, 12);
	}
	if (read_task_file(tid, "schedstat", buf, sizeof(buf)))
		p->run_ns = strtoull(buf, NULL, 10);
	if (read_task_file(tid, "status", buf, sizeof(buf)))
		p->switches =
			status_number(buf, "\nvoluntary_ctxt_switches:") +
			status_number(buf, "\nnonvoluntary_ctxt_switches:");
}

static bool counts_all(const struct pmu_event *ev)
{
	return !ev->attr.exclude_kernel && !ev->attr.exclude_user;
}

bool counter_is_kept(const struct pmu_event *ev)
{
	switch (ev->role) {
	case PMU_TSC:
		return counts_all(ev) && tsc_per_ns() > 0;
	case PMU_TASK_CLOCK: /* clocks know no levels */
		return ev->attr.type == PERF_TYPE_SOFTWARE;
	case PMU_FAULTS:
	case PMU_MINOR_FAULTS:
	case PMU_MAJOR_FAULTS:
	case PMU_SWITCHES:
	case PMU_MIGRATIONS:
		return ev->attr.type == PERF_TYPE_SOFTWARE && counts_all(ev);
	default:
		return false;
	}
}

uint64_t counter_kept(const struct pmu_event *ev, const struct counter_past *p)
{
	if (!counter_is_kept(ev))
		return 0;
	switch (ev->role) {
	case PMU_TSC:
		return (uint64_t)((double)p->run_ns * tsc_per_ns());
	case PMU_TASK_CLOCK:
		return p->run_ns;
	case PMU_FAULTS:
		return p->minor_faults + p->major_faults;
	case PMU_MINOR_FAULTS:
		return p->minor_faults;
	case PMU_MAJOR_FAULTS:
		return p->major_faults;
	case PMU_SWITCHES:
		return p->switches;
	default:
		return p->migrations;
	}
}

bool counter_has_history(const struct pmu_event *ev)
{
	if (ev->is_with_creator)
		return false;
	/* It has run no instruction of its own, and made no call. */
	if (ev->attr.exclude_kernel || ev->is_call_entry || ev->is_hit)
		return true;
	if (counter_is_kept(ev))
		return true;
	/* Those of instructions. */
	return ev->attr.type == PERF_TYPE_SOFTWARE &&
	       (ev->attr.config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
		ev->attr.config == PERF_COUNT_SW_EMULATION_FAULTS);
}

/* Taken as if the counters had begun that much below zero. */
static void add_to(const struct counter_plan *plan, struct open_group *o,
		   const struct counter_past *past)
{
	const struct counter_group *g = &plan->group[o->group];
	if (g->inherits) /* with its creator, all of a group */
		return;
	for (size_t i = 0; i < g->nr; i++)
		o->last.value[i] -=
			counter_kept(&plan->event[g->first + i], past);
}

void counter_add_history(struct counter_thread *t)
{
	const struct counter_tally *tally = t->plan->tally;
	struct counter_past past;
	if (!tally || !tally->past(tally->ctx, t->tid, &past))
		read_past(t->tid, &past);
	for (size_t i = 0; i < t->nr; i++)
		add_to(t->plan, &t->open[i], &past);
}

uint64_t counter_cpu_ns(pid_t tid)
{
	char buf[128];
	return read_task_file(tid, "schedstat", buf, sizeof(buf))
		       ? strtoull(buf, NULL, 10)
		       : 0;
}
