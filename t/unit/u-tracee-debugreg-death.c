/*
 * Who watched by ptrace's debug registers is killed: another process of ours
 * takes them out, of all threads, and ends. So it does when nothing is left.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct puppet pup;
static volatile uint64_t words[2]; /* the puppet's */
static volatile int go_on;

static long act_write(long value, long unused)
{
	(void)unused;
	words[0] = (uint64_t)value;
	return value;
}

static void *write_when_asked(void *arg)
{
	while (!go_on)
		usleep(1000);
	words[0] = 3;
	return arg;
}

static long act_thread(long begin, long unused)
{
	static pthread_t t;
	(void)unused;
	go_on = !begin;
	return begin ? pthread_create(&t, NULL, write_when_asked, NULL)
		     : pthread_join(t, NULL);
}

static void hit(struct task *t, uint64_t stop_ns, void *nr)
{
	(void)t, (void)stop_ns;
	++*(volatile int *)nr;
}

/* Watches, says so, and waits: for its end, or until there was a hit. */
static void __attribute__((noreturn)) supervise(int ready, bool to_death)
{
	struct twatch w = {
		.addr = (taddr_t)(uintptr_t)&words[0],
		.bytes = 8,
		.hit = hit,
	};
	struct tracer *tr;
	struct tevent ev;
	uint64_t ns;
	uint32_t id;
	int nr = 0;
	w.arg = &nr;
	if (twatch_try(&ns, &ns, NULL)) {
		(void)!write(ready, "s", 1);
		_exit(0);
	}
	if (tracer_create(&tr, NULL, NULL))
		_exit(1);
	struct tproc *p = traced_attach(tr, pup.pid, NULL);
	if (!p || tproc_watch(p, &w, &id, NULL))
		_exit(1);
	tproc_resume_new(p);
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (to_death || !nr)
		tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev);
	tracer_destroy(tr);
	_exit(0);
}

static pid_t start(bool to_death)
{
	int ready[2];
	char c;
	fflush(stdout);
	if (pipe(ready))
		exit(2);
	pid_t pid = fork();
	if (!pid)
		supervise(ready[1], to_death);
	close(ready[1]);
	check_int(read(ready[0], &c, 1), 1);
	close(ready[0]);
	if (c == 's') {
		tap_skip("debug registers do not fire");
		exit(tap_done());
	}
	return pid;
}

/* The process that stands by, which is ours now: has ended. */
static bool other_ends(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);
	return pid > 0 && pid != pup.pid && WIFEXITED(status);
}

/* Who else is, or was, ours. */
static int nr_others(void)
{
	char path[64], line[256];
	int pid, len, nr = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
	if (smco_slurp(path, line, sizeof(line)) < 0)
		return -1;
	for (const char *p = line; sscanf(p, "%d%n", &pid, &len) == 1; p += len)
		nr += pid != pup.pid;
	return nr;
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	int status;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pup = puppet_start();
	check_int(puppet_do(&pup, act_thread, 1, 0), 0);
	pid_t pid = start(true);
	check_int(puppet_do(&pup, act_write, 1, 0), 1);
	kill(pid, SIGKILL);
	check_int(waitpid(pid, &status, 0), pid);
	check(other_ends());
	check_int(puppet_do(&pup, act_write, 2, 0), 2);
	check_int(puppet_do(&pup, act_thread, 0, 0), 0);
	check_int(waitpid(pup.pid, &status, WNOHANG), 0);
	/* All is ours again, and nothing there. */
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_must_attach(tr, pup.pid);
	check_int(ptrace(PTRACE_PEEKUSER, pup.pid, arch.watch_control_at, NULL),
		  0);
	tproc_resume_new(p);
	tracer_destroy(tr);
	/* One that ends by itself. */
	pid = start(false);
	check_int(puppet_do(&pup, act_write, 5, 0), 5);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	/* It has waited for the other: that one is not left to us. */
	if (nr_others() < 0)
		tap_skip("no lists of children in /proc");
	else
		check_int(nr_others(), 0);
	check_int(puppet_do(&pup, act_write, 6, 0), 6);
	puppet_end(&pup);
	return tap_done();
}
