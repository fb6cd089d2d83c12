/*
 * Who has taken the program's CPU goes on on another one, but not again and
 * again, and may use all of them afterwards as before.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/tracee/tracee.h"
#include "t/unit/tap.h"

#define TRIES	 20 /* others may move us meanwhile */
#define NR_LOADS 6
#define NAP_NS	 (20 * NSEC_PER_MSEC)

/* Of a tracer of its own: one that has stepped aside waits longer and longer.
 */
static bool goes_once(const cpu_set_t *all)
{
	struct tracer *tr;
	cpu_set_t now;
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return false;
	int was = sched_getcpu();
	tracer_step_aside(tr);
	int is = sched_getcpu();
	tracer_step_aside(tr);
	bool once = is != was && sched_getcpu() == is;
	sched_getaffinity(0, sizeof(now), &now);
	check(CPU_EQUAL(&now, all));
	tracer_destroy(tr);
	return once;
}

static bool goes_once_of(int tries, const cpu_set_t *all)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	bool once = false;
	for (int i = 0; i < tries && !once; i++) {
		once = goes_once(all);
		nanosleep(&nap, NULL);
	}
	return once;
}

/* Somebody who computes on @cpu. */
static pid_t start_load(int cpu)
{
	cpu_set_t set;
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;;)
		;
}

/* Also where it has to wait for its turn for longer than it then stays. */
static void test_busy(const cpu_set_t *all)
{
	pid_t pids[NR_LOADS];
	int cpu = 0;
	while (!CPU_ISSET((unsigned)cpu, all))
		cpu++;
	for (int i = 0; i < NR_LOADS; i++)
		pids[i] = start_load(cpu);
	check(goes_once_of(TRIES, all));
	for (int i = 0; i < NR_LOADS; i++) {
		kill(pids[i], SIGKILL);
		check_int(waitpid(pids[i], NULL, 0), pids[i]);
	}
}

int main(void)
{
	struct smco_err err = {0};
	struct tracer *tr;
	cpu_set_t all, now, one;
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2) {
		tap_skip("there is no other CPU");
		return tap_done();
	}
	check(goes_once_of(TRIES, &all));
	test_busy(&all);

	/* With one that it may use, there is no aside. */
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	if (check_int(sched_setaffinity(0, sizeof(one), &one), 0) &&
	    check_int(tracer_create(&tr, NULL, &err), 0)) {
		tracer_step_aside(tr);
		sched_getaffinity(0, sizeof(now), &now);
		check(CPU_EQUAL(&now, &one));
		tracer_destroy(tr);
	}
	return tap_done();
}
