/*
 * A stop that can wait does: while a thread gets no CPU to stop on, the others
 * are not held for it.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* In real time nobody may have all of a second. */
#define HOG_NS (900 * NSEC_PER_MSEC)
#define TRIES  20 /* we may not get a CPU ourselves for so long */

static volatile int *hog_runs; /* shared; 2: it is to end */

static void bind_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(2);
}

/* Two CPUs that we may use; false if there are not so many. */
static bool two_cpus(int cpu[2])
{
	cpu_set_t set;
	int nr = 0;
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && nr < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[nr++] = i;
	return nr == 2;
}

static pid_t spin_on(int cpu)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	alarm(60); /* should nobody end it */
	bind_to(cpu);
	for (;;)
		;
}

/* Nobody else runs on @cpu until it is to end; -1 if that is not permitted. */
static pid_t hog(int cpu)
{
	struct sched_param sp = {.sched_priority = 50};
	*hog_runs = 0;
	pid_t pid = fork();
	if (!pid) {
		bind_to(cpu);
		if (sched_setscheduler(0, SCHED_FIFO, &sp)) {
			*hog_runs = -1;
			_exit(1);
		}
		uint64_t end = smco_now_ns() + HOG_NS;
		*hog_runs = 1;
		while (*hog_runs == 1 && smco_now_ns() < end)
			;
		_exit(0);
	}
	while (!*hog_runs)
		usleep(100);
	return *hog_runs < 0 ? -1 : pid;
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int cpu[2];

	hog_runs = mmap(NULL, sizeof(*hog_runs), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!two_cpus(cpu)) {
		tap_skip("one CPU only");
		return tap_done();
	}
	bind_to(cpu[0]);
	pid_t pid = spin_on(cpu[1]);
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	tproc_resume_new(p);
	int r;
	do
		r = tproc_stop_briefly(p, &err);
	while (r == SMCO_BUSY);
	check_int(r, 0);
	tproc_cont(p);

	pid_t other = 0;
	for (int i = 0; i < TRIES && r != SMCO_BUSY; i++) {
		other = hog(cpu[1]);
		if (other < 0)
			break;
		r = tproc_stop_briefly(p, &err);
		if (r == 0)
			tproc_cont(p);
		*hog_runs = 2;
		waitpid(other, NULL, 0);
	}
	if (other < 0)
		tap_skip("no real time here");
	else
		check_int(r, SMCO_BUSY);
	/* Asked again, it stops where it was going to. */
	do
		r = tproc_stop(p, &err);
	while (r == SMCO_BUSY);
	check_int(r, 0);
	tproc_cont(p);
	check_int(tproc_detach(p, &err), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	tracer_destroy(tr);
	return tap_done();
}
