/* Letting go. */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/tracee/internal.h"

#define DETACH_BOUND_NS (150 * NSEC_PER_MSEC)

void task_detach(struct task *t)
{
	if (t->state != TASK_STOPPED)
		return;
	int sig = signal_at_detach(t);
	mend_at_detach(t);
	/* In a group-stop the kernel keeps it stopped, whatever we say. */
	ptrace(PTRACE_DETACH, t->tid, NULL, (long)sig);
	t->state = TASK_DEAD;
	t->held = false;
	task_dequeue(t);
}

void tproc_discard(struct tproc *p)
{
	tproc_drop_events(p);
	while (p->tasks)
		task_unlink(p->tasks);
	tproc_unlink(p);
}

/* Undo, with a few attempts for threads that stand where they must not. */
static int undo_all(struct tproc *p, struct smco_err *err)
{
	if (p->execed || !tproc_first_task(p))
		return 0;
	libs_stop(p);
	return undo_run_all(p, err);
}

/*
 * Those that could not stop before: a vfork parent does as soon as the child
 * has exec'ed, and gather() lets it go. True when it is gone.
 */
static bool await_release(struct task *t, uint64_t deadline_ns)
{
	while (t->state != TASK_DEAD) {
		t->quiet = false;
		t->in_vfork = false;
		if (task_await(t, deadline_ns) < 0)
			return false;
		if (t->state == TASK_DEAD)
			break;
		char state = task_proc_state(t);
		if (!state || state == 'Z' || state == 'X') {
			t->state = TASK_DEAD;
			break;
		}
		struct timespec ts = {.tv_nsec = NSEC_PER_MSEC};
		nanosleep(&ts, NULL);
	}
	return true;
}

int tproc_detach(struct tproc *p, struct smco_err *err)
{
	uint64_t deadline = smco_now_ns() + DETACH_BOUND_NS;
	int ret = tproc_stop(p, err);

	if (ret == 0)
		ret = undo_all(p, err);
	p->leaving = true;
	p->is_new = false;
	tproc_drop_events(p);

	/* Children that run in this memory first: their parent waits. */
	for (struct task *t = p->tasks; t; t = t->next)
		if (t->tgid != p->pid)
			task_detach(t);
	for (struct task *t = p->tasks; t; t = t->next)
		task_detach(t);
	for (struct task *t = p->tasks; t; t = t->next)
		if (!await_release(t, deadline) && ret == 0)
			ret = smco_fail(err, SMCO_BUSY, 0,
					"thread %d cannot be released yet "
					"(it waits in the kernel)",
					t->tid);
	bool left = false;
	for (struct task *t = p->tasks; t; t = t->next)
		left |= t->state != TASK_DEAD;
	if (!left)
		tproc_discard(p);
	return ret;
}

int tracer_detach_all(struct tracer *tr, struct smco_err *err)
{
	int ret = 0;

	for (struct tproc *p = tr->procs, *next; p; p = next) {
		next = p->next;
		if (p->leaving)
			continue;
		int r = tproc_detach(p, ret ? NULL : err);
		if (r < 0 && ret == 0)
			ret = r;
	}
	return ret;
}
