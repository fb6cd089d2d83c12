/* Taking a running process under supervision. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

#define ATTACH_BOUND_NS (2 * NSEC_PER_SEC)
#define MAX_REFUSED	20

/* Threads on their way out refuse to be seized; they need not be. */
static bool is_ending(const struct tproc *p, pid_t tid)
{
	const struct task t = {.tid = tid, .tgid = p->pid};
	char state = task_proc_state(&t);
	return !state || state == 'Z' || state == 'X';
}

/* One look at /proc/PID/task: seizes whom it does not know. Nobody is stopped
 * by that; threads that seized ones make are seized already. Returns the number
 * of new ones, or a negative error. */
static int scan(struct tracer *tr, struct tproc *p, int *errno_ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	DIR *dir = opendir(path);
	if (!dir) {
		*errno_ret = errno;
		return SMCO_GONE;
	}
	int nr_new = 0;
	struct dirent *de;
	while ((de = readdir(dir))) {
		pid_t tid = (pid_t)atoi(de->d_name);
		if (tid <= 0 || task_find(tr, tid))
			continue;
		bool ours = false;
		if (ptrace(PTRACE_SEIZE, tid, NULL, trace_options(tr, false)) <
		    0) {
			if (errno == ESRCH)
				continue;
			uint64_t tracer = 0;
			*errno_ret = errno;
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
		struct task *t = task_create(tr, tid);
		if (!t) {
			closedir(dir);
			return SMCO_NOMEM;
		}
		task_join(t, p, p->pid);
		t->is_new = ours;
		t->may_wait = true; /* for all we know */
		nr_new++;
	}
	closedir(dir);
	return nr_new;
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
		tproc_detach(p, NULL);
	else
		tproc_discard(p);
}

int tracer_attach(struct tracer *tr, pid_t pid, struct smco_err *err)
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

	int e = ESRCH, n;
	unsigned refused = 0;
	do {
		n = scan(tr, p, &e);
	} while (n > 0 || is_changing(p, n, &refused));
	if (n < 0 || !p->tasks) {
		struct smco_err why = {.code = SMCO_PERM};
		tracer_explain_attach(pid, e, &why);
		give_up(p);
		if (err)
			*err = why;
		return why.code;
	}
	/* In this all must show up, so they get more time than usual. */
	p->stop_depth = 1;
	struct task *stuck = tproc_quiesce(p, smco_now_ns() + ATTACH_BOUND_NS);
	if (stuck) {
		pid_t tid = stuck->tid;
		give_up(p);
		return smco_fail(err, SMCO_BUSY, 0,
				 "thread %d of process %d does not stop", tid,
				 pid);
	}
	if (!tproc_first_task(p)) {
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
		event_push(tr, TEV_PROC_NEW, p, tproc_first_task(p));
	ev->why = TPROC_ATTACHED;
	return 0;
}
