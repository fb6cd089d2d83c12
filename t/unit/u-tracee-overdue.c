/*
 * A stop that nobody waits for any more comes while another process is waited
 * for: who stopped goes on at once, not when that is over.
 */
#include "t/unit/hog.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* It has the CPU before the hog. */
static bool put_before_hog(pid_t pid)
{
	const struct sched_param sp = {.sched_priority = 60};
	return !sched_setscheduler(pid, SCHED_FIFO, &sp);
}

/* It stops now, as it was asked to and not waited for; and has no claim to the
 * CPU then that the other one would miss. */
static void stop_late(pid_t pid)
{
	uint64_t end_ns = smco_now_ns() + NSEC_PER_SEC;
	check(put_before_hog(pid));
	while (puppet_state(pid) != 't' && smco_now_ns() < end_ns)
		usleep(100);
	check_int(puppet_state(pid), 't');
	lift(pid);
}

/* False: @never had a CPU after all. */
static bool try(struct tproc *late, struct tproc *never)
{
	stop_late(tproc_pid(late));
	int r = tproc_stop_briefly(never, NULL);
	char state = puppet_state(tproc_pid(late));
	if (r == 0) {
		tproc_cont(never);
		return false;
	}
	check_int(r, SMCO_BUSY);
	check_int(state, 'R');
	return true;
}

static void test(struct tproc *late, struct tproc *never, int cpu)
{
	bool done = false;
	for (int i = 0; i < HOG_TRIES && !done; i++) {
		pid_t other = hog_met(late, cpu);
		if (other < 0) {
			tap_skip("no real time here");
			return;
		}
		done = try(late, never);
		hog_end(other);
	}
	check_msg(done, "one stopped late while the other was waited for");
}

static struct tproc *attached(struct tracer *tr, pid_t pid)
{
	struct tproc *p = traced_must_attach(tr, pid);
	tproc_resume_new(p);
	return p;
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int cpu[2];

	hog_needs(cpu);
	pid_t pid[2] = {spin_on(cpu[1]), spin_on(cpu[1])};
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *late = attached(tr, pid[0]);
	struct tproc *never = attached(tr, pid[1]);
	test(late, never, cpu[1]);
	for (int i = 0; i < 2; i++) {
		struct tproc *p = i ? never : late;
		check_int(traced_stop(p, &err), 0);
		tproc_cont(p);
		check_int(tproc_detach(p, &err), 0);
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, __WALL);
	}
	tracer_destroy(tr);
	return tap_done();
}
