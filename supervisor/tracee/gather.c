/*
 * What a wait status says is booked at once, whoever waited for it. What is
 * left to be decided is queued, for act() (event.c).
 */
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

void gather_end(struct task *t, int status)
{
	t->state = TASK_DEAD;
	t->status = status;
	t->held = false;
	t->interrupted = false;
	if (t->proc)
		task_enqueue(t);
	else
		task_unlink(t); /* born and killed before anybody heard */
}

/* Stopped at last, while its process is being left. */
static void gather_leaving(struct task *t)
{
	/* The first that could stop, maybe. */
	if (!t->proc->execed) {
		stub_remove(t->proc);
		whole_leave(t);
	}
	/* Nobody has decided about its signal. */
	if (!t->queued)
		task_enqueue(t);
	task_detach(t);
	tproc_discard_if_left(t->proc);
}

static bool is_end(int status)
{
	enum stop_kind kind = stop_classify(status);
	return kind == STOP_EXITED || kind == STOP_KILLED;
}

/* Our own child, though no longer our tracee. */
static void note_left_end(struct tracer *tr, pid_t tid, int status)
{
	if (tid != tr->left_pid)
		return;
	tr->left_pid = 0;
	event_push(tr, TEV_LEFT_ENDED, NULL, NULL)->exit_status = status;
}

/* NULL: nobody's that matters. */
static struct task *whose_status(struct tracer *tr, pid_t tid, int status)
{
	struct task *t = task_find(tr, tid);

	if (t && t->state == TASK_DEAD) {
		/* The number was given out again before the end was told. */
		act_end(t);
		t = NULL;
	}
	if (t)
		return t;
	/* Reaped after another thread's exec: no longer of interest. */
	if (is_end(status)) {
		after_note_end(tid);
		note_left_end(tr, tid, status);
		return NULL;
	}
	t = task_create(tr, tid);
	if (!t) /* out of memory: at least do not leave it stopped */
		ptrace(PTRACE_DETACH, tid, NULL, 0L);
	return t;
}

/* Not that of a sensor, nor of a guard. */
static bool is_unwanted(const struct tproc *p, enum stop_kind kind, int status)
{
	int sig = WSTOPSIG(status);
	switch (kind) {
	case STOP_SIGNAL:
		return sig != p->trap_sig && sig != SIGSEGV && sig != SIGBUS &&
		       (sig != SIGTRAP || !debugreg_any(p));
	case STOP_CLONE:
		return true;
	default:
		return false;
	}
}

static void note_stop(struct task *t, int status)
{
	enum stop_kind kind = stop_classify(status);

	if (t->owed || (t->interrupted && kind == STOP_INTERRUPT))
		t->tr->nr_asked++;
	if (kind != STOP_SYSCALL)
		t->begins_interrupted = false;
	t->state = TASK_STOPPED;
	t->status = status;
	t->stop_ns = t->tr->now_ns;
	t->interrupted = false;
	t->in_vfork = kind == STOP_VFORK;
	t->quiet = false;
	t->regs_valid = false;
	t->caught_valid = false;
	t->deliver = 0;
	t->tr->nr_stops++;
	t->nr_stops++;
	if (t->proc && !t->owed)
		t->proc->nr_unwanted += is_unwanted(t->proc, kind, status);
}

/* Not a new stop: the one that it was borrowed in goes on. */
static void gather_owed(struct task *t, bool leaving)
{
	loan_pay_back(t);
	if (leaving)
		gather_leaving(t);
	else
		task_release(t);
}

/*
 * Nothing to decide: it stays where tproc_stop() wants it, or goes on. But a
 * first stop is news, an orphan waits for the status of its creator.
 */
static bool stands_or_goes_on(struct task *t, bool interrupted, bool leaving)
{
	if (t->is_new || leaving)
		return false;
	if (interrupted && task_kind(t) == STOP_INTERRUPT && t->proc &&
	    t->proc->stop_depth)
		t->group_clock = true;
	task_release(t);
	return true;
}

/* Books what only its kind of stop tells. True: nobody is to act upon it. */
static bool gather_kind(struct task *t, bool interrupted, bool leaving)
{
	switch (task_kind(t)) {
	case STOP_CLONE:
	case STOP_FORK:
	case STOP_VFORK:
		note_birth(t);
		return false;
	case STOP_EXEC:
		note_exec(t);
		return false;
	case STOP_SYSCALL:
		if (mend_at_syscall_stop(t, interrupted)) {
			task_restart(t);
			return true;
		}
		if (!t->proc || t->proc->trace_syscalls || leaving)
			return false;
		task_release(t);
		return true;
	case STOP_INTERRUPT:
		if (!t->is_new && !t->in_group_stop)
			mend_at_stop(t);
		return stands_or_goes_on(t, interrupted, leaving);
	case STOP_GROUP:
		return stands_or_goes_on(t, interrupted, leaving);
	default:
		return false;
	}
}

static uint64_t as_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NSEC_PER_SEC +
	       (uint64_t)tv->tv_usec * NSEC_PER_USEC;
}

/* The last that is to be had of a process's CPU time. */
static void note_usage(const struct task *t)
{
	const struct rusage *u = &t->tr->usage;
	if (t->proc && t->tid == t->proc->pid && t->is_childless)
		t->proc->end_cpu_ns = as_ns(&u->ru_utime) + as_ns(&u->ru_stime);
}

void gather(struct tracer *tr, pid_t tid, int status)
{
	tr->now_ns = smco_now_ns();
	smco_debug("ptrace", "%d %s status %#x", tid,
		   stop_name(stop_classify(status)), status);
	struct task *t = whose_status(tr, tid, status);
	if (!t)
		return;
	if (is_end(status)) {
		note_usage(t);
		gather_end(t, status);
		return;
	}

	bool interrupted = t->interrupted;
	bool leaving = t->proc && t->proc->leaving;
	note_stop(t, status);
	likely_stopped(&tr->likely, tid, t->nr_stops == 1);
	if (t->owed) {
		gather_owed(t, leaving);
		return;
	}
	if (gather_kind(t, interrupted, leaving))
		return;
	if (leaving)
		gather_leaving(t);
	else if (t->proc)
		task_enqueue(t);
}
