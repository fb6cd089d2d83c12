/*
 * A thread has sent itself the signal by which code of ours says that it is
 * done, as sensors do, and has not got it yet when it is borrowed to make the
 * helper: that is not the helper's, which is there all the same, and the signal
 * is not lost. Blocked, it stays pending.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

/* Longer than syscall(3) is. */
#define CODE_BYTES 128

static struct tracer *tr;
static struct tproc *proc;
static struct access *a;

/* --- in the puppet --- */

static long act_raise(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	return syscall(SYS_tgkill, getpid(), gettid(), SIGURG);
}

static long act_raise_blocked(long unused1, long unused2)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	return sigprocmask(SIG_BLOCK, &set, NULL) | act_raise(unused1, unused2);
}

static long act_is_pending(long unused1, long unused2)
{
	sigset_t set;
	(void)unused1, (void)unused2;
	sigpending(&set);
	return sigismember(&set, SIGURG);
}

/* --- the supervisor --- */

static void attach(void)
{
	struct smco_err err = {0};
	start_with_pages();
	proc = traced_attach(tr, pup.pid, &err);
	if (!proc || access_mprotect.open(proc, &a, &err)) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	check_int(tproc_trap_signal(proc), SIGURG);
}

static void leave(void)
{
	access_mprotect.close(a);
	check_int(tproc_detach(proc, NULL), 0);
}

/* The next one, with who stopped for it; TEV_NONE: none for a minute. */
static struct tevent next(void)
{
	struct tevent ev = {.kind = TEV_NONE};
	if (tracer_next(tr, smco_now_ns() + 60 * NSEC_PER_SEC, &ev) < 1)
		ev.kind = TEV_NONE;
	return ev;
}

/* The end of its call of tgkill. */
static struct task *at_the_end_of_tgkill(void)
{
	for (;;) {
		struct user_regs_struct r;
		struct tevent ev = next();
		if (ev.kind == TEV_NONE)
			return NULL;
		if (ev.kind == TEV_SYSCALL_OUT && !task_get_regs(ev.task, &r) &&
		    r.orig_rax == SYS_tgkill)
			return ev.task;
		tracer_resume(tr, ev.task, 0);
	}
}

static void arm_all(void)
{
	struct page_range all = range_at(mem, PAGES);
	int r;
	do
		r = access_mprotect.arm(a, &all, 1);
	while (r == SMCO_BUSY);
	check_int(r, 0);
	check_int(all.nr_reset, PAGES);
	/* It has run, to its end. */
	check_int(warden_table(((struct guard *)a)->w)->program_pid, pup.pid);
}

static void raised(void)
{
	attach();
	taddr_t code = (taddr_t)(uintptr_t)syscall;
	tproc_set_trap_range(proc, code, code + CODE_BYTES);
	tproc_trace_syscalls(proc, true);
	tproc_resume_new(proc);
	puppet_begin(&pup, act_raise, 0, 0);
	struct task *t = at_the_end_of_tgkill();
	if (!check(t != NULL))
		return;
	arm_all();
	tracer_resume(tr, t, 0);
	struct tevent ev = next();
	check_int(ev.kind, TEV_TRAP);
	check_int(ev.siginfo.si_signo, SIGURG);
	tracer_resume(tr, ev.task, 0);
	leave();
	check_int(puppet_wait(&pup), 0);
	puppet_end(&pup);
}

static void blocked(void)
{
	attach();
	tproc_resume_new(proc);
	check_int(traced_do(tr, &pup, act_raise_blocked, 0, 0), 0);
	arm_all();
	leave();
	check_int(puppet_do(&pup, act_is_pending, 0, 0), 1);
	puppet_end(&pup);
}

int main(void)
{
	struct smco_err err = {0};
	if (tracer_create(&tr, NULL, &err)) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	raised();
	blocked();
	tracer_destroy(tr);
	return tap_done();
}
