/*
 * Moves of a thread to other CPUs that come of its stops are not counted with
 * its own: here it is told to go elsewhere while it stands, and goes by itself.
 * Nor is one from before it was counted.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "t/unit/counted.h"

#define NR_STOPS 100
#define NR_OWN	 20

static void go_to(pid_t pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/* Is stopped on the second of @cpu, and on the first one. Stands NR_STOPS
 * times, and goes to the other one and back NR_OWN times; both to begin with
 * and at the end of that it is on the first one. */
static pid_t start(const int cpu[2])
{
	pid_t pid = fork();
	if (pid)
		return pid;
	go_to(0, cpu[1]);
	raise(SIGSTOP);
	go_to(0, cpu[0]);
	raise(SIGSTOP);
	for (int i = 0; i < NR_STOPS; i++)
		raise(SIGUSR1);
	for (int i = 1; i <= NR_OWN; i++)
		go_to(0, cpu[i % 2]);
	raise(SIGUSR1);
	_exit(0);
}

static void wait_stopped(pid_t pid)
{
	int status;
	check_int(waitpid(pid, &status, WUNTRACED), pid);
	check(WIFSTOPPED(status));
}

/* Wakes up @pid, which is stopped and has to go to our CPU, while another one
 * counts moves; that one has ended when @pid gets there. */
static bool move_before(pid_t pid, int cpu)
{
	const struct sched_param first = {.sched_priority = 1}, none = {0};
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_MIGRATIONS};
	cpu_set_t may;
	wait_stopped(pid);
	sched_getaffinity(0, sizeof(may), &may);
	go_to(0, cpu);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	bool is_first = !sched_setscheduler(0, SCHED_FIFO, &first);
	go_to(pid, cpu);
	kill(pid, SIGCONT);
	close(fd);
	sched_setscheduler(0, SCHED_OTHER, &none);
	sched_setaffinity(0, sizeof(may), &may);
	wait_stopped(pid);
	return fd >= 0 && is_first;
}

static void count(struct counters *c, pid_t pid, const int cpu[2])
{
	if (!move_before(pid, cpu[0]))
		printf("# no move of before\n");
	counted_seize(pid);
	counted_begin(c, pid);
	for (int i = 1; i <= NR_STOPS; i++) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		if (!counted_stop(pid, SIGUSR1))
			break;
		go_to(pid, cpu[i % 2]);
	}
	ptrace(PTRACE_CONT, pid, 0, 0);
	counted_end(c, pid);
	counted_let_end(pid);
}

static size_t two_cpus(int ret[2])
{
	cpu_set_t may;
	size_t nr = 0;
	sched_getaffinity(0, sizeof(may), &may);
	for (int i = 0; i < CPU_SETSIZE && nr < 2; i++)
		if (CPU_ISSET(i, &may))
			ret[nr++] = i;
	return nr;
}

int main(void)
{
	int cpu[2];
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = counted_open("cpu-migrations", l);
	if (two_cpus(cpu) < 2 || !counters_is_sieved(c, 0)) {
		tap_skip("one CPU, or the kernel lets us not tell");
	} else {
		count(c, start(cpu), cpu);
		check_int(counted_told, NR_OWN);
	}
	counted_close(c);
	ledger_destroy(l);
	return tap_done();
}
