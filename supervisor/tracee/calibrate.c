/*
 * What a stop and resume costs the tracee on this machine beyond the time in
 * which the supervisor holds it: a child of our own stops some hundred times
 * on our CPU and looks at the clock.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

#define NR_STOPS 200
/* Where measuring is forbidden (no ptrace, no fork): usual figures. */
#define FALLBACK_NS	4000
#define FALLBACK_OWN_NS 1000
/* A stop that took longer was disturbed. */
#define OUTLIER_NS (100 * NSEC_PER_USEC)

struct took {
	uint64_t ns, own_ns; /* in all; of its own CPU time */
};

struct shared {
	volatile int go;
	struct took plain; /* the same work, not traced */
	struct took traced;
};

/* Raises a signal that is ignored by default: free untraced, a stop traced. */
static struct took raise_some(pid_t pid)
{
	uint64_t own = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t start = smco_now_ns();
	for (int i = 0; i < NR_STOPS; i++)
		syscall(SYS_tgkill, pid, pid, SIGURG);
	return (struct took){
		.ns = smco_now_ns() - start,
		.own_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - own,
	};
}

static void __attribute__((noreturn)) child(struct shared *s, pid_t parent)
{
	pid_t pid = getpid();
	/* It waits for its parent by looking: it must not outlive it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	sigset_t none;
	sigemptyset(&none);
	signal(SIGURG, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	s->plain = raise_some(pid);
	s->go = 1;
	while (s->go != 2)
		sched_yield();
	s->traced = raise_some(pid);
	_exit(0);
}

/* Serve the child until it ends; the time it was held, 0 on failure. */
static uint64_t serve(pid_t pid, int *nr_ret)
{
	uint64_t held = 0;
	for (;;) {
		int status;
		pid_t r = waitpid(pid, &status, __WALL);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 || !WIFSTOPPED(status))
			return held;
		uint64_t seen = smco_now_ns();
		if (WSTOPSIG(status) == SIGURG)
			++*nr_ret;
		held += smco_now_ns() - seen;
		ptrace(PTRACE_CONT, pid, NULL, 0L);
	}
}

/* FALLBACK_NS, and *own_ret as it was: it cannot be. */
static uint64_t measure(struct shared *s, uint64_t *own_ret)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		child(s, parent);
	if (pid < 0)
		return FALLBACK_NS;
	int nr = 0, status;
	while (s->go != 1 && waitpid(pid, &status, WNOHANG) == 0)
		sched_yield();
	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL) < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
		return FALLBACK_NS;
	}
	s->go = 2;
	uint64_t held = serve(pid, &nr);
	if (nr != NR_STOPS || s->traced.ns <= s->plain.ns + held)
		return FALLBACK_NS;
	uint64_t ns = (s->traced.ns - s->plain.ns - held) / NR_STOPS;
	if (ns >= OUTLIER_NS)
		return FALLBACK_NS;
	/* Of clocks that tick, nothing can be known. */
	if (s->traced.own_ns <= s->plain.own_ns)
		return ns;
	uint64_t own = (s->traced.own_ns - s->plain.own_ns) / NR_STOPS;
	*own_ret = own < ns ? own : ns;
	return ns;
}

uint64_t calibrate_stop_cost(uint64_t *own_ret)
{
	*own_ret = FALLBACK_OWN_NS;
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return FALLBACK_NS;
	/* Both on one CPU, as the event loop and its tracee are. */
	cpu_set_t was, one;
	int cpu = sched_getcpu();
	bool pinned = false;
	if (cpu >= 0 && sched_getaffinity(0, sizeof(was), &was) == 0) {
		CPU_ZERO(&one);
		CPU_SET((unsigned)cpu, &one);
		pinned = sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	uint64_t ns = measure(s, own_ret);
	if (pinned)
		sched_setaffinity(0, sizeof(was), &was);
	munmap(s, sizeof(*s));
	return ns;
}
