/*
 * What accessed bits cost where the other CPUs have no time to find out: a
 * reset does not seem to be free.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/bits-cost.h"
#include "supervisor/memory-room.h"
#include "supervisor/probe/bits-first.h"
#include "supervisor/probe/bits-loss.h"
#include "t/unit/tap.h"

/* A process that leaves @cpu to nobody; 0 if that is not permitted. */
static pid_t occupy(int cpu)
{
	int to[2];
	char c = 0;
	if (pipe(to))
		return 0;
	pid_t pid = fork();
	if (!pid) {
		struct sched_param sp = {.sched_priority = 10};
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		c = !sched_setaffinity(0, sizeof(set), &set) &&
		    !sched_setscheduler(0, SCHED_FIFO, &sp);
		if (write(to[1], &c, 1) != 1 || !c)
			_exit(1);
		for (;;)
			;
	}
	close(to[1]);
	ssize_t n = read(to[0], &c, 1);
	close(to[0]);
	return n == 1 && c ? pid : 0;
}

/* Pages of ours. */
static unsigned long nr_mapped(void)
{
	unsigned long nr = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (!f || fscanf(f, "%lu", &nr) != 1)
		nr = 0;
	if (f)
		fclose(f);
	return nr;
}

/* What a program was seen to lose counts where it is more. */
static void test_loss(void)
{
	struct bits_cost c = {.touch_ns = 300, .shootdown_ns = 4000};
	bits_cost_add_loss(&c, &(struct bits_loss){9000, 3999});
	check(c.touch_ns == 300 && c.flush_ns == 0); /* by chance */
	bits_cost_add_loss(&c, &(struct bits_loss){200, 15000});
	check_int((long)c.touch_ns, 300);
	check_int((long)c.flush_ns, 15000);
	bits_cost_add_loss(&c, &(struct bits_loss){8000, 16000});
	check_int((long)c.touch_ns, 8000);
	check_int((long)c.flush_ns, 16000);
	check_int((long)c.shootdown_ns, 4000);
}

/* An eighth more than measured; half as much again without that. */
static void test_first_charge(void)
{
	check_int((long)bits_cost_first(400, 300), 450);
	check_int((long)bits_cost_first(400, 390), 450);
	check_int((long)bits_cost_first(0, 300), 450);
	check_int((long)bits_cost_first(0, 0), 0);
}

/* Where memory is scarce it is not measured. */
static void test_room(void)
{
	const struct memory_room none = {UINT64_MAX, UINT64_MAX};
	const struct memory_room much = {2UL << 30, 600UL << 20};
	const struct memory_room little = {2UL << 30, 400UL << 20};
	check(bits_first_has_room(&none, &much));
	check(bits_first_has_room(&much, &much));
	check(!bits_first_has_room(&little, &much));
	check(!bits_first_has_room(&none, &little));
}

/* The memory that it takes is given back. */
static void test_first(void)
{
	unsigned long before = nr_mapped();
	check(bits_first_touch_ns() > 0);
	check_int((long)nr_mapped(), (long)before);
}

int main(void)
{
	test_loss();
	test_first_charge();
	test_room();
	test_first();
	cpu_set_t all, here;
	pid_t busy[CPU_SETSIZE];
	int nr_busy = 0, self = sched_getcpu();
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&here);
	CPU_SET(self, &here);
	sched_setaffinity(0, sizeof(here), &here);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != self && CPU_ISSET(i, &all)) {
			busy[nr_busy] = occupy(i);
			nr_busy += busy[nr_busy] != 0;
		}
	if (nr_busy != CPU_COUNT(&all) - 1 || !nr_busy) {
		tap_skip("other CPUs cannot be kept busy");
	} else {
		struct bits_cost cost = {0};
		struct smco_err err = {0};
		sched_setaffinity(0, sizeof(all), &all);
		check_int(bits_cost_get(&cost, &err), 0);
		check_msg(cost.touch_ns > 0, "a touch: %llu ns",
			  (unsigned long long)cost.touch_ns);
		check_msg(cost.shootdown_ns > 0, "a reset: %llu ns",
			  (unsigned long long)cost.shootdown_ns);
	}
	for (int i = 0; i < nr_busy; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	return tap_done();
}
