/*
 * While all threads of a program stand, nobody else may go before us: where we
 * wait for a CPU, they do. With a time slice of some milliseconds, and a dozen
 * moments in which we sleep for a thread to do its part, a busy machine makes a
 * stop of one millisecond one of fifty. And the first of many threads that run
 * again would keep us from letting the others go. The same is true of a single
 * thread that has stopped by itself, or later than it was waited for, while we
 * do something else: so who has programs to look after may be urgent all the
 * time.
 *
 * It must not keep a CPU from others for long, whatever it does: after so much
 * time in real time without a wait, the kernel says so by SIGXCPU
 * (getrlimit(2), RLIMIT_RTTIME), and it takes its turn like everybody else, up
 * to the next thing that is urgent.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

#define AT_A_STRETCH_US 50000
/* Where the kernel would kill us after less (the hard limit), we are not
 * urgent: time without a wait adds up if it is asked for again meanwhile. */
#define LEAST_HARD_US 1000000

/* Who wakes up goes at once before a turn that may last so long, which in
 * between would keep it waiting for a millisecond or more. Before Linux 6.12
 * nobody asks for how long turns are to be. */
#define LONG_TURN_NS (100 * NSEC_PER_MSEC)

/* As sched_setattr(2) has it. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

static volatile sig_atomic_t was_too_long;

/* With the flag kept: taking it back needs CAP_SYS_NICE. */
static void on_too_long(int sig)
{
	const struct sched_param sp = {0};
	(void)sig;
	sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &sp);
	was_too_long = 1;
}

void urgent_init(struct urgent *u)
{
	struct attributes attr = {.size = sizeof(attr)};
	const struct sigaction sa = {.sa_handler = on_too_long,
				     .sa_flags = SA_RESTART};
	struct sigaction old;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGXCPU);
	/* Who was made to go behind others would leave those who stop by
	 * themselves waiting for long: in turn with others at least. */
	int nice = getpriority(PRIO_PROCESS, 0);
	u->own_nice = nice < 0 ? nice : 0;
	if (!syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0))
		u->own_turn_ns = attr.runtime_ns;
	/* Whoever has use for this signal keeps it. Blocked it would never
	 * come; what we start gets the mask back that we were started with. */
	u->may = !sigaction(SIGXCPU, NULL, &old) &&
		 (old.sa_handler == SIG_DFL || old.sa_handler == on_too_long) &&
		 !getrlimit(RLIMIT_RTTIME, &u->own_limit) &&
		 u->own_limit.rlim_max >= LEAST_HARD_US &&
		 !sigaction(SIGXCPU, &sa, NULL) &&
		 !pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void urgent_deinit(const struct urgent *u)
{
	if (u->may)
		setrlimit(RLIMIT_RTTIME, &u->own_limit);
}

/* The kernel has moved the limit when it was passed. */
static bool start_hurrying(struct urgent *u)
{
	const struct sched_param sp = {.sched_priority = 1};
	struct rlimit limit = u->own_limit;
	if (limit.rlim_cur > AT_A_STRETCH_US)
		limit.rlim_cur = AT_A_STRETCH_US;
	was_too_long = 0;
	return !setrlimit(RLIMIT_RTTIME, &limit) &&
	       !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &sp);
}

/*
 * Where groups of processes have real time of their own and ours has none
 * (CONFIG_RT_GROUP_SCHED), that is refused, but not a deadline, which goes
 * before all others as well: 40 ms in each 50 that it wants. Who has one must
 * be free to run on any CPU and cannot choose one, so it is only for as long as
 * somebody stands.
 */
static bool set_deadline(void)
{
	const struct attributes attr = {
		.size = sizeof(attr),
		.policy = SCHED_DEADLINE,
		.flags = SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_DL_OVERRUN,
		.runtime_ns = 40 * NSEC_PER_MSEC,
		.deadline_ns = 50 * NSEC_PER_MSEC,
		.period_ns = 50 * NSEC_PER_MSEC,
	};
	was_too_long = 0;
	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

static bool start(struct urgent *u)
{
	if (!u->by_deadline && start_hurrying(u))
		return true;
	u->by_deadline = true;
	if (!u->nr_stand)
		return false;
	if (set_deadline())
		return u->had_deadline = true;
	/* Not while we follow the program to one CPU, or other deadlines leave
	 * no room. */
	u->may = u->had_deadline || errno == EBUSY;
	return false;
}

/* Turns that last up to @turn_ns, which our children do not get. */
static bool take_turns(const struct urgent *u, uint64_t turn_ns)
{
	const struct attributes attr = {
		.size = sizeof(attr),
		.policy = (uint32_t)u->own_policy,
		.flags = SCHED_FLAG_RESET_ON_FORK,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime_ns = turn_ns,
	};
	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The kernel keeps their length, whatever else is asked for. */
static void end_long_turns(struct urgent *u)
{
	if (u->has_long_turns)
		take_turns(u, u->own_turn_ns);
	u->has_long_turns = false;
}

static void begin(struct urgent *u)
{
	if (!u->may)
		return;
	/* The flag may be ours, of which end() could not get rid. */
	u->own_policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	/* Who chose real time for us has chosen better. Otherwise it needs
	 * CAP_SYS_NICE or RLIMIT_RTPRIO. */
	u->may = u->own_policy == SCHED_OTHER || u->own_policy == SCHED_BATCH;
	end_long_turns(u);
	u->is_on = u->may && start(u);
}

/* Who may go before all others may have its nice value back, too. */
static void give_nice(struct urgent *u)
{
	u->nice = getpriority(PRIO_PROCESS, 0);
	u->gave_nice = u->nice < u->own_nice &&
		       !setpriority(PRIO_PROCESS, 0, u->own_nice);
}

static void take_nice(struct urgent *u)
{
	if (u->gave_nice)
		setpriority(PRIO_PROCESS, 0, u->nice);
	u->gave_nice = false;
}

/* It keeps its nice value. Who may not take the flag back (no CAP_SYS_NICE)
 * keeps that, too, which concerns our children only. */
static void take_usual_turns(struct urgent *u)
{
	const struct sched_param sp = {0};
	if (sched_setscheduler(0, u->own_policy, &sp))
		sched_setscheduler(0, u->own_policy | SCHED_RESET_ON_FORK, &sp);
}

static void end(struct urgent *u)
{
	u->is_on = false;
	if (u->is_relaxed) {
		give_nice(u);
		u->has_long_turns =
			u->own_turn_ns && take_turns(u, LONG_TURN_NS);
	}
	if (!u->has_long_turns)
		take_usual_turns(u);
}

static void begin_or_end(struct urgent *u)
{
	bool wants =
		u->nr_stand || (u->asked && !u->by_deadline && !u->is_relaxed);

	if (wants && u->is_on && was_too_long)
		start(u);
	if (wants && !u->is_on)
		begin(u);
	else if (!wants && u->is_on)
		end(u);
	if (wants)
		take_nice(u);
}

void tproc_urgent(struct tproc *p, bool is_urgent)
{
	struct urgent *u = &p->tr->urgent;
	if (p->is_urgent && !is_urgent)
		u->nr_stand--;
	else if (!p->is_urgent && is_urgent)
		u->nr_stand++;
	p->is_urgent = is_urgent;
	begin_or_end(u);
}

void tracer_urgent(struct tracer *tr, bool is_urgent)
{
	tr->urgent.asked = is_urgent;
	begin_or_end(&tr->urgent);
}

bool tracer_relax(struct tracer *tr, bool is_relaxed)
{
	if (!tr)
		return false;
	struct urgent *u = &tr->urgent;
	bool was = u->is_relaxed;
	if (was == is_relaxed)
		return was;
	u->is_relaxed = is_relaxed;
	begin_or_end(u);
	if (!is_relaxed) {
		take_nice(u);
		end_long_turns(u);
	}
	return was;
}
