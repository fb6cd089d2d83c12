/* Do debug registers fire by ptrace, and what does it cost? A child of our own
 * writes to a word. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/median.h"
#include "supervisor/control/fixed.h"
#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"

#define NR_HITS	 32
#define BOUND_NS (2 * NSEC_PER_SEC)

struct shared {
	volatile int go;
	volatile uint64_t word;
	int64_t took_ns[NR_HITS], own_ns[NR_HITS];
};

static void __attribute__((noreturn)) child(struct shared *s, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	/* It waits for its parent by looking: it must not outlive it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	signal(SIGTRAP, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	s->go = 1;
	while (s->go != 2)
		sched_yield();
	for (int i = 0; i < NR_HITS; i++) {
		uint64_t own_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t start_ns = smco_now_ns();
		s->word = start_ns;
		s->took_ns[i] = (int64_t)(smco_now_ns() - start_ns);
		own_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns;
		s->own_ns[i] = (int64_t)own_ns;
	}
	_exit(0);
}

/* Its next stop's signal; -1: it has ended, or takes too long. */
static int next_stop(pid_t pid)
{
	int status;
	pid_t r;
	uint64_t until_ns = smco_now_ns() + BOUND_NS;
	while ((r = waitpid(pid, &status, __WALL | WNOHANG)) == 0 &&
	       smco_now_ns() < until_ns)
		sched_yield();
	return r == pid && WIFSTOPPED(status) ? WSTOPSIG(status) : -1;
}

static bool arm(pid_t pid, const volatile uint64_t *word)
{
	return !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) &&
	       next_stop(pid) == SIGTRAP &&
	       !ptrace(PTRACE_POKEUSER, pid, arch.watch_at(0), word) &&
	       !ptrace(PTRACE_POKEUSER, pid, arch.watch_control_at,
		       arch.watch_control(0, sizeof(*word)));
}

/* How many hits there were; -1: it cannot be watched. */
static int serve(struct shared *s, pid_t pid)
{
	int sig, nr = 0;
	siginfo_t si;
	while (s->go != 1 && !waitpid(pid, NULL, WNOHANG))
		sched_yield();
	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL) ||
	    !arm(pid, &s->word))
		return -1;
	s->go = 2;
	ptrace(PTRACE_CONT, pid, NULL, 0L);
	while ((sig = next_stop(pid)) >= 0) {
		nr += sig == SIGTRAP &&
		      !ptrace(PTRACE_GETSIGINFO, pid, NULL, &si) &&
		      si.si_code == TRAP_HWBKPT;
		ptrace(PTRACE_CONT, pid, NULL, 0L);
	}
	return nr;
}

static int judge(struct shared *s, int nr, uint64_t *ns_ret,
		 uint64_t *own_ns_ret, struct smco_err *err)
{
	if (nr < 0)
		return smco_fail(err, SMCO_PERM, 0,
				 "watchpoints: ptrace's debug registers cannot "
				 "be set here");
	/* Some machines lose one now and then. */
	if (nr < NR_HITS / 2)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "watchpoints: this machine's debug registers "
				 "do not fire");
	*ns_ret = (uint64_t)clamp_i64(median_i64(s->took_ns, NR_HITS), 1,
				      NSEC_PER_SEC);
	*own_ns_ret =
		min_u64((uint64_t)median_i64(s->own_ns, NR_HITS), *ns_ret);
	return 0;
}

int twatch_try(uint64_t *ns_ret, uint64_t *own_ns_ret, struct smco_err *err)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return smco_fail(err, SMCO_NOMEM, errno, "out of memory");
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		child(s, parent);
	int rc = pid < 0 ? smco_fail(err, SMCO_SYS, errno, "fork")
			 : judge(s, serve(s, pid), ns_ret, own_ns_ret, err);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
	}
	munmap(s, sizeof(*s));
	if (!rc)
		after_prepare();
	return rc;
}
