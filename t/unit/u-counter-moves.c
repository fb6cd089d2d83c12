/*
 * Moves of a thread to other CPUs that come of its stops are not counted with
 * its own: here it is told to go elsewhere while it stands, and goes by itself.
 */
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/monitor/counters-private.h"
#include "t/unit/tap.h"

#define NR_STOPS 100
#define NR_OWN	 20

static uint64_t nr_stops, nr_told;

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

static void go_to(pid_t pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/* Stands NR_STOPS times, and goes to the other of @cpu and back NR_OWN times;
 * both to begin with and at the end it is on the first one. */
static pid_t start(const int cpu[2])
{
	pid_t pid = fork();
	if (pid)
		return pid;
	go_to(0, cpu[0]);
	raise(SIGSTOP);
	for (int i = 0; i < NR_STOPS; i++)
		raise(SIGUSR1);
	for (int i = 1; i <= NR_OWN; i++)
		go_to(0, cpu[i % 2]);
	raise(SIGUSR1);
	_exit(0);
}

/* It stops for a signal, which it does not get; false: it has ended. */
static bool next_stop(pid_t pid, int signal)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	check_int(WSTOPSIG(status), signal);
	nr_stops++;
	return true;
}

static void count(struct counters *c, pid_t pid, const int cpu[2])
{
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	check(next_stop(pid, SIGSTOP));
	counters_add(c, pid, pid, &nr_stops, COUNTER_NOW);
	kill(pid, SIGCONT);
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(next_stop(pid, SIGTRAP)); /* it goes on */
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(next_stop(pid, SIGCONT));
	for (int i = 1; i <= NR_STOPS; i++) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		if (!next_stop(pid, SIGUSR1))
			break;
		go_to(pid, cpu[i % 2]);
	}
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(next_stop(pid, SIGUSR1));
	counters_gone(c, pid, smco_now_ns());
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(!next_stop(pid, 0));
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
	struct counters *c;
	struct ledger *l = ledger_create(INT64_MAX);
	const struct counters_params p = {
		.events = "cpu-migrations",
		.interval_ns = 10 * NSEC_PER_MSEC,
		.reads_all = true,
		.nr_stops = stops_of,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	check_int(counters_create(&p, l, &c, NULL), 0);
	if (two_cpus(cpu) < 2 || !counters_is_sieved(c, 0)) {
		tap_skip("one CPU, or the kernel lets us not tell");
	} else {
		count(c, start(cpu), cpu);
		check_int(nr_told, NR_OWN);
	}
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	return tap_done();
}
