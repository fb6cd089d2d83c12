/*
 * In real time, but nobody else with us: threads, children and the command are
 * scheduled as ever, with the limits and signals that are their own. And not
 * for ever, though SIGXCPU was blocked when we came; not at all where the
 * signal is somebody else's, or the kernel would kill for it.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "t/unit/hurry.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define FLAG SCHED_RESET_ON_FORK

static void *policy_here(void *ret)
{
	*(int *)ret = sched_getscheduler(0);
	return ret;
}

static int policy_of_thread(void)
{
	pthread_t t;
	int policy = -1;
	if (!pthread_create(&t, NULL, policy_here, &policy))
		pthread_join(t, NULL);
	return policy;
}

static int policy_of_child(void)
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		_exit(sched_getscheduler(0));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int own_nice; /* what we were started with */

/* The mask of signals in a line of /proc/PID/status: has it SIGXCPU? */
static bool has_xcpu(const char *status, const char *line)
{
	const char *at = strstr(status, line);
	return at && strtoull(at + strlen(line), NULL, 16) >> (SIGXCPU - 1) & 1;
}

/* A command started while we hurry, at its first instruction. */
static void check_command(struct tracer *tr, const struct rlimit *own)
{
	char name[] = "sleep", seconds[] = "60";
	char *const argv[] = {name, seconds, NULL};
	char path[64], status[4096];
	struct smco_err err = {0};
	struct rlimit is = {0};
	pid_t pid = 0;
	if (!check_int(tracer_launch(tr, argv, &pid, &err), 0))
		return;
	check_int(sched_getscheduler(pid), SCHED_OTHER);
	check_int(getpriority(PRIO_PROCESS, (id_t)pid), own_nice);
	check_int(prlimit(pid, RLIMIT_RTTIME, NULL, &is), 0);
	check(is.rlim_cur == own->rlim_cur && is.rlim_max == own->rlim_max);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	check(smco_slurp(path, status, sizeof(status)) > 0);
	check(has_xcpu(status, "SigBlk:"));
	check(!has_xcpu(status, "SigIgn:"));
	check(!has_xcpu(status, "SigCgt:"));
	kill(pid, SIGKILL);
	struct tevent ev;
	while (tracer_next(tr, UINT64_MAX, &ev) > 0)
		if (ev.kind == TEV_PROC_NEW)
			tproc_resume_new(ev.proc);
}

static void test_others(bool real_time)
{
	const int hurried = real_time ? SCHED_FIFO : SCHED_OTHER;
	struct tracer *tr;
	struct rlimit own, now;
	sigset_t xcpu;

	getrlimit(RLIMIT_RTTIME, &own);
	sigemptyset(&xcpu);
	sigaddset(&xcpu, SIGXCPU);
	sigprocmask(SIG_BLOCK, &xcpu, NULL);
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return;
	tracer_urgent(tr, true);
	check_int(sched_getscheduler(0) & ~FLAG, hurried);
	check_int(policy_of_thread(), SCHED_OTHER);
	check_int(policy_of_child(), SCHED_OTHER);
	check_command(tr, &own);
	check_int(sched_getscheduler(0) & ~FLAG, hurried);
	keep_busy();
	check_int(sched_getscheduler(0) & ~FLAG, SCHED_OTHER);
	tracer_urgent(tr, false);
	tracer_destroy(tr);
	getrlimit(RLIMIT_RTTIME, &now);
	check(now.rlim_cur == own.rlim_cur && now.rlim_max == own.rlim_max);
	sigprocmask(SIG_UNBLOCK, &xcpu, NULL);
}

static void check_scheduled(int policy, int nice)
{
	check_int(sched_getscheduler(0) & ~FLAG, policy);
	check_int(getpriority(PRIO_PROCESS, 0), nice);
}

/* How long a turn of ours may last; 0 = nobody asks for that here. */
static uint64_t turn_ns(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = {.size = sizeof(attr)};
	check_int(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
	return attr.runtime_ns;
}

static void *turn_here(void *ret)
{
	*(uint64_t *)ret = turn_ns();
	return ret;
}

static uint64_t turn_of_thread(void)
{
	pthread_t t;
	uint64_t ns = 0;
	if (!pthread_create(&t, NULL, turn_here, &ns))
		pthread_join(t, NULL);
	return ns;
}

/* Whoever wakes up meanwhile does not wait for the end of our turn. */
static void test_turns(bool real_time)
{
	struct tracer *tr;
	uint64_t usual_ns = turn_ns();
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return;
	tracer_urgent(tr, true);
	tracer_relax(tr, true);
	if (real_time && usual_ns)
		check_int((long)turn_ns(), 100 * (long)NSEC_PER_MSEC);
	check(turn_of_thread() == usual_ns);
	/* Whatever ends it. */
	tracer_urgent(tr, false);
	tracer_relax(tr, false);
	check(turn_ns() == usual_ns);
	tracer_urgent(tr, true);
	tracer_relax(tr, true);
	tracer_relax(tr, false);
	tracer_urgent(tr, false);
	check(turn_ns() == usual_ns);
	tracer_destroy(tr);
}

/* By a signal of its own, which is passed on. */
static void stop_by_itself(struct tracer *tr, pid_t pid)
{
	const uint64_t nr = tracer_nr_stops(tr);
	struct tevent ev;
	kill(pid, SIGURG);
	while (tracer_nr_stops(tr) == nr)
		if (!check(tracer_next(tr, smco_now_ns() + NSEC_PER_SEC, &ev) >
			   0))
			return;
}

/*
 * What can wait is done in turn with others, as whoever started us wanted it,
 * but as ever while somebody stands; and others' scheduling is their own.
 */
static void test_relaxed(bool real_time)
{
	const int hurried = real_time ? SCHED_FIFO : SCHED_OTHER;
	const int own = getpriority(PRIO_PROCESS, 0);
	struct smco_err err = {0};
	struct tracer *tr;

	check(!tracer_relax(NULL, true));
	struct puppet pup = puppet_start();
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return;
	setpriority(PRIO_PROCESS, 0, own - 3);
	const int better = getpriority(PRIO_PROCESS, 0);
	const int shared = own < 0 ? own : 0;
	const int given = real_time && shared > better ? shared : better;
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	tracer_urgent(tr, true);
	check_scheduled(hurried, better);
	check(!tracer_relax(tr, true));
	check_scheduled(SCHED_OTHER, given);
	check_int(policy_of_thread(), SCHED_OTHER);
	check(tracer_relax(tr, true));
	check_scheduled(SCHED_OTHER, given);
	const uint64_t nr = tracer_nr_stops(tr), nr_asked = tracer_nr_asked(tr);
	for (int i = 0; i < 3; i++) {
		check_int(traced_stop(p, &err), 0);
		check_scheduled(hurried, better);
		tproc_cont(p);
		check_scheduled(SCHED_OTHER, given);
	}
	check_int((long)(tracer_nr_stops(tr) - nr), 3);
	check_int((long)(tracer_nr_asked(tr) - nr_asked), 3);
	stop_by_itself(tr, pup.pid);
	check_int((long)(tracer_nr_stops(tr) - nr), 4);
	check_int((long)(tracer_nr_asked(tr) - nr_asked), 3);
	/* Asked again: it is still so. */
	tracer_urgent(tr, true);
	check_scheduled(SCHED_OTHER, given);
	check(tracer_relax(tr, false));
	check_scheduled(hurried, better);
	check(!tracer_relax(tr, false));
	tracer_relax(tr, true);
	tracer_urgent(tr, false);
	tracer_relax(tr, false);
	check_scheduled(SCHED_OTHER, better);
	check_int(sched_getscheduler(pup.pid), SCHED_OTHER);
	check_int(getpriority(PRIO_PROCESS, (id_t)pup.pid), own);
	tracer_destroy(tr);
	puppet_end(&pup);
	setpriority(PRIO_PROCESS, 0, own);
}

/* A command that is started meanwhile. */
static void test_relaxed_start(void)
{
	const int own = getpriority(PRIO_PROCESS, 0);
	struct rlimit limit;
	sigset_t xcpu;
	struct tracer *tr;
	getrlimit(RLIMIT_RTTIME, &limit);
	sigemptyset(&xcpu);
	sigaddset(&xcpu, SIGXCPU);
	sigprocmask(SIG_BLOCK, &xcpu, NULL);
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return;
	tracer_urgent(tr, true);
	tracer_relax(tr, true);
	check_command(tr, &limit);
	tracer_destroy(tr);
	sigprocmask(SIG_UNBLOCK, &xcpu, NULL);
	check_int(getpriority(PRIO_PROCESS, 0), own);
}

/* The policy with which a child, prepared by @prepare, looks after programs. */
static int policy_after(void (*prepare)(void))
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		struct tracer *tr;
		prepare();
		if (tracer_create(&tr, NULL, NULL))
			_exit(99);
		tracer_urgent(tr, true);
		_exit(sched_getscheduler(0) & ~FLAG);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void as_we_are(void)
{
	signal(SIGXCPU, SIG_DFL);
}

static void ignoring(void)
{
	signal(SIGXCPU, SIG_IGN);
}

/* So soon it would be the end of us. */
static void limited(void)
{
	const struct rlimit soon = {20000, 20000};
	signal(SIGXCPU, SIG_DFL);
	setrlimit(RLIMIT_RTTIME, &soon);
}

int main(void)
{
	bool real_time = may_hurry();
	own_nice = getpriority(PRIO_PROCESS, 0);
	if (!real_time)
		printf("# real time is not permitted here\n");
	test_others(real_time);
	test_relaxed(real_time);
	setpriority(PRIO_PROCESS, 0, 10);
	test_relaxed(real_time);
	setpriority(PRIO_PROCESS, 0, own_nice);
	test_turns(real_time);
	test_relaxed_start();
	check_int(policy_after(as_we_are),
		  real_time ? SCHED_FIFO : SCHED_OTHER);
	check_int(policy_after(ignoring), SCHED_OTHER);
	check_int(policy_after(limited), SCHED_OTHER);
	return tap_done();
}
