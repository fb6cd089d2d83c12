/*
 * A stop that can wait does: while a thread gets no CPU to stop on, the others
 * are not held for it.
 */
#include "t/unit/hog.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int cpu[2];

	hog_needs(cpu);
	pid_t pid = spin_on(cpu[1]);
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_must_attach(tr, pid);
	tproc_resume_new(p);
	int r;
	do
		r = tproc_stop_briefly(p, &err);
	while (r == SMCO_BUSY);
	check_int(r, 0);
	tproc_cont(p);

	pid_t other = hog_met(p, cpu[1]);
	if (other < 0)
		tap_skip("no real time here");
	else
		hog_end(other);
	/* Asked again, it stops where it was going to. */
	check_int(traced_stop(p, &err), 0);
	tproc_cont(p);
	check_int(tproc_detach(p, &err), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	tracer_destroy(tr);
	return tap_done();
}
