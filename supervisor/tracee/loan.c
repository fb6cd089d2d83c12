#include "supervisor/tracee/loan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL_SIGSET_SIZE 8
/* From the first SIGSTOP on one way. Sent without end they would keep the task
 * from its next instruction, and us from ever giving it back. */
#define SIGSTOP_BOUND_NS (200 * NSEC_PER_MSEC)

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

/*
 * A worker of io_uring's is among the threads, but never in user mode: what it
 * was told to run there it would never come back from. In 32-bit code, which a
 * 64-bit program may jump to (Wine), ours would be other instructions, and the
 * fault would cost the program its handler; it comes back from there.
 */
static bool runs_our_code(struct task *t)
{
	struct user_regs_struct regs;
	return task_get_regs(t, &regs) < 0 ||
	       ((arch.pc(&regs) || arch.sp(&regs)) && !arch.is_compat(&regs));
}

bool loan_possible(struct task *t)
{
	return t->state == TASK_STOPPED && rank(t) && t->proc &&
	       !t->proc->execed && runs_our_code(t);
}

static struct task *choose(struct tproc *p, bool may_divert)
{
	struct task *best = NULL;
	for (struct task *t = p->tasks; t; t = t->next)
		if ((!best || rank(t) < rank(best)) && loan_possible(t) &&
		    (may_divert || !task_diverts_calls(t)))
			best = t;
	return best;
}

struct task *loan_choose(struct tproc *p)
{
	struct task *best = choose(p, true);
	/* Of several threads some may make calls as they like. */
	struct task *other =
		best && task_diverts_calls(best) ? choose(p, false) : NULL;
	return other ? other : best;
}

static int go_on(struct loan *l, enum __ptrace_request req)
{
	l->t->regs_valid = false;
	return task_lend(l->t, req);
}

static int set_mask(struct loan *l, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, l->t->tid, KERNEL_SIGSET_SIZE, &mask) <
			       0
		       ? SMCO_GONE
		       : 0;
}

/* Let it go by @req and return the status of the next stop, of this task. */
static int next_stop(struct loan *l, enum __ptrace_request req)
{
	for (;;) {
		int status;
		if (go_on(l, req) < 0)
			return SMCO_GONE;
		int r = task_next_stop(l->t, &status);
		if (l->t->state == TASK_STOPPED &&
		    stop_classify(status) == STOP_SIGNAL &&
		    WSTOPSIG(status) == SIGSTOP) {
			/* The one signal that no mask keeps out. */
			l->stop_again = true;
			if (!l->sigstop_ns)
				l->sigstop_ns = smco_now_ns();
			if (r == 0 &&
			    smco_now_ns() - l->sigstop_ns > SIGSTOP_BOUND_NS)
				r = SMCO_BUSY;
		} else if (r == 0) {
			return status;
		}
		if (r < 0) {
			l->signal_path = true;
			return r;
		}
	}
}

int loan_block(struct loan *l)
{
	return set_mask(l, ~0ULL);
}

int loan_set_regs(struct loan *l, const struct user_regs_struct *regs)
{
	l->t->regs_valid = false;
	l->from = arch.pc(regs);
	return ptrace(PTRACE_SETREGS, l->t->tid, NULL, regs) < 0 ? SMCO_GONE
								 : 0;
}

int loan_to_syscall_stop(struct loan *l)
{
	for (;;) {
		int status = next_stop(l, PTRACE_SYSCALL);
		if (status < 0)
			return status;
		if (stop_classify(status) == STOP_SYSCALL)
			break;
		/* Else a group-stop or event-stop of our own making. */
	}
	l->signal_path = false;
	return 0;
}

/* Is @sig queued for the task already, for it alone or for its process? */
static bool is_pending(struct loan *l, int sig, unsigned flags)
{
	siginfo_t si[16];
	struct __ptrace_peeksiginfo_args args = {.flags = flags,
						 .nr = (int)ARRAY_SIZE(si)};
	long n = ptrace(PTRACE_PEEKSIGINFO, l->t->tid, &args, si);
	for (long i = 0; i < n; i++)
		if (si[i].si_signo == sig)
			return true;
	/* A longer queue: who knows. */
	return n == (long)ARRAY_SIZE(si);
}

/* Bare ones are in no queue. */
static bool is_pending_bare(const struct task *t, int sig)
{
	uint64_t own = 0, shared = 0;
	return t->proc->has_bare && task_status_u64(t, "SigPnd", 16, &own) &&
	       task_status_u64(t, "ShdPnd", 16, &shared) &&
	       ((own | shared) >> (sig - 1) & 1);
}

static bool is_pending_anywhere(struct loan *l, int sig)
{
	return is_pending(l, sig, 0) ||
	       is_pending(l, sig, PTRACE_PEEKSIGINFO_SHARED) ||
	       is_pending_bare(l->t, sig);
}

int loan_carrier(struct loan *l)
{
	/* Ignored by default, so that a supervisor's death does no harm. */
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD};
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!is_pending_anywhere(l, signals[i]))
			return signals[i];
	return signals[0];
}

int loan_run_to_signal(struct loan *l, int sig, taddr_t pc)
{
	struct task *t = l->t;

	if (set_mask(l, ~(1ULL << (sig - 1))) < 0)
		return SMCO_GONE;
	for (;;) {
		struct user_regs_struct regs;
		siginfo_t si;
		int status = next_stop(l, PTRACE_CONT);
		if (status < 0)
			return status;
		l->signal_path = true;
		if (stop_classify(status) != STOP_SIGNAL)
			continue;
		if (WSTOPSIG(status) != sig)
			return SMCO_FAULT;
		if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0 ||
		    ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
			return SMCO_GONE;
		/* What the thread has sent itself before, as our sensors do,
		 * looks like ours but comes before the first instruction. */
		bool is_ours = signal_is_raised(&si, &regs);
		t->proc->has_bare |= signal_is_bare(&si);
		bool there = pc ? arch.pc(&regs) == pc
				: arch.pc(&regs) != l->from && is_ours &&
					     (signal_is_bare(&si) ||
					      si.si_pid == task_own_tgid(t));
		/* One that was pending swallows ours: both are there then. */
		if (!there || !is_ours) {
			l->stray = true;
			l->stray_si = si;
		}
		if (there)
			return 0;
	}
}

int loan_leave_code(struct loan *l)
{
	struct user_regs_struct regs = l->regs;
	if (l->in_entry)
		arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
	int r = set_mask(l, l->mask);
	return r == 0 ? loan_set_regs(l, &regs) : r;
}

int loan_end(struct loan *l, int r)
{
	struct task *t = l->t;
	int back = t->state == TASK_STOPPED ? loan_give_back(l) : SMCO_GONE;

	if (r == 0)
		r = back;
	if (t->state != TASK_RUNNING || !t->quiet)
		return r;
	/* Where it runs it puts itself right if we do not: so without memory
	 * nothing is owed. */
	t->owed = malloc(sizeof(*l));
	if (t->owed) {
		*t->owed = *l;
		t->proc->nr_owed++;
	}
	return SMCO_BUSY;
}

void loan_write_off(struct task *t)
{
	if (!t->owed)
		return;
	free(t->owed);
	t->owed = NULL;
	t->proc->nr_owed--;
}

void loan_pay_back(struct task *t)
{
	struct loan l = *t->owed;

	loan_write_off(t);
	smco_debug("ptrace", "%d is back", t->tid);
	if (task_kind(t) == STOP_SIGNAL) {
		l.stop_again |= WSTOPSIG(t->status) == SIGSTOP;
		t->status = l.status;
	}
	loan_end(&l, 0);
}

int loan_take(struct loan *l, struct task *t)
{
	int r;
	memset(l, 0, sizeof(*l));
	l->t = t;
	l->status = t->status;
	l->kind = task_kind(t);
	l->signal_path = true;
	if (l->kind == STOP_SIGNAL &&
	    ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &l->si) < 0)
		return SMCO_GONE;
	/*
	 * The mask is changed only once the registers lead to code that puts
	 * it right by itself: we may be killed at any moment. Up to there no
	 * stop on our way is one where signals are taken.
	 */
	if (ptrace(PTRACE_GETSIGMASK, t->tid, KERNEL_SIGSET_SIZE, &l->mask) < 0)
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
		l->signal_path = false;
		break;
	}
	default:
		/* Inside a system call, or about to get a signal. */
		r = task_to_event_stop(t);
		if (r < 0)
			return r;
		break;
	}
	t->regs_valid = false;
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &l->regs) < 0)
		return SMCO_GONE;
	l->has_regs = true;
	if (l->in_entry) {
		/* Leave the program's call; it is entered again later, also
		 * if it goes on from here by itself. */
		struct user_regs_struct regs = l->regs;
		arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
		if (loan_set_regs(l, &regs) < 0)
			return SMCO_GONE;
		return loan_to_syscall_stop(l);
	}
	return 0;
}

static bool is_job_control(int sig)
{
	return sig == SIGCONT || sig == SIGSTOP || sig == SIGTSTP ||
	       sig == SIGTTIN || sig == SIGTTOU;
}

/*
 * Into a signal-delivery-stop of @si's signal with the very same siginfo, as
 * far as it has an effect yet.
 *
 * It is sent anew, unless that would do more: stop signals and SIGCONT take
 * back each other where they wait, and one that waits already would be taken
 * for ours. Then a harmless one is sent whose stop becomes this one's.
 */
static int stop_with_signal(struct loan *l, const siginfo_t *si)
{
	struct task *t = l->t;
	int sig = si->si_signo;
	bool is_job = is_job_control(sig);
	int carrier =
		is_job || is_pending_anywhere(l, sig) ? loan_carrier(l) : sig;

	if (set_mask(l, ~(1ULL << (carrier - 1))) < 0 ||
	    syscall(SYS_tgkill, t->tgid, t->tid, carrier) < 0)
		return SMCO_GONE;
	int status;
	do {
		status = next_stop(l, PTRACE_CONT);
		if (status < 0)
			return status;
	} while (stop_classify(status) != STOP_SIGNAL ||
		 WSTOPSIG(status) != carrier);
	/* Sent after the stop signal, or it would have been taken back; from
	 * this stop on the kernel itself looks for it. */
	if (is_job && sig != SIGCONT && is_pending_anywhere(l, SIGCONT)) {
		t->deliver = 0;
		return task_to_event_stop(t);
	}
	t->status = W_STOPCODE(sig);
	return ptrace(PTRACE_SETSIGINFO, t->tid, NULL, si) < 0 ? SMCO_GONE : 0;
}

static int give_back_syscall_stop(struct loan *l)
{
	if (!l->in_entry) {
		int r = loan_set_regs(l, &l->regs);
		/* The kernel restarts a call only on its way through signal
		 * delivery; our mask may have cancelled that. */
		if (r == 0 && !l->signal_path && arch.restart_pending(&l->regs))
			task_interrupt(l->t);
		return r;
	}
	struct user_regs_struct regs = l->regs;
	arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
	if (loan_block(l) < 0 || loan_set_regs(l, &regs) < 0)
		return SMCO_GONE;
	int r = loan_to_syscall_stop(l);
	if (r < 0)
		return r;
	/* Registers that entering does not set are put right. */
	return loan_set_regs(l, &l->regs);
}

/* The program's own signal that came under cover of ours. */
static int put_back_stray(struct loan *l)
{
	struct task *t = l->t;
	int r = 0;

	if (l->kind == STOP_INTERRUPT && !t->held) {
		r = stop_with_signal(l, &l->stray_si);
		task_enqueue(t);
	} else {
		syscall(SYS_tgkill, t->tgid, t->tid, l->stray_si.si_signo);
	}
	return r;
}

int loan_give_back(struct loan *l)
{
	struct task *t = l->t;
	int r = 0;

	l->sigstop_ns = 0;
	if (!l->has_regs) {
		/* Not even begun. */
		if (l->kind == STOP_SIGNAL)
			r = stop_with_signal(l, &l->si);
	} else if (l->kind == STOP_SYSCALL) {
		r = give_back_syscall_stop(l);
		t->status = l->status;
	} else {
		/*
		 * Group-stops can be listened to, restarts and signals happen
		 * only in a stop on the way to signal delivery.
		 */
		if (l->kind == STOP_GROUP ||
		    (!l->signal_path && (l->kind == STOP_SIGNAL ||
					 arch.restart_pending(&l->regs)))) {
			r = task_to_event_stop(t);
			l->signal_path = true;
		}
		/* The mask first: the code in which it stands puts the rest
		 * right by itself should we be gone before we have. */
		if (r == 0)
			r = set_mask(l, l->mask);
		if (r == 0)
			r = loan_set_regs(l, &l->regs);
		if (r == 0 && l->kind == STOP_SIGNAL)
			r = stop_with_signal(l, &l->si);
	}
	if (r == 0 && l->stray)
		r = put_back_stray(l);
	if (r == 0)
		r = set_mask(l, l->mask);
	/* Sent after it, SIGCONT has taken it back. */
	if (l->stop_again && !is_pending_anywhere(l, SIGCONT))
		syscall(SYS_tgkill, t->tgid, t->tid, SIGSTOP);
	l->stop_again = false;
	t->regs_valid = false;
	return r;
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
