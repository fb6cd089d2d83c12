/*
 * A thread has met a guard, and nobody has looked at that yet, when the guards
 * end; then the supervisor is killed. What the thread stands at is nobody's any
 * more, and its SIGSEGV must not reach the program, which has no handler.
 */
#include <signal.h>
#include <sys/prctl.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static long act_allow(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return 0;
}

static long act_block(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

static long act_is_blocked(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	sigset_t set;
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGSEGV);
}

/* The kernel has let it take the signal: it stands there. */
static void until_it_stands(void)
{
	while (puppet_state(pup.pid) != 't')
		usleep(1000);
}

/*
 * The supervisor, in a process of its own; never returns. Exit status 1: it was
 * of no use. @is_queued: the stop is known, but it was not the fault's turn.
 */
static void __attribute__((noreturn)) supervise(int ready, bool is_queued)
{
	struct tracer *tr = NULL;
	struct access *a = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;
	struct page_range all = range_at(mem, PAGES);

	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!proc || access_mprotect.open(proc, &a, &err) ||
	    access_mprotect.arm(a, &all, 1) || all.nr_reset != PAGES)
		_exit(1);
	tproc_resume_new(proc);
	puppet_begin(&pup, act_store, 3, 100);
	/* Its read is seen first, which opens nothing. */
	struct tevent ev;
	for (;;) {
		struct access_hit hit;
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_SEC, &ev) < 1)
			_exit(1);
		if (ev.kind == TEV_NONE)
			continue;
		bool is_end = ev.kind == TEV_SYSCALL_OUT;
		access_mprotect.on_event(a, &ev, &hit);
		tracer_resume(tr, ev.task, 0);
		if (is_end)
			break;
	}
	until_it_stands();
	if (is_queued && !traced_stop(proc, &err))
		tproc_cont(proc);
	guard_off((struct guard *)a);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	kill(getpid(), SIGKILL);
	_exit(1);
}

static void die_then(bool is_queued, bool is_blocked)
{
	int ready[2], status;
	struct pollfd answer;
	char c;
	long r = -1;

	start_with_pages();
	puppet_do(&pup, act_allow, 0, 0);
	if (is_blocked)
		puppet_do(&pup, act_block, 0, 0);
	if (pipe(ready))
		exit(2);
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		supervise(ready[1], is_queued);
	close(ready[1]);
	check_msg(read(ready[0], &c, 1) == 1, "guards ended, %s%s",
		  is_queued ? "the stop was known" : "the stop was not known",
		  is_blocked ? ", SIGSEGV blocked" : "");
	close(ready[0]);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGKILL);
	/* The answer, or the end of the pipe. */
	answer = (struct pollfd){.fd = pup.answer, .events = POLLIN};
	check_int(poll(&answer, 1, -1), 1);
	if (check(read(pup.answer, &r, sizeof(r)) == sizeof(r))) {
		check_int(r, 0);
		check_int(puppet_do(&pup, act_is_blocked, 0, 0), is_blocked);
	}
	puppet_end(&pup);
}

int main(void)
{
	die_then(false, false);
	die_then(true, false);
	die_then(false, true);
	die_then(true, true);
	return tap_done();
}
