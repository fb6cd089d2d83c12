/*
 * Waits that stay what they were. Stopping a thread in the middle of a system
 * call makes the kernel leave the call; most calls it starts again by itself
 * when nobody handles a signal, with the remaining time. Some it ends with
 * EINTR instead (signal(7), "Interruption of system calls by stop signals").
 * Those are given the return value by which the kernel does start a call
 * again unless a handler runs, so that a real signal still ends them, and a
 * time-out in their arguments is cut to what remains. Proven by t1400, t1401.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* linux/errno.h has it for the kernel alone. */
#define ERESTART_RESTARTBLOCK 516

enum timeout_kind {
	TIMEOUT_NONE,
	TIMEOUT_MS,	  /* int, milliseconds, < 0 = for ever */
	TIMEOUT_TIMESPEC, /* pointer to a relative one, NULL = for ever */
	TIMEOUT_RCV,	  /* SO_RCVTIMEO of the socket in argument 0, or
			   * a terminal's */
	TIMEOUT_SND,	  /* SO_SNDTIMEO */
	TIMEOUT_URING,	  /* in the structure that the flags speak of */
};

struct waiting_call {
	long nr;
	enum timeout_kind timeout;
	int arg;     /* which argument holds the time-out */
	int expired; /* what the call returns when its time is over */
};

static const struct waiting_call calls[] = {
	{SYS_epoll_wait, TIMEOUT_MS, 3, 0},
	{SYS_epoll_pwait, TIMEOUT_MS, 3, 0},
	{SYS_epoll_pwait2, TIMEOUT_TIMESPEC, 3, 0},
	{SYS_rt_sigtimedwait, TIMEOUT_TIMESPEC, 2, -EAGAIN},
	{SYS_semop, TIMEOUT_NONE, 0, 0},
	{SYS_semtimedop, TIMEOUT_TIMESPEC, 3, -EAGAIN},
	{SYS_io_getevents, TIMEOUT_TIMESPEC, 4, 0},
	{SYS_io_pgetevents, TIMEOUT_TIMESPEC, 4, 0},
	{SYS_io_uring_enter, TIMEOUT_URING, 4, -ETIME},
	{SYS_read, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_readv, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_recvfrom, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_recvmsg, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_recvmmsg, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_accept, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_accept4, TIMEOUT_RCV, 0, -EAGAIN},
	{SYS_write, TIMEOUT_SND, 0, -EAGAIN},
	{SYS_writev, TIMEOUT_SND, 0, -EAGAIN},
	{SYS_sendto, TIMEOUT_SND, 0, -EAGAIN},
	{SYS_sendmsg, TIMEOUT_SND, 0, -EAGAIN},
	{SYS_sendmmsg, TIMEOUT_SND, 0, -EAGAIN},
	{SYS_connect, TIMEOUT_SND, 0, -EINPROGRESS},
};

/* Those that the kernel starts again as another call; see mend_other_call. */
static const struct waiting_call other_calls[] = {
	{SYS_poll, TIMEOUT_MS, 2, 0},
	{SYS_nanosleep, TIMEOUT_TIMESPEC, 0, 0},
	{SYS_clock_nanosleep, TIMEOUT_TIMESPEC, 2, 0},
	{SYS_futex, TIMEOUT_TIMESPEC, 3, -ETIMEDOUT},
};

static const struct waiting_call *find_in(const struct waiting_call *all,
					  size_t n, long nr)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].nr == nr)
			return &all[i];
	return NULL;
}

static const struct waiting_call *find_call(long nr)
{
	return find_in(calls, ARRAY_SIZE(calls), nr);
}

static const struct waiting_call *find_other(long nr)
{
	return find_in(other_calls, ARRAY_SIZE(other_calls), nr);
}

static bool has_filter(struct tproc *p)
{
	if (!p->knows_filter)
		p->has_filter = tproc_is_sandboxed(p);
	p->knows_filter = true;
	return p->has_filter;
}

bool mend_has_timeout(struct tproc *p, long nr)
{
	const struct waiting_call *call = find_call(nr);
	if (!call && p && find_other(nr))
		return has_filter(p);
	return call && call->timeout != TIMEOUT_NONE;
}

/* --- how long did it want to wait --- */

static uint64_t socket_timeout(const struct task *t, int fd, int option)
{
	struct timeval tv;
	if (task_socket_option(t, fd, option, &tv, sizeof(tv)) < 0)
		return 0;
	return (uint64_t)tv.tv_sec * NSEC_PER_SEC +
	       (uint64_t)tv.tv_usec * NSEC_PER_USEC;
}

/* One of the descriptor's own. *expired_ret: what the call returns then, if
 * that is not what it is for sockets. */
static uint64_t own_timeout(const struct task *t, enum timeout_kind kind,
			    int fd, int *expired_ret)
{
	uint64_t ns = socket_timeout(
		t, fd, kind == TIMEOUT_RCV ? SO_RCVTIMEO : SO_SNDTIMEO);
	if (!ns && kind == TIMEOUT_RCV) {
		ns = task_terminal_timeout(t, fd);
		*expired_ret = ns ? 0 : *expired_ret;
	}
	return ns ? ns : UINT64_MAX;
}

static uint64_t timespec_at(struct task *t, taddr_t at)
{
	struct timespec ts;
	if (!at || tmem_read(t->proc, at, &ts, sizeof(ts)) < 0 ||
	    ts.tv_sec < 0 || ts.tv_sec > INT32_MAX)
		return UINT64_MAX;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* An absolute one stays right by itself; one of a registered array is not
 * known. */
static bool uring_arg(struct task *t, const struct user_regs_struct *regs,
		      taddr_t at, struct io_uring_getevents_arg *ret)
{
	const uint64_t others = 1U << 5 | 1U << 6; /* ABS_TIMER, EXT_ARG_REG */
	uint64_t flags = arch.syscall_arg(regs, 3);
	return (flags & IORING_ENTER_EXT_ARG) && !(flags & others) &&
	       arch.syscall_arg(regs, 5) == sizeof(*ret) &&
	       tmem_read(t->proc, at, ret, sizeof(*ret)) == 0;
}

/* UINT64_MAX: for ever, or not to be known. */
static uint64_t timeout_ns(struct task *t, const struct waiting_call *call,
			   const struct user_regs_struct *regs,
			   int *expired_ret)
{
	uint64_t arg = arch.syscall_arg(regs, call->arg);
	struct io_uring_getevents_arg uring;

	switch (call->timeout) {
	case TIMEOUT_MS:
		return (int)arg < 0 ? UINT64_MAX
				    : (uint64_t)(int)arg * NSEC_PER_MSEC;
	case TIMEOUT_TIMESPEC:
		return timespec_at(t, arg);
	case TIMEOUT_URING:
		return uring_arg(t, regs, arg, &uring)
			       ? timespec_at(t, uring.ts)
			       : UINT64_MAX;
	case TIMEOUT_RCV:
	case TIMEOUT_SND:
		return own_timeout(t, call->timeout, (int)arg, expired_ret);
	default:
		return UINT64_MAX;
	}
}

/* --- the moments of a wait --- */

void mend_forget(struct task *t)
{
	t->mend.call = NULL;
	t->mend.replaced = false;
}

static void put_back_arg(struct task *t, struct user_regs_struct *regs)
{
	if (!t->mend.call || !t->mend.replaced)
		return;
	arch.set_syscall_arg(regs, t->mend.call->arg, t->mend.arg);
	t->mend.replaced = false;
	task_set_regs(t, regs);
}

/* @t waits in @call, which was interrupted: until when. */
static void note_end(struct task *t, const struct waiting_call *call,
		     const struct user_regs_struct *regs)
{
	int expired = call->expired;
	uint64_t ns = timeout_ns(t, call, regs, &expired);

	mend_forget(t);
	if (ns == UINT64_MAX)
		return;
	t->mend.call = call;
	t->mend.sp = arch.sp(regs);
	t->mend.arg = arch.syscall_arg(regs, call->arg);
	t->mend.expired = expired;
	t->mend.end_ns = t->stop_ns - mend_waited_ns(t) + ns;
	t->mend.inside = whole_is_inside(t, regs);
}

static bool is_noted(struct task *t, const struct user_regs_struct *regs)
{
	return t->mend.call && t->mend.call->nr == arch.syscall_nr(regs) &&
	       t->mend.sp == arch.sp(regs) &&
	       t->mend.inside == whole_is_inside(t, regs);
}

/* Let a call carry on that was cut short; one that waits, until the same time.
 */
static bool carry_on(struct task *t, const struct user_regs_struct *regs)
{
	const struct waiting_call *call = find_call(arch.syscall_nr(regs));
	struct user_regs_struct now;

	if (!call || (call->timeout != TIMEOUT_TIMESPEC &&
		      call->timeout != TIMEOUT_URING))
		mend_forget(t);
	else if (!is_noted(t, regs))
		note_end(t, call, regs);
	if (!whole_carry_on(t, regs) || task_get_regs(t, &now) < 0)
		return false;
	t->mend.sp = arch.sp(&now);
	t->mend.inside = true;
	t->was_blocked = true;
	return true;
}

static bool stops_for_handler(struct task *t)
{
	return task_kind(t) == STOP_SIGNAL &&
	       signal_is_handled(t, WSTOPSIG(t->status));
}

/* Has a stop ended this wait before its time, whatever it says? @is_stop: there
 * was one. */
static bool is_interrupted(struct task *t, const struct waiting_call *call,
			   const struct user_regs_struct *regs, bool is_stop)
{
	if (!call || arch.syscall_ret(regs) == -EINTR) {
		t->uring_had_any = false;
		return call != NULL;
	}
	if (!uring_is_cut(t, regs, is_stop) || stops_for_handler(t))
		return false;
	t->uring_had_any = true;
	if (!is_noted(t, regs))
		note_end(t, call, regs);
	return !t->mend.call || smco_now_ns() < t->mend.end_ns;
}

/* Calls that do more than wait; true if that was it. */
static bool mend_whole(struct task *t, const struct user_regs_struct *regs)
{
	bool inside = whole_is_inside(t, regs);
	struct user_regs_struct home;

	if (!inside && !whole_is_cut(t, regs))
		return false;
	if (stops_for_handler(t)) {
		if (inside)
			whole_end(t);
		return inside;
	}
	if (inside && whole_go_home(t, regs, &home)) {
		if (whole_is_cut(t, &home))
			carry_on(t, &home);
		return true;
	}
	/* A wait in there that would end with EINTR is mended as any other;
	 * one that has done some of it goes on by itself, as long as before. */
	if (inside)
		return arch.syscall_ret(regs) > 0 && t->mend.call;
	return carry_on(t, regs);
}

/* Has the kernel prepared to make the call again, and the thread not entered it
 * yet? An interrupt may have led to this stop: then it is in no call. */
static bool is_about_to_repeat(const struct task *t,
			       const struct user_regs_struct *regs)
{
	int64_t ret = arch.syscall_ret(regs);

	return t->again.pc &&
	       arch.pc(regs) + arch.syscall_insn_len == t->again.pc &&
	       arch.sp(regs) == t->again.sp &&
	       (ret == t->again.nr || ret == SYS_restart_syscall);
}

/*
 * A signal may come when the kernel has prepared to make the call again but the
 * thread has not entered it yet. Its handler would run, and then the wait begin
 * that it was to end: a lost wake-up. So the call is put back to where it was,
 * for the kernel to decide about with the signal at hand.
 */
static void mend_lost_wakeup(struct task *t, struct user_regs_struct *regs)
{
	if (task_kind(t) != STOP_SIGNAL || !is_about_to_repeat(t, regs))
		return;
	smco_debug("ptrace", "%d: handler before its call", t->tid);
	arch.undo_restart(regs, t->again.nr, t->again.ret);
	task_set_regs(t, regs);
}

/* A handler is about to end a wait for results of which some have come: that
 * is no error then, and was none before a stop made it one. */
static void mend_uring_end(struct task *t, struct user_regs_struct *regs)
{
	if (!uring_waits(regs) || !arch.restart_pending(regs) ||
	    !stops_for_handler(t) || !uring_has_any(t, regs))
		return;
	arch.set_syscall_ret(regs, 0);
	task_set_regs(t, regs);
}

static void note_restart(struct task *t, const struct user_regs_struct *regs)
{
	if (!arch.restart_pending(regs))
		return;
	t->again.pc = arch.pc(regs);
	t->again.sp = arch.sp(regs);
	t->again.nr = arch.syscall_nr(regs);
	t->again.ret = arch.syscall_ret(regs);
}

/* Is its time-out a span of a clock as ours? A moment stays right by itself;
 * CPU time does not pass as we count. */
static bool is_span(const struct user_regs_struct *regs)
{
	uint64_t clock = arch.syscall_arg(regs, 0);

	switch (arch.syscall_nr(regs)) {
	case SYS_futex:
		return (arch.syscall_arg(regs, 1) & FUTEX_CMD_MASK) ==
		       FUTEX_WAIT;
	case SYS_clock_nanosleep:
		return !arch.syscall_arg(regs, 1) &&
		       (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
			clock == CLOCK_BOOTTIME || clock == CLOCK_TAI);
	default:
		return true;
	}
}

/*
 * A wait that has a time-out is started again by the kernel as
 * restart_syscall(2), which a sandbox may not know and kill for (sshd's, before
 * one has logged in). So there it is started as itself, for the rest of its
 * time. A handler ends either with EINTR.
 */
static bool mend_other_call(struct task *t, struct user_regs_struct *regs)
{
	const struct waiting_call *call = find_other(arch.syscall_nr(regs));

	if (!arch.restart_pending(regs) ||
	    arch.syscall_ret(regs) != -ERESTART_RESTARTBLOCK ||
	    !has_filter(t->proc))
		return false;
	put_back_arg(t, regs);
	if (!call || !is_span(regs))
		mend_forget(t);
	else if (!is_noted(t, regs))
		note_end(t, call, regs);
	t->may_wait = t->was_blocked = true;
	arch.ask_restart(regs);
	task_set_regs(t, regs);
	note_restart(t, regs);
	return true;
}

void mend_at_stop(struct task *t)
{
	struct user_regs_struct regs;

	/* 32-bit code has other numbers for its calls. */
	if (!t->proc || task_get_regs(t, &regs) < 0 || arch.is_compat(&regs))
		return;
	if (mend_whole(t, &regs))
		return;
	/* Who is in no call is not asked what he does with signals: that takes
	 * longer than all the rest, and a scheduler in the program may send
	 * hundreds a second to who computes. */
	if (late_may_be(&regs) && !stops_for_handler(t))
		late_at_stop(t, &regs);
	mend_lost_wakeup(t, &regs);
	mend_uring_end(t, &regs);
	if (mend_other_call(t, &regs))
		return;
	note_restart(t, &regs);
	const struct waiting_call *call = find_call(arch.syscall_nr(&regs));
	bool interrupted = is_interrupted(t, call, &regs, true);
	t->was_blocked = arch.restart_pending(&regs) || interrupted;
	if (!call || (!interrupted && !arch.restart_pending(&regs))) {
		/* Its wait has an end already. */
		if (!is_about_to_repeat(t, &regs))
			mend_forget(t);
		return;
	}
	put_back_arg(t, &regs);
	t->may_wait = call->timeout != TIMEOUT_NONE;
	if (!is_noted(t, &regs))
		note_end(t, call, &regs);
	if (interrupted) {
		arch.ask_restart(&regs);
		task_set_regs(t, &regs);
		note_restart(t, &regs);
	}
}

/* Room below the red zone that a thread in a system call does not use. */
#define SPARE_BELOW_SP 512

/*
 * A socket's or terminal's time is over at the entry of the call: it is left
 * out. A seccomp filter would see call -1 then and may kill for it; so there it
 * begins, with a signal that seems pending, and ends without waiting.
 */
static void end_expired(struct task *t, struct user_regs_struct *regs)
{
	if (proc_has_filter(t->tid)) {
		task_interrupt(t);
		return;
	}
	arch.skip_syscall(regs);
	arch.set_syscall_ret(regs, t->mend.expired);
	task_set_regs(t, regs);
	mend_forget(t);
}

/*
 * A call has been interrupted that ends so however little of its time is left:
 * began with a signal that seems pending, or is io_uring's, which looks for
 * signals first. Stopped again and again it would never end. If its time is
 * over it has ended, as one whose time is over.
 */
static bool is_expired(struct task *t, struct user_regs_struct *regs)
{
	enum timeout_kind kind = t->mend.call->timeout;
	int ret = t->mend.expired;

	if ((kind != TIMEOUT_RCV && kind != TIMEOUT_SND &&
	     kind != TIMEOUT_URING) ||
	    smco_now_ns() < t->mend.end_ns)
		return false;
	if (kind == TIMEOUT_URING && uring_has_any(t, regs))
		ret = 0;
	arch.set_syscall_ret(regs, ret);
	task_set_regs(t, regs);
	mend_forget(t);
	return true;
}

static void cut_timeout(struct task *t, struct user_regs_struct *regs)
{
	const struct waiting_call *call = t->mend.call;
	uint64_t now = smco_now_ns();
	uint64_t left = t->mend.end_ns > now ? t->mend.end_ns - now : 0;
	uint64_t value;

	switch (call->timeout) {
	case TIMEOUT_MS:
		value = (left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
		break;
	case TIMEOUT_TIMESPEC:
	case TIMEOUT_URING: {
		struct {
			struct timespec ts;
			struct io_uring_getevents_arg uring;
		} own = {
			.ts = {.tv_sec = (time_t)(left / NSEC_PER_SEC),
			       .tv_nsec = (long)(left % NSEC_PER_SEC)},
		};
		value = (arch.sp(regs) - SPARE_BELOW_SP) & ~15ULL;
		bool is_uring = call->timeout == TIMEOUT_URING;
		if (is_uring && !uring_arg(t, regs, t->mend.arg, &own.uring))
			return;
		own.uring.ts = value;
		if (tmem_write(t->proc, value, &own, sizeof(own)) < 0)
			return;
		if (is_uring)
			value += offsetof(__typeof__(own), uring);
		break;
	}
	default:
		/* The time-out is the socket's: end the wait in its place, now
		 * or when it is time. */
		if (left)
			expiry_note(t);
		else
			end_expired(t, regs);
		return;
	}
	arch.set_syscall_arg(regs, call->arg, value);
	t->mend.replaced = task_set_regs(t, regs) == 0;
}

bool mend_wants_syscall_stops(const struct task *t)
{
	return t->mend.call != NULL;
}

bool mend_at_syscall_stop(struct task *t, bool interrupted)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;

	/* This stop takes the place of the one that PTRACE_INTERRUPT asked for,
	 * but a call that begins now finds a signal that seems pending. */
	interrupted |= t->begins_interrupted;
	t->begins_interrupted = false;
	if ((!t->mend.call && !interrupted) ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) <= 0 ||
	    info.arch != arch.audit_arch || task_get_regs(t, &regs) < 0)
		return false;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		t->begins_interrupted = interrupted;
		mend_note_entry(t, &regs);
	}
	if (!t->mend.call) {
		if (info.op != PTRACE_SYSCALL_INFO_EXIT ||
		    !(is_interrupted(t, find_call(arch.syscall_nr(&regs)),
				     &regs, true) ||
		      late_may_be(&regs) || whole_is_cut(t, &regs)))
			return false;
		task_interrupt(t);
		return true;
	}
	if (!is_noted(t, &regs)) {
		/* A handler runs: the wait has ended with EINTR, as it must. */
		mend_forget(t);
		return false;
	}
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		t->mend.arg = arch.syscall_arg(&regs, t->mend.call->arg);
		t->was_blocked = smco_now_ns() < t->mend.end_ns;
		cut_timeout(t, &regs);
		return false;
	}
	put_back_arg(t, &regs);
	if (!is_interrupted(t, t->mend.call, &regs, interrupted) &&
	    !arch.restart_pending(&regs)) {
		if (!t->mend.inside || arch.syscall_ret(&regs) <= 0)
			mend_forget(t);
		if (!interrupted || !whole_is_cut(t, &regs))
			return false;
		task_interrupt(t);
		return true;
	}
	if (is_expired(t, &regs))
		return false;
	/* Cut short once more. It can be started again only from a stop on the
	 * way to signal delivery: the next one. */
	t->was_blocked = true;
	task_interrupt(t);
	return true;
}

void mend_at_detach(struct task *t)
{
	struct user_regs_struct regs;

	/*
	 * Nobody will put the argument back when the call ends. Argument
	 * registers are dead after a call by the ABI, so the shorter wait is
	 * worth more than they.
	 */
	if (t->mend.call && !t->mend.replaced && task_kind(t) != STOP_SYSCALL &&
	    task_get_regs(t, &regs) == 0)
		cut_timeout(t, &regs);
	late_at_detach(t);
	mend_forget(t);
}
