/*
 * A wait with a socket's time-out that was stopped ends when it would have: the
 * kernel begins it anew with all of its time, so it is stopped once more, at
 * its end. Neither before, nor as late as it would come to begun anew; and what
 * comes before its end ends it.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* Begun anew it would last a second and a half longer. */
#define WAIT_NS	  (2 * NSEC_PER_SEC)
#define BEFORE_NS (1500 * NSEC_PER_MSEC)
#define TRIALS	  10

static int pair[2];

/* Nanoseconds, if it ended as it should. */
static long act_receive(long is_send, long expected)
{
	struct timeval tv = {.tv_sec = WAIT_NS / NSEC_PER_SEC};
	char c[4096] = {0};
	long n = 0;
	setsockopt(pair[0], SOL_SOCKET, is_send ? SO_SNDTIMEO : SO_RCVTIMEO,
		   &tv, sizeof(tv));
	while (is_send && send(pair[0], c, sizeof(c), MSG_DONTWAIT) > 0)
		;
	while (!is_send && recv(pair[0], c, sizeof(c), MSG_DONTWAIT) > 0)
		;
	uint64_t begin = smco_now_ns();
	n = is_send ? send(pair[0], c, sizeof(c), 0) : recv(pair[0], c, 1, 0);
	uint64_t took = smco_now_ns() - begin;
	return n == expected && (n > 0 || errno == EAGAIN) ? (long)took : -1;
}

/* The tracer's loop. */
static void run_for(struct tracer *tr, uint64_t ns)
{
	uint64_t until = smco_now_ns() + ns;
	struct tevent ev;
	while (smco_now_ns() < until)
		tracer_next(tr, until, &ev);
}

/* Where it wakes up, another CPU than where it fell asleep. */
static void go_elsewhere(const struct tracer *tr, pid_t pid)
{
	cpu_set_t set = *tracer_cpus(tr);
	int cpu = task_cpu(&(struct task){.tid = pid, .tgid = pid});
	if (cpu >= 0 && CPU_COUNT(&set) > 1)
		CPU_CLR((unsigned)cpu, &set);
	check_int(sched_setaffinity(pid, sizeof(set), &set), 0);
}

/* How long one wait lasted, or 0: how long it had when it was stopped in its
 * middle could not be known. In *nr_stops how often it was stopped behind that.
 */
static long wait_once(struct tracer *tr, struct tproc *p, struct puppet *pup,
		      bool is_send, bool answered, uint64_t *nr_stops)
{
	uint64_t begin_ns = smco_now_ns();
	puppet_begin(pup, act_receive, is_send, answered ? 1 : -1);
	run_for(tr, BEFORE_NS);
	go_elsewhere(tr, pup->pid);
	check_int(traced_stop(p, NULL), 0);
	const struct task *t = tproc_first_task(p);
	bool known = t->mend.call &&
		     t->mend.end_ns < smco_now_ns() + WAIT_NS - BEFORE_NS / 2;
	/* By nothing that has passed since did it become a later end. */
	check(!known || t->mend.end_ns >= begin_ns + WAIT_NS);
	tproc_cont(p);
	run_for(tr, 100 * NSEC_PER_MSEC);
	*nr_stops = tracer_nr_stops(tr);
	if (answered) {
		check_int(write(pair[1], "x", 1), 1);
		known &= smco_now_ns() < begin_ns + WAIT_NS;
	}
	long ns = traced_wait(tr, pup);
	*nr_stops = tracer_nr_stops(tr) - *nr_stops;
	check(ns > 0 || !known);
	return known ? ns : 0;
}

static void test_expires(struct tracer *tr, struct tproc *p, struct puppet *pup,
			 bool is_send)
{
	uint64_t nr_stops;
	long ns = 0;
	for (int i = 0; i < TRIALS && !ns; i++)
		ns = wait_once(tr, p, pup, is_send, false, &nr_stops);
	check_msg(ns >= (long)WAIT_NS &&
			  ns < (long)(WAIT_NS + BEFORE_NS * 4 / 5),
		  "%s: %ld ms", is_send ? "sent" : "received", ns / 1000000);
	check(nr_stops > 0);
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	uint64_t nr_stops;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
	    tracer_create(&tr, NULL, &err))
		return 2;
	struct puppet pup = puppet_start();
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	test_expires(tr, p, &pup, false);
	test_expires(tr, p, &pup, true);
	long ns = 0;
	for (int i = 0; i < TRIALS && !ns; i++)
		ns = wait_once(tr, p, &pup, false, true, &nr_stops);
	check(ns > 0);
	check_int(nr_stops, 1); /* the call's end */
	/* Nobody waits there any more. */
	run_for(tr, 2 * WAIT_NS);
	check_int(tr->expires_ns, 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
