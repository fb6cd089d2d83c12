/*
 * Counters on a child that does exactly what it is told: plans and groups, when
 * counting begins, differences, ends.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/counter.h"
#include "pmu/open.h"
#include "t/unit/orders.h"
#include "t/unit/tap.h"

/* ---------------------------------------------------------------- tests --- */

static void test_plan(void)
{
	struct counter_plan p;
	if (!plan_of("page-faults,task-clock,minor-faults,page-faults:u", &p))
		return;
	check_int(p.nr_groups, 1);
	check_int(p.group[0].nr, 4);
	check_str(p.event[3].name, "page-faults:u");
	check_str(p.missing, "");
	counter_plan_deinit(&p);

	/* Of the kernel's level alone nobody tells what was before. */
	if (!plan_of("page-faults,page-faults:k,minor-faults,faults:k", &p))
		return;
	check_int(p.nr_groups, 2);
	check_int(p.group[0].nr, 2);
	check_str(p.event[1].name, "minor-faults");
	check_int(p.group[1].nr, 2);
	check_str(p.event[3].name, "faults:k");
	check_str(p.missing, "");
	counter_plan_deinit(&p);

	/* More than fit into a group; pinned ones by themselves. */
	if (!plan_of("faults,faults:u,faults:uk,cs,cs:u,cs:uk,minor-faults,"
		     "minor-faults:u,minor-faults:uk,major-faults,"
		     "major-faults:u,major-faults:uk,migrations,migrations:u,"
		     "migrations:uk,alignment-faults,task-clock,cpu-clock:D",
		     &p))
		return;
	check_int(p.nr_groups, 3);
	check_int(p.group[0].nr, COUNTER_GROUP_MAX);
	check_int(p.group[1].nr, 1);
	check_str(p.event[p.group[2].first].name, "cpu-clock:D");
	check_int(p.nr_events, 18);
	counter_plan_deinit(&p);
}

/* Counters that this process has open. */
static unsigned nr_open(void)
{
	unsigned nr = 0;
	char path[40], to[40];
	for (int fd = 0; fd < 200; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		nr += !strcmp(to, "anon_inode:[perf_event]");
	}
	return nr;
}

/* Of each tracepoint one, however often it is counted, and of nothing else. */
static void test_hold(void)
{
	struct counter_plan p, q;
	struct pmu_event ev;
	if (pmu_event_parse("raw_syscalls:sys_enter", &ev, NULL) ||
	    pmu_try(&ev, NULL)) {
		check_msg(geteuid() != 0, "tracepoints may be counted");
		return;
	}
	check_int(nr_open(), 0);
	if (!plan_of("page-faults,raw_syscalls:sys_enter,syscalls-io,"
		     "raw_syscalls:sys_exit,syscalls-file",
		     &p))
		return;
	check_int(p.nr_events, 5);
	check_int(nr_open(), 2);
	check_int(counter_plan_make(&ev, 1, false, NULL, &q, NULL), 0);
	check_int(nr_open(), 3);
	counter_plan_deinit(&p);
	check_int(nr_open(), 1);
	counter_plan_deinit(&q);
	check_int(nr_open(), 0);
	ev.attr.config = UINT64_MAX;
	check(counter_plan_make(&ev, 1, false, NULL, &p, NULL) < 0);
	check_int(nr_open(), 0);
}

/* An event that no machine has, beside one that all have. */
static bool takes(const struct pmu_event *ev, const char *filter)
{
	int fd = pmu_open(&ev->attr, 0, -1, -1);
	int rc = fd < 0 || !filter
			 ? -1
			 : ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter);
	close(fd);
	return !rc;
}

/* Another kernel may count all of them, this one does not. */
static void test_not_ours(void)
{
	struct pmu_event ev;
	if (pmu_event_parse("kmem:kmalloc", &ev, NULL) || pmu_try(&ev, NULL))
		return;
	check(ev.not_ours != NULL);
	/* Names in filters came with Linux 6.4. */
	check(takes(&ev, ev.not_ours) ||
	      !takes(&ev, "call_site.function != kfree"));
	int fd = pmu_open(&ev.attr, 0, -1, -1);
	check_int(pmu_set_filter(fd, &ev), 0);
	close(fd);
	check_int(pmu_event_parse("kmem:kfree", &ev, NULL), 0);
	check(!ev.not_ours);
}

static void test_missing(void)
{
	struct pmu_event ev[3];
	struct counter_plan p;
	struct smco_err err = {0};
	pmu_event_parse("r1", &ev[0], NULL);
	ev[0].attr.type = 1u << 30;
	pmu_event_parse("page-faults", &ev[1], NULL);
	ev[2] = ev[0];
	snprintf(ev[2].name, sizeof(ev[2].name), "r2");
	check_int(counter_plan_make(ev, 3, false, NULL, &p, &err),
		  SMCO_UNSUPPORTED);
	check(strstr(err.msg, "'r1' cannot be counted") == err.msg);
	check(strstr(err.msg, "there are task-clock, ") != NULL);
	check_int(counter_plan_make(ev, 3, true, NULL, &p, NULL), 0);
	check_int(p.nr_events, 1);
	check_str(p.missing,
		  "r1, r2: cannot be counted by this CPU and kernel");
	counter_plan_deinit(&p);
	check_int(counter_plan_make(ev, 1, true, NULL, &p, &err),
		  SMCO_UNSUPPORTED);
	check_int(counter_plan_default(NULL, &p, &err), 0);
	check(p.nr_events >= 5);
	counter_plan_deinit(&p);
}

static void test_now(const struct counter_plan *p)
{
	struct child c = make_child();
	struct counter_thread *t = NULL;
	struct counter_sum sum;
	tell(&c, 100);
	check_int(counter_thread_open(p, c.pid, COUNTER_NOW, &t, NULL), 0);
	check(counter_thread_has(t, 0) && !counter_thread_has(t, 1));
	tell(&c, 200);
	check(counter_thread_take(t, 0, &sum, NULL));
	/* Sanitizers have pages of their own. */
	check_range((double)sum.value[0], 200, 260);
	check(sum.enabled_ns > 0 && sum.running_ns == sum.enabled_ns);
	/* Differences: what came since. */
	tell(&c, 300);
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[0], 300, 380);
	tell(&c, 'q');
	end_child(&c);
	/* Ended: the rest, then nothing. */
	counter_thread_take(t, 0, &sum, NULL);
	check_range((double)sum.value[0], 0, 80);
	check(!counter_thread_take(t, 0, &sum, NULL));
	counter_thread_close(t);
}

/* What happens in a pause is not counted, but known to be missing. */
static void test_pause(const struct counter_plan *p)
{
	struct child c = make_child();
	struct counter_thread *t = NULL;
	struct counter_sum sum;
	check_int(counter_thread_open(p, c.pid, COUNTER_NOW, &t, NULL), 0);
	tell(&c, 100);
	counter_thread_set_level(t, COUNTER_NONE);
	counter_thread_set_level(t, COUNTER_NONE);
	tell(&c, 5000);
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[0], 100, 200);
	check(sum.enabled_ns > sum.running_ns);
	uint64_t missed_ns = sum.enabled_ns - sum.running_ns;
	tell(&c, 5000);
	counter_thread_set_level(t, COUNTER_ALL);
	counter_thread_set_level(t, COUNTER_ALL);
	tell(&c, 300);
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[0], 300, 380);
	/* As much again as in the first half of the pause, more or less. */
	check_range((double)(sum.enabled_ns - sum.running_ns),
		    (double)missed_ns / 20, (double)missed_ns * 20);
	tell(&c, 10);
	check(counter_thread_take(t, 0, &sum, NULL));
	check_int(sum.enabled_ns, sum.running_ns);
	tell(&c, 'q');
	end_child(&c);
	counter_thread_close(t);
}

/* Does it sleep? Who has answered may still want a CPU, to go to sleep. */
static bool is_asleep(pid_t pid)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	const char *end =
		f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return end && end[1] == ' ' && end[2] == 'S';
}

/* Read until there is nothing more to read for a while; false if there always
 * was. */
static bool settle(struct counter_thread *t, pid_t pid)
{
	struct counter_sum sum;
	int nr_quiet = 0;
	for (int i = 0; i < 5000 && nr_quiet < 5; i++) {
		bool quiet = is_asleep(pid) && !counter_thread_has_run(t);
		nr_quiet = quiet ? nr_quiet + 1 : 0;
		counter_thread_take(t, 0, &sum, NULL);
		usleep(1000);
	}
	return nr_quiet == 5;
}

/* Who sleeps need not be read; who runs must be, with or without a switch. */
static void test_has_run(const struct counter_plan *p)
{
	struct child c = make_child();
	struct counter_thread *t = NULL, *self = NULL;
	struct counter_sum sum;
	check_int(counter_thread_open(p, c.pid, COUNTER_NOW, &t, NULL), 0);
	check(counter_thread_has_run(t));
	tell(&c, 100);
	check(settle(t, c.pid));
	for (int i = 0; i < 20; i++) {
		check(!counter_thread_has_run(t));
		check(!counter_thread_take(t, 0, &sum, NULL));
	}
	tell(&c, 200);
	check(counter_thread_has_run(t));
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[0], 200, 260);
	check(settle(t, c.pid));
	counter_thread_set_level(t, COUNTER_NONE);
	tell(&c, 5000);
	counter_thread_set_level(t, COUNTER_ALL);
	check(counter_thread_has_run(t));
	check(counter_thread_take(t, 0, &sum, NULL));
	check(sum.enabled_ns > sum.running_ns);
	tell(&c, 'q');
	end_child(&c);
	counter_thread_close(t);
	check_int(counter_thread_open(p, gettid(), COUNTER_NOW, &self, NULL),
		  0);
	unsigned nr = 0;
	for (int i = 0; i < 1000; i++) {
		nr += counter_thread_has_run(self);
		counter_thread_take(self, 0, &sum, NULL);
	}
	check_int(nr, 1000);
	counter_thread_close(self);
}

static void do_calls(size_t nr)
{
	while (nr--)
		syscall(SYS_getppid);
}

/* What is counted at each level of calls, of those of one class, and of what is
 * no call. */
static void test_levels(const struct counter_plan *p)
{
	static const struct {
		enum counter_level level;
		bool calls, process, faults;
	} c[] = {
		{COUNTER_ALL, true, true, true},
		{COUNTER_CHEAP, true, false, true},
		{COUNTER_CLOCKS, false, false, true},
		{COUNTER_NONE, false, false, false},
		{COUNTER_CLOCKS, false, false, true},
		{COUNTER_ALL, true, true, true},
	};
	struct counter_thread *t = NULL;
	struct counter_sum calls, process, faults;
	check_int(counter_thread_open(p, gettid(), COUNTER_NOW, &t, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		counter_thread_set_level(t, c[i].level);
		for (size_t g = 0; g < 3; g++)
			counter_thread_take(t, g, &calls, NULL);
		do_calls(100);
		counter_thread_take(t, 0, &calls, NULL);
		counter_thread_take(t, 1, &process, NULL);
		counter_thread_take(t, 2, &faults, NULL);
		check(c[i].calls ? calls.value[0] >= 100 : !calls.value[0]);
		check_int(process.value[0], c[i].process ? 100 : 0);
		check_int(calls.running_ns != 0, c[i].calls);
		check_int(process.running_ns != 0, c[i].process);
		check_int(faults.running_ns != 0, c[i].faults);
		check(faults.enabled_ns == faults.running_ns || !c[i].faults);
	}
	counter_thread_close(t);
}

/* The same where a tracepoint leads the group, of which the kernel does not say
 * when it begins. */
static void test_has_run_traced(void)
{
	struct counter_plan p;
	struct pmu_event tracepoint;
	struct counter_thread *t = NULL;
	struct counter_sum sum;
	if (pmu_event_parse("raw_syscalls:sys_enter", &tracepoint, NULL) ||
	    pmu_try(&tracepoint, NULL)) {
		tap_skip("no tracepoints here");
		return;
	}
	/* The kernel tells its past. */
	if (!plan_of("raw_syscalls:sys_exit,page-faults", &p))
		return;
	check_int(p.nr_groups, 2);
	counter_plan_deinit(&p);
	/* And of its calls there is none. They go by what a thread does, and
	 * have times of their own, unless somebody wants them to share. */
	if (!plan_of("raw_syscalls:sys_enter,syscalls-process,page-faults", &p))
		return;
	check_int(p.nr_groups, 3);
	check(p.group[0].goes_by_work && p.group[1].goes_by_work);
	check(!p.group[2].goes_by_work);
	check(p.group[0].is_traced && p.group[1].is_traced);
	check(!p.group[2].is_traced);
	check(!p.group[0].has_filters && p.group[1].has_filters);
	test_levels(&p);
	counter_plan_deinit(&p);
	if (!plan_of("sched:sched_switch,raw_syscalls:sys_exit", &p))
		return;
	check_int(p.nr_groups, 2);
	check(!p.group[0].goes_by_work && p.group[1].goes_by_work);
	counter_plan_deinit(&p);
	if (!plan_of("{raw_syscalls:sys_enter,syscalls-io,page-faults}", &p))
		return;
	check(!p.group[0].goes_by_work);
	check_int(p.nr_groups, 1);
	check(!counter_plan_inherit(&p, true));
	struct child c = make_child();
	check_int(counter_thread_open(&p, c.pid, COUNTER_NOW, &t, NULL), 0);
	tell(&c, 100);
	check(settle(t, c.pid));
	counter_thread_take(t, 0, &sum, NULL);
	tell(&c, 200);
	check(counter_thread_has_run(t));
	check_str(p.event[2].name, "page-faults");
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[2], 200, 260);
	counter_thread_close(t);
	counter_plan_deinit(&p);
	/* Nobody tells: it is read each time. */
	if (!plan_of("raw_syscalls:sys_enter", &p))
		return;
	check_int(counter_thread_open(&p, c.pid, COUNTER_NOW, &t, NULL), 0);
	tell(&c, 100);
	for (int i = 0; i < 5; i++) {
		check(counter_thread_has_run(t));
		counter_thread_take(t, 0, &sum, NULL);
	}
	tell(&c, 'q');
	end_child(&c);
	counter_thread_close(t);
	counter_plan_deinit(&p);
}

/* What the kernel says by itself is what there was when the thread came to its
 * CPU last: what is read, but for the switches since. */
static void test_told(void)
{
	struct counter_plan p;
	struct counter_thread *t = NULL;
	uint64_t told = 0, read = 0;
	struct counter_sum sum;
	if (!plan_of("context-switches,page-faults", &p))
		return;
	struct child c = make_child();
	check_int(counter_thread_open(&p, c.pid, COUNTER_NOW, &t, NULL), 0);
	for (int i = 0; i < 20; i++) {
		tell(&c, 10);
		for (int k = 0; k < 5000 && (!k || told != read - 1); k++) {
			usleep(1000);
			counter_thread_take(t, 0, &sum, NULL);
			check(counter_thread_told(t, 0, 0, &told));
			read += sum.value[0];
		}
		check_int(told, read - 1);
	}
	check(told >= 19);
	check(!counter_thread_told(t, 0, 1, &told));
	check(!counter_thread_told(t, 1, 0, &told));
	tell(&c, 'q');
	end_child(&c);
	counter_thread_close(t);
	counter_plan_deinit(&p);
}

static void test_exec(const struct counter_plan *p)
{
	struct child c = make_child();
	struct counter_thread *t = NULL;
	struct counter_sum sum = {0};
	check_int(counter_thread_open(p, c.pid, COUNTER_EXEC, &t, NULL), 0);
	tell(&c, 5000);
	check(!counter_thread_take(t, 0, &sum, NULL));
	check_int(sum.value[0], 0);
	tell(&c, 'x');
	end_child(&c);
	check(counter_thread_take(t, 0, &sum, NULL));
	check_range((double)sum.value[0], 10, 2000);
	counter_thread_close(t);
}

/* Counted on a CPU, not for a thread. */
static void test_machine_wide(void)
{
	struct pmu_event ev;
	struct counter_plan p;
	struct counter_thread *t = NULL;
	struct counter_sum sum;
	struct smco_err err = {0};
	pmu_event_parse("cpu-clock", &ev, NULL);
	ev.is_machine_wide = true;
	ev.nr_cpus = 1;
	if (counter_plan_make(&ev, 1, false, NULL, &p, &err)) {
		tap_skip(err.msg);
		return;
	}
	check(p.group[0].is_machine_wide);
	check_int(counter_thread_open(&p, 0, COUNTER_NOW, &t, NULL), 0);
	check(counter_thread_has(t, 0));
	check(counter_thread_take(t, 0, &sum, NULL));
	check(sum.value[0] > 0);
	counter_thread_close(t);
	/* A thread has none of it. */
	check_int(counter_thread_open(&p, getpid(), COUNTER_NOW, &t, NULL), 0);
	check(!counter_thread_has(t, 0));
	counter_thread_close(t);
	counter_plan_deinit(&p);
}

static void test_errors(const struct counter_plan *p)
{
	struct counter_thread *t = NULL;
	struct smco_err err = {0};
	struct child c = make_child();
	tell(&c, 'q');
	end_child(&c);
	check_int(counter_thread_open(p, c.pid, COUNTER_NOW, &t, &err),
		  SMCO_GONE);
	check(!t);
	counter_thread_close(NULL);
	struct rlimit old, low = {0};
	char most[60];
	int unused = dup(0); /* whoever started us may have left us some */
	close(unused);
	snprintf(most, sizeof(most), "no file descriptor is left (at most %d",
		 unused + 1);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = (rlim_t)unused + 1;
	setrlimit(RLIMIT_NOFILE, &low);
	check_int(counter_thread_open(p, getpid(), COUNTER_NOW, &t, &err),
		  SMCO_SYS);
	setrlimit(RLIMIT_NOFILE, &old);
	check(strstr(err.msg, most) != NULL);
	/* All or nothing: what was open is closed again. */
	check_int(dup(0), unused);
	close(unused);
}

/* Nothing can be had for nothing, nor for a whole millisecond. */
static void test_switch_cost(void)
{
	struct counter_plan p;
	if (!plan_of("page-faults,context-switches,task-clock", &p))
		return;
	check_range((double)counter_switch_cost_ns(&p), 50, 1e6);
	counter_plan_deinit(&p);
}

static void test_scale(void)
{
	check_int(counter_scale(1000, 50, 50), 1000);
	check_int(counter_scale(1000, 100, 25), 4000);
	check_int(counter_scale(1000, 100, 0), 1000);
	check_int(counter_scale(1000, 50, 60), 1000);
	check(counter_scale(UINT64_MAX, UINT64_MAX, 1) == UINT64_MAX);
}

/* An event's own cost, not a timer's; none where nothing ends intervals. The
 * plan is as it was afterwards. */
static void test_every_cost(void)
{
	static const char *const ends[] = {"page-faults", "context-switches"};
	struct pmu_event ev[2];
	struct counter_plan p;
	check_int(pmu_event_parse("task-clock", &ev[0], NULL), 0);
	check_int(pmu_event_parse("page-faults:u", &ev[1], NULL), 0);
	check_int(counter_plan_make(ev, 2, false, NULL, &p, NULL), 0);
	check_int(counter_every_cost_ns(&p), 0);
	counter_plan_deinit(&p);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct counter_every every = {.nr = 77};
		check_int(pmu_event_parse(ends[i], &every.ev, NULL), 0);
		check_int(counter_plan_make(ev, 2, false, &every, &p, NULL), 0);
		check_range((double)counter_every_cost_ns(&p), 1, 1e9);
		check_int(p.nr_events, 3);
		check_str(p.event[2].name, ends[i]);
		check_int(p.event[2].attr.sample_period, 77);
		counter_plan_deinit(&p);
	}
}

int main(void)
{
	struct counter_plan p;
	test_plan();
	test_missing();
	test_hold();
	test_not_ours();
	if (plan_of("page-faults,context-switches", &p)) {
		test_now(&p);
		test_pause(&p);
		test_has_run(&p);
		test_has_run_traced();
		test_told();
		test_exec(&p);
		test_errors(&p);
		counter_plan_deinit(&p);
	}
	test_machine_wide();
	test_switch_cost();
	test_every_cost();
	test_scale();
	return tap_done();
}
