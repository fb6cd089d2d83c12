/*
 * How long a place that is to go is waited for: forty rounds, but a thread that
 * is always where it was, in no call that it could sleep in, has had no CPU,
 * and is waited for longer.
 */
#include <sys/syscall.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define ROUNDS	 40
#define BOUND_NS (3 * NSEC_PER_SEC)

static struct tracer *tr;

/* What a thread without a CPU looks like: never anywhere else. */
static long act_stand_still(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	__asm__ volatile("1: jmp 1b");
	return 0;
}

/* A thread that was about to be told of a signal when all were stopped. */
static volatile int *told;

static void on_signal(int sig)
{
	(void)sig;
	*told = 1;
}

static long act_handle(long sig, long unused)
{
	(void)unused;
	return signal((int)sig, on_signal) == SIG_ERR;
}

static bool was_told(void *unused)
{
	(void)unused;
	return *told;
}

struct asked {
	unsigned nr;
	unsigned empty_at; /* 0: never */
};

static bool is_empty(void *ctx)
{
	struct asked *a = ctx;
	return ++a->nr == a->empty_at;
}

/* All of them have just made a call and have its result. */
static bool has_made_call(void *p)
{
	struct user_regs_struct regs;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		check_int(task_get_regs(t, &regs), 0);
		regs.orig_rax = SYS_tgkill;
		regs.rax = 0;
		check_int(task_set_regs(t, &regs), 0);
	}
	return false;
}

static long act_fork(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

static long act_spawn(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	pid_t pid = vfork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "600", NULL);
		_exit(1);
	}
	return pid;
}

static bool is_traced(pid_t pid)
{
	char path[64], line[128];
	int tracer = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer != 0;
}

/* While one process is let run, another one forks and goes on, though nobody
 * asks for events; the child can be left alone before it is told of. */
static void others_go_on(struct tproc *p, struct puppet *other,
			 puppet_fn births)
{
	struct smco_err err = {0};
	struct pollfd answer = {.fd = other->answer, .events = POLLIN};
	check_int(traced_stop(p, &err), 0);
	puppet_begin(other, births, 0, 0);
	bool answers = false;
	for (int i = 0; i < 20 * ROUNDS && !answers; i++) {
		while (tproc_let_run(p, 20 * NSEC_PER_MSEC, &err) < 0)
			;
		answers = poll(&answer, 1, 0) > 0;
	}
	if (!check(answers))
		return;
	pid_t child = (pid_t)puppet_wait(other);
	check(is_traced(child));
	tracer_leave_newborn(tr);
	check(!is_traced(child));
	tproc_cont(p);
}

/* A signal's stop that comes before the one that we ask for. */
static void is_told(struct tproc *p, struct puppet *pup, int sig)
{
	struct smco_err err = {0};
	*told = 0;
	check_int(traced_do(tr, pup, act_handle, sig, 0), 0);
	check_int(tgkill(pup->pid, pup->pid, sig), 0);
	check_int(traced_stop(p, &err), 0);
	check(!*told);
	check(tproc_vacate(p, was_told, NULL));
	tproc_cont(p);
}

/* Its memory is gone, so that nothing in it can say that nobody is there. */
static void who_has_ended_is_nowhere(struct tproc *p, struct puppet *pup)
{
	struct smco_err err = {0};
	struct asked never = {0};
	check_int(traced_stop(p, &err), 0);
	check_int(kill(pup->pid, SIGKILL), 0);
	while (puppet_state(pup->pid) != 'Z')
		usleep(1000);
	check(tproc_vacate(p, is_empty, &never));
	check_int(never.nr, 0);
	tproc_cont(p);
}

int main(void)
{
	struct smco_err err = {0};
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct puppet sleeper = puppet_start(), still = puppet_start(),
		      forks = puppet_start();

	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct tproc *p = traced_attach(tr, sleeper.pid, &err);
	if (!check(p != NULL))
		return tap_done();
	struct asked at_once = {.empty_at = 1}, soon = {.empty_at = 7},
		     never = {0};
	check(!tproc_vacate(p, is_empty, &never));
	check_int(never.nr, 1); /* it cannot be let run */
	never.nr = 0;
	tproc_resume_new(p);
	check_int(traced_stop(p, &err), 0);
	check(tproc_vacate(p, is_empty, &at_once));
	check_int(at_once.nr, 1);
	check(tproc_vacate(p, is_empty, &soon));
	check_int(soon.nr, 7);
	check(!tproc_vacate(p, is_empty, &never));
	check_int(never.nr, ROUNDS + 1);
	tproc_cont(p);

	is_told(p, &sleeper, SIGUSR1);
	/* Such as sensors raise, but not one of ours. */
	is_told(p, &sleeper, tproc_trap_signal(p));

	struct tproc *q = traced_attach(tr, forks.pid, &err);
	if (!check(q != NULL))
		return tap_done();
	tproc_resume_new(q);
	others_go_on(p, &forks, act_fork);
	others_go_on(p, &forks, act_spawn);
	who_has_ended_is_nowhere(p, &sleeper);

	puppet_begin(&still, act_stand_still, 0, 0);
	p = traced_attach(tr, still.pid, &err);
	if (!check(p != NULL))
		return tap_done();
	tproc_resume_new(p);
	/* It may have stood before its loop at first: one round counts. */
	check_int(traced_stop(p, &err), 0);
	uint64_t began_ns = smco_now_ns();
	never.nr = 0;
	check(!tproc_vacate(p, is_empty, &never));
	check(smco_now_ns() - began_ns >= BOUND_NS);
	began_ns = smco_now_ns();
	check(!tproc_vacate(p, has_made_call, p));
	check(smco_now_ns() - began_ns >= BOUND_NS);
	tproc_cont(p);

	check_int(tracer_detach_all(tr, &err), 0);
	tracer_destroy(tr);
	puppet_end(&sleeper);
	puppet_end(&still);
	puppet_end(&forks);
	return tap_done();
}
