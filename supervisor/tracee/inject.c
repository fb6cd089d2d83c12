/*
 * System calls in the tracee. A stopped task is borrowed: its registers and
 * signal mask are put away, the call is made at a syscall instruction that the
 * process has anyway, and everything is put back so that the stop it was in
 * continues as if nothing had been.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

#define KERNEL_SIGSET_SIZE 8

/* --- where is a syscall instruction --- */

static taddr_t search_range(struct tproc *p, taddr_t start, taddr_t end)
{
	uint8_t buf[4096];
	size_t len = arch.syscall_insn_len;
	while (start + len <= end) {
		size_t n =
			end - start < sizeof(buf) ? end - start : sizeof(buf);
		n = tmem_read_some(p, start, buf, n);
		if (n < len)
			return 0;
		uint8_t *hit = memmem(buf, n, arch.syscall_insn, len);
		if (hit)
			return start + (taddr_t)(hit - buf);
		start += n - len + 1;
	}
	return 0;
}

static taddr_t find_syscall_insn(struct tproc *p)
{
	if (p->syscall_insn)
		return p->syscall_insn;
	/* The vdso is there in every process, at any time. */
	struct tmaps maps;
	taddr_t vdso = proc_auxv(p->pid, AT_SYSINFO_EHDR);
	if (vdso)
		p->syscall_insn = search_range(p, vdso, vdso + 2 * TPAGE_SIZE);
	if (p->syscall_insn || tmaps_read(p->pid, &maps, NULL) < 0)
		return p->syscall_insn;
	for (size_t i = 0; i < maps.nr && !p->syscall_insn; i++)
		if (maps.maps[i].prot & PROT_EXEC)
			p->syscall_insn = search_range(p, maps.maps[i].start,
						       maps.maps[i].end);
	tmaps_deinit(&maps);
	return p->syscall_insn;
}

/* --- borrowing a task --- */

struct loan {
	struct task *t;
	enum stop_kind kind; /* of the stop it was in */
	int status;
	bool in_entry; /* STOP_SYSCALL: enter-stop */
	struct user_regs_struct regs;
	uint64_t mask;
	bool stop_again; /* a SIGSTOP came in between: send it again */
	siginfo_t si;	 /* STOP_SIGNAL */
};

static int rank(const struct task *t)
{
	switch (task_kind(t)) {
	case STOP_INTERRUPT:
		return 1;
	case STOP_GROUP:
		return 2;
	case STOP_SYSCALL:
		return 3;
	case STOP_EXEC:
		return 4;
	case STOP_CLONE:
	case STOP_FORK:
	case STOP_VFORK_DONE:
	case STOP_OTHER:
		return 5;
	case STOP_SIGNAL:
		return 6;
	default: /* a vfork parent would wait for its child */
		return 0;
	}
}

static struct task *choose(struct tproc *p)
{
	struct task *best = NULL;
	if (p->execed)
		return NULL;
	for (struct task *t = p->tasks; t; t = t->next)
		if (t->state == TASK_STOPPED && rank(t) &&
		    (!best || rank(t) < rank(best)))
			best = t;
	return best;
}

/* Wait for the next stop of the borrowed task alone. */
static int next_stop(struct loan *l)
{
	struct task *t = l->t;
	for (;;) {
		int status;
		pid_t tid = waitpid(t->tid, &status, __WALL);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return SMCO_GONE;
		enum stop_kind kind = stop_classify(status);
		if (kind == STOP_EXITED || kind == STOP_KILLED) {
			gather(t->tr, tid, status);
			return SMCO_GONE;
		}
		t->regs_valid = false;
		if (kind == STOP_SIGNAL && WSTOPSIG(status) == SIGSTOP) {
			/* The one signal that no mask keeps out. */
			l->stop_again = true;
			if (ptrace(PTRACE_SYSCALL, tid, NULL, 0L) < 0)
				return SMCO_GONE;
			continue;
		}
		return status;
	}
}

static int go_on(struct task *t, enum __ptrace_request req)
{
	return ptrace(req, t->tid, NULL, 0L) < 0 ? SMCO_GONE : 0;
}

/* PTRACE_SYSCALL until a syscall-stop. */
static int to_syscall_stop(struct loan *l)
{
	for (;;) {
		if (go_on(l->t, PTRACE_SYSCALL) < 0)
			return SMCO_GONE;
		int status = next_stop(l);
		if (status < 0)
			return status;
		if (stop_classify(status) == STOP_SYSCALL)
			return 0;
		/* Else a group-stop or event-stop of our own making. */
	}
}

static int set_regs(struct task *t, const struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, t->tid, NULL, regs) < 0 ? SMCO_GONE : 0;
}

static int borrow(struct loan *l, struct task *t)
{
	uint64_t all = ~0ULL;

	memset(l, 0, sizeof(*l));
	l->t = t;
	l->status = t->status;
	l->kind = task_kind(t);
	if (l->kind == STOP_SIGNAL &&
	    ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &l->si) < 0)
		return SMCO_GONE;
	if (ptrace(PTRACE_GETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &l->mask) <
		    0 ||
	    ptrace(PTRACE_SETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &all) < 0)
		return SMCO_GONE;

	switch (l->kind) {
	case STOP_INTERRUPT:
	case STOP_GROUP:
		break;
	case STOP_SYSCALL: {
		struct __ptrace_syscall_info info;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info),
			   &info) <= 0)
			return SMCO_GONE;
		l->in_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
		break;
	}
	default:
		/* Inside a system call, or about to get a signal. */
		if (task_to_event_stop(t) < 0)
			return SMCO_GONE;
		break;
	}
	t->regs_valid = false;
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &l->regs) < 0)
		return SMCO_GONE;
	if (l->in_entry) {
		/* Leave the program's call; it is entered again later. */
		struct user_regs_struct regs = l->regs;
		arch.skip_syscall(&regs);
		if (set_regs(t, &regs) < 0 || to_syscall_stop(l) < 0)
			return SMCO_GONE;
	}
	return 0;
}

/* Back into a signal-delivery-stop with the very same siginfo. */
static int signal_again(struct loan *l)
{
	struct task *t = l->t;
	int sig = WSTOPSIG(l->status);
	uint64_t all_but = ~(1ULL << (sig - 1));

	if (ptrace(PTRACE_SETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &all_but) <
		    0 ||
	    syscall(SYS_tgkill, t->tgid, t->tid, sig) < 0)
		return SMCO_GONE;
	for (;;) {
		if (go_on(t, PTRACE_CONT) < 0)
			return SMCO_GONE;
		int status = next_stop(l);
		if (status < 0)
			return status;
		if (status == l->status)
			break;
	}
	return ptrace(PTRACE_SETSIGINFO, t->tid, NULL, &l->si) < 0 ? SMCO_GONE
								   : 0;
}

static int give_back(struct loan *l)
{
	struct task *t = l->t;
	bool in_syscall_stop = true; /* every loan ends in one */
	int r = 0;

	if (l->in_entry) {
		struct user_regs_struct regs = l->regs;
		arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
		if (set_regs(t, &regs) < 0 || to_syscall_stop(l) < 0)
			return SMCO_GONE;
		/* Registers that the entry does not set are put right. */
		if (set_regs(t, &l->regs) < 0)
			return SMCO_GONE;
		t->status = l->status;
	} else if (l->kind == STOP_SYSCALL) {
		/*
		 * The kernel restarts a call only on its way through signal
		 * delivery; our masking may have cancelled that.
		 */
		if (set_regs(t, &l->regs) < 0)
			return SMCO_GONE;
		if (arch.restart_pending(&l->regs))
			task_interrupt(t);
		t->status = l->status;
	} else if (l->kind == STOP_INTERRUPT &&
		   !arch.restart_pending(&l->regs)) {
		if (set_regs(t, &l->regs) < 0)
			return SMCO_GONE;
	} else {
		/* Group-stops, restarts and signals need the real thing. */
		r = task_to_event_stop(t);
		if (r == 0)
			r = set_regs(t, &l->regs);
		in_syscall_stop = false;
		if (r == 0 && l->kind == STOP_SIGNAL) {
			r = signal_again(l);
			if (r == 0)
				t->status = l->status;
		}
	}
	(void)in_syscall_stop;
	t->regs_valid = false;
	if (r == 0 &&
	    ptrace(PTRACE_SETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &l->mask) < 0)
		r = SMCO_GONE;
	if (l->stop_again)
		syscall(SYS_tgkill, t->tgid, t->tid, SIGSTOP);
	return r;
}

static int call_once(struct loan *l, taddr_t insn, struct tsyscall *c)
{
	struct user_regs_struct regs = l->regs;
	arch.set_syscall(&regs, insn, c->nr, c->args);
	if (set_regs(l->t, &regs) < 0 || to_syscall_stop(l) < 0 ||
	    to_syscall_stop(l) < 0 ||
	    ptrace(PTRACE_GETREGS, l->t->tid, NULL, &regs) < 0)
		return SMCO_GONE;
	c->ret = arch.syscall_ret(&regs);
	return 0;
}

int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err)
{
	struct task *t = choose(p);
	if (!t)
		return smco_fail(
			err, tproc_first_task(p) ? SMCO_BUSY : SMCO_GONE, 0,
			"process %d: no stopped thread to borrow", p->pid);
	taddr_t insn = find_syscall_insn(p);
	if (!insn)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "process %d has no syscall instruction",
				 p->pid);
	struct loan l;
	int r = borrow(&l, t);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = call_once(&l, insn, &calls[i]);
	if (r == 0)
		r = give_back(&l);
	if (r < 0)
		return smco_fail(err, SMCO_GONE, 0,
				 "thread %d ended in an injected call", t->tid);
	return 0;
}

int tproc_syscall(struct tproc *p, long nr, const uint64_t args[6],
		  int64_t *ret, struct smco_err *err)
{
	struct tsyscall c = {.nr = nr};
	memcpy(c.args, args, sizeof(c.args));
	int r = tproc_syscalls(p, &c, 1, err);
	if (r == 0)
		*ret = c.ret;
	return r;
}

/* --- code --- */

/* Where the task would go on, with a system call it was in made again. */
static void way_back(const struct loan *l, struct user_regs_struct *ret)
{
	*ret = l->regs;
	if (l->in_entry || arch.restart_pending(&l->regs))
		arch.rewind_syscall(ret, arch.syscall_nr(&l->regs));
}

/* Until the code has raised @sig; the same signal from elsewhere is kept. */
static int run_to_signal(struct loan *l, int sig, bool *again)
{
	struct task *t = l->t;
	siginfo_t si;
	for (;;) {
		if (go_on(t, PTRACE_CONT) < 0)
			return SMCO_GONE;
		int status = next_stop(l);
		if (status < 0)
			return status;
		if (stop_classify(status) != STOP_SIGNAL)
			continue;
		if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0)
			return SMCO_GONE;
		if (WSTOPSIG(status) == sig && si.si_code == SI_TKILL &&
		    si.si_pid == t->tgid)
			return 0;
		if (WSTOPSIG(status) != sig)
			return SMCO_FAULT; /* it crashed: no mask helps */
		*again = true;
	}
}

int task_run(struct task *t, const struct task_run *run, struct smco_err *err)
{
	struct tproc *p = t->proc;
	int sig = tproc_trap_signal(p);
	uint64_t all_but = ~(1ULL << (sig - 1));
	struct user_regs_struct regs;
	bool again = false;
	struct loan l;

	if (t->state != TASK_STOPPED || !rank(t) || p->execed)
		return smco_fail(err, SMCO_BUSY, 0,
				 "thread %d cannot be borrowed now", t->tid);
	int r = borrow(&l, t);
	if (r < 0)
		return smco_fail(err, r, 0, "thread %d is gone", t->tid);
	if (run->before) {
		way_back(&l, &regs);
		run->before(run->ctx, &regs, l.mask);
	}
	regs = l.regs;
	const uint64_t args[6] = {(uint64_t)sig};
	arch.set_syscall(&regs, run->pc, -1, args);
	arch.set_sp(&regs, run->sp);
	if (ptrace(PTRACE_SETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &all_but) < 0)
		r = SMCO_GONE;
	if (r == 0)
		r = set_regs(t, &regs);
	if (r == 0)
		r = run_to_signal(&l, sig, &again);
	/* Every loan ends in a syscall-stop or an event-stop. */
	if (r == 0)
		r = task_to_event_stop(t);
	if (r == 0)
		r = give_back(&l);
	if (again)
		syscall(SYS_tgkill, t->tgid, t->tid, sig);
	if (r < 0)
		return smco_fail(err, r, 0, "thread %d failed in our code",
				 t->tid);
	return 0;
}

int task_get_sigmask(struct task *t, uint64_t *ret)
{
	if (ptrace(PTRACE_GETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, ret) < 0)
		return SMCO_GONE;
	return 0;
}

int task_set_sigmask(struct task *t, uint64_t mask)
{
	if (ptrace(PTRACE_SETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &mask) < 0)
		return SMCO_GONE;
	return 0;
}
