/*
 * Left alone in a stop that came between a fault and its signal: the signal
 * is taken back, since what caused it may have been undone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"
#include "traced.h"

/* In the queue as the kernel puts it there, but with the signal blocked, so
 * that it is still there when we stop the thread. */
static long queue_fault(long sig, long code)
{
	siginfo_t si;
	sigset_t set;
	memset(&si, 0, sizeof(si));
	si.si_signo = (int)sig;
	si.si_code = (int)code;
	sigemptyset(&set);
	sigaddset(&set, (int)sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, &si);
}

static long is_pending(long sig, long unused)
{
	sigset_t set;
	(void)unused;
	sigpending(&set);
	return sigismember(&set, (int)sig);
}

static struct tproc *attach(struct tracer *tr, pid_t pid)
{
	struct smco_err err = {0};
	struct tproc *p = traced_attach(tr, pid, &err);
	if (!p) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	tproc_resume_new(p);
	return p;
}

/* It waits for the next order: in the call that answers, leave_call() would
 * have it answer twice, and on its way back to a call it is in none. */
static void await_reading(pid_t pid)
{
	char path[64], call[128];
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	while (puppet_state(pid) != 'S' ||
	       smco_slurp(path, call, sizeof(call)) <= 0 ||
	       strncmp(call, "0 ", 2) != 0)
		usleep(100);
}

/* As if it had come into the kernel by an exception, and not by its call. */
static void leave_call(struct task *t)
{
	struct user_regs_struct regs;
	check_int(task_get_regs(t, &regs), 0);
	regs.rax = regs.orig_rax;
	regs.rip -= 2; /* its syscall instruction is to come */
	regs.orig_rax = (unsigned long long)-1;
	check_int(task_set_regs(t, &regs), 0);
}

/* Detach while @sig is in the queue of a stopped thread; how did it end? */
static void leave(struct tracer *tr, int sig, int code, uint64_t mask,
		  bool in_call, bool survives)
{
	struct puppet pup = puppet_start();
	int status = 0;
	check_int(puppet_do(&pup, queue_fault, sig, code), 0);
	await_reading(pup.pid);
	struct tproc *p = attach(tr, pup.pid);
	await_reading(pup.pid);
	check_int(traced_stop(p, NULL), 0);
	check_int(task_set_sigmask(tproc_first_task(p), mask), 0);
	if (!in_call)
		leave_call(tproc_first_task(p));
	check_int(tproc_detach(p, NULL), 0);
	if (survives) {
		check_int(puppet_do(&pup, is_pending, sig, 0), mask != 0);
		check_int(waitpid(pup.pid, &status, WNOHANG), 0);
	} else {
		check_int(waitpid(pup.pid, &status, 0), pup.pid);
		check(WIFSIGNALED(status) && WTERMSIG(status) == sig);
	}
	puppet_end(&pup);
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	signal(SIGPIPE, SIG_IGN);
	signal(SIGSEGV, SIG_DFL); /* the sanitizers catch it */
	signal(SIGBUS, SIG_DFL);
	if (tracer_create(&tr, NULL, &err) < 0) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	leave(tr, SIGSEGV, SEGV_ACCERR, 0, false, true);
	leave(tr, SIGBUS, BUS_ADRERR, 0, false, true);
	/* Not from an instruction: the program's own business. */
	leave(tr, SIGSEGV, SI_QUEUE, 0, false, false);
	leave(tr, SIGTERM, SI_QUEUE, 0, false, false);
	leave(tr, SIGSEGV, SEGV_ACCERR, 0, true, false);
	leave(tr, SIGSEGV, SEGV_ACCERR, 1ULL << (SIGSEGV - 1), false, true);
	tracer_destroy(tr);
	return tap_done();
}
