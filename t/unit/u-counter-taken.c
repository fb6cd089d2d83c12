/*
 * That we take a thread's CPU is no context switch of its own. Here it computes
 * where we are, who wake up each millisecond; a counter of its switches to us,
 * of the kernel's, says how many those are, whoever else takes the CPU.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmu/open.h"
#include "t/unit/counted.h"

#define NR_WAKES 200

static volatile int *is_over; /* shared */

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
	counted_seize(pid);
	snprintf(filter, sizeof(filter),
		 "next_pid == %d && (prev_state == 0 || prev_state & 256)",
		 getpid());
	int all = open_switches(pid, NULL);
	int taken = open_switches(pid, filter);
	check(all >= 0 && taken >= 0);
	uint64_t before = counted_stops;
	counted_begin(c, pid);
	ptrace(PTRACE_CONT, pid, 0, 0);
	disturb();
	counted_end(c, pid);
	uint64_t nr_all = count_of(all), nr_taken = count_of(taken);
	uint64_t nr_stops = counted_stops - before;
	printf("# %ju switches, %ju to us, %ju stops\n", (uintmax_t)nr_all,
	       (uintmax_t)nr_taken, (uintmax_t)nr_stops);
	check(nr_taken > 0);
	check_int(counted_told, nr_all - nr_taken - nr_stops);
	counted_let_end(pid);
	close(all);
	close(taken);
}

int main(void)
{
	pid_t pid;
	cpu_set_t here;
	is_over = mmap(NULL, sizeof(*is_over), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = counted_open("context-switches", l);
	if (!c->sieve) {
		tap_skip("the kernel lets us not tell");
	} else {
		start(&pid);
		count(c, pid);
	}
	counted_close(c);
	ledger_destroy(l);
	return tap_done();
}
