/*
 * Several processes are taken together and stand one after the other, each for
 * its own start; until then they run, signals and all. Who makes others wait
 * goes first, and is as before afterwards. What stops are for is told.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "t/unit/hurry.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;

static long act_signal(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	return raise(SIGWINCH);
}

static void *nothing(void *arg)
{
	return arg;
}

static long act_thread(long unused, long unused2)
{
	pthread_t t;
	(void)unused;
	(void)unused2;
	return pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL);
}

/* Of no process there is an event before this one. */
static struct tproc *next_new(void)
{
	struct tevent ev;
	while (tracer_next(tr, 0, &ev) > 0 && ev.kind != TEV_NONE) {
		if (ev.kind == TEV_PROC_NEW)
			return ev.proc;
		check(ev.kind != TEV_TASK_NEW);
	}
	return NULL;
}

static void wait_for_stop(const struct puppet *p)
{
	for (int ms = 0; ms < 20000 && puppet_state(p->pid) != 't'; ms++)
		usleep(1000);
	check_int(puppet_state(p->pid), 't');
}

int main(void)
{
	struct smco_err err = {0};
	struct puppet p[2] = {puppet_start(), puppet_start()};
	bool real_time = may_hurry();
	const int hurried = real_time ? SCHED_FIFO : SCHED_OTHER;

	if (!real_time)
		printf("# real time is not permitted here\n");
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	check_int(tracer_seize(tr, p[0].pid, &err), 0);
	check_int(tracer_seize(tr, p[1].pid, &err), 0);
	check_int(tracer_seize(tr, p[1].pid, &err), SMCO_BUSY);
	check(puppet_state(p[0].pid) != 't');
	check(puppet_state(p[1].pid) != 't');
	/* Its signal is passed on, though nobody has heard of it yet. */
	check_int(traced_do(tr, &p[1], act_signal, 0, 0), 0);

	check_int(tracer_stop_seized(tr, &err), 1);
	check_int(puppet_state(p[0].pid), 't');
	check(puppet_state(p[1].pid) != 't');
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, hurried);
	struct tproc *first = next_new();
	if (!check(first && tproc_pid(first) == p[0].pid))
		return tap_done();
	tproc_resume_new(first);
	check_int(sched_getscheduler(0), SCHED_OTHER);
	/* Who has been started waits for a signal: not for the others' start.
	 */
	puppet_begin(&p[0], act_signal, 0, 0);
	wait_for_stop(&p[0]);
	/* A thread that is born meanwhile is told of with its process. */
	puppet_begin(&p[1], act_thread, 0, 0);
	wait_for_stop(&p[1]);
	check_int(tracer_stop_seized(tr, &err), 1);
	struct pollfd answer = {.fd = p[0].answer, .events = POLLIN};
	int answers = 0;
	for (int i = 0; i < 200 && answers != 1; i++)
		answers = poll(&answer, 1, 100);
	check_int(answers, 1);
	if (answers == 1)
		check_int(puppet_wait(&p[0]), 0);
	struct tproc *second = next_new();
	if (!check(second && tproc_pid(second) == p[1].pid))
		return tap_done();
	tproc_resume_new(second);
	check_int(traced_wait(tr, &p[1]), 0);
	check_int(tracer_stop_seized(tr, &err), 0);

	uint64_t before_ns = tracer_longest_stop_ns(tr);
	tracer_stops_are(tr, "to test");
	check_int(traced_stop(first, &err), 0);
	uint64_t began_ns = smco_now_ns();
	check_int(traced_stop(second, &err), 0);
	/* Longer than any before, calls in it or not: it stood all the time. */
	const uint64_t args[6] = {0};
	int64_t ret;
	int bad = 0;
	do
		bad |= tproc_syscall(first, SYS_getpid, args, &ret, &err);
	while (smco_now_ns() < began_ns + 2 * before_ns);
	check_int(bad, 0);
	uint64_t stood_ns = smco_now_ns() - began_ns;
	tproc_cont(first);
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, hurried);
	tproc_cont(second);
	check_int(sched_getscheduler(0), SCHED_OTHER);
	check(tracer_longest_stop_ns(tr) >= stood_ns);
	check_str(tracer_longest_was(tr), "to test");
	check_int(traced_do(tr, &p[0], act_signal, 0, 0), 0);

	tracer_urgent(tr, true);
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, hurried);
	check_int(traced_stop(first, &err), 0);
	tproc_cont(first);
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, hurried);
	/* Without a wait only for so long, until it is asked for again. */
	keep_busy();
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	tracer_urgent(tr, true);
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, hurried);
	keep_busy();
	check_int(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	tracer_urgent(tr, false);
	check_int(sched_getscheduler(0), SCHED_OTHER);

	check_int(tracer_detach_all(tr, &err), 0);
	check_int(sched_getscheduler(0), SCHED_OTHER);
	tracer_destroy(tr);
	puppet_end(&p[0]);
	puppet_end(&p[1]);
	return tap_done();
}
