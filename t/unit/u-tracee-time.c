/*
 * A wait that a stop interrupts ends when it would have: how long it had lasted
 * before the first stop is known, and who is left in it waits for the rest of
 * the time, not for all of it once more.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define WAIT_MS	  300000
#define BEFORE_MS 400 /* that it waits before we come */
#define STOOD_MS  100 /* that we stay */

static struct puppet pup;
static int end[2];

static long act_wait(long unused1, long unused2)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	char c;
	(void)unused1, (void)unused2;
	epoll_ctl(fd, EPOLL_CTL_ADD, end[0], &ev);
	long n = epoll_wait(fd, &ev, 1, WAIT_MS);
	close(fd);
	return n == 1 ? read(end[0], &c, 1) : -1;
}

/* The time-out that it waits with, -1: it does not. */
static long waits_for(void)
{
	unsigned long a[4];
	char path[64], line[256];
	long nr;
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pup.pid);
	if (smco_slurp(path, line, sizeof(line)) <= 0 ||
	    sscanf(line, "%ld %lx %lx %lx %lx", &nr, &a[0], &a[1], &a[2],
		   &a[3]) != 5 ||
	    nr != SYS_epoll_wait)
		return -1;
	return (long)a[3];
}

static long until_it_waits(void)
{
	long ms;
	while ((ms = waits_for()) < 0)
		usleep(1000);
	return ms;
}

/* The tracer's timer would end a sleep. */
static void pass(uint64_t ms)
{
	uint64_t until = smco_now_ns() + ms * NSEC_PER_MSEC;
	while (smco_now_ns() < until)
		usleep(1000);
}

static void run(struct tracer *tr, struct tproc *p)
{
	uint64_t until = smco_now_ns() + STOOD_MS * NSEC_PER_MSEC;
	struct tevent ev;
	tproc_resume_new(p);
	while (smco_now_ns() < until)
		if (tracer_next(tr, until, &ev) > 0 && ev.task)
			tracer_resume(tr, ev.task, 0);
	until_it_waits();
}

/* Come and go once, from the stop we came with or from the middle of the wait.
 * False: the time before could not be known, since the thread has moved to
 * another CPU. */
static bool visit(struct tracer *tr, bool in_middle)
{
	struct smco_err err = {0};
	puppet_begin(&pup, act_wait, 0, 0);
	check_int(until_it_waits(), WAIT_MS);
	uint64_t asleep = smco_now_ns();
	pass(BEFORE_MS);
	uint64_t came = smco_now_ns();
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!p)
		exit(2);
	struct task *t = tproc_first_task(p);
	check(t->mend.call != NULL);
	bool known = t->mend.end_ns <
		     asleep + (came - asleep) / 2 + WAIT_MS * NSEC_PER_MSEC;
	if (in_middle)
		run(tr, p);
	else
		pass(STOOD_MS);
	check_int(tproc_detach(p, &err), 0);
	long ms = until_it_waits();
	check_msg(ms <= WAIT_MS - STOOD_MS, "%ld ms are left", ms);
	check_int(write(end[1], "x", 1), 1);
	check_int(puppet_wait(&pup), 1);
	return known;
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	bool known = false;
	if (pipe(end))
		return 2;
	pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	for (int i = 0; i < 20 && !known; i++)
		known = visit(tr, i % 2);
	check(known);
	visit(tr, true);
	visit(tr, false);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
