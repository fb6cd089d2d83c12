/*
 * What accessed bits cost where the other CPUs have no time to find out: a
 * reset does not seem to be free.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/bits-cost.h"
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

static long touch_ns(uint64_t here_ns, uint64_t other_ns, uint64_t miss_ns,
		     uint64_t nr_pages)
{
	struct bits_cost c = {0};
	bits_cost_set_touch(&c, here_ns, other_ns, miss_ns);
	return (long)bits_cost_touch_ns(&c, nr_pages);
}

int main(void)
{
	test_loss();
	/* Page tables that no cache has, whoever had them last. */
	check_int(touch_ns(200, 0, 150, 1000), 400);
	check_int(touch_ns(50, 60, 150, 32768), 250);
	check_int(touch_ns(50, 300, 150, 1000), 300);
	/* The more of them there are, the fewer caches have them. */
	check_int(touch_ns(50, 60, 150, 147456), 315);
	check_int(touch_ns(50, 60, 150, 262144), 380);
	check_int(touch_ns(50, 60, 150, UINT64_MAX), 380);
	check_int(touch_ns(50, 9000, 150, UINT64_MAX), 9000);
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
