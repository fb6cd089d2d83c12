/*
 * In real time, but nobody else with us: threads, children and the command are
 * scheduled as ever, with the limits and signals that are their own. And not
 * for ever, though SIGXCPU was blocked when we came; not at all where the
 * signal is somebody else's, or the kernel would kill for it.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

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
	if (!real_time)
		printf("# real time is not permitted here\n");
	test_others(real_time);
	check_int(policy_after(as_we_are),
		  real_time ? SCHED_FIFO : SCHED_OTHER);
	check_int(policy_after(ignoring), SCHED_OTHER);
	check_int(policy_after(limited), SCHED_OTHER);
	return tap_done();
}
