/*
 * hog.h - keeps a CPU from everybody who is bound to it, for most of a second:
 * a thread there does not stop in time.
 */
#ifndef HOG_H
#define HOG_H

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/tracee.h"
#include "t/unit/tap.h"

/* In real time nobody may have all of a second. */
#define HOG_NS	  (900 * NSEC_PER_MSEC)
#define HOG_TRIES 20 /* we may not get a CPU ourselves for so long */

static volatile int *hog_runs; /* shared; 2: it is to end */

/* Under a hog the kernel gives the others a twentieth of the time, in a few
 * milliseconds each: whoever has the least claim waits for much longer. */
static inline bool bind_lowly(pid_t tid, int cpu)
{
	struct sched_param sp = {0};
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(tid, sizeof(set), &set) &&
	       !sched_setscheduler(tid, SCHED_IDLE, &sp);
}

static inline void lift(pid_t tid)
{
	const struct sched_param sp = {0};
	sched_setscheduler(tid, SCHED_OTHER, &sp);
}

static inline bool bind_task_to(pid_t tid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(tid, sizeof(set), &set);
}

static inline void bind_to(int cpu)
{
	if (!bind_task_to(0, cpu))
		_exit(2);
}

/* A process that computes on @cpu; it is to be killed. */
static inline pid_t spin_on(int cpu)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	alarm(60); /* should nobody end it */
	bind_to(cpu);
	for (;;)
		;
}

static inline void bind_to_both(const int cpu[2])
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu[0], &set);
	CPU_SET(cpu[1], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline bool hog_prepare(void)
{
	hog_runs = mmap(NULL, sizeof(*hog_runs), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return hog_runs != MAP_FAILED;
}

/* Two CPUs that we may use; false if there are not so many. */
static inline bool two_cpus(int cpu[2])
{
	cpu_set_t set;
	int nr = 0;
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && nr < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[nr++] = i;
	return nr == 2;
}

/* The same, for a test that needs them and a hog; it ends where it cannot have
 * that. It is on the first one from now on. */
static inline void hog_needs(int cpu[2])
{
	if (!hog_prepare() || !two_cpus(cpu)) {
		tap_skip("one CPU only");
		exit(tap_done());
	}
	bind_to(cpu[0]);
}

/* Nobody else runs on @cpu until it is to end; -1 if that is not permitted. */
static inline pid_t hog(int cpu)
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
		/* Who gets what time the hog leaves to others. */
		for (int i = 0; i < 2; i++)
			if (!fork()) {
				sp.sched_priority = 0;
				sched_setscheduler(0, SCHED_OTHER, &sp);
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				alarm(10);
				for (;;)
					;
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

static inline void hog_end(pid_t pid)
{
	*hog_runs = 2;
	waitpid(pid, NULL, 0);
}

/* One that @p, which is bound to @cpu, was seen not to get by; -1 as above. It
 * goes on for some 800 ms. */
static inline pid_t hog_met(struct tproc *p, int cpu)
{
	for (int i = 0; i < HOG_TRIES; i++) {
		pid_t pid = hog(cpu);
		if (pid < 0)
			return -1;
		int r = tproc_stop_briefly(p, NULL);
		if (r == SMCO_BUSY)
			return pid;
		if (r == 0)
			tproc_cont(p);
		hog_end(pid);
	}
	return -1;
}

#endif
