/* Letting go. */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* From the end of all other threads to the new program. */
#define EXEC_BOUND_NS	(100 * NSEC_PER_MSEC)
#define DETACH_BOUND_NS (150 * NSEC_PER_MSEC)
/* One that was interrupted and only waits for a CPU is not left before: the
 * wait it has just left would end with EINTR. */
#define LAST_BOUND_NS (3 * NSEC_PER_SEC)

static bool enters_syscall(const struct task *t)
{
	struct __ptrace_syscall_info info;
	return task_kind(t) == STOP_SYSCALL &&
	       ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) >
		       0 &&
	       info.op == PTRACE_SYSCALL_INFO_ENTRY;
}

/*
 * PTRACE_DETACH makes a signal seem pending. In a syscall-enter-stop the call
 * begins with that, and a wait ends with EINTR when nobody is there to mend it.
 * So the call is left and made again, from where no stop is in the way; but
 * not under a seccomp filter, which sees call -1 then and may kill for it. Such
 * a task is stopped once more, in the call, where it can be mended. False: it
 * runs.
 */
static bool leave_entry(struct task *t)
{
	struct user_regs_struct regs;

	/* -1: it is not going to be made (mend.c). */
	if (!enters_syscall(t) || task_get_regs(t, &regs) < 0 ||
	    arch.syscall_nr(&regs) < 0)
		return true;
	if (!proc_has_filter(t->tid)) {
		arch.rewind_syscall(&regs, arch.syscall_nr(&regs));
		if (task_set_regs(t, &regs) == 0)
			return true;
	}
	t->held = false;
	task_dequeue(t);
	task_interrupt(t);
	task_restart(t);
	return false;
}

void task_detach(struct task *t)
{
	if (t->state != TASK_STOPPED || !leave_entry(t))
		return;
	debugreg_leave(t);
	if (t->proc && t->proc->leaving && signal_meet_fault(t))
		return; /* gather() lets it go there */
	int sig = signal_at_detach(t);
	if (t->block_fault)
		signal_block_fault(t);
	/* Not acted upon yet: it must not end a wait that it would not. */
	if (task_kind(t) == STOP_SIGNAL && !signal_stops(t, sig))
		mend_at_stop(t);
	mend_at_detach(t);
	task_charge_stop(t);
	/* In a group-stop the kernel keeps it stopped, whatever we say. */
	ptrace(PTRACE_DETACH, t->tid, NULL, (long)sig);
	t->state = TASK_DEAD;
	t->held = false;
	task_dequeue(t);
}

static bool has_ended(const struct task *t)
{
	return t->state == TASK_DEAD &&
	       (WIFEXITED(t->status) || WIFSIGNALED(t->status));
}

void tproc_tell_left_end(struct tproc *p, int status)
{
	struct tracer *tr = p->tr;
	if (p->pid != tr->launched_pid)
		return;
	tr->left_pid = 0;
	event_push(tr, TEV_LEFT_ENDED, NULL, NULL)->exit_status = status;
}

void tproc_discard(struct tproc *p)
{
	tproc_drop_events(p);
	for (const struct task *t = p->tasks; t; t = t->next)
		if (t->tid == p->pid && has_ended(t))
			tproc_tell_left_end(p, t->status);
	while (p->tasks)
		task_unlink(p->tasks);
	tproc_unlink(p);
}

void tproc_leave_program(struct task *t)
{
	struct tproc *p = t->proc;
	struct tracer *tr = t->tr;
	bool is_told = t->announced && !p->split;

	task_detach(t);
	if (!is_told) {
		tproc_discard(p);
		return;
	}
	if (p->pid == tr->launched_pid)
		tr->left_pid = p->pid;
	event_push(tr, TEV_TASK_GONE, p, t);
	while (p->tasks)
		task_unlink(p->tasks);
	event_push(tr, TEV_PROC_GONE, p, NULL)->is_left = true;
	tproc_unlink(p);
}

/* What was changed goes, unless its memory has gone or is about to. */
static int undo_all(struct tproc *p, uint64_t deadline_ns, struct smco_err *err)
{
	if (p->execed || !tproc_first_task(p))
		return 0;
	if (!unseen_await(p, deadline_ns))
		return smco_fail(err, SMCO_BUSY, 0,
				 "what was planted stays, for a child that is "
				 "not followed runs in its memory");
	return undo_run_all(p, err);
}

/*
 * Those that could not stop before: a vfork parent does as soon as the child
 * has exec'ed, and gather() lets it go. True when it is gone.
 */
static bool await_release(struct task *t, uint64_t deadline_ns)
{
	while (t->state != TASK_DEAD) {
		char state = task_proc_state(t);
		if (!state || state == 'Z' || state == 'X') {
			t->state = TASK_DEAD;
			break;
		}
		uint64_t now = smco_now_ns(), until = deadline_ns;
		if (state != 'D')
			until += LAST_BOUND_NS;
		if (now >= until)
			return false;
		t->quiet = false;
		t->in_vfork = false;
		task_await(t, now + NSEC_PER_MSEC);
	}
	return true;
}

/*
 * A change could not be undone, or not yet. Does it matter? An exec in progress
 * has killed all other threads and is about to replace the memory: nothing is
 * left to be undone then, and no thread to undo it with.
 */
static bool still_changed(struct tproc *p)
{
	uint64_t deadline = smco_now_ns() + EXEC_BOUND_NS;
	const struct timespec pause = {.tv_nsec = NSEC_PER_MSEC};

	while (!tproc_memory_gone(p)) {
		if (smco_now_ns() >= deadline)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int tproc_detach(struct tproc *p, struct smco_err *err)
{
	struct smco_err undo_err = {0};
	uint64_t began = smco_now_ns(), deadline = began + DETACH_BOUND_NS;
	p->stop_depth++;
	tproc_urgent(p, true);
	tproc_quiesce(p, deadline);
	uint64_t stood = smco_now_ns();
	/*
	 * Also if some have not stopped yet, on a machine where they do not
	 * get a CPU in time: interrupted, they run no instruction of the
	 * program before they stop, and no pc stands inside a patch.
	 */
	int ret = 0, undone = undo_all(p, deadline, &undo_err);
	smco_debug("stop", "leave %d: %u us until all stood, %u us to undo",
		   p->pid, (unsigned)((stood - began) / NSEC_PER_USEC),
		   (unsigned)((smco_now_ns() - stood) / NSEC_PER_USEC));
	p->leaving = true;
	p->is_new = false;
	tproc_drop_events(p);

	/* Children that run in this memory first: their parent waits. */
	for (struct task *t = p->tasks; t; t = t->next)
		if (t->tgid != p->pid)
			task_detach(t);
	for (struct task *t = p->tasks; t; t = t->next)
		task_detach(t);
	tproc_urgent(p, false);
	for (struct task *t = p->tasks; t; t = t->next)
		if (!await_release(t, deadline) && ret == 0)
			ret = smco_fail(err, SMCO_BUSY, 0,
					"thread %d cannot be released yet "
					"(it waits in the kernel)",
					t->tid);
	if (ret == 0 && (undone < 0 || p->stub) && still_changed(p)) {
		ret = undone < 0 ? undone : SMCO_BUSY;
		smco_fail(err, (enum smco_code)ret, 0, "%s",
			  undone < 0 ? undo_err.msg
				     : "a page of ours stays: no thread could "
				       "be stopped to take it out");
	}
	p->stop_depth = 0;
	tproc_discard_if_left(p);
	return ret;
}

int tproc_let_go(struct tproc *p, struct smco_err *err)
{
	struct tracer *tr = p->tr;
	if (p->pid == tr->launched_pid)
		tr->left_pid = p->pid;
	return tproc_detach(p, err);
}

bool tproc_may_go(const struct tproc *p)
{
	for (const struct task *t = p->tasks; t; t = t->next)
		if (t->tgid != p->pid || t->state != TASK_STOPPED ||
		    t->in_vfork || t->in_group_stop || t->held || t->is_new ||
		    t->owed || t->creator || t->created)
			return false;
	return p->tasks && !p->is_new && !tproc_has_copy_due(p);
}

void tproc_discard_if_left(struct tproc *p)
{
	if (!p->leaving || p->stop_depth)
		return;
	for (struct task *t = p->tasks; t; t = t->next)
		if (t->state != TASK_DEAD)
			return;
	tproc_discard(p);
}

static struct tproc *first_newborn(struct tracer *tr)
{
	for (struct tproc *p = tr->procs; p; p = p->next)
		if ((p->why == TPROC_FORKED || p->split) && !p->told &&
		    !p->leaving)
			return p;
	return NULL;
}

void tracer_leave_newborn(struct tracer *tr)
{
	struct tproc *p;
	tracer_drain(tr);
	tracer_pass_on(tr);
	while ((p = first_newborn(tr)))
		tproc_detach(p, NULL);
}

/* Stopped at birth, and their creator was killed before it could tell. */
static void release_orphans(struct tracer *tr)
{
	for (int i = 0; i < TASK_HASH_SIZE; i++)
		for (struct task *t = tr->hash[i]; t; t = t->hash_next)
			if (!t->proc)
				task_detach(t);
}

int tracer_detach_all(struct tracer *tr, struct smco_err *err)
{
	int ret = 0;
	struct tproc *p;

	/* One may leave a child behind that was just born. */
	do {
		for (p = tr->procs; p && p->leaving; p = p->next)
			;
		int r = p ? tproc_detach(p, ret ? NULL : err) : 0;
		if (r < 0 && ret == 0)
			ret = r;
	} while (p);
	release_orphans(tr);
	if (!tr->procs) /* the last of our children may end unheard */
		after_end();
	return ret;
}
