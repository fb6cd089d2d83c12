/*
 * The resident helper's code. Freestanding and position independent: no libc,
 * no globals, no floating point; it runs in a program that knows nothing of
 * it. See abi.h.
 */
#include "supervisor/probe/rawcall.h"
#include "supervisor/probe/warden/abi.h"

#define NR_CLOSE	     3
#define NR_MPROTECT	     10
#define NR_RT_SIGACTION	     13
#define NR_RT_SIGPROCMASK    14
#define NR_NANOSLEEP	     35
#define NR_GETPID	     39
#define NR_EXIT		     60
#define NR_WAIT4	     61
#define NR_KILL		     62
#define NR_CHDIR	     80
#define NR_SETPGID	     109
#define NR_SIGALTSTACK	     131
#define NR_PRCTL	     157
#define NR_GETTID	     186
#define NR_FUTEX	     202
#define NR_TGKILL	     234
#define NR_RT_TGSIGQUEUEINFO 297
#define NR_CLOSE_RANGE	     436
#define NR_FUTEX_WAITV	     449

#define FLAG_CLONE_VM		  0x100
#define FLAG_CLONE_SIGHAND	  0x800
#define FLAG_CLONE_UNTRACED	  0x800000
#define FLAG_CLONE_PARENT_SETTID  0x100000
#define FLAG_CLONE_CHILD_CLEARTID 0x200000
#define FLAGS			  (FLAG_CLONE_VM | FLAG_CLONE_SIGHAND | FLAG_CLONE_UNTRACED)
#define FLAG_WALL		  0x40000000
#define FUTEX_WAKE		  1
#define FUTEX_WAITERS		  0x80000000u
#define FUTEX_OWNER_DIED	  0x40000000u
#define FUTEX_TID_MASK		  0x3fffffffu
#define FUTEX_32		  2
#define SIGSEGV			  11
#define SIG_SETMASK		  2
#define SA_ONSTACK		  0x08000000ul
#define SA_SIGINFO		  4ul
#define SA_RESTORER		  0x04000000ul
#define PR_SET_NAME		  15
#define PR_GET_CHILD_SUBREAPER	  37
#define ESRCH			  3
#define MOST_AGAIN		  4096
#define EINTR			  4

typedef uint64_t u64;

long warden_clone(u64 flags, u64 stack_top, void (*fn)(void), uint32_t *tid);
void warden_restore(void) __attribute__((noreturn));
void warden_spawn(u64 trap_signal);
void warden_altstack(u64 trap_signal);
void warden_handler(int sig, const int32_t *info, void *context);

extern const char warden_base[] __attribute__((visibility("hidden")));

static long call(long nr, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return sys6(nr, a, b, c, d, e, 0);
}

static struct warden_shared *shared(void)
{
	return (struct warden_shared *)(warden_base + WARDEN_CODE_SIZE);
}

#define load(p)	    __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define addr(p)	    ((u64)(p))

static int owner_is_gone(struct warden_shared *s)
{
	uint32_t w = load(&s->owner);
	return (w & FUTEX_OWNER_DIED) || !(w & FUTEX_TID_MASK);
}

static void slot_open(struct warden_slot *slot)
{
	if (!load(&slot->armed))
		return;
	slot->error = (int32_t)call(NR_MPROTECT, slot->start,
				    slot->end - slot->start, slot->prot, 0, 0);
	store(&slot->armed, 0);
}

static void slot_arm(struct warden_shared *s, struct warden_slot *slot)
{
	if (load(&s->dead) || owner_is_gone(s)) {
		slot->error = -1;
		return;
	}
	store(&slot->again, 0);
	store(&slot->armed, 1);
	slot->error = (int32_t)call(NR_MPROTECT, slot->start,
				    slot->end - slot->start, 0, 0, 0);
	/* A failed call may have protected a part: give it back. */
	if (slot->error)
		slot_open(slot);
}

static void open_all(struct warden_shared *s)
{
	uint32_t nr = load(&s->nr_slots);
	for (uint32_t i = 0; i < nr && i < WARDEN_MAX_SLOTS; i++)
		slot_open(&s->slot[i]);
}

static long sigsegv_action(const struct warden_sigaction *set,
			   struct warden_sigaction *old)
{
	return call(NR_RT_SIGACTION, SIGSEGV, addr(set), addr(old), 8, 0);
}

static void our_action(struct warden_sigaction *ret)
{
	ret->handler = addr(warden_base) + WARDEN_ENTRY_HANDLER;
	ret->restorer = addr(warden_base) + WARDEN_ENTRY_RESTORER;
	ret->flags = SA_SIGINFO | SA_RESTORER | SA_ONSTACK;
	ret->mask = ~0ul;
}

static void turn_on(struct warden_shared *s)
{
	struct warden_sigaction ours;
	our_action(&ours);
	if (load(&s->is_on))
		return;
	sigsegv_action(0, &s->program);
	store(&s->is_on, 1);
	sigsegv_action(&ours, 0);
}

static void give_action_back(struct warden_shared *s)
{
	if (load(&s->is_on))
		sigsegv_action(&s->program, 0);
	store(&s->is_on, 0);
}

static void turn_off(struct warden_shared *s)
{
	open_all(s);
	give_action_back(s);
}

static int action_is_ours(struct warden_sigaction *now)
{
	struct warden_sigaction ours;
	our_action(&ours);
	return sigsegv_action(0, now) || now->handler == ours.handler;
}

/*
 * A fault in a thread that blocks or ignores SIGSEGV makes the kernel reset
 * the action to its default, for all threads.
 */
static void mend_action(struct warden_shared *s)
{
	struct warden_sigaction ours, now;
	if (!load(&s->is_on) || action_is_ours(&now)) {
		store(&s->was_reset, 0);
		return;
	}
	our_action(&ours);
	sigsegv_action(&ours, 0);
	store(&s->was_reset, !now.handler);
}

static void run_command(struct warden_shared *s)
{
	uint32_t nr = load(&s->nr_batch);
	if (nr > WARDEN_MAX_SLOTS)
		nr = WARDEN_MAX_SLOTS;
	switch (load(&s->op)) {
	case WARDEN_ARM:
		for (uint32_t i = 0; i < nr; i++)
			slot_arm(s, &s->slot[s->batch[i] % WARDEN_MAX_SLOTS]);
		break;
	case WARDEN_OPEN:
		for (uint32_t i = 0; i < nr; i++)
			slot_open(&s->slot[s->batch[i] % WARDEN_MAX_SLOTS]);
		mend_action(s);
		break;
	case WARDEN_ON:
		turn_on(s);
		break;
	case WARDEN_OFF:
	case WARDEN_QUIT:
		open_all(s);
		/* Who gave the order is dead, and what the threads stood at is
		 * on its way to them: stay for that. */
		if (!owner_is_gone(s))
			give_action_back(s);
		break;
	default:
		break;
	}
}

static void wait_for_work(struct warden_shared *s, uint32_t seen)
{
	struct {
		u64 val, uaddr;
		uint32_t flags, reserved;
	} v[2];
	uint32_t w = load(&s->owner);
	if ((w & FUTEX_OWNER_DIED) || !(w & FUTEX_TID_MASK))
		return;
	/* Without this bit nobody is woken when the owner dies. */
	if (!(w & FUTEX_WAITERS) &&
	    !__atomic_compare_exchange_n(&s->owner, &w, w | FUTEX_WAITERS, 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	v[0].val = seen;
	v[0].uaddr = addr(&s->cmd);
	v[1].val = w | FUTEX_WAITERS;
	v[1].uaddr = addr(&s->owner);
	v[0].flags = v[1].flags = FUTEX_32;
	v[0].reserved = v[1].reserved = 0;
	call(NR_FUTEX_WAITV, addr(v), 2, 0, 0, 0);
}

/*
 * Threads that the supervisor held in a SIGSEGV stop when it died still get
 * that signal, now that nothing is guarded any more: ours must be the handler
 * for as long as they may take. Unless the next supervisor takes care of them.
 * A handler that the program has set meanwhile is left alone.
 */
static void linger(struct warden_shared *s)
{
	struct {
		int64_t sec, nsec;
	} ten_ms = {0, 10000000};
	struct warden_sigaction now;
	for (int i = 0; i < 200 && !load(&s->relieved); i++) {
		call(NR_NANOSLEEP, addr(&ten_ms), 0, 0, 0, 0);
		if (call(NR_KILL, (u64)s->program_pid, 0, 0, 0, 0) == -ESRCH)
			return;
	}
	if (!action_is_ours(&now))
		store(&s->is_on, 0);
}

static void leave(void)
{
	for (;;)
		call(NR_EXIT, 0, 0, 0, 0, 0);
}

static void warden_main(void)
{
	struct warden_shared *s = shared();
	/* Not globals: the image has no relocations and no data. */
	volatile char name[16];
	name[0] = 's', name[1] = 'm', name[2] = 'c', name[3] = 'o';
	name[4] = '-', name[5] = 'g', name[6] = 'u', name[7] = 'a';
	name[8] = 'r', name[9] = 'd', name[10] = 0;
	volatile char root[2];
	root[0] = '/', root[1] = 0;
	uint32_t seen = load(&s->done);

	/* Nothing of the program's may live on through this process: its
	 * pipes, its directory, its process group. */
	if (call(NR_CLOSE_RANGE, 0, ~0u, 0, 0, 0))
		for (u64 fd = 0; fd < 65536; fd++)
			call(NR_CLOSE, fd, 0, 0, 0, 0);
	/* Not a session of its own: that would be scheduled as one. */
	call(NR_SETPGID, 0, 0, 0, 0, 0);
	call(NR_CHDIR, addr(root), 0, 0, 0, 0);
	call(NR_PRCTL, PR_SET_NAME, addr(name), 0, 0, 0);

	for (;;) {
		uint32_t cmd = load(&s->cmd);
		if (cmd != seen) {
			uint32_t op = load(&s->op);
			run_command(s);
			seen = cmd;
			store(&s->done, seen);
			call(NR_FUTEX, addr(&s->done), FUTEX_WAKE, 1, 0, 0);
			if (op == WARDEN_QUIT && !load(&s->is_on))
				leave();
			continue;
		}
		if (owner_is_gone(s)) {
			store(&s->dead, 1);
			open_all(s);
			linger(s);
			turn_off(s);
			leave();
		}
		wait_for_work(s, seen);
	}
}

/* Made by the first child, which ends at once: the warden becomes a child of
 * init, and no wait of the program ever shows it. */
static void first_child(void)
{
	struct warden_shared *s = shared();
	long pid = warden_clone(FLAGS | FLAG_CLONE_PARENT_SETTID |
					FLAG_CLONE_CHILD_CLEARTID,
				addr(s->stack_warden + WARDEN_STACK_SIZE / 8),
				warden_main, &s->alive);
	s->spawn_error = pid < 0 ? (int32_t)pid : 0;
	if (pid > 0)
		store(&s->pid, (int32_t)pid);
	leave();
}

static void trap(u64 sig)
{
	struct warden_shared *s = shared();
	/* Stops here, and the supervisor puts the registers back; or there is
	 * none any more. */
	call(NR_TGKILL, (u64)call(NR_GETPID, 0, 0, 0, 0, 0),
	     (u64)call(NR_GETTID, 0, 0, 0, 0, 0), sig, 0, 0);
	call(NR_RT_SIGPROCMASK, SIG_SETMASK, addr(&s->saved_mask), 0, 8, 0);
	warden_restore();
}

/* Runs in a thread of the program, on a stack of ours. */
void warden_spawn(u64 trap_signal)
{
	struct warden_shared *s = shared();
	struct warden_sigaction act;
	u64 all = ~0ul, old = 0;
	int status = 0, adopts = 0;

	s->program_pid = (int32_t)call(NR_GETPID, 0, 0, 0, 0, 0);
	s->nr_onstack = 0;
	for (u64 sig = 1; sig <= 64; sig++)
		if (!call(NR_RT_SIGACTION, sig, 0, addr(&act), 8, 0) &&
		    act.handler > 1 && (act.flags & SA_ONSTACK))
			s->nr_onstack++;
	/* An orphan goes to the next subreaper, or to init. */
	call(NR_PRCTL, PR_GET_CHILD_SUBREAPER, addr(&adopts), 0, 0, 0);
	if (adopts || s->program_pid == 1) {
		s->spawn_error = WARDEN_ADOPTS;
		trap(trap_signal);
	}
	/* The children never run a handler of the program's. */
	call(NR_RT_SIGPROCMASK, SIG_SETMASK, addr(&all), addr(&old), 8, 0);
	s->spawn_error = 0;
	long pid = warden_clone(FLAGS,
				addr(s->stack_first + WARDEN_STACK_SIZE / 8),
				first_child, 0);
	if (pid < 0)
		s->spawn_error = (int32_t)pid;
	else
		while (call(NR_WAIT4, (u64)pid, addr(&status), FLAG_WALL, 0,
			    0) == -EINTR)
			;
	call(NR_RT_SIGPROCMASK, SIG_SETMASK, addr(&old), 0, 8, 0);
	trap(trap_signal);
}

void warden_altstack(u64 trap_signal)
{
	struct warden_shared *s = shared();
	s->altstack[0] = s->altstack[2] = 0;
	call(NR_SIGALTSTACK, 0, addr(s->altstack), 0, 0, 0);
	trap(trap_signal);
}

/*
 * Only when the supervisor is gone. info[2] is si_code, then the address.
 * What is not about a guard happens again, natively, after the program's own
 * action is back; what cannot happen again (a kill) is queued again.
 */
void warden_handler(int sig, const int32_t *info, void *context)
{
	struct warden_shared *s = shared();
	u64 where = *(const u64 *)(const void *)(info + 4);
	uint32_t nr = load(&s->nr_slots);
	(void)context;
	store(&s->dead, 1);
	__atomic_fetch_add(&s->nr_handler, 1, __ATOMIC_RELAXED);
	if (info[2] > 0 && info[2] != 0x80 /* SI_KERNEL */)
		for (uint32_t i = 0; i < nr && i < WARDEN_MAX_SLOTS; i++) {
			struct warden_slot *slot = &s->slot[i];
			if (where < slot->start || where >= slot->end)
				continue;
			if (load(&slot->armed)) {
				slot_open(slot);
				return;
			}
			/* Opened since the fault: try again. More often than
			 * there are threads: the program's own fault, on memory
			 * once guarded. */
			if (__atomic_fetch_add(&slot->again, 1,
					       __ATOMIC_RELAXED) < MOST_AGAIN)
				return;
		}
	turn_off(s);
	if (info[2] <= 0 || info[2] == 0x80)
		call(NR_RT_TGSIGQUEUEINFO, (u64)call(NR_GETPID, 0, 0, 0, 0, 0),
		     (u64)call(NR_GETTID, 0, 0, 0, 0, 0), (u64)sig, addr(info),
		     0);
}
