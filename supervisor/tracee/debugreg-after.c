/*
 * Who takes debug registers out of threads when we are killed: the kernel lets
 * them go then with what is in their registers. A process of its own waits for
 * our end, seizes those that have some by then, and clears them. It can do
 * nothing for who writes before that, or stands at a hit just then; nor where
 * it may not seize them (Yama's ptrace_scope, of programs that are not ours by
 * root).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"

/* Others are not helped. */
#define MOST_THREADS 8192
/* So long after our files are closed the kernel has let our threads go. */
#define SEIZE_NS NSEC_PER_SEC

static struct {
	volatile pid_t
		*tid;  /* shared with it; 0 = free. NULL: nobody is there */
	unsigned next; /* is free, perhaps */
	int alive;     /* is closed by our end */
	pid_t pid;     /* 0: none, or its end has been heard of */
} after;

/* --- in that process --- */

static void seize_all(void)
{
	static bool is_done[MOST_THREADS];
	uint64_t until_ns = smco_now_ns() + SEIZE_NS;
	bool again = true;
	while (again && smco_now_ns() < until_ns) {
		again = false;
		for (unsigned i = 0; i < MOST_THREADS; i++) {
			pid_t tid = after.tid[i];
			if (!tid || is_done[i])
				continue;
			is_done[i] = !ptrace(PTRACE_SEIZE, tid, NULL, NULL) ||
				     errno == ESRCH;
			if (is_done[i])
				ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
			again |= !is_done[i];
		}
		sched_yield();
	}
}

static bool is_hit(const siginfo_t *si)
{
	return si->si_signo == SIGTRAP && si->si_code == TRAP_HWBKPT;
}

/* One that has hit it stops first where it was asked to. */
static bool is_hit_pending(pid_t tid)
{
	siginfo_t si[16];
	struct __ptrace_peeksiginfo_args args = {.nr = (int)ARRAY_SIZE(si)};
	long n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, si);
	for (long i = 0; i < n; i++)
		if (is_hit(&si[i]))
			return true;
	return false;
}

static void let_go(pid_t tid, int status)
{
	siginfo_t si;
	long sig = status >> 16 ? 0 : WSTOPSIG(status);
	ptrace(PTRACE_POKEUSER, tid, arch.watch_control_at, NULL);
	if (sig == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, tid, NULL, &si) &&
	    is_hit(&si))
		sig = 0;
	ptrace(!sig && is_hit_pending(tid) ? PTRACE_CONT : PTRACE_DETACH, tid,
	       NULL, sig);
}

static void __attribute__((noreturn)) stand_by(int alive)
{
	sigset_t all;
	char c;
	pid_t tid;
	int status;
	/* What is sent to all that the user has begun is not for it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "smco-watch");
	dup2(alive, 0);
	syscall(SYS_close_range, 1, ~0U, 0);
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
	seize_all();
	while ((tid = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			let_go(tid, status);
	_exit(0);
}

/* --- here --- */

void after_prepare(void)
{
	int fd[2];
	void *at =
		mmap(NULL, MOST_THREADS * sizeof(pid_t), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (after.tid || at == MAP_FAILED || pipe2(fd, O_CLOEXEC))
		return;
	after.tid = at;
	after.alive = fd[1];
	after.pid = fork();
	if (!after.pid)
		stand_by(fd[0]);
	if (after.pid < 0)
		after.pid = 0;
	close(fd[0]);
}

/* A child of ours, so that it is we who wait for its end: not everywhere does
 * process 1 do that for those whom others have left. */
void after_end(void)
{
	int status;
	bool is_needed = false;
	if (!after.tid)
		return;
	for (unsigned i = 0; i < MOST_THREADS; i++)
		is_needed |= after.tid[i] != 0;
	close(after.alive);
	/* Who has our files open, too, would keep it. */
	if (after.pid && !is_needed) {
		kill(after.pid, SIGKILL);
		while (waitpid(after.pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	after.pid = 0;
	munmap((void *)after.tid, MOST_THREADS * sizeof(pid_t));
	after.tid = NULL;
}

void after_note_end(pid_t pid)
{
	if (pid == after.pid)
		after.pid = 0;
}

unsigned after_add(pid_t tid)
{
	for (unsigned nr = 0; after.tid && nr < MOST_THREADS; nr++) {
		unsigned i = after.next++ % MOST_THREADS;
		if (after.tid[i])
			continue;
		after.tid[i] = tid;
		return i + 1;
	}
	return 0;
}

void after_drop(unsigned place)
{
	if (place)
		after.tid[place - 1] = 0;
}
