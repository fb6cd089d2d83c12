/*
 * A process that one forks which is attached to, but of which nobody has been
 * told yet, is told of as attached to as well: what is planted by then is in
 * its parent only. One from after that is a copy.
 */
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;

/* The child stays, as a zombie at last. */
static long act_fork(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid;
}

static void wait_for_stop(const struct puppet *p)
{
	for (int ms = 0; ms < 20000 && puppet_state(p->pid) != 't'; ms++)
		usleep(1000);
	check_int(puppet_state(p->pid), 't');
}

/* The next process that is told of, in *ev. */
static bool next_new(struct tevent *ev)
{
	for (int i = 0; i < 2000; i++) {
		if (tracer_next(tr, smco_now_ns() + 10 * NSEC_PER_MSEC, ev) >
			    0 &&
		    ev->kind == TEV_PROC_NEW)
			return true;
		if (ev->kind == TEV_TASK_NEW || ev->kind == TEV_LIBS)
			tracer_resume(tr, ev->task, 0);
	}
	return check_msg(false, "a process is told of");
}

int main(void)
{
	struct smco_err err = {0};
	struct tevent ev[2];
	struct puppet p = puppet_start();
	const struct tracer_options opts = {.follow = true};

	if (!check_int(tracer_create(&tr, &opts, &err), 0) ||
	    !check_int(tracer_seize(tr, p.pid, &err), 0))
		return tap_done();
	puppet_begin(&p, act_fork, 0, 0);
	wait_for_stop(&p); /* in its fork */
	check_int(tracer_stop_seized(tr, &err), 1);
	for (int i = 0; i < 2; i++) {
		if (!next_new(&ev[i]))
			return tap_done();
		check_int(ev[i].why, TPROC_ATTACHED);
		check(ev[i].parent == NULL);
	}
	int at = tproc_pid(ev[0].proc) != p.pid;
	struct tproc *parent = ev[at].proc;
	check_int(tproc_pid(parent), p.pid);
	pid_t child = tproc_pid(ev[!at].proc);
	tproc_resume_new(ev[0].proc);
	tproc_resume_new(ev[1].proc);
	check_int(traced_wait(tr, &p), child);

	puppet_begin(&p, act_fork, 0, 0);
	if (!next_new(&ev[0]))
		return tap_done();
	check_int(ev[0].why, TPROC_FORKED);
	check(ev[0].parent == parent);
	child = tproc_pid(ev[0].proc);
	tproc_resume_new(ev[0].proc);
	check_int(traced_wait(tr, &p), child);

	check_int(tproc_detach(parent, &err), 0);
	tracer_destroy(tr);
	puppet_end(&p);
	return tap_done();
}
