/*
 * Making, commanding and ending the resident helper. The mappings stay for
 * as long as the mechanism is open; the helper process only while guards are
 * armed, because some calls (unshare) fail while anybody shares the memory.
 */
#include "reports/procfs.h"
#include "supervisor/probe/warden.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A command that takes longer has nobody to carry it out. Long, because a
 * machine may be very busy. */
#define ANSWER_NS (3 * NSEC_PER_SEC)
/* So often it is asked whether it has ended by itself. */
#define LOOK_NS (2 * NSEC_PER_MSEC)
/* Worth a line of debugging. */
#define LONG_NS (5 * NSEC_PER_MSEC)

extern const char warden_image[], warden_image_end[];

struct warden {
	struct tproc *proc;
	struct warden_shared *shared;
	taddr_t base; /* image in the program; the table follows it */
	bool running;
	bool owned;    /* the robust mutex is held */
	pid_t pid;     /* 0 = not known here */
	bool is_rt;    /* runs as soon as it is woken */
	bool was_late; /* it had not ended when it was not waited for longer */
	int pidfd;     /* of it, -1 = none */
	int cpu;       /* where it was put last, -1 = anywhere */
};

static void kill_it(struct warden *w)
{
	if (w->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
}

/* It has left the memory. The kernel says so in the table, but not where the
 * program has left it before. */
static bool is_ended(const struct warden *w)
{
	struct pollfd p = {.fd = w->pidfd, .events = POLLIN};
	return !__atomic_load_n(&w->shared->alive, __ATOMIC_ACQUIRE) ||
	       (w->pidfd >= 0 && poll(&p, 1, 0) > 0);
}

/*
 * After its last instruction. One that does not end within reason is killed;
 * the next would share its stack.
 */
static bool wait_gone(struct warden *w)
{
	struct warden_shared *s = w->shared;
	uint64_t end = smco_now_ns() + ANSWER_NS;
	bool killed = false;
	for (;;) {
		uint32_t tid = __atomic_load_n(&s->alive, __ATOMIC_ACQUIRE);
		if (!tid)
			break;
		if (is_ended(w)) {
			__atomic_store_n(&s->alive, 0, __ATOMIC_RELEASE);
			break;
		}
		if (smco_now_ns() > end) {
			if (killed || w->pidfd < 0)
				return false;
			kill_it(w);
			killed = true;
			end += ANSWER_NS;
		}
		struct timespec ts = {.tv_nsec = LOOK_NS};
		syscall(SYS_futex, &s->alive, FUTEX_WAIT, tid, &ts, NULL, 0);
	}
	if (w->pidfd >= 0)
		close(w->pidfd);
	w->pidfd = -1;
	return true;
}

static void put_down(struct warden *w)
{
	kill_it(w);
	wait_gone(w);
}

/*
 * When this thread is killed the kernel walks the robust mutexes it holds,
 * newest first: the helper's comes first and wakes it. Only after the last
 * one are the tracees let go, with whatever they were stopped at. A row of
 * mutexes behind the helper's keeps the kernel busy for some ten milliseconds
 * of CPU time: time for the helper to open everything before any thread of the
 * program goes on. Each lies across two pages that must be faulted in, one of
 * them even made, and far enough from the next that the kernel, which maps
 * what lies around a fault, does not find it. Never given back: the list
 * belongs to the thread.
 */
#define DELAY_NR     2000	/* the kernel stops after 2048 */
#define DELAY_STRIDE (64 << 10) /* fault_around_bytes */

static void init_mutex(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
}

void warden_prepare(void)
{
	static bool done;
	size_t len = (size_t)DELAY_NR * DELAY_STRIDE;
	/* What the kernel follows, and what lies on the page before it. */
	size_t link = offsetof(pthread_mutex_t, __data.__list.__next);
	if (done)
		return;
	done = true;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	for (size_t i = 0; i < DELAY_NR; i++) {
		char *page = p + i * DELAY_STRIDE + DELAY_STRIDE / 2;
		pthread_mutex_t *m = (void *)(page - link);
		init_mutex(m);
		pthread_mutex_lock(m);
	}
	for (size_t i = 0; i < DELAY_NR; i++)
		madvise(p + i * DELAY_STRIDE + DELAY_STRIDE / 2 - TPAGE_SIZE,
			TPAGE_SIZE, MADV_REMOVE);
	madvise(p, len, MADV_DONTNEED);
}

#define MAP_BYTES (WARDEN_CODE_SIZE + sizeof(struct warden_shared))

static uint64_t map_bytes(void)
{
	return (MAP_BYTES + TPAGE_SIZE - 1) & ~(TPAGE_SIZE - 1);
}

static int in_tracee(struct tproc *p, struct smco_err *err, const char *what,
		     int64_t *ret, long nr, uint64_t a, uint64_t b, uint64_t c,
		     uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t args[6] = {a, b, c, d, e, f};
	int rc = tproc_syscall(p, nr, args, ret, err);
	if (rc)
		return rc;
	if (*ret < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, (int)-*ret,
				 "the program cannot %s", what);
	return 0;
}

/* A memfd that both have mapped, its name taken from the scratch area. */
static int make_shared(struct warden *w, struct smco_err *err)
{
	struct tproc *p = w->proc;
	static const char name[] = WARDEN_NAME;
	uint64_t len = map_bytes();
	int64_t fd, ret;
	int rc = in_tracee(p, err, "map memory", &ret, SYS_mmap, 0, len,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   (uint64_t)-1, 0);
	if (rc)
		return rc;
	w->base = (taddr_t)ret;
	rc = tmem_write(p, w->base, name, sizeof(name));
	if (rc)
		return smco_fail(err, rc, 0, "cannot write to the program");
	rc = in_tracee(p, err, "create a memfd", &fd, SYS_memfd_create, w->base,
		       MFD_CLOEXEC, 0, 0, 0, 0);
	if (rc)
		return rc;
	_cleanup_close_ int own = tproc_take_fd(p, (int)fd);
	if (own < 0 || ftruncate(own, (off_t)len))
		rc = smco_fail(err, SMCO_UNSUPPORTED, errno,
			       "cannot share memory with the program");
	if (!rc) {
		void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
				 own, 0);
		if (map == MAP_FAILED)
			rc = smco_fail(err, SMCO_NOMEM, errno, "mmap");
		else
			w->shared = (void *)((char *)map + WARDEN_CODE_SIZE);
	}
	if (!rc) {
		memcpy((char *)w->shared - WARDEN_CODE_SIZE, warden_image,
		       (uintptr_t)warden_image_end - (uintptr_t)warden_image);
		rc = in_tracee(p, err, "map code", &ret, SYS_mmap, w->base,
			       WARDEN_CODE_SIZE, PROT_READ | PROT_EXEC,
			       MAP_SHARED | MAP_FIXED, (uint64_t)fd, 0);
	}
	if (!rc)
		rc = in_tracee(p, err, "map shared memory", &ret, SYS_mmap,
			       w->base + WARDEN_CODE_SIZE,
			       len - WARDEN_CODE_SIZE, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, (uint64_t)fd,
			       WARDEN_CODE_SIZE);
	/* A forked child starts without any of it. */
	if (!rc)
		rc = in_tracee(p, err, "keep it from children", &ret,
			       SYS_madvise, w->base, len, MADV_DONTFORK, 0, 0,
			       0);
	const uint64_t close_args[6] = {(uint64_t)fd};
	tproc_syscall(p, SYS_close, close_args, &ret, NULL);
	return rc;
}

static void init_owner(struct warden *w)
{
	_Static_assert(sizeof(pthread_mutex_t) <=
			       sizeof(w->shared->owner) +
				       sizeof(w->shared->owner_rest),
		       "the table has room for a mutex");
	_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0,
		       "the mutex begins with its futex");
	warden_prepare();
	init_mutex((pthread_mutex_t *)&w->shared->owner);
}

static bool has_waitv(void)
{
	return syscall(449, NULL, 0, 0, NULL, 0) >= 0 || errno != ENOSYS;
}

int warden_create(struct tproc *p, struct warden **ret, struct smco_err *err)
{
	if (!has_waitv())
		return smco_fail(err, SMCO_UNSUPPORTED, ENOSYS,
				 "the kernel has no futex_waitv (Linux 5.16)");
	struct warden *w = calloc(1, sizeof(*w));
	if (!w)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	w->proc = p;
	w->pidfd = -1;
	int rc = make_shared(w, err);
	if (rc) {
		warden_destroy(w, false);
		return rc;
	}
	init_owner(w);
	*ret = w;
	return 0;
}

static void disown(struct warden *w)
{
	if (w->owned)
		pthread_mutex_unlock((pthread_mutex_t *)&w->shared->owner);
	w->owned = false;
}

static void quit(struct warden *w)
{
	bool exists = !w->pid || kill(w->pid, 0) == 0 || errno != ESRCH;
	if (w->running && exists)
		warden_do(w, WARDEN_QUIT, NULL, 0, NULL);
	w->running = false;
	disown(w);
}

void warden_quit(struct warden *w)
{
	pid_t pid = w->pid;
	if (!w->running)
		return;
	warden_do(w, WARDEN_QUIT, NULL, 0, NULL);
	wait_gone(w);
	for (int i = 0; pid && i < 500 && kill(pid, 0) == 0; i++) {
		waitpid(pid, NULL, __WALL | WNOHANG); /* if it is our child */
		usleep(100);
	}
}

void warden_destroy(struct warden *w, bool gone)
{
	if (!w)
		return;
	if (w->shared) {
		quit(w);
		/* With the program gone nobody clears the word. */
		if (!gone)
			gone = !wait_gone(w);
		munmap((char *)w->shared - WARDEN_CODE_SIZE, map_bytes());
	}
	if (w->pidfd >= 0)
		close(w->pidfd);
	if (w->base && !gone) {
		const uint64_t args[6] = {w->base, map_bytes()};
		int64_t ret;
		tproc_syscall(w->proc, SYS_munmap, args, &ret, NULL);
	}
	free(w);
}

/* --- running code of the image in a thread of the program --- */

static void save_way_back(void *ctx, const struct user_regs_struct *r,
			  uint64_t mask)
{
	struct warden *w = ctx;
	w->shared->saved_mask = mask;
	w->shared->saved = (struct warden_saved){
		.rax = r->rax,
		.rbx = r->rbx,
		.rcx = r->rcx,
		.rdx = r->rdx,
		.rsi = r->rsi,
		.rdi = r->rdi,
		.rbp = r->rbp,
		.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.rip = r->rip,
		.cs = r->cs,
		.rflags = r->eflags,
		.rsp = r->rsp,
		.ss = r->ss,
	};
}

static int run_entry(struct warden *w, struct task *t, unsigned entry,
		     struct smco_err *err)
{
	taddr_t table = w->base + WARDEN_CODE_SIZE;
	/* As if called: the stack is 8 off its alignment. */
	const struct task_run run = {
		.pc = w->base + entry,
		.sp = table + offsetof(struct warden_shared, saved) - 24,
		.before = save_way_back,
		.ctx = w,
	};
	return task_run(t, &run, err);
}

/* False also where the kernel does not tell. */
static bool shares_memory(const struct warden *w, pid_t pid)
{
	return pid > 0 && syscall(SYS_kcmp, procfs_holder(tproc_pid(w->proc)),
				  pid, KCMP_VM, 0, 0) == 0;
}

static bool has_our_name(pid_t pid)
{
	char path[PROCFS_PATH], name[32] = "";
	procfs_path(path, sizeof(path), pid, "comm");
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool same =
		fgets(name, sizeof(name), f) && !strcmp(name, WARDEN_NAME "\n");
	fclose(f);
	return same;
}

/*
 * It must run at once when it is needed, above all when we die. It works for
 * microseconds and never spins. Without the right to that, it asks for the
 * shortest slices there are: from Linux 6.12 on whoever wakes with less to do
 * than those who run goes first.
 */
static void hurry(struct warden *w)
{
	struct sched_param sp = {.sched_priority = 1};
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} brief = {.size = 48, .runtime_ns = 100 * NSEC_PER_USEC};
	w->is_rt = w->pid > 0 &&
		   !sched_setscheduler(w->pid, SCHED_RR | SCHED_RESET_ON_FORK,
				       &sp);
	if (w->is_rt || w->pid <= 0)
		return;
	brief.nice = getpriority(PRIO_PROCESS, (id_t)w->pid);
	syscall(SYS_sched_setattr, w->pid, &brief, 0);
}

/* Its number is one of ours. */
static void meet(struct warden *w)
{
	w->pid = w->shared->pid;
	w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	hurry(w);
}

int warden_spawn_result(const struct warden_shared *s, struct smco_err *err)
{
	if (!s->program_pid)
		return smco_fail(err, SMCO_BUSY, 0,
				 "the thread has not run our code");
	if (s->spawn_error == WARDEN_ADOPTS)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "the program adopts orphans (subreaper or "
				 "init): it would see the helper");
	if (s->spawn_error)
		return smco_fail(err, SMCO_UNSUPPORTED, -s->spawn_error,
				 "the program cannot create a process");
	return 0;
}

int warden_spawn(struct warden *w, struct task *t, struct smco_err *err)
{
	struct warden_shared *s = w->shared;
	if (w->running)
		return 0;
	if (!wait_gone(w))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "the last helper in the program does not end");
	if (!w->owned) {
		int e = pthread_mutex_trylock((pthread_mutex_t *)&s->owner);
		if (e)
			return smco_fail(err, SMCO_SYS, e, "robust mutex");
		w->owned = true;
	}
	s->pid = 0;
	s->program_pid = 0;
	s->op = WARDEN_NOP;
	s->cmd = s->done = 0;
	s->dead = s->relieved = 0;
	/* Its parent is to be us if the program is our descendant: what it
	 * shares with the program is let go when the parent has heard of its
	 * end, and some inits take their time. */
	int subreaper = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int rc = run_entry(w, t, WARDEN_ENTRY_SPAWN, err);
	prctl(PR_SET_CHILD_SUBREAPER, subreaper);
	if (!rc)
		rc = warden_spawn_result(s, err);
	if (rc) {
		disown(w);
		return rc;
	}
	w->running = true;
	w->is_rt = false;
	w->pid = 0;
	w->cpu = -1;
	/* Before its first answer, for which it needs a CPU as well. */
	if (shares_memory(w, s->pid))
		meet(w);
	rc = warden_do(w, WARDEN_NOP, NULL, 0, NULL);
	if (rc) {
		disown(w);
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 w->was_late ? "the helper in the program has "
					       "not answered for three seconds"
					     : "the helper in the program has "
					       "ended before it answered (a "
					       "seccomp filter?)");
	}
	/* Inside another pid namespace its number is somebody else's here. */
	if (!w->pid && has_our_name(s->pid))
		meet(w);
	return 0;
}

bool warden_is_running(const struct warden *w)
{
	return w->running;
}

bool warden_saw_altstacks(const struct warden *w)
{
	return w->shared->nr_onstack > 0;
}

int warden_altstack_of(struct warden *w, struct task *t, taddr_t *start_ret,
		       uint64_t *size_ret)
{
	int rc = run_entry(w, t, WARDEN_ENTRY_ALTSTACK, NULL);
	if (rc)
		return rc;
	*start_ret = w->shared->altstack[0];
	*size_ret = w->shared->altstack[2];
	return 0;
}

struct warden_shared *warden_table(struct warden *w)
{
	return w->shared;
}

/* --- commands --- */

static bool wait_done(struct warden *w, uint32_t cmd)
{
	struct warden_shared *s = w->shared;
	uint64_t end = smco_now_ns() + ANSWER_NS;
	bool has_ended = false;
	for (;;) {
		uint32_t done = __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
		if (done == cmd)
			return true;
		w->was_late = !has_ended;
		if (has_ended || smco_now_ns() > end)
			return false;
		/* What it did last counts, so done is looked at once more. */
		has_ended = is_ended(w);
		struct timespec ts = {.tv_nsec = LOOK_NS};
		syscall(SYS_futex, &s->done, FUTEX_WAIT, done, &ts, NULL, 0);
	}
}

/* The hand-over is several times faster on one CPU than between two. */
static void come_here(struct warden *w)
{
	int cpu = sched_getcpu();
	cpu_set_t set;
	/* One that has to wait its turn may take any. */
	if (!w->is_rt || cpu < 0 || cpu == w->cpu)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (!sched_setaffinity(w->pid, sizeof(set), &set))
		w->cpu = cpu;
}

static const char *const op_names[] = {
	[WARDEN_NOP] = "nothing",  [WARDEN_ARM] = "arming",
	[WARDEN_OPEN] = "opening", [WARDEN_ON] = "beginning",
	[WARDEN_OFF] = "an end",   [WARDEN_QUIT] = "leaving",
};

int warden_do(struct warden *w, enum warden_op op, const uint32_t *slots,
	      size_t nr, uint64_t *cost_ns_ret)
{
	struct warden_shared *s = w->shared;
	if (!w->running || nr > WARDEN_MAX_SLOTS)
		return SMCO_GONE;
	uint64_t begin = smco_now_ns();
	come_here(w);
	if (nr)
		memcpy(s->batch, slots, nr * sizeof(slots[0]));
	s->op = op;
	s->nr_batch = (uint32_t)nr;
	uint32_t cmd = __atomic_add_fetch(&s->cmd, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, &s->cmd, FUTEX_WAKE, 1, NULL, NULL, 0);
	bool done = wait_done(w, cmd);
	uint64_t cost_ns = smco_now_ns() - begin;
	if (cost_ns_ret)
		*cost_ns_ret = cost_ns;
	if (cost_ns > LONG_NS)
		smco_debug("guard", "the helper took %llu us for %s of %zu",
			   (unsigned long long)(cost_ns / NSEC_PER_USEC),
			   op_names[op], nr);
	if (!done || op == WARDEN_QUIT)
		w->running = false;
	/* It must not carry the command out when nobody expects it any more. */
	if (!done)
		put_down(w);
	return done ? 0 : SMCO_GONE;
}

int warden_undo_by_hand(struct warden *w, struct smco_err *err)
{
	struct warden_shared *s = w->shared;
	int64_t ret;
	int rc = 0;
	for (uint32_t i = 0; i < s->nr_slots && !rc; i++) {
		struct warden_slot *slot = &s->slot[i];
		const uint64_t args[6] = {slot->start, slot->end - slot->start,
					  slot->prot};
		if (!slot->armed)
			continue;
		rc = tproc_syscall(w->proc, SYS_mprotect, args, &ret, err);
		slot->armed = 0;
	}
	if (s->is_on && !rc) {
		taddr_t act = w->base + WARDEN_CODE_SIZE +
			      offsetof(struct warden_shared, program);
		const uint64_t args[6] = {SIGSEGV, act, 0, 8};
		rc = tproc_syscall(w->proc, SYS_rt_sigaction, args, &ret, err);
		s->is_on = 0;
	}
	return rc;
}
