/*
 * That we take a thread's CPU is no context switch of its own. Here it computes
 * where we are, who wake up each millisecond; a counter of its switches to us,
 * of the kernel's, says how many those are, whoever else takes the CPU.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/open.h"
#include "supervisor/monitor/counters-private.h"
#include "t/unit/tap.h"

#define NR_WAKES 200

static uint64_t nr_stops, nr_told;
static volatile int *is_over; /* shared */

static uint64_t stops_of(const void *task)
{
	(void)task;
	return nr_stops;
}

static void emit(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event == EV_COUNTS)
		nr_told += ((const struct ev_counts *)r->payload)->value[0];
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static bool next_stop(pid_t pid, int signal)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	check_int(WSTOPSIG(status), signal);
	nr_stops++;
	return true;
}

/* @pid's switches; with @filter those that pass it. */
static int open_switches(pid_t pid, const char *filter)
{
	struct pmu_event ev;
	if (pmu_event_parse("sched:sched_switch", &ev, NULL))
		return -1;
	int fd = pmu_open(&ev.attr, pid, -1, -1);
	if (fd >= 0 && filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) {
		close(fd);
		return -1;
	}
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t n[8] = {0};
	return read(fd, n, sizeof(n)) > 0 ? n[0] : 0;
}

static void start(pid_t *ret)
{
	*ret = fork();
	if (*ret)
		return;
	raise(SIGSTOP);
	while (!*is_over)
		;
	raise(SIGUSR1);
	_exit(0);
}

/* Waking up where it computes, on one CPU, before others if we may. */
static void disturb(void)
{
	const struct sched_param first = {.sched_priority = 1};
	const struct sched_param as_before = {0};
	bool is_first = !sched_setscheduler(0, SCHED_FIFO, &first);
	for (int i = 0; i < NR_WAKES; i++)
		usleep(1000);
	if (is_first)
		sched_setscheduler(0, SCHED_OTHER, &as_before);
	*is_over = 1;
}

/* Its switches to us but for those of stops: it has not gone to sleep. */
static void count(struct counters *c, pid_t pid)
{
	char filter[80];
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	check(next_stop(pid, SIGSTOP));
	snprintf(filter, sizeof(filter),
		 "next_pid == %d && (prev_state == 0 || prev_state & 256)",
		 getpid());
	int all = open_switches(pid, NULL);
	int taken = open_switches(pid, filter);
	check(all >= 0 && taken >= 0);
	counters_add(c, pid, pid, &nr_stops, COUNTER_NOW);
	uint64_t before = nr_stops;
	kill(pid, SIGCONT);
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(next_stop(pid, SIGTRAP)); /* it goes on */
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(next_stop(pid, SIGCONT));
	ptrace(PTRACE_CONT, pid, 0, 0);
	disturb();
	check(next_stop(pid, SIGUSR1));
	counters_gone(c, pid, smco_now_ns());
	uint64_t nr_all = count_of(all), nr_taken = count_of(taken);
	printf("# %ju switches, %ju to us, %ju stops\n", (uintmax_t)nr_all,
	       (uintmax_t)nr_taken, (uintmax_t)(nr_stops - before));
	check(nr_taken > 0);
	check_int(nr_told, nr_all - nr_taken - (nr_stops - before));
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(!next_stop(pid, 0));
	close(all);
	close(taken);
}

int main(void)
{
	pid_t pid;
	cpu_set_t here;
	struct counters *c;
	struct ledger *l = ledger_create(INT64_MAX);
	const struct counters_params p = {
		.events = "context-switches",
		.interval_ns = 10 * NSEC_PER_MSEC,
		.reads_all = true,
		.nr_stops = stops_of,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	is_over = mmap(NULL, sizeof(*is_over), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	check_int(counters_create(&p, l, &c, NULL), 0);
	if (!c->sieve) {
		tap_skip("the kernel lets us not tell");
	} else {
		start(&pid);
		count(c, pid);
	}
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	return tap_done();
}
