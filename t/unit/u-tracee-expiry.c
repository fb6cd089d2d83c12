/*
 * A wait with a socket's or terminal's time-out that was stopped ends when it
 * would have: the kernel begins it anew with all of its time, so it is stopped
 * once more, at its end. Neither before, nor as late as it would come to begun
 * anew; and what comes before its end ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* Begun anew it would last a second and a half longer. */
#define WAIT_NS	  (2 * NSEC_PER_SEC)
#define BEFORE_NS (1500 * NSEC_PER_MSEC)
#define TRIALS	  10

enum kind { RECEIVE, SEND, TERMINAL };
static const char *const names[] = {"receive", "send", "terminal"};
static int pair[2], pty[2];

static bool open_terminal(void)
{
	struct termios tio;
	pty[1] = posix_openpt(O_RDWR | O_NOCTTY);
	if (grantpt(pty[1]) || unlockpt(pty[1]))
		return false;
	pty[0] = open(ptsname(pty[1]), O_RDWR | O_NOCTTY);
	if (tcgetattr(pty[0], &tio))
		return false;
	cfmakeraw(&tio);
	tio.c_cc[VMIN] = 0;
	tio.c_cc[VTIME] = WAIT_NS / (NSEC_PER_SEC / 10);
	return !tcsetattr(pty[0], TCSANOW, &tio);
}

static long act_read(long expected)
{
	char c;
	uint64_t begin = smco_now_ns();
	long n = read(pty[0], &c, 1);
	return n == expected ? (long)(smco_now_ns() - begin) : -1;
}

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

static long act_wait(long kind, long is_answered)
{
	return kind == TERMINAL
		       ? act_read(is_answered)
		       : act_receive(kind == SEND, is_answered ? 1 : -1);
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
		      enum kind kind, bool answered, uint64_t *nr_stops)
{
	uint64_t begin_ns = smco_now_ns();
	puppet_begin(pup, act_wait, (long)kind, answered);
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
		check_int(write(kind == TERMINAL ? pty[1] : pair[1], "x", 1),
			  1);
		known &= smco_now_ns() < begin_ns + WAIT_NS;
	}
	long ns = traced_wait(tr, pup);
	*nr_stops = tracer_nr_stops(tr) - *nr_stops;
	check(ns > 0 || !known);
	return known ? ns : 0;
}

static void test_expires(struct tracer *tr, struct tproc *p, struct puppet *pup,
			 enum kind kind)
{
	uint64_t nr_stops;
	long ns = 0;
	for (int i = 0; i < TRIALS && !ns; i++)
		ns = wait_once(tr, p, pup, kind, false, &nr_stops);
	check_msg(ns >= (long)WAIT_NS &&
			  ns < (long)(WAIT_NS + BEFORE_NS * 4 / 5),
		  "%s: %ld ms", names[kind], ns / 1000000);
	check(nr_stops > 0);
}

static void test_answered(struct tracer *tr, struct tproc *p,
			  struct puppet *pup, enum kind kind)
{
	uint64_t nr_stops;
	long ns = 0;
	for (int i = 0; i < TRIALS && !ns; i++)
		ns = wait_once(tr, p, pup, kind, true, &nr_stops);
	check(ns > 0);
	check_int(nr_stops, 1); /* the call's end */
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || !open_terminal() ||
	    tracer_create(&tr, NULL, &err))
		return 2;
	struct puppet pup = puppet_start();
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	for (enum kind kind = RECEIVE; kind <= TERMINAL; kind++)
		test_expires(tr, p, &pup, kind);
	test_answered(tr, p, &pup, RECEIVE);
	test_answered(tr, p, &pup, TERMINAL);
	/* Nobody waits there any more. */
	run_for(tr, 2 * WAIT_NS);
	check_int(tr->expires_ns, 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
