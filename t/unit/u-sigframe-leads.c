/*
 * Who may go on in a place that is to go: a thread that is there, one that
 * sleeps in the kernel and comes back there, one that will after a handler, and
 * one of which nothing is known because it has not stopped.
 */
#include <stdlib.h>
#include <ucontext.h>

#include "supervisor/probe/sigframe.h"
#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define AROUND 64

static struct tracer *tr;

/* Its parent sleeps where no stop reaches it. */
static long act_vfork(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	pid_t parent = getpid();
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent) /* else it came too late */
			pause();
		_exit(0);
	}
	return 0;
}

/* At one address, for ever. */
long act_spin(long unused, long unused2);
__asm__(".pushsection .text\n"
	".globl act_spin\n"
	"act_spin: jmp act_spin\n"
	".popsection");

static volatile sig_atomic_t *in_handler;

static void on_signal(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *uc = context;
	(void)sig;
	(void)si;
	if (uc->uc_mcontext.gregs[REG_RIP] != (greg_t)act_spin)
		return; /* not there yet */
	++*in_handler;
	pause();
}

static long act_say_and_spin(long unused, long unused2)
{
	*in_handler = 1;
	return act_spin(unused, unused2);
}

static long act_handle(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	struct sigaction sa = {.sa_sigaction = on_signal,
			       .sa_flags = SA_SIGINFO};
	return sigaction(SIGUSR1, &sa, NULL);
}

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec ts = {0};
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Its state is no sign of that: /proc says R of one that is being woken, too,
 * whose place is known until it is on a queue (TASK_WAKING). */
static void wait_until_it_runs(const struct puppet *p)
{
	clockid_t clock;
	if (!check_int(clock_getcpuclockid(p->pid, &clock), 0))
		exit(tap_done());
	uint64_t until_ns = cpu_ns(clock) + NSEC_PER_MSEC;
	while (cpu_ns(clock) < until_ns)
		usleep(1000);
}

static void check_around(struct task *t, taddr_t pc)
{
	check(sigframes_leads_to(t, pc, pc + 1));
	check(sigframes_leads_to(t, pc - AROUND, pc + AROUND));
	check(!sigframes_leads_to(t, pc + 1, pc + AROUND));
	check(!sigframes_leads_to(t, pc - AROUND, pc));
}

/* Looked at before, and then a handler begins, and ends. */
static void handler_comes_later(void)
{
	struct puppet later = puppet_start();
	struct tevent ev;
	struct smco_err err = {0};

	*in_handler = 0;
	check_int(puppet_do(&later, act_handle, 0, 0), 0);
	while (puppet_state(later.pid) != 'S')
		usleep(1000);
	struct tproc *p = traced_must_attach(tr, later.pid);
	struct task *t = tproc_first_task(p);
	check(t->no_handler); /* it slept */
	check(!task_in_handler(t));
	tproc_resume_new(p);
	puppet_begin(&later, act_say_and_spin, 0, 0);
	while (!*in_handler) /* not to end its read */
		tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev);
	while (*in_handler < 2 || puppet_state(later.pid) != 'S') {
		kill(later.pid, SIGUSR1);
		tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev);
	}
	check_int(traced_stop(p, &err), 0);
	check(task_in_handler(t));
	check(sigframes_leads_to(t, (taddr_t)act_spin, (taddr_t)act_spin + 1));
	tproc_cont(p);
	puppet_end(&later);
}

/* What is not to be known before it stands is looked at then, once. */
static void looked_at_when_it_stands(struct puppet *runs, struct tproc *p)
{
	struct smco_err err = {0};
	struct task *t = tproc_first_task(p);
	check(!t->no_handler);
	check_int(traced_stop(p, &err), 0);
	check(!task_in_handler(t));
	check(t->no_handler);
	tproc_cont(p);
	wait_until_it_runs(runs);
}

int main(void)
{
	struct smco_err err = {0};
	struct user_regs_struct regs;
	taddr_t pc = 0, sp = 0;

	in_handler = mmap(NULL, sizeof(*in_handler), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct puppet reads = puppet_start(), parent = puppet_start(),
		      runs = puppet_start(), handles = puppet_start();
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();

	struct task *t = tproc_first_task(traced_must_attach(tr, reads.pid));
	check_int(task_get_regs(t, &regs), 0);
	check_int(task_get_place(t, &pc, &sp), 0);
	check(pc == regs.rip && sp == regs.rsp);
	check_around(t, pc);

	puppet_begin(&parent, act_vfork, 0, 0);
	while (puppet_state(parent.pid) != 'D')
		usleep(1000);
	t = tproc_first_task(traced_must_attach(tr, parent.pid));
	check_int(t->state, TASK_RUNNING);
	if (check_int(task_get_place(t, &pc, &sp), 0)) {
		check(pc > 4096 && sp > 4096);
		check_around(t, pc);
	}

	check_int(puppet_do(&handles, act_handle, 0, 0), 0);
	puppet_begin(&handles, act_spin, 0, 0);
	while (!*in_handler || puppet_state(handles.pid) != 'S') {
		kill(handles.pid, SIGUSR1);
		usleep(1000);
	}
	struct tproc *p = traced_must_attach(tr, handles.pid);
	t = tproc_first_task(p);
	check_int(task_get_place(t, &pc, &sp), 0);
	check(pc != (taddr_t)act_spin);
	check_around(t, (taddr_t)act_spin);

	puppet_begin(&runs, act_spin, 0, 0);
	wait_until_it_runs(&runs);
	p = traced_must_attach(tr, runs.pid);
	tproc_resume_new(p);
	t = tproc_first_task(p);
	wait_until_it_runs(&runs);
	looked_at_when_it_stands(&runs, p);
	check_int(task_get_place(t, &pc, &sp), SMCO_BUSY);
	check(sigframes_leads_to(t, 4096, 8192));
	kill(runs.pid, SIGKILL);
	while (puppet_state(runs.pid) != 'Z')
		usleep(1000);
	check_int(task_get_place(t, &pc, &sp), SMCO_GONE);
	check(!sigframes_leads_to(t, 4096, 8192));

	handler_comes_later();
	kill(parent.pid, SIGKILL);
	tracer_detach_all(tr, NULL);
	tracer_destroy(tr);
	puppet_end(&reads);
	puppet_end(&handles);
	return tap_done();
}
