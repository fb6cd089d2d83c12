/*
 * What a command is forked by has no mask of CPUs of its own, whatever this
 * thread has been bound to: it may run where we might at first, and its forks
 * copy no mask (the kernel allocates one in whoever's has one).
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/event.h"
#include "pmu/open.h"
#include "supervisor/tracee/forker.h"
#include "tap.h"

static cpu_set_t at_first;
/* Allocations of masks, where the kernel tells of them. */
static struct pmu_event event;
static bool is_told;

static int end_of(pid_t pid)
{
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_event(void)
{
	int fd = pmu_open(&event.attr, 0, -1, -1);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER,
			     "call_site.function == dup_user_cpus_ptr")) {
		close(fd);
		return -1;
	}
	return fd;
}

/* How many masks are copied at a fork of this thread's. */
static int masks_of_fork(void)
{
	uint64_t nr = 0;
	int fd = open_event();
	if (fd < 0)
		return 0;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	ssize_t n = read(fd, &nr, sizeof(nr));
	close(fd);
	return n == sizeof(nr) ? (int)nr : 100;
}

static void say_masks(void *ctx)
{
	(void)ctx;
	_exit(masks_of_fork());
}

static void say_cpus(void *ctx)
{
	cpu_set_t *at = ctx, now;
	_exit(sched_getaffinity(0, sizeof(now), &now) || !CPU_EQUAL(at, &now));
}

static void say_signals(void *ctx)
{
	sigset_t set;
	(void)ctx;
	sigprocmask(SIG_SETMASK, NULL, &set);
	_exit(!sigismember(&set, SIGTERM) || !sigismember(&set, SIGCHLD));
}

static void say_parent(void *ctx)
{
	_exit(getppid() != *(pid_t *)ctx);
}

static void bind_us(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &at_first))
			CPU_SET(i, &one);
	check_int(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void test_cpus(void)
{
	check_int(end_of(forker_fork(say_cpus, &at_first)), 0);
}

static void test_masks(void)
{
	if (!is_told)
		return;
	check_int(masks_of_fork(), 1); /* ours */
	check_int(end_of(forker_fork(say_masks, NULL)), 0);
}

static void test_child_of_ours(void)
{
	pid_t self = getpid();
	check_int(end_of(forker_fork(say_parent, &self)), 0);
	check_int(end_of(forker_fork(say_signals, NULL)), 0);
}

/* A copy of this process has no such thread. */
static void test_copy(void)
{
	check_int(forker_prepare(NULL), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		alarm(60);
		pid_t self = getpid();
		_exit(forker_prepare(NULL) ||
		      end_of(forker_fork(say_parent, &self)));
	}
	check_int(end_of(pid), 0);
}

int main(void)
{
	sched_getaffinity(0, sizeof(at_first), &at_first);
	struct pmu_event ev;
	if (!pmu_event_parse("kmem:kmalloc", &ev, NULL) &&
	    !pmu_try(&ev, NULL)) {
		event = ev;
		event.attr.disabled = 1;
		int fd = open_event();
		is_told = fd >= 0;
		close(fd);
	}
	check_int(forker_prepare(NULL), 0);
	bind_us();
	test_cpus();
	test_masks();
	test_child_of_ours();
	test_copy();
	return tap_done();
}
