/* Taking a running process under supervision. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

#define ATTACH_BOUND_NS (2 * NSEC_PER_SEC)
/* So often all are to stand for their start, where one gets no CPU for so long:
 * in a group with little of one, where the machine is short of them. */
#define MAX_TRIES   5
#define MAX_REFUSED 20
/* A thread cannot be seized for so long: somebody may wait for us. */
#define SEIZE_NS (2 * NSEC_PER_MSEC)

/* Threads on their way out refuse to be seized; they need not be. */
static bool is_ending(const struct tproc *p, pid_t tid)
{
	const struct task t = {.tid = tid, .tgid = p->pid};
	char state = task_proc_state(&t);
	return !state || state == 'Z' || state == 'X';
}

/*
 * The number that thread @tid, which we have just seized, goes by. If it was
 * in an exec then, the call has waited for that and it is the leader now, which
 * its exec-stop may tell of or not. It cannot be gone but by that: a dead one
 * stays until we have reaped it.
 */
static pid_t number_now(const struct tproc *p, pid_t tid)
{
	bool there = syscall(SYS_tgkill, p->pid, tid, 0) == 0 || errno != ESRCH;
	return there ? tid : p->pid;
}

/* Thread @tid is ours. @born: made by another one of ours, it stops by itself;
 * a leader never is. */
static bool book(struct tracer *tr, struct tproc *p, pid_t tid, bool born)
{
	struct task *t = task_find(tr, tid);
	if (!t)
		t = task_create(tr, tid);
	if (!t)
		return false;
	if (!t->proc)
		task_join(t, p, p->pid);
	if (!born)
		t->options = trace_options(tr, false);
	t->is_new = born;
	t->may_wait = true; /* for all we know */
	return true;
}

/* One look at /proc/PID/task: seizes whom it does not know. Nobody is stopped
 * by that; threads that seized ones make are seized already. Returns whether
 * another look is needed, or a negative error. */
static int scan(struct tracer *tr, struct tproc *p, uint64_t deadline_ns,
		int *errno_ret)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), p->pid, "task");
	DIR *dir = opendir(path);
	if (!dir) {
		*errno_ret = errno;
		return SMCO_GONE;
	}
	int again = 0;
	struct dirent *de;
	while ((de = readdir(dir))) {
		pid_t tid = (pid_t)atoi(de->d_name);
		if (tid <= 0 || task_find(tr, tid))
			continue;
		bool ours = false;
		int r = wait_seize(tr, tid, trace_options(tr, false),
				   smco_now_ns() + SEIZE_NS);
		if (r == -EINTR) {
			/* One execs and waits for others, ours, to be gone.
			 * Whether this one is then, the next look tells. */
			tracer_drain(tr);
			again = 1;
			if (smco_now_ns() >= deadline_ns)
				break;
			continue;
		}
		if (r < 0) {
			if (r == -ESRCH)
				continue;
			uint64_t tracer = 0;
			*errno_ret = -r;
			/* Born to a thread seized before: traced already. */
			proc_status_u64(tid, "TracerPid", 10, &tracer);
			ours = tracer && (pid_t)tracer == tr->tid;
			if (!ours && is_ending(p, tid))
				continue;
			if (!ours) {
				closedir(dir);
				return SMCO_PERM;
			}
		}
		if (!ours)
			tid = number_now(p, tid);
		if (!book(tr, p, tid, ours && tid != p->pid)) {
			closedir(dir);
			return SMCO_NOMEM;
		}
		again = 1;
	}
	closedir(dir);
	return again;
}

/*
 * Refused, but by nobody: a thread that ends as another one execs may look
 * alive again, under the same number, when we ask why.
 */
static bool is_changing(const struct tproc *p, int scanned, unsigned *refused)
{
	const struct timespec ts = {.tv_nsec = NSEC_PER_MSEC};
	uint64_t tracer = 0;

	if (scanned != SMCO_PERM || ++*refused > MAX_REFUSED)
		return false;
	if (proc_status_u64(p->pid, "TracerPid", 10, &tracer) && tracer &&
	    (pid_t)tracer != p->tr->tid)
		return false;
	nanosleep(&ts, NULL);
	return true;
}

static void give_up(struct tproc *p)
{
	p->is_new = false;
	if (p->tasks)
		tproc_let_go(p, NULL);
	else
		tproc_discard(p);
}

/* Until all are ours, at the latest at @deadline_ns. */
static int seize_all(struct tproc *p, uint64_t deadline_ns,
		     struct smco_err *err)
{
	int e = ESRCH, n;
	unsigned refused = 0;
	do {
		n = scan(p->tr, p, deadline_ns, &e);
		if (n > 0 && smco_now_ns() >= deadline_ns)
			return smco_fail(err, SMCO_BUSY, 0,
					 "the threads of process %d change "
					 "faster than we can attach to them, "
					 "or one of them does not get through "
					 "its exec",
					 p->pid);
	} while (n > 0 || is_changing(p, n, &refused));
	if (n >= 0 && p->tasks)
		return 0;
	struct smco_err why = {.code = SMCO_PERM};
	tracer_explain_attach(p->pid, e, &why);
	if (err)
		*err = why;
	return why.code;
}

/* What takes long for many, and need not wait until they stand. */
static void look_at_threads(struct tproc *p)
{
	for (struct task *t = p->tasks; t; t = t->next) {
		handler_look(t);
		task_own_tid(t);
	}
	tproc_trap_signal(p);
}

int tracer_seize(struct tracer *tr, pid_t pid, struct smco_err *err)
{
	uint64_t tgid;
	if (!proc_status_u64(pid, "Tgid", 10, &tgid))
		return smco_fail(err, SMCO_GONE, ESRCH, "no process %d", pid);
	struct task *leader = task_find(tr, (pid_t)tgid);
	if (leader && leader->proc)
		return smco_fail(err, SMCO_BUSY, 0,
				 "process %d is under supervision already",
				 pid);
	if ((pid_t)tgid == getpid())
		return smco_fail(err, SMCO_PERM, 0,
				 "process %d is the supervisor itself", pid);
	if (proc_is_32bit(pid)) {
		tracer_explain_attach(pid, 0, err);
		return SMCO_UNSUPPORTED;
	}
	struct tproc *p = tproc_create(tr, (pid_t)tgid);
	if (!p)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	p->is_new = true;
	p->why = TPROC_ATTACHED;
	int r = seize_all(p, smco_now_ns() + ATTACH_BOUND_NS, err);
	if (r < 0) {
		give_up(p);
		return r;
	}
	inject_look(p);
	whole_find(p); /* before the first stop is looked at */
	look_at_threads(p);
	/* Whatever stops by itself until it is announced runs on. */
	p->is_new = false;
	p->seized = true;
	p->has_unseen = tr->opts.is_shared;
	if (p->pid == tr->left_pid)
		tr->left_pid = 0;
	return 0;
}

/* They run on, and are stopped anew by the next call. */
static void let_go(struct tproc *p)
{
	p->nr_tries++;
	p->is_new = false;
	p->seized = true;
	tproc_cont(p);
}

static int stop_seized(struct tproc *p, struct smco_err *err)
{
	p->seized = false;
	tproc_look_ahead(p);
	p->is_new = true;
	/* In this all must show up, so they get more time than usual. */
	struct task *stuck = tproc_stop_all(p, ATTACH_BOUND_NS);
	if (!stuck && tproc_first_task(p) && !unseen_is_out(p, true)) {
		give_up(p);
		return smco_fail(err, SMCO_BUSY, 0,
				 "a child that is not followed runs in its "
				 "memory");
	}
	if (stuck) {
		pid_t tid = stuck->tid, pid = p->pid;
		/* Who only waits for a CPU may get one the next time. */
		if (task_proc_state(stuck) == 'R' &&
		    p->nr_tries + 1 < MAX_TRIES) {
			let_go(p);
			return 0;
		}
		give_up(p);
		return smco_fail(err, SMCO_BUSY, 0,
				 "thread %d of process %d does not stop", tid,
				 pid);
	}
	if (!tproc_first_task(p)) {
		pid_t pid = p->pid;
		tproc_discard(p);
		return smco_fail(err, SMCO_GONE, 0,
				 "process %d ended while we attached", pid);
	}
	/* Held from here on, until tproc_resume_new(). */
	p->stop_depth = 0;
	for (struct task *t = p->tasks; t; t = t->next) {
		t->announced = true;
		if (t->state == TASK_STOPPED && !t->queued)
			t->held = true;
	}
	if (p->execed) /* told as such, with its new memory */
		return 0;
	struct tevent *ev =
		event_push(p->tr, TEV_PROC_NEW, p, tproc_first_task(p));
	ev->why = TPROC_ATTACHED;
	return 0;
}

int tracer_stop_seized(struct tracer *tr, struct smco_err *err)
{
	/* Who waits to be told of a signal, or has forked, does not wait for
	 * all others to be started as well. */
	tracer_drain(tr);
	tracer_pass_on(tr);
	for (struct tproc *p = tr->procs; p; p = p->next) {
		if (!p->seized)
			continue;
		int r = stop_seized(p, err);
		return r ? r : 1;
	}
	return 0;
}

int tracer_attach(struct tracer *tr, pid_t pid, struct smco_err *err)
{
	int r = tracer_seize(tr, pid, err);
	if (r)
		return r;
	do
		r = tracer_stop_seized(tr, err);
	while (r > 0);
	return r;
}
