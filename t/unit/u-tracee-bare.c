/*
 * Where as many signals wait as may (RLIMIT_SIGPENDING), the kernel keeps
 * nothing of one but its number: the signals by which our code in a thread says
 * that it is done, and those by which sensors ask, are known all the same, and
 * the program gets all of its own, and none of ours.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define NR_TRIALS 50

static volatile int nr_handled[NSIG];

static void handle(int sig)
{
	nr_handled[sig]++;
}

static long act_prepare(long a, long b)
{
	static const int handled[] = {SIGUSR1, SIGCHLD, SIGURG, SIGWINCH};
	const struct rlimit none = {0, 0};
	struct sigaction sa = {.sa_handler = handle, .sa_flags = SA_RESTART};
	(void)a, (void)b;
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
		if (sigaction(handled[i], &sa, NULL))
			return -1;
	return setrlimit(RLIMIT_SIGPENDING, &none);
}

static long act_handled(long sig, long unused)
{
	(void)unused;
	return nr_handled[sig];
}

/* The code of ours: it says with the signal in rdi that it is done, and is
 * never to go on behind that. */
void say_done(void);
void ask(long sig);
__asm__(".pushsection .text\n"
	"ask:\n"
	"	push	%rbx\n"
	"	call	1f\n"
	"	pop	%rbx\n"
	"	ret\n"
	"say_done:\n"
	"	call	1f\n"
	"	ud2\n"
	"1:	movl	%edi, %r8d\n"
	"	movl	$186, %eax\n" /* gettid: it is the only thread */
	"	syscall\n"
	"	movl	%eax, %edi\n"
	"	movl	%eax, %esi\n"
	"	movl	%r8d, %edx\n"
	"	movl	$234, %eax\n" /* tgkill */
	"	syscall\n"
	"	ret\n"
	".popsection\n");

static long act_ask(long sig, long times)
{
	for (long i = 0; i < times; i++)
		ask(sig);
	return times;
}

static void resume_all(struct tracer *tr)
{
	struct tevent ev;
	while (tracer_next(tr, smco_now_ns(), &ev) > 0 && ev.kind != TEV_NONE)
		tracer_resume(tr, ev.task, 0);
}

/* Calls, and code that is run: each is done, and no signal of ours is left. */
static void test_done(struct tracer *tr, struct tproc *p, struct puppet *pup)
{
	static uint64_t stack[4096];
	const uint64_t args[6] = {0};
	const struct task_run run = {
		.pc = (taddr_t)(uintptr_t)&say_done,
		.sp = (taddr_t)(uintptr_t)&stack[ARRAY_SIZE(stack) - 8]};
	unsigned nr_wrong = 0;
	for (int i = 0; i < NR_TRIALS; i++) {
		int64_t ret = -1;
		nr_wrong += traced_stop(p, NULL) != 0;
		nr_wrong += tproc_syscall(p, SYS_getppid, args, &ret, NULL) ||
			    ret != getpid();
		nr_wrong += task_run(tproc_first_task(p), &run, NULL) != 0;
		tproc_cont(p);
		resume_all(tr);
	}
	check_int(nr_wrong, 0);
	check_int(traced_do(tr, pup, act_handled, SIGURG, 0), 0);
	check_int(traced_do(tr, pup, act_handled, SIGWINCH, 0), 0);
	check_int(traced_do(tr, pup, act_handled, SIGCHLD, 0), 0);
}

/* Two of the program's, one that it is just getting and one that waits. */
static void test_waiting(struct tracer *tr, struct tproc *p, struct puppet *pup)
{
	const uint64_t args[6] = {0};
	unsigned nr_wrong = 0;
	int64_t ret;
	for (int i = 1; i <= NR_TRIALS; i++) {
		nr_wrong += kill(pup->pid, SIGUSR1) != 0;
		while (task_proc_state(tproc_first_task(p)) != 't')
			usleep(100);
		nr_wrong += traced_stop(p, NULL) != 0;
		nr_wrong += syscall(SYS_tgkill, pup->pid, pup->pid, SIGUSR1);
		nr_wrong += tproc_syscall(p, SYS_getpid, args, &ret, NULL) != 0;
		tproc_cont(p);
		nr_wrong +=
			traced_do(tr, pup, act_handled, SIGUSR1, 0) != 2L * i;
	}
	check_int(nr_wrong, 0);
}

static void test_ask(struct tracer *tr, struct tproc *p, struct puppet *pup)
{
	struct tevent ev;
	int sig = tproc_trap_signal(p), nr = 0;
	check_int(tproc_set_trap_range(p, (taddr_t)(uintptr_t)&ask,
				       (taddr_t)(uintptr_t)&ask + 64),
		  0);
	puppet_begin(pup, act_ask, sig, NR_TRIALS);
	while (nr < NR_TRIALS &&
	       tracer_next(tr, smco_now_ns() + 20 * NSEC_PER_SEC, &ev) > 0 &&
	       ev.kind == TEV_TRAP) {
		nr++;
		tracer_resume(tr, ev.task, 0);
	}
	check_int(nr, NR_TRIALS);
	check_int(traced_wait(tr, pup), NR_TRIALS);
	check_int(traced_do(tr, pup, act_handled, sig, 0), 0);
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	if (tracer_create(&tr, NULL, &err))
		return 2;
	struct puppet pup = puppet_start();
	check_int(puppet_do(&pup, act_prepare, 0, 0), 0);
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	test_done(tr, p, &pup);
	test_waiting(tr, p, &pup);
	test_ask(tr, p, &pup);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
