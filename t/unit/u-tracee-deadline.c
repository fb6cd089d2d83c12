/*
 * Where real time is refused, as in a control group that has none of its own, a
 * deadline takes its place: as long as a program stands, for nobody else, and
 * not for ever.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "t/unit/hurry.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* As such a group does. */
static bool refuse_real_time(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0,
			 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
			 (uint32_t)~SCHED_RESET_ON_FORK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SCHED_FIFO, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_SIZE(code), code};
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static int policy(void)
{
	return sched_getscheduler(0);
}

static int policy_while_stopped(struct tproc *p)
{
	if (traced_stop(p, NULL))
		return -1;
	int ret = policy() & ~SCHED_RESET_ON_FORK;
	tproc_cont(p);
	return ret;
}

static void *policy_here(void *ret)
{
	*(int *)ret = policy();
	return ret;
}

static int policy_of_thread(void)
{
	pthread_t t;
	int ret = -1;
	if (!pthread_create(&t, NULL, policy_here, &ret))
		pthread_join(t, NULL);
	return ret;
}

static int policy_of_child(void)
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		_exit(policy());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* It goes with the freedom to run anywhere. */
static void test_bound(struct tproc *p)
{
	cpu_set_t was, one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_getaffinity(0, sizeof(was), &was);
	if (CPU_COUNT(&was) < 2 || sched_setaffinity(0, sizeof(one), &one))
		return;
	check_int(policy_while_stopped(p), SCHED_OTHER);
	sched_setaffinity(0, sizeof(was), &was);
	check_int(policy_while_stopped(p), SCHED_DEADLINE);
}

static void test(struct tracer *tr, pid_t pid)
{
	struct smco_err err = {0};
	tracer_urgent(tr, true);
	check_int(policy(), SCHED_OTHER);
	struct tproc *p = traced_attach(tr, pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return;
	check_int(policy() & ~SCHED_RESET_ON_FORK, SCHED_DEADLINE);
	check_int(policy_of_thread(), SCHED_OTHER);
	check_int(policy_of_child(), SCHED_OTHER);
	tproc_resume_new(p);
	check_int(policy(), SCHED_OTHER);

	check_int(traced_stop(p, NULL), 0);
	check_int(policy() & ~SCHED_RESET_ON_FORK, SCHED_DEADLINE);
	keep_busy();
	check_int(policy() & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	tproc_cont(p);
	check_int(policy(), SCHED_OTHER);
	check_int(policy_while_stopped(p), SCHED_DEADLINE);
	test_bound(p);
	check_int(tproc_detach(p, NULL), 0);
	check_int(policy(), SCHED_OTHER);
}

/* Asked of a child: a deadline, in a group without real time. */
static bool may_have_deadline(void)
{
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = {sizeof(attr), SCHED_DEADLINE, 0,	 0, 0,
		  40000000,	50000000,	50000000};
	int status = 1;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		_exit(syscall(SYS_sched_setattr, 0, &attr, 0) != 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(void)
{
	struct tracer *tr;
	struct puppet pup = puppet_start();
	if (!may_have_deadline()) {
		puppet_end(&pup);
		tap_skip("no deadlines are permitted here");
		return tap_done();
	}
	if (check_int(refuse_real_time(), true) && check(!may_hurry()) &&
	    check_int(tracer_create(&tr, NULL, NULL), 0)) {
		test(tr, pup.pid);
		tracer_destroy(tr);
	}
	puppet_end(&pup);
	return tap_done();
}
