/*
 * Who has taken the program's CPU goes on on another one, but not again and
 * again, and may use all of them afterwards as before.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/tracee/aside.h"
#include "supervisor/tracee/tracee.h"
#include "t/unit/tap.h"

#define TRIES	 20 /* others may move us meanwhile */
#define NR_LOADS 6
#define NAP_NS	 (20 * NSEC_PER_MSEC)

/* Of a tracer of its own: one that has stepped aside does not do so again at
 * once.
 */
static bool goes_once(const cpu_set_t *all)
{
	struct tracer *tr;
	cpu_set_t now;
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return false;
	int was = sched_getcpu();
	tracer_step_aside(tr, 1);
	int is = sched_getcpu();
	tracer_step_aside(tr, 1);
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

#define TICK_NS	  (20 * NSEC_PER_MSEC)
#define NR_TICKS  500 /* ten seconds */
#define AT_TICK	  (300 * NSEC_PER_USEC)
#define AT_WAKING (90 * NSEC_PER_USEC) /* of it, before the step */
#define AT_FIRST  (10 * NSEC_PER_USEC) /* a short tick */

/*
 * Ticks on CPUs 0 and 1, in each of which the program waits for @waits[CPU];
 * the figure of a tick is told in the next one. Returns how often we went, and
 * in how many ticks we were on CPU 1.
 */
static int play(const uint64_t waits[2], int *nr_on_1)
{
	struct aside a = {0};
	uint64_t now_ns = NSEC_PER_SEC, told = waits[1] ? AT_FIRST : 0;
	int cpu = 1, nr = 0;
	*nr_on_1 = 0;
	for (int i = 0; i < NR_TICKS; i++) {
		bool goes = aside_is_better(&a, now_ns, told);
		uint64_t was = waits[cpu];
		if (goes) {
			aside_went(&a, now_ns);
			cpu = 1 - cpu;
			nr++;
		}
		/* Where it stood at its beginning, and where it went. */
		told = goes && was ? AT_WAKING : 0;
		told += waits[cpu];
		*nr_on_1 += cpu == 1;
		now_ns += TICK_NS;
	}
	return nr;
}

static void test_choice(void)
{
	int nr_on_1;
	/* Away from the program, and not back to it again. */
	check_int(play((const uint64_t[]){0, AT_TICK}, &nr_on_1), 1);
	check_int(nr_on_1, 0);
	/* Something runs there, too, but less. */
	check(play((const uint64_t[]){AT_TICK / 20, AT_TICK}, &nr_on_1) <= 5);
	check(nr_on_1 <= 6);
	/* It is everywhere: seldom, and not at every tick. */
	int nr = play((const uint64_t[]){AT_TICK, AT_TICK}, &nr_on_1);
	check(nr >= 2 && nr <= 12);
	/* Nobody waits. */
	check_int(play((const uint64_t[]){0, 0}, &nr_on_1), 0);
}

/* How much the program waits for us after it has come to our CPU, where it had
 * not waited for @quiet_ns since we went there, for what it waited elsewhere.
 */
static uint64_t came_here(uint64_t quiet_ns)
{
	struct aside a = {0};
	uint64_t now_ns = NSEC_PER_SEC, sum_ns = 0;
	check(aside_is_better(&a, now_ns, 2 * NSEC_PER_MSEC));
	aside_went(&a, now_ns);
	for (uint64_t i = 0; i <= quiet_ns; i += NSEC_PER_MSEC)
		check(!aside_is_better(&a, now_ns += NSEC_PER_MSEC, 0));
	for (int i = 0; i < 1000; i++) {
		sum_ns += AT_WAKING;
		if (aside_is_better(&a, now_ns += 2 * NSEC_PER_MSEC, AT_WAKING))
			break;
	}
	return sum_ns;
}

/* That it waited for long elsewhere, once, does not hold us for ever. */
static void test_moved(void)
{
	check_range((double)came_here(400 * NSEC_PER_MSEC), 0.2e6, 0.4e6);
	check_range((double)came_here(20 * NSEC_PER_MSEC), 3.9e6, 7e6);
}

/* A wait now and then is none of that. */
static void test_chance(void)
{
	struct aside a = {0};
	uint64_t now_ns = NSEC_PER_SEC;
	check(aside_is_better(&a, now_ns, AT_TICK));
	aside_went(&a, now_ns);
	for (int i = 0; i < 5000; i++)
		if (aside_is_better(&a, now_ns += 2 * NSEC_PER_MSEC,
				    i % 100 ? 0 : AT_WAKING))
			check_msg(false, "goes in turn %d", i);
}

int main(void)
{
	struct smco_err err = {0};
	struct tracer *tr;
	cpu_set_t all, now, one;
	test_choice();
	test_moved();
	test_chance();
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
		tracer_step_aside(tr, 1);
		sched_getaffinity(0, sizeof(now), &now);
		check(CPU_EQUAL(&now, &one));
		tracer_destroy(tr);
	}
	return tap_done();
}
