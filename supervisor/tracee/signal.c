/* The signal our sensors raise, and who gets which signal at the end. */
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "supervisor/tracee/internal.h"

/* A thread that is to come to its fault's stop has to get a CPU first. */
#define TAKE_BACK_NS (200 * NSEC_PER_MSEC)

/*
 * Default action: ignore. SIGCHLD is not among them: whether it is ignored
 * changes what wait(2) does, so programs care.
 */
static const int trap_signals[] = {SIGURG, SIGWINCH};

int tproc_trap_signal(struct tproc *p)
{
	if (p->trap_sig)
		return p->trap_sig;
	uint64_t taken = 0, set;
	/* Handlers are the process's, the mask is the thread's. */
	static const char *const fields[] = {"SigCgt", "SigIgn"};
	pid_t asked = 0;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		for (size_t i = 0; t->tgid != asked && i < ARRAY_SIZE(fields);
		     i++)
			if (task_status_u64(t, fields[i], 16, &set))
				taken |= set;
		asked = t->tgid;
		if ((t->state == TASK_STOPPED &&
		     task_get_sigmask(t, &set) == 0) ||
		    proc_status_u64(t->tid, "SigBlk", 16, &set))
			taken |= set;
	}
	p->trap_sig = trap_signals[0];
	for (size_t i = 0; i < ARRAY_SIZE(trap_signals); i++)
		if (!(taken >> (trap_signals[i] - 1) & 1)) {
			p->trap_sig = trap_signals[i];
			break;
		}
	return p->trap_sig;
}

int tproc_set_trap_range(struct tproc *p, taddr_t start, taddr_t end)
{
	struct trange *r =
		reallocarray(p->trap_ranges, p->nr_trap_ranges + 1, sizeof(*r));
	if (!r)
		return SMCO_NOMEM;
	p->trap_ranges = r;
	r[p->nr_trap_ranges].start = start;
	r[p->nr_trap_ranges].end = end;
	p->nr_trap_ranges++;
	tproc_trap_signal(p);
	return 0;
}

void tproc_clear_trap_range(struct tproc *p, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < p->nr_trap_ranges; i++)
		if (p->trap_ranges[i].start == start &&
		    p->trap_ranges[i].end == end) {
			p->trap_ranges[i] = p->trap_ranges[--p->nr_trap_ranges];
			return;
		}
}

bool signal_is_bare(const siginfo_t *si)
{
	return si->si_code == SI_USER && !si->si_pid && !si->si_uid;
}

bool signal_is_raised(const siginfo_t *si, const struct user_regs_struct *regs)
{
	return si->si_code == SI_TKILL ||
	       (signal_is_bare(si) && arch.syscall_nr(regs) == SYS_tgkill);
}

bool signal_is_trap(struct task *t, const siginfo_t *si)
{
	struct user_regs_struct regs;

	if (task_get_regs(t, &regs) < 0 ||
	    (si->si_code != SI_QUEUE && !signal_is_raised(si, &regs)))
		return false;
	taddr_t pc = arch.pc(&regs);
	for (size_t i = 0; i < t->proc->nr_trap_ranges; i++)
		if (pc >= t->proc->trap_ranges[i].start &&
		    pc <= t->proc->trap_ranges[i].end)
			return true;
	return false;
}

bool signal_is_stray(struct task *t, const siginfo_t *si)
{
	struct user_regs_struct regs;
	uint8_t before;
	if (si->si_signo != SIGTRAP)
		return false;
	if (si->si_code != TRAP_BRKPT)
		return si->si_code == TRAP_HWBKPT;
	if (task_get_regs(t, &regs) < 0 ||
	    (taddr_t)(uintptr_t)si->si_addr != arch.pc(&regs))
		return false;
	return tmem_read(t->proc, arch.pc(&regs) - 1, &before, 1) < 0 ||
	       before != arch.debug_trap;
}

/* Caused by an instruction, which will do it again. */
static bool is_fault(const siginfo_t *si)
{
	return (si->si_signo == SIGSEGV || si->si_signo == SIGBUS) &&
	       si->si_code > 0 && si->si_code != SI_KERNEL;
}

/* Or has it come into the kernel by an exception? There it has no call. */
static bool is_in_syscall(struct task *t)
{
	struct user_regs_struct regs;
	return task_get_regs(t, &regs) == 0 && arch.syscall_nr(&regs) >= 0;
}

/* One that the thread blocks was not raised by an instruction. @or_stray: what
 * the kernel made of a hit of a debug register counts, too. */
static bool has_pending(struct task *t, bool or_stray)
{
	siginfo_t si[16];
	struct __ptrace_peeksiginfo_args args = {.nr = (int)ARRAY_SIZE(si)};
	uint64_t blocked;
	if (is_in_syscall(t) || task_get_sigmask(t, &blocked) < 0)
		return false;
	for (;;) {
		long n = ptrace(PTRACE_PEEKSIGINFO, t->tid, &args, si);
		for (long i = 0; i < n; i++)
			if ((is_fault(&si[i]) ||
			     (or_stray && signal_is_stray(t, &si[i]))) &&
			    !(blocked >> (si[i].si_signo - 1) & 1))
				return true;
		if (n < (long)ARRAY_SIZE(si))
			return false;
		args.off += (uint64_t)n;
	}
}

static bool has_fault_pending(struct task *t)
{
	return has_pending(t, false);
}

/*
 * A thread that faults while it is being interrupted stops with the fault's
 * signal still in its queue. Faults come before all other signals and before
 * any instruction, so letting it go brings it to that signal's stop at once. So
 * does the SIGTRAP of a debug register, which would kill the program once we
 * have left.
 */
bool signal_meet_fault(struct task *t)
{
	enum stop_kind kind = task_kind(t);
	if ((kind != STOP_INTERRUPT && kind != STOP_GROUP) ||
	    !has_pending(t, true))
		return false;
	t->regs_valid = false;
	if (ptrace(PTRACE_CONT, t->tid, NULL, 0L) < 0)
		return false;
	task_dequeue(t);
	t->state = TASK_RUNNING;
	/* It needs none: that would only come before the signal again. */
	t->interrupted = true;
	return true;
}

static bool stands_at(struct task *t, int sig)
{
	siginfo_t si;
	return task_kind(t) == STOP_SIGNAL && WSTOPSIG(t->status) == sig &&
	       ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) == 0 &&
	       is_fault(&si);
}

static bool stands_at_fault(struct task *t)
{
	return stands_at(t, SIGSEGV);
}

void signal_block_fault(struct task *t)
{
	uint64_t mask;
	t->block_fault = false;
	if (task_get_sigmask(t, &mask) == 0)
		task_set_sigmask(t, mask | 1ULL << (SIGSEGV - 1));
}

void tproc_block_after_fault(struct tproc *p,
			     bool (*blocks)(struct task *t, void *arg),
			     void *arg)
{
	for (struct task *t = p->tasks; t; t = t->next) {
		if (t->state != TASK_STOPPED)
			continue;
		if (stands_at_fault(t)) {
			if (blocks(t, arg))
				signal_block_fault(t);
		} else if (has_fault_pending(t)) {
			/* Blocked now it would stay queued. */
			t->block_fault = blocks(t, arg);
		}
	}
}

/* From a stop on the way there to the stop of the fault's signal. It runs no
 * instruction of the program before that, however late it gets a CPU. */
static bool go_to_fault(struct task *t)
{
	return signal_meet_fault(t) &&
	       task_await(t, smco_now_ns() + TAKE_BACK_NS) == 0 &&
	       t->state == TASK_STOPPED && task_kind(t) == STOP_SIGNAL;
}

static void take_back(struct task *t)
{
	/* It loses its signal on the way. Who comes late stands all the same,
	 * but where is known only after another try. */
	int r = task_to_event_stop(t);
	if (r == SMCO_BUSY && t->state == TASK_STOPPED)
		r = task_to_event_stop(t);
	if (t->state == TASK_DEAD)
		return;
	task_dequeue(t);
	if (r < 0)
		return;
	smco_debug("ptrace", "%d: a fault is taken back", t->tid);
	if (t->block_fault)
		signal_block_fault(t);
}

void tproc_take_back_faults(struct tproc *p)
{
	for (struct task *t = p->tasks; t; t = t->next) {
		if (t->state != TASK_STOPPED || t->held || t->owed || t->is_new)
			continue;
		if (task_kind(t) != STOP_SIGNAL && !go_to_fault(t))
			continue;
		/* Not queued: it is decided what becomes of its signal. */
		if (t->queued &&
		    (stands_at(t, SIGSEGV) || stands_at(t, SIGBUS)))
			take_back(t);
	}
}

/* Asked for several times in one stop. */
static bool get_caught(struct task *t, uint64_t *ret)
{
	if (!t->caught_valid)
		t->caught_valid = task_status_u64(t, "SigCgt", 16, &t->caught);
	*ret = t->caught;
	return t->caught_valid;
}

bool signal_is_handled(struct task *t, int sig)
{
	uint64_t set;
	return get_caught(t, &set) && (set >> (sig - 1) & 1);
}

bool signal_is_ignored(struct task *t, int sig)
{
	uint64_t set;
	if (sig == SIGCONT || !get_caught(t, &set) || (set >> (sig - 1) & 1))
		return false;
	if (sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH)
		return true;
	return task_status_u64(t, "SigIgn", 16, &set) && (set >> (sig - 1) & 1);
}

bool signal_stops(struct task *t, int sig)
{
	static const char *const fields[] = {"SigIgn", "SigCgt"};
	uint64_t set;

	if (sig == SIGSTOP)
		return true;
	if (sig != SIGTSTP && sig != SIGTTIN && sig != SIGTTOU)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (task_status_u64(t, fields[i], 16, &set) &&
		    (set >> (sig - 1) & 1))
			return false;
	return true;
}

int signal_at_detach(struct task *t)
{
	siginfo_t si;

	if (t->state != TASK_STOPPED || task_kind(t) != STOP_SIGNAL)
		return 0;
	if (t->no_signal)
		return 0;
	if (!t->queued && !t->held)
		return t->deliver; /* decided already */
	int sig = WSTOPSIG(t->status);
	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0)
		return sig;
	if (t->proc && sig == t->proc->trap_sig && signal_is_trap(t, &si))
		return 0;
	if (signal_is_stray(t, &si))
		return 0;
	/*
	 * A fault may have been caused by what has just been undone. Taken
	 * back, the instruction runs again, and if the fault is the program's
	 * own it comes again, the same in every detail.
	 */
	return is_fault(&si) ? 0 : sig;
}
