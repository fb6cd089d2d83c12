/*
 * Births that are not followed: no child stops, nor is told of, though threads
 * are; the kernel's list has those that live, and theirs. Who runs in memory of
 * ours by vfork is told from the others, and nothing is changed meanwhile. Who
 * is let go is on that list until it is back, or how it has ended is known.
 */
#include <signal.h>
#include <sys/wait.h>

#include "supervisor/probe/unfollowed.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define CHILDREN 50
#define LONG_US	 400000

static struct tracer *tr;
static struct unfollowed *list;
static struct puppet pup;
static struct tproc *p;
static unsigned nr_procs, nr_tasks; /* that were told of */
static volatile long shared;

/* Returns how many ended as they were to. */
static long make_children(long nr, long b)
{
	long good = 0;
	(void)b;
	for (long i = 0; i < nr; i++) {
		int status = 0;
		pid_t pid = fork();
		if (!pid)
			_exit((int)i);
		good += waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
			WEXITSTATUS(status) == (int)i;
	}
	return good;
}

/* A child that stays, and has one itself, which does. */
static long make_family(long a, long b)
{
	(void)a, (void)b;
	pid_t pid = fork();
	if (pid)
		return pid;
	fork();
	for (;;)
		pause();
}

static long end_family(long pid, long b)
{
	int status;
	(void)b;
	kill((pid_t)pid, SIGKILL);
	return waitpid((pid_t)pid, &status, 0) == pid;
}

/* In a child that shares it. */
static long change_by_vfork(long us, long value)
{
	int status;
	pid_t pid = vfork();
	if (!pid) {
		usleep((useconds_t)us);
		shared = value;
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid ? shared : -1;
}

/* Until the puppet has answered. */
static long run(puppet_fn fn, long a, long b)
{
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	struct tevent ev;
	nr_procs = nr_tasks = 0;
	puppet_begin(&pup, fn, a, b);
	while (poll(&fd, 1, 0) <= 0) {
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) <= 0)
			break;
		nr_procs += ev.kind == TEV_PROC_NEW;
		nr_tasks += ev.kind == TEV_TASK_NEW;
		if (ev.kind == TEV_PROC_NEW)
			tproc_resume_new(ev.proc);
	}
	return puppet_wait(&pup);
}

static void follow(bool is)
{
	tracer_follow_births(tr, is);
	tracer_tell_births(tr);
}

static void test_children(void)
{
	check_int(run(make_children, 2, 0), 2);
	check_int(nr_procs, 2);
	check_int((long)unfollowed_nr_born(list), 0);

	follow(false);
	check_int(run(make_children, CHILDREN, 0), CHILDREN);
	check_int(nr_procs, 0);
	check_int((long)unfollowed_nr_born(list), CHILDREN);
	check_int(run(make_thread, 0, 0), 0);
	check_int(nr_tasks, 1);
	check_int((long)unfollowed_nr_born(list), CHILDREN);

	follow(true);
	check_int(run(make_children, 2, 0), 2);
	check_int(nr_procs, 2);
	check_int((long)unfollowed_nr_born(list), CHILDREN);
}

static void test_list(void)
{
	pid_t pids[8];
	follow(false);
	pid_t pid = (pid_t)run(make_family, 0, 0);
	size_t nr = 0;
	for (int i = 0; i < 1000 && nr < 2; i++) {
		usleep(10000);
		nr = unfollowed_list(list, smco_now_ns(), pids, 8);
	}
	check_int((long)nr, 2);
	check(pids[0] == pid || pids[1] == pid);
	pid_t grandchild = pids[pids[0] == pid];
	check_int((long)unfollowed_list(list, 1, pids, 8), 0);
	check(!unfollowed_shares(list, pup.pid));
	check(unfollowed_forget(list, grandchild));
	check(!unfollowed_forget(list, grandchild));
	check_int(run(end_family, pid, 0), 1);
	kill(grandchild, SIGKILL);
	check_int((long)unfollowed_list(list, smco_now_ns(), pids, 8), 0);
	follow(true);
}

/* Such a child runs in the puppet's memory now. */
static bool begin_sharing(long value)
{
	puppet_begin(&pup, change_by_vfork, LONG_US, value);
	for (int i = 0; i < 1000; i++) {
		if (unfollowed_shares(list, pup.pid))
			return true;
		usleep(200);
	}
	return false;
}

static void test_vfork(void)
{
	follow(false);
	check_int(run(change_by_vfork, 0, 5), 5);
	check_int(nr_procs, 0);
	check(!unfollowed_shares(list, pup.pid));

	check(begin_sharing(6));
	check_int(tproc_stop(p, NULL), SMCO_BUSY);
	check(unfollowed_shares(list, pup.pid));
	check_int(traced_wait(tr, &pup), 6);
	check(!unfollowed_shares(list, pup.pid));
	check_int(traced_stop(p, NULL), 0);
	tproc_cont(p);

	/* One that is followed stops with the others, as ever. */
	follow(true);
	check_int(run(change_by_vfork, 0, 7), 7);
	check(!unfollowed_shares(list, pup.pid));
}

static bool lives(pid_t pid, int *status)
{
	unsigned nr_execs;
	return unfollowed_lives(list, pid, &nr_execs, status);
}

/* How one ends that waits for it, and is on the list as let go. */
static int end_of(int sig, int code)
{
	int fds[2], status;
	char c;
	if (pipe(fds))
		return -1;
	pid_t pid = fork();
	if (!pid)
		_exit(read(fds[0], &c, 1) == 1 ? code : 99);
	check_int(unfollowed_let_go(list, pid, 1, NULL), 0);
	check(lives(pid, &status));
	check_int(status, -1);
	if (sig)
		kill(pid, sig);
	else
		check_int(write(fds[1], "", 1), 1);
	waitpid(pid, NULL, 0);
	check(!lives(pid, &status));
	check(unfollowed_forget(list, pid));
	close(fds[0]);
	close(fds[1]);
	return status;
}

/* For a while: it is on the list then, its children too, and it comes back, but
 * not while one of them runs in its memory. */
static void test_let_go(void)
{
	pid_t pids[8];
	int status;
	follow(true);
	check_int(traced_stop(p, NULL), 0);
	check(tproc_may_go(p));
	check_int(unfollowed_let_go(list, pup.pid, 1, NULL), 0);
	check_int(tproc_let_go(p, NULL), 0);
	long born = (long)unfollowed_nr_born(list);
	check_int(puppet_do(&pup, make_children, 5, 0), 5);
	check_int((long)unfollowed_nr_born(list), born + 5);
	check(lives(pup.pid, &status));
	check_int((long)unfollowed_list(list, smco_now_ns(), pids, 8), 0);

	check(begin_sharing(9));
	check_int(tracer_attach(tr, pup.pid, NULL), SMCO_BUSY);
	check_int(traced_wait(tr, &pup), 9);
	p = traced_must_attach(tr, pup.pid);
	check(unfollowed_forget(list, pup.pid));
	tproc_resume_new(p);
	check_int(run(make_children, 2, 0), 2);
	check_int(nr_procs, 2);
	check(!lives(pup.pid, &status));

	check_int(end_of(0, 7), 7 << 8);
	check_int(end_of(SIGKILL, 0), SIGKILL);
}

static volatile uint8_t text[2] = {1, 2};

static long read_text(long a, long b)
{
	(void)a, (void)b;
	return text[0] << 8 | text[1];
}

/* What cannot be undone in safety stays. */
static void test_leave(void)
{
	const uint8_t changed[2] = {3, 4};
	taddr_t at = (taddr_t)(uintptr_t)text;
	struct tpatch *patch;
	check_int(traced_stop(p, NULL), 0);
	check_int(tproc_patch(p, at, changed, 2, NULL, NULL, &patch, NULL), 0);
	tproc_cont(p);
	follow(false);
	check(begin_sharing(8));
	check(tproc_detach(p, NULL) < 0);
	check_int(traced_wait(tr, &pup), 8);
	check_int(puppet_do(&pup, read_text, 0, 0), 0x304);
}

static bool is_shared(void *ctx, pid_t pid)
{
	(void)ctx;
	return unfollowed_shares(list, pid);
}

int main(void)
{
	const struct tracer_options opts = {.follow = true,
					    .is_shared = is_shared};
	struct smco_err err = {0};
	if (unfollowed_open(false, &list, &err))
		return tap_skip(err.msg), tap_done();
	pup = puppet_start();
	check_int(tracer_create(&tr, &opts, NULL), 0);
	p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	test_children();
	test_list();
	test_vfork();
	test_let_go();
	test_leave();
	tracer_destroy(tr);
	unfollowed_close(list);
	puppet_end(&pup);
	return tap_done();
}
