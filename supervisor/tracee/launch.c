/* Starting a command under supervision. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/forker.h"
#include "supervisor/tracee/internal.h"

struct command {
	struct tracer *tr;
	char *const *argv;
	int go[2], report[2]; /* pipes */
};

/*
 * The child: waits until it is seized, so that its first exec is seen, and
 * says through the other pipe why exec failed. Async-signal-safe calls only.
 */
static void run_child(void *arg)
{
	const struct command *c = arg;
	char byte;
	close(c->go[1]);
	while (read(c->go[0], &byte, 1) < 0 && errno == EINTR)
		;
	setrlimit(RLIMIT_NOFILE, &c->tr->own_nofile);
	urgent_deinit(&c->tr->urgent);
	sigprocmask(SIG_SETMASK, &c->tr->child_mask, NULL);
	execvp(c->argv[0], c->argv);
	int e = errno;
	while (write(c->report[1], &e, sizeof(e)) < 0 && errno == EINTR)
		;
	_exit(127);
}

static int exec_error(struct smco_err *err, const char *name, int e)
{
	if (e == ENOENT && *name && !strchr(name, '/'))
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "cannot run %s: command not found", name);
	switch (e) {
	case ENOENT:
	case ENOTDIR:
		return smco_fail(err, SMCO_NOTFOUND, e, "cannot run %s", name);
	default:
		return smco_fail(err, SMCO_PERM, e, "cannot run %s", name);
	}
}

/* Through all stops before the exec: 0 at the exec-stop, else the status. */
static int await_exec(struct task *t, int *status_ret)
{
	for (;;) {
		pid_t tid = wait_status(t->tr, t->tid, UINT64_MAX, status_ret);
		if (tid < 0)
			return SMCO_GONE;
		enum stop_kind kind = stop_classify(*status_ret);
		if (kind == STOP_EXITED || kind == STOP_KILLED)
			return SMCO_GONE;
		if (kind == STOP_EXEC)
			return 0;
		if (kind == STOP_GROUP)
			ptrace(PTRACE_LISTEN, tid, NULL, 0L);
		else
			ptrace(PTRACE_CONT, tid, NULL,
			       (long)(kind == STOP_SIGNAL
					      ? WSTOPSIG(*status_ret)
					      : 0));
	}
}

int tracer_launch(struct tracer *tr, char *const argv[], pid_t *pid_ret,
		  struct smco_err *err)
{
	struct command c = {.tr = tr, .argv = argv};
	if (pipe2(c.go, O_CLOEXEC) < 0)
		return smco_fail(err, SMCO_SYS, errno, "cannot make a pipe");
	if (pipe2(c.report, O_CLOEXEC) < 0) {
		close(c.go[0]);
		close(c.go[1]);
		return smco_fail(err, SMCO_SYS, errno, "cannot make a pipe");
	}
	pid_t pid = forker_fork(run_child, &c);
	int e = errno;
	close(c.go[0]);
	close(c.report[1]);
	_cleanup_close_ int go_fd = c.go[1];
	_cleanup_close_ int report_fd = c.report[0];
	if (pid < 0)
		return smco_fail(err, SMCO_SYS, e, "cannot fork");

	int status = 0;
	if (ptrace(PTRACE_SEIZE, pid, NULL, trace_options(tr, true)) < 0) {
		/* While it is there: of who is gone nothing is known. */
		tracer_explain_attach(pid, errno, err);
		kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
		return SMCO_PERM;
	}
	struct tproc *p = tproc_create(tr, pid);
	struct task *t = p ? task_create(tr, pid) : NULL;
	if (!t) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
		if (p)
			tproc_discard(p);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	task_join(t, p, pid);
	t->is_new = false;
	t->is_childless = true;
	t->options = trace_options(tr, true);
	p->is_new = true;
	p->launched = true;
	p->why = TPROC_LAUNCHED;
	if (tr->opts.before_exec)
		tr->opts.before_exec(tr->opts.before_exec_ctx, pid);
	close(go_fd);
	go_fd = -1;

	if (await_exec(t, &status) < 0) {
		e = 0;
		tproc_discard(p);
		if (read(report_fd, &e, sizeof(e)) == sizeof(e))
			return exec_error(err, argv[0], e);
		return smco_fail(err, SMCO_GONE, 0,
				 "%s was killed before it started", argv[0]);
	}
	if (proc_is_32bit(pid)) {
		/* Not one instruction of it has run. */
		kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
		tproc_discard(p);
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s is a 32-bit program; only 64-bit ones "
				 "can be supervised",
				 argv[0]);
	}
	gather(tr, pid, status);
	tr->launched_pid = pid;
	*pid_ret = pid;
	return 0;
}
