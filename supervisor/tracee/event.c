/*
 * From what was gathered (gather.c) to events: act() decides, in the order the
 * statuses came, what the caller hears and which task runs on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* Worth a line of debugging. */
#define LONG_STOP_NS (5 * NSEC_PER_MSEC)

/* Every so many stops all waiting statuses are taken before one is acted upon,
 * lest tasks at the head of the kernel's list starve the others. */
#define FAIRNESS_STOPS 16
/* And one stop more for so many tasks, through all of which the kernel goes. */
#define FAIRNESS_TASKS 256

void task_enqueue(struct task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	t->queue_next = NULL;
	*t->tr->queue_tail = t;
	t->tr->queue_tail = &t->queue_next;
}

void task_dequeue(struct task *t)
{
	if (!t->queued)
		return;
	t->queued = false;
	struct task **link = &t->tr->queue;
	while (*link != t)
		link = &(*link)->queue_next;
	*link = t->queue_next;
	if (!*link)
		t->tr->queue_tail = link;
}

struct tevent *event_push(struct tracer *tr, enum tevent_kind kind,
			  struct tproc *p, struct task *t)
{
	static struct tevent nowhere;
	struct event_node *e = calloc(1, sizeof(*e));
	if (!e)
		return &nowhere;
	*tr->events_tail = e;
	tr->events_tail = &e->next;
	e->ev.kind = kind;
	e->ev.proc = p;
	e->ev.task = t;
	e->ev.stop_ns = t ? t->stop_ns : tr->now_ns;
	return &e->ev;
}

static void drop_events(struct tracer *tr, struct task *t, struct tproc *p)
{
	struct event_node **link = &tr->events;
	while (*link) {
		struct event_node *e = *link;
		/* A process that was born and died is told of nevertheless. */
		if ((t && e->ev.task == t && e->ev.kind != TEV_PROC_NEW) ||
		    (p && e->ev.proc == p)) {
			*link = e->next;
			free(e);
		} else {
			link = &e->next;
		}
	}
	tr->events_tail = link;
}

void task_drop_events(struct task *t)
{
	drop_events(t->tr, t, NULL);
}

void tproc_drop_events(struct tproc *p)
{
	drop_events(p->tr, NULL, p);
}

/* --- restarting --- */

void task_charge_stop(struct task *t)
{
	struct tracer *tr = t->tr;
	uint64_t now = smco_now_ns();
	uint64_t dur = now > t->stop_ns ? now - t->stop_ns : 0;
	if (!t->group_clock && !t->was_blocked)
		tr->stop_sum_ns += dur;
	if (dur > tr->longest_stop_ns) {
		tr->longest_stop_ns = dur;
		tr->longest_was_for = tr->stops_are_for;
	}
	if (dur > LONG_STOP_NS)
		smco_debug("stop", "%d: status %#x%s took %u us, %s", t->tid,
			   t->status, t->was_blocked ? ", blocked," : "",
			   (unsigned)(dur / NSEC_PER_USEC),
			   tr->stops_are_for ? tr->stops_are_for : "");
	t->group_clock = false;
	t->was_blocked = false;
}

void task_restart(struct task *t)
{
	if (t->state == TASK_STOPPED && t->deliver && t->proc &&
	    t->proc->before_signal)
		t->proc->before_signal(t, t->proc->before_signal_arg);
	if (t->state != TASK_STOPPED)
		return;
	enum stop_kind kind = task_kind(t);
	bool listen = kind == STOP_GROUP;
	int sig = t->deliver;
	enum __ptrace_request req = PTRACE_CONT;
	if (listen) {
		req = PTRACE_LISTEN;
		sig = 0;
	} else {
		if (mend_wants_syscall_stops(t) ||
		    (t->proc && t->proc->trace_syscalls))
			req = PTRACE_SYSCALL;
	}
	unseen_sync(t);
	debugreg_sync(t);
	task_charge_stop(t);
	t->tr->nr_signals += sig != 0;
	if (t->proc) {
		tproc_forget_maps(t->proc);
		t->proc->knows_filter = false;
	}
	task_set_in_group_stop(t, listen);
	t->no_handler &= sig == 0;
	t->has_no_filter = false;
	t->deliver = 0;
	t->regs_valid = false;
	t->state = listen ? TASK_LISTENING : TASK_RUNNING;
	/* Its creator was on its way before it was: it may be about to wait for
	 * what @t does. */
	birth_over(t);
	/* ESRCH: killed meanwhile, its end is reported by a status. */
	if (ptrace(req, t->tid, NULL, (long)sig) < 0 && errno != ESRCH)
		smco_debug("ptrace", "restart %d: %s", t->tid, strerror(errno));
}

void task_release(struct task *t)
{
	if (t->state != TASK_STOPPED || t->queued || t->held || t->created)
		return;
	if (t->proc && (t->proc->stop_depth || t->proc->is_new))
		return;
	task_restart(t);
}

/* --- acting --- */

void act_end(struct task *t)
{
	struct tracer *tr = t->tr;
	struct tproc *p = t->proc;

	/* The leader's comes last, and is the process's. */
	if (t->tgid == p->pid)
		p->exit_status = t->status;
	task_drop_events(t);
	if (t->announced && !p->leaving)
		event_push(tr, TEV_TASK_GONE, p, t);
	task_unlink(t);
	if (!p->nr_tasks)
		tproc_gone(p, t->announced);
}

bool tproc_has_copy_due(const struct tproc *p)
{
	for (const struct tproc *q = p->tr->procs; q; q = q->next)
		if (q->parent == p && q->why == TPROC_FORKED)
			return true;
	return false;
}

/*
 * On a busy machine a daemon's first process may have ended before the copy
 * that lives on gets a CPU and stops for the first time. What is planted in
 * that is known by its parent, whose end is told afterwards.
 */
void tproc_gone(struct tproc *p, bool announced)
{
	if (p->leaving || (p->why == TPROC_FORKED && !announced)) {
		/* Nobody was told of it. */
		tproc_tell_left_end(p, p->exit_status);
		tproc_unlink(p);
		return;
	}
	p->end_is_due = tproc_has_copy_due(p);
	if (p->end_is_due)
		return;
	struct tevent *ev = event_push(p->tr, TEV_PROC_GONE, p, NULL);
	ev->exit_status = p->exit_status;
	ev->cpu_ns = p->end_cpu_ns;
	tproc_unlink(p);
}

static void hold(struct task *t)
{
	t->held = true;
}

/* It may wait, as far as is known. */
static bool is_in_call(struct task *t)
{
	struct user_regs_struct regs;
	return task_get_regs(t, &regs) < 0 || arch.syscall_nr(&regs) >= 0;
}

static void act_signal(struct task *t)
{
	struct tproc *p = t->proc;
	int sig = WSTOPSIG(t->status);
	siginfo_t si;

	t->deliver = sig;
	bool fault = sig == SIGSEGV || sig == SIGBUS;
	bool trap = sig == p->trap_sig;
	if (libs_on_signal(t, sig)) {
		t->deliver = 0;
		event_push(t->tr, TEV_LIBS, p, t);
		hold(t);
		return;
	}
	if (sig == SIGTRAP &&
	    ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) == 0 &&
	    signal_is_stray(t, &si)) {
		if (!debugreg_hit(t))
			smco_debug("stop", "%d: a stray SIGTRAP, not passed on",
				   t->tid);
		t->deliver = 0;
		task_release(t);
		return;
	}
	/* Seen under ptrace even if the program ignores it, it must not end a
	 * wait then. Where there is none the kernel drops it by itself, and
	 * knows sooner than we do. One that comes by a fault finds no wait. */
	if (!fault && !trap) {
		if (!signal_stops(t, sig))
			mend_at_stop(t);
		if (is_in_call(t) && signal_is_ignored(t, sig))
			t->deliver = 0;
		task_release(t);
		return;
	}
	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0) {
		task_release(t);
		return;
	}
	if (trap && !signal_is_trap(t, &si)) {
		mend_at_stop(t);
		task_release(t);
		return;
	}
	if (fault && si.si_code <= 0)
		mend_at_stop(t);
	struct tevent *ev =
		event_push(t->tr, fault ? TEV_FAULT : TEV_TRAP, p, t);
	ev->siginfo = si;
	hold(t);
}

static void act_syscall(struct task *t)
{
	struct tproc *p = t->proc;
	struct __ptrace_syscall_info info;

	if (!p->trace_syscalls ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) <= 0) {
		task_release(t);
		return;
	}
	event_push(t->tr,
		   info.op == PTRACE_SYSCALL_INFO_EXIT ? TEV_SYSCALL_OUT
						       : TEV_SYSCALL_IN,
		   p, t);
	hold(t);
}

static void act_proc_new(struct task *t)
{
	struct tproc *p = t->proc;

	t->is_new = false;
	t->announced = true;
	hold(t);
	struct tevent *ev = event_push(t->tr, TEV_PROC_NEW, p, t);
	ev->why = p->from_before ? TPROC_ATTACHED : p->why;
	ev->parent = p->from_before ? NULL : p->parent;
	p->from_before = false;
	ev->creator = task_find(t->tr, t->made_by);
	const struct tracer_options *o = &t->tr->opts;
	if (p->why == TPROC_LAUNCHED ||
	    (p->why == TPROC_EXECED && !o->libs_if_asked))
		tproc_await_libs(p);
}

void tproc_await_libs(struct tproc *p)
{
	if (!p->tr->opts.no_libs && p->is_new)
		libs_start(p);
}

/* The first stop of a task born under our eyes. */
static void act_first(struct task *t)
{
	struct tproc *p = t->proc;
	unsigned long msg;

	if (t->tr->opts.hold_creators) /* any request waits until it has left
					  its CPU */
		ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &msg);

	if (p->is_new && p->why == TPROC_FORKED && t->tid == p->pid) {
		if (!t->tr->opts.follow) {
			leave_child(p);
			return;
		}
		act_proc_new(t);
		return;
	}
	t->is_new = false;
	if (p->seized) { /* told of with all others, tracer_stop_seized() */
		task_release(t);
		return;
	}
	t->announced = true;
	if (p->is_new) {
		hold(t);
		return;
	}
	event_push(t->tr, TEV_TASK_NEW, p, t)->creator =
		task_find(t->tr, t->made_by);
	if (t->tr->opts.hold_new_tasks)
		hold(t);
	else
		task_release(t);
}

static void act_exec(struct task *t)
{
	struct tproc *p = t->proc;
	struct user_regs_struct regs;

	p->execed = false;
	p->seized = false;
	tproc_forget_memory(p);
	bool foreign = p->why == TPROC_EXECED && task_get_regs(t, &regs) == 0 &&
		       arch.is_compat(&regs);
	if (foreign || (p->split && !t->tr->opts.follow)) {
		/* In memory of its own: nothing of ours is in it. */
		t->tr->nr_foreign += foreign;
		tproc_leave_program(t);
		return;
	}
	p->is_new = true;
	act_proc_new(t);
}

static void act(struct task *t)
{
	smco_debug("ptrace", "act %d %s", t->tid, stop_name(task_kind(t)));
	if (t->state == TASK_DEAD) {
		act_end(t);
		return;
	}
	if (t->state != TASK_STOPPED)
		return;
	if (task_kind(t) == STOP_EXEC) {
		act_exec(t);
		return;
	}
	if (t->is_new) {
		if (t->proc->is_new && t->proc->why == TPROC_ATTACHED) {
			/* Attach announces all of them at once. */
			t->is_new = false;
			hold(t);
			return;
		}
		act_first(t);
		return;
	}
	switch (task_kind(t)) {
	case STOP_SIGNAL:
		act_signal(t);
		break;
	case STOP_SYSCALL:
		act_syscall(t);
		break;
	default:
		task_release(t);
		break;
	}
}

/* Not of whoever raises it for his own reasons, as sensors of a killed
 * supervisor do. */
static bool is_trap(struct task *t, int sig)
{
	siginfo_t si;
	return sig == t->proc->trap_sig &&
	       ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) == 0 &&
	       signal_is_trap(t, &si);
}

/* Is it only to pass on a signal, or to go on with a birth that was booked, so
 * that nobody is to hear of it, or need not before? */
static bool is_in_passing(struct task *t)
{
	int sig = WSTOPSIG(t->status);
	if (t->state != TASK_STOPPED)
		return false;
	if (t->is_new) /* in memory that is known */
		return !t->proc->is_new && task_kind(t) != STOP_EXEC;
	switch (task_kind(t)) {
	case STOP_SIGNAL:
		return sig != SIGSEGV && sig != SIGBUS && !is_trap(t, sig);
	case STOP_CLONE:
	case STOP_FORK:
	case STOP_VFORK:
	case STOP_VFORK_DONE:
		return true;
	default:
		return false;
	}
}

void tracer_pass_on(struct tracer *tr)
{
	for (struct task *t = tr->queue, *next; t; t = next) {
		next = t->queue_next;
		if (is_in_passing(t)) {
			task_dequeue(t);
			act(t);
		}
	}
}

/* --- the public loop --- */

static bool pop_event(struct tracer *tr, struct tevent *ev)
{
	struct event_node *e = tr->events;
	if (!e)
		return false;
	tr->events = e->next;
	if (!tr->events)
		tr->events_tail = &tr->events;
	*ev = e->ev;
	free(e);
	if (ev->kind == TEV_PROC_NEW)
		ev->proc->told = true;
	return true;
}

/* So many statuses that are no events are looked at past the deadline. */
#define MAX_LATE 64

void tracer_drain(struct tracer *tr)
{
	int status;
	pid_t tid;
	while ((tid = wait_now(tr, -1, &status)) > 0)
		gather(tr, tid, status);
}

/* All our children are gone without a status: reaped by somebody else. */
static void everybody_gone(struct tracer *tr)
{
	for (int i = 0; i < TASK_HASH_SIZE; i++)
		for (struct task *t = tr->hash[i], *next; t; t = next) {
			next = t->hash_next;
			if (t->state != TASK_DEAD)
				gather_end(t, 0);
		}
}

int tracer_next(struct tracer *tr, uint64_t deadline_ns, struct tevent *ev)
{
	unsigned late = 0;

	memset(ev, 0, sizeof(*ev));
	if (!tr->events) /* nobody can name the dead any more */
		tracer_free_dead(tr);
	for (;;) {
		if (pop_event(tr, ev))
			return 1;
		struct task *t = tr->queue;
		if (t) {
			task_dequeue(t);
			act(t);
			continue;
		}
		if (!tr->procs && !tr->left_pid) {
			ev->kind = TEV_DONE;
			return 0;
		}
		int status;
		pid_t tid = wait_any(tr, expiry_look(tr, deadline_ns), &status);
		if (tid > 0) {
			gather(tr, tid, status);
			if (tr->nr_tasks > 1 && !tr->drain_in--) {
				tr->drain_in = FAIRNESS_STOPS +
					       tr->nr_tasks / FAIRNESS_TASKS;
				tracer_drain(tr);
			}
			follow_stop(task_find(tr, tid));
			if (tr->now_ns < deadline_ns || late++ < MAX_LATE)
				continue;
		} else if (tid == -ECHILD) {
			everybody_gone(tr);
			if (tr->queue)
				continue;
			ev->kind = TEV_DONE;
			return 0;
		} else if (tid < 0) {
			return SMCO_SYS;
		}
		adopt_orphans(tr);
		follow_rest(tr);
		if (tr->queue && late < MAX_LATE)
			continue;
		ev->kind = TEV_NONE;
		ev->stop_ns = smco_now_ns();
		return 1;
	}
}

void tracer_resume(struct tracer *tr, struct task *task, int sig)
{
	(void)tr;
	struct tproc *p = task->proc;
	if (p->is_new && task->held) {
		tproc_resume_new(p);
		return;
	}
	if (!task->held)
		return;
	task->held = false;
	task->deliver = task_kind(task) == STOP_SIGNAL ? sig : 0;
	task_release(task);
}

void tproc_forget_parent(struct tproc *p)
{
	struct tproc *parent = p->parent;
	p->parent = NULL;
	if (parent && parent->end_is_due)
		tproc_gone(parent, true);
}

void tproc_resume_new(struct tproc *p)
{
	if (!p->is_new)
		return;
	p->is_new = false;
	tproc_forget_parent(p);
	uint64_t held_ns = smco_now_ns() - p->stop_began_ns;
	for (struct task *t = p->tasks; t; t = t->next) {
		t->held = false;
		t->announced = true;
		task_release(t);
	}
	tproc_urgent(p, false);
	if (p->why == TPROC_ATTACHED)
		smco_debug("stop",
			   "attached to %d: %u us until all stood, %u us until "
			   "the first went on, %u us in all",
			   p->pid, (unsigned)(p->stop_stood_ns / NSEC_PER_USEC),
			   (unsigned)(held_ns / NSEC_PER_USEC),
			   (unsigned)((smco_now_ns() - p->stop_began_ns) /
				      NSEC_PER_USEC));
	tmaps_deinit(&p->recent);
}

void tproc_before_signals(struct tproc *p,
			  void (*fn)(struct task *t, void *arg), void *arg)
{
	p->before_signal = fn;
	p->before_signal_arg = arg;
}

int tproc_trace_syscalls(struct tproc *p, bool on)
{
	if (p->trace_syscalls == on)
		return 0;
	/* A running task hears of it when it is restarted: stop it once. */
	int r = tproc_stop(p, NULL);
	p->trace_syscalls = on;
	if (r == 0)
		tproc_cont(p);
	return r;
}
