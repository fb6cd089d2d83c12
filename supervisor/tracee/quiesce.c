/* Stopping all tasks of a process, and letting them go on. */
#include <errno.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* A task that has not stopped for so long is looked at through /proc. */
#define LOOK_NS (2 * NSEC_PER_MSEC)
/* Nothing is waited for longer. */
#define STOP_BOUND_NS (200 * NSEC_PER_MSEC)
/* What can wait itself, is not. */
#define BRIEF_BOUND_NS (10 * NSEC_PER_MSEC)
#define LET_RUN_SLICES 8
/* A task that runs for us, for some µs, on a machine without a free CPU. */
#define LOAN_BOUND_NS (2 * NSEC_PER_SEC)

/* Before it is interrupted, and before any other is: this takes time. */
static void look_at_wait(struct task *t)
{
	if (t->interrupted || t->looked_at || t->state != TASK_RUNNING ||
	    !mend_wants_look(t))
		return;
	mend_before_interrupt(t);
	t->looked_at = true;
}

int task_interrupt(struct task *t)
{
	if (t->interrupted)
		return 0;
	look_at_wait(t);
	t->looked_at = false;
	if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, 0L) < 0)
		return SMCO_GONE;
	t->interrupted = true;
	return 0;
}

static bool is_quiet(const struct task *t)
{
	return t->state == TASK_STOPPED || t->state == TASK_DEAD || t->quiet ||
	       t->in_vfork;
}

/*
 * The task has not stopped. Asleep uninterruptibly (disk, a vfork child's
 * parent) or already a zombie, it will run no instruction of the program
 * before the pending PTRACE_INTERRUPT stops it: as good as stopped.
 */
static void look_closer(struct task *t)
{
	switch (task_proc_state(t)) {
	case 'D':
	case 'Z':
	case 'X':
		t->quiet = true;
		break;
	case 0: /* another thread's exec took it; its event will tell */
		t->quiet = true;
		break;
	default:
		break;
	}
}

/* Returns false where other threads may be gone now. */
static bool take_late(struct task *t)
{
	int status;
	if (!t->interrupted || t->state != TASK_RUNNING ||
	    wait_now(t->tr, t->tid, &status) != t->tid)
		return true;
	gather(t->tr, t->tid, status);
	return stop_classify(status) != STOP_EXEC;
}

/*
 * Who was asked to stop, and had no CPU for that until nobody waited any more,
 * stops later, for nothing: it would stand until this wait is over.
 */
static void let_late_go(struct tracer *tr, const struct tproc *awaited)
{
	for (struct tproc *p = tr->procs; p; p = p->next) {
		struct task *t = p->tasks;
		if (p == awaited || p->stop_depth || p->leaving)
			continue;
		while (t && take_late(t))
			t = t->next;
	}
}

int task_await(struct task *t, uint64_t deadline_ns)
{
	struct tracer *tr = t->tr;

	while (!is_quiet(t)) {
		uint64_t now = smco_now_ns();
		/* Another stop came first and took the request with it. */
		if (t->state != TASK_DEAD && !t->interrupted && !t->is_new)
			task_interrupt(t);
		uint64_t until = now + LOOK_NS;
		if (until > deadline_ns)
			until = deadline_ns;
		int status;
		pid_t tid = wait_status_soon(tr, t->tid, until, &status);
		if (tid > 0) {
			gather(tr, tid, status);
		} else {
			look_closer(t);
			let_late_go(tr, t->proc);
		}
		/* Not before it was looked: another one may have used up the
		 * time, while this one stood. */
		if (now >= deadline_ns && !is_quiet(t))
			return SMCO_BUSY;
	}
	return 0;
}

static void look_at_waits(struct tproc *p)
{
	for (struct task *t = p->tasks; t; t = t->next)
		if (!is_quiet(t) && !t->is_new)
			look_at_wait(t);
}

struct task *tproc_quiesce(struct tproc *p, uint64_t deadline_ns)
{
	/*
	 * Ask all, then wait for each: they stop in parallel. New tasks that
	 * appear meanwhile stop by themselves and stay so, but must be waited
	 * for as well; hence until a round finds nobody.
	 */
	look_at_waits(p);
	struct task *stuck = NULL;
	bool again = true;
	while (again && !stuck) {
		again = false;
		for (struct task *t = p->tasks; t; t = t->next) {
			if (is_quiet(t))
				continue;
			again = true;
			if (!t->is_new && task_interrupt(t) < 0)
				look_closer(t);
		}
		for (struct task *t = p->tasks; t; t = t->next)
			if (task_await(t, deadline_ns) < 0)
				stuck = t;
	}
	return stuck;
}

struct task *tproc_stop_all(struct tproc *p, uint64_t bound_ns)
{
	/* Nobody is held up by this, and it is no part of the bound. */
	look_at_waits(p);
	p->stop_depth = 1;
	p->stop_began_ns = smco_now_ns();
	tproc_urgent(p, true);
	struct task *stuck = tproc_quiesce(p, p->stop_began_ns + bound_ns);
	p->stop_stood_ns = smco_now_ns() - p->stop_began_ns;
	return stuck;
}

static int fail_shared(const struct tproc *p, struct smco_err *err)
{
	return smco_fail(err, SMCO_BUSY, 0,
			 "a child that is not followed runs in the memory of "
			 "process %d",
			 p->pid);
}

static int stop_within(struct tproc *p, uint64_t bound_ns, struct smco_err *err)
{
	if (p->stop_depth) {
		p->stop_depth++;
		return 0;
	}
	if (!unseen_is_out(p, false))
		return fail_shared(p, err);
	struct task *stuck = tproc_stop_all(p, bound_ns);
	if (!stuck && unseen_is_out(p, true))
		return 0;
	if (!stuck) {
		tproc_cont(p);
		return fail_shared(p, err);
	}
	char state = task_proc_state(stuck);
	pid_t tid = stuck->tid;
	tproc_cont(p);
	return smco_fail(err, SMCO_BUSY, 0,
			 "thread %d (state %c) does not stop", tid,
			 state ? state : '?');
}

int tproc_stop(struct tproc *p, struct smco_err *err)
{
	return stop_within(p, STOP_BOUND_NS, err);
}

int tproc_stop_briefly(struct tproc *p, struct smco_err *err)
{
	return stop_within(p, BRIEF_BOUND_NS, err);
}

/*
 * The time the program lost by a stop of all: that of the tasks that would
 * have run, but no more of them at once than there are CPUs.
 */
static void charge_group(struct tproc *p, unsigned nr_runnable)
{
	struct tracer *tr = p->tr;
	uint64_t dur = smco_now_ns() - p->stop_began_ns;
	unsigned cpus = (unsigned)tr->nr_cpus;
	tr->stop_sum_ns += dur * (nr_runnable < cpus ? nr_runnable : cpus);
}

void tproc_cont(struct tproc *p)
{
	if (!p->stop_depth || --p->stop_depth)
		return;
	unsigned nr = 0;
	for (struct task *t = p->tasks; t; t = t->next) {
		if (t->state == TASK_STOPPED && t->group_clock)
			nr += !t->was_blocked;
	}
	charge_group(p, nr);
	smco_debug(
		"stop", "all of %d: %u us until they stood, %u us in all, %s",
		p->pid, (unsigned)(p->stop_stood_ns / NSEC_PER_USEC),
		(unsigned)((smco_now_ns() - p->stop_began_ns) / NSEC_PER_USEC),
		p->tr->stops_are_for ? p->tr->stops_are_for : "");
	for (struct task *t = p->tasks; t; t = t->next) {
		t->quiet = false;
		task_release(t);
	}
	tproc_urgent(p, false);
}

int task_stop(struct task *t)
{
	uint64_t deadline = smco_now_ns() + LOOK_NS;

	if (t->state != TASK_RUNNING || t->is_new || t->held || t->queued)
		return SMCO_BUSY;
	t->held = true; /* lest its stop be the end of it */
	if (task_interrupt(t) == 0 && task_await(t, deadline) == 0 &&
	    t->state == TASK_STOPPED && task_kind(t) == STOP_INTERRUPT)
		return 0;
	t->held = false;
	if (t->state == TASK_STOPPED)
		task_release(t);
	return SMCO_BUSY;
}

int task_next_stop(struct task *t, int *status_ret)
{
	int r = 0;
	pid_t tid = wait_status_soon(t->tr, t->tid,
				     smco_now_ns() + LOAN_BOUND_NS, status_ret);
	t->regs_valid = false;
	if (tid == 0) {
		smco_debug("ptrace", "%d does not come back", t->tid);
		r = SMCO_BUSY;
		t->interrupted =
			ptrace(PTRACE_INTERRUPT, t->tid, NULL, 0L) == 0;
		tid = wait_status(t->tr, t->tid, smco_now_ns() + STOP_BOUND_NS,
				  status_ret);
	}
	if (tid == 0) {
		t->state = TASK_RUNNING;
		t->quiet = true;
		return SMCO_BUSY;
	}
	if (tid < 0)
		return SMCO_GONE;
	enum stop_kind kind = stop_classify(*status_ret);
	if (kind == STOP_EXITED || kind == STOP_KILLED) {
		gather(t->tr, tid, *status_ret);
		return SMCO_GONE;
	}
	if (kind == STOP_INTERRUPT || kind == STOP_GROUP)
		t->interrupted = false;
	return r;
}

int task_lend(struct task *t, int req)
{
	uint32_t *lent = t->tr->lent;
	if (lent)
		__atomic_store_n(lent, 1, __ATOMIC_RELAXED);
	long r = ptrace((enum __ptrace_request)req, t->tid, NULL, 0L);
	if (lent)
		__atomic_store_n(lent, 0, __ATOMIC_RELAXED);
	return r < 0 ? SMCO_GONE : 0;
}

void tracer_tell_lent(struct tracer *tr, uint32_t *lent)
{
	tr->lent = lent;
}

int task_to_event_stop(struct task *t)
{
	int status;
	if (t->state != TASK_STOPPED)
		return SMCO_GONE;
	if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, 0L) < 0)
		return SMCO_GONE;
	/* Others are not expected before the event-stop: they are passed by. */
	do {
		if (task_lend(t, PTRACE_CONT) < 0)
			return SMCO_GONE;
		int r = task_next_stop(t, &status);
		if (r < 0)
			return r;
	} while (stop_classify(status) != STOP_INTERRUPT &&
		 stop_classify(status) != STOP_GROUP);
	t->status = status;
	return 0;
}

int tproc_let_run(struct tproc *p, uint64_t ns, struct smco_err *err)
{
	unsigned depth = p->stop_depth;
	bool leaves_births = p->tr->leaves_births;
	uint64_t slice = ns / LET_RUN_SLICES;
	struct timespec ts = {.tv_sec = (time_t)(slice / NSEC_PER_SEC),
			      .tv_nsec = (long)(slice % NSEC_PER_SEC)};

	if (!depth)
		return 0;
	/* None is born into the memory that is being changed. */
	p->tr->leaves_births = false;
	p->stop_depth = 1;
	tproc_cont(p);
	/* Nobody looks at events meanwhile, and who waits to be told of a
	 * signal does not run; nor do other processes that have forked. */
	for (int i = 0; i < LET_RUN_SLICES; i++) {
		tracer_pass_on(p->tr);
		nanosleep(&ts, NULL);
		tracer_drain(p->tr);
	}
	/* Also if one is late: what has begun is not to be done by halves. */
	struct task *stuck = tproc_stop_all(p, STOP_BOUND_NS);
	/* Whoever stopped it before us is going to continue it. */
	p->stop_depth = depth;
	p->tr->leaves_births = leaves_births;
	return stuck ? smco_fail(err, SMCO_BUSY, 0,
				 "thread %d gets no CPU to stop on", stuck->tid)
		     : 0;
}
