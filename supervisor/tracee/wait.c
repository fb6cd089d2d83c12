/*
 * Waiting. Programs are waited for by a plain blocking wait4, the cheapest
 * there is; the deadline is a timer whose signal goes to this thread only and
 * ends the wait without a race (arch_endable_call), while every other system
 * call of the thread is restarted.
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

/* Real-time signals are ours alone to give out here; glibc keeps the first
 * two, libraries that want one take the lowest. */
#define TICK_SIGNAL (SIGRTMAX - 2)

/*
 * After the deadline the timer goes on at this pace until it is set anew: a
 * tick that a nested signal handler swallowed is made up for. Not sooner than
 * the kernel's own tick comes: as the next event of a CPU the timer has to be
 * given to the hardware, which in a virtual machine takes 10 us, each time.
 */
#define TICK_AGAIN_NS (10 * NSEC_PER_MSEC)
/* The same where a wake-up was asked for, which is not to be late. */
#define WAKE_AGAIN_NS NSEC_PER_MSEC

/*
 * Most stops come within this time. To fall asleep and to wake up again takes
 * longer, in a virtual machine 50 us and more, and the program stands for all
 * of that. Whoever waits in vain sleeps for as many stops as follow below: the
 * thread has no CPU to stop on, perhaps because of us.
 */
#define SOON_NS	  (50 * NSEC_PER_USEC)
#define NR_ASLEEP 16

/* A wait that was to last for so long has looked at what was there before. */
#define LOOKED_NS NSEC_PER_MSEC

static __thread volatile int ticked;

static void on_tick(int sig, siginfo_t *si, void *ucontext)
{
	(void)sig;
	(void)si;
	ticked = 1;
	arch_end_call(ucontext);
}

/*
 * A stop needs no signal to us: wait4 is woken without, and the signal would be
 * sent by the program, at its cost and among the events that it is counted for.
 * That a process has ended is still told by one.
 */
static void want_no_signal_of_stops(void)
{
	struct sigaction sa;
	if (sigaction(SIGCHLD, NULL, &sa) < 0)
		return;
	sa.sa_flags |= SA_NOCLDSTOP;
	sigaction(SIGCHLD, &sa, NULL);
}

int wait_init(struct tracer *tr, struct smco_err *err)
{
	struct sigaction sa = {.sa_sigaction = on_tick,
			       .sa_flags = SA_SIGINFO | SA_RESTART};
	sigemptyset(&sa.sa_mask);
	if (sigaction(TICK_SIGNAL, &sa, NULL) < 0)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot handle signal %d", TICK_SIGNAL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, TICK_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	want_no_signal_of_stops();

	struct sigevent se = {.sigev_notify = SIGEV_THREAD_ID,
			      .sigev_signo = TICK_SIGNAL};
	se._sigev_un._tid = tr->tid;
	if (timer_create(CLOCK_MONOTONIC, &se, &tr->timer) < 0)
		return smco_fail(err, SMCO_SYS, errno, "cannot create a timer");
	tr->has_timer = true;
	tr->ticked = &ticked;
	return 0;
}

void wait_deinit(struct tracer *tr)
{
	if (tr->has_timer)
		timer_delete(tr->timer);
	tr->has_timer = false;
}

static void arm(struct tracer *tr, uint64_t at_ns)
{
	/* A zero it_value would disarm. */
	uint64_t at = at_ns ? at_ns : 1;
	struct itimerspec its = {
		.it_value = {.tv_sec = (time_t)(at / NSEC_PER_SEC),
			     .tv_nsec = (long)(at % NSEC_PER_SEC)},
		.it_interval = {.tv_nsec = TICK_AGAIN_NS},
	};
	timer_settime(tr->timer, TIMER_ABSTIME, &its, NULL);
	tr->armed_ns = at;
	tr->again_ns = at + TICK_AGAIN_NS;
}

/* One that was due before now may have come when nobody waited. */
static bool must_arm(struct tracer *tr, uint64_t deadline_ns, uint64_t now_ns)
{
	if (!tr->armed_ns && deadline_ns == tr->again_ns) { /* by itself */
		tr->armed_ns = deadline_ns;
		tr->again_ns += TICK_AGAIN_NS;
	}
	return deadline_ns < tr->armed_ns || tr->armed_ns <= now_ns;
}

static void disarm(struct tracer *tr)
{
	struct itimerspec its = {0};
	timer_settime(tr->timer, 0, &its, NULL);
	tr->armed_ns = tr->again_ns = 0;
}

bool tracer_is_in_group_stop(struct tracer *tr, pid_t pid)
{
	const struct task *leader = task_find(tr, pid);
	const struct task *t =
		leader && leader->proc ? leader->proc->tasks : NULL;
	while (t && !t->in_group_stop)
		t = t->next;
	return t != NULL;
}

void tracer_wake(struct tracer *tr)
{
	int saved = errno;
	tr->wake_asked = 1;
	/*
	 * The signal ends the wait at once unless we are in a handler on top
	 * of the very wait; for that the timer ticks until it is set anew.
	 */
	struct itimerspec its = {.it_value.tv_nsec = WAKE_AGAIN_NS,
				 .it_interval.tv_nsec = WAKE_AGAIN_NS};
	timer_settime(tr->timer, 0, &its, NULL);
	syscall(SYS_tgkill, getpid(), tr->tid, TICK_SIGNAL);
	errno = saved;
}

pid_t wait_now(struct tracer *tr, pid_t pid, int *status)
{
	return wait4(pid, status, __WALL | WNOHANG, &tr->usage);
}

pid_t wait_status(struct tracer *tr, pid_t pid, uint64_t deadline_ns,
		  int *status)
{
	bool has_looked = false;
	for (;;) {
		uint64_t now_ns = 0;
		*tr->ticked = 0;
		if (tr->wake_asked && pid == -1) {
			tr->wake_asked = 0;
			disarm(tr);
			return 0;
		}
		if (deadline_ns == UINT64_MAX) {
			if (tr->armed_ns)
				disarm(tr);
		} else if ((now_ns = smco_now_ns()) >= deadline_ns) {
			if (has_looked)
				return 0;
			/* What is there already is taken all the same. */
			pid_t r = wait_now(tr, pid, status);
			return r < 0 ? -errno : r;
		} else if (must_arm(tr, deadline_ns, now_ns)) {
			arm(tr, deadline_ns);
		}
		long r = arch_endable_call(SYS_wait4, pid, (long)status, __WALL,
					   (long)&tr->usage, tr->ticked);
		if (r != -EINTR)
			return (pid_t)r;
		has_looked = pid == -1 && deadline_ns - now_ns >= LOOKED_NS;
		/* Set it anew: it was an older deadline, or a wake-up. */
		tr->armed_ns = 0;
	}
}

/* Another that stops meanwhile waits for so much longer at the most, no more
 * than going through this many tasks takes. */
#define LIKELY_NS  (200 * NSEC_PER_USEC)
#define MANY_TASKS 1000

pid_t wait_any(struct tracer *tr, uint64_t deadline_ns, int *status)
{
	bool are_many = tr->nr_tasks >= MANY_TASKS && !tr->wake_asked;
	pid_t pid;
	while (are_many && (pid = likely_next(&tr->likely))) {
		uint64_t until_ns = smco_now_ns() + LIKELY_NS;
		if (until_ns >= deadline_ns)
			break;
		pid_t r = wait_status(tr, pid, until_ns, status);
		if (r > 0)
			return r;
		likely_missed(&tr->likely);
	}
	tr->nr_wide++;
	return wait_status(tr, -1, deadline_ns, status);
}

pid_t wait_status_soon(struct tracer *tr, pid_t pid, uint64_t deadline_ns,
		       int *status)
{
	uint64_t until_ns = smco_now_ns() + SOON_NS;
	if (tr->nr_cpus < 2 || tr->follow.pinned)
		return wait_status(tr, pid, deadline_ns, status);
	if (tr->nr_asleep) {
		tr->nr_asleep--;
		return wait_status(tr, pid, deadline_ns, status);
	}
	do {
		pid_t r = wait_now(tr, pid, status);
		if (r)
			return r < 0 ? -errno : r;
	} while (smco_now_ns() < until_ns);
	tr->nr_asleep = NR_ASLEEP;
	return wait_status(tr, pid, deadline_ns, status);
}

int wait_seize(struct tracer *tr, pid_t tid, unsigned long options,
	       uint64_t deadline_ns)
{
	*tr->ticked = 0;
	if (must_arm(tr, deadline_ns, smco_now_ns()))
		arm(tr, deadline_ns);
	long r = arch_endable_call(SYS_ptrace, PTRACE_SEIZE, tid, 0,
				   (long)options, tr->ticked);
	if (r == -EINTR)
		disarm(tr);
	return (int)r;
}
