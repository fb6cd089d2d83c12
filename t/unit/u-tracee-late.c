/*
 * A wait whose word is changed, or whose queue is removed, while its thread is
 * held in a stop returns what it would have without the stop: the thread did
 * wait, and was woken.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#define SECONDS	  300
#define VDSO_LEN  (2 * TPAGE_SIZE)
#define NR_IN_ALL 9

static struct puppet pup;
static struct shared {
	uint32_t words[3]; /* all 0 at first */
	int sem, msg;	   /* a semaphore at 0; a full queue of messages */
	taddr_t stood;	   /* where the handler came to */
} * shm;
static taddr_t vdso;
static uint8_t vdso_was[VDSO_LEN];

static void read_vdso(uint8_t *ret)
{
	struct iovec to = {ret, VDSO_LEN}, from = {(void *)vdso, VDSO_LEN};
	check_int(process_vm_readv(pup.pid, &to, 1, &from, 1, 0), VDSO_LEN);
}

static void soon(struct timespec *ts, clockid_t clock)
{
	clock_gettime(clock, ts);
	ts->tv_sec += SECONDS;
}

static long answer(long r)
{
	return r < 0 ? -errno : r;
}

static long act_futex(long op, long timeout)
{
	struct timespec ts = {.tv_sec = SECONDS};
	if (op & FUTEX_CLOCK_REALTIME)
		soon(&ts, CLOCK_REALTIME);
	return answer(syscall(SYS_futex, &shm->words[1], op, 0,
			      timeout ? &ts : NULL, NULL,
			      FUTEX_BITSET_MATCH_ANY));
}

static long act_futex2(long unused, long timeout)
{
	struct timespec ts;
	(void)unused;
	soon(&ts, CLOCK_MONOTONIC);
	return answer(syscall(SYS_futex_wait, &shm->words[1], 0L,
			      (long)FUTEX_BITSET_MATCH_ANY, FUTEX_32,
			      timeout ? &ts : NULL, CLOCK_MONOTONIC));
}

static long act_waitv(long unused, long timeout)
{
	struct futex_waitv v[3] = {0};
	struct timespec ts;
	(void)unused;
	soon(&ts, CLOCK_MONOTONIC);
	for (int i = 0; i < 3; i++)
		v[i] = (struct futex_waitv){.uaddr = (uintptr_t)&shm->words[i],
					    .flags = FUTEX_32};
	return answer(syscall(SYS_futex_waitv, v, 3, 0, timeout ? &ts : NULL,
			      CLOCK_MONOTONIC));
}

static long act_sem(long unused, long timeout)
{
	struct sembuf op = {.sem_op = -1};
	struct timespec ts = {.tv_sec = SECONDS};
	(void)unused;
	return answer(timeout ? semtimedop(shm->sem, &op, 1, &ts)
			      : semop(shm->sem, &op, 1));
}

static long act_msg(long sends, long unused)
{
	struct {
		long type;
		char bytes[1024];
	} m = {.type = 2};
	(void)unused;
	return answer(sends ? msgsnd(shm->msg, &m, sizeof(m.bytes), 0)
			    : msgrcv(shm->msg, &m, sizeof(m.bytes), 7, 0));
}

static const struct kind {
	const char *name;
	puppet_fn fn;
	long a, b;
	long expected;
} kinds[] = {
	{"FUTEX_WAIT", act_futex, FUTEX_WAIT, 0, 0},
	{"FUTEX_WAIT, timed", act_futex, FUTEX_WAIT, 1, 0},
	{"FUTEX_WAIT_BITSET", act_futex,
	 FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, 0},
	{"futex_waitv", act_waitv, 0, 0, 1},
	{"futex_waitv, timed", act_waitv, 0, 1, 1},
	{"semop", act_sem, 0, 0, -EIDRM},
	{"semtimedop", act_sem, 0, 1, -EIDRM},
	{"msgrcv", act_msg, 0, 0, -EIDRM},
	{"msgsnd", act_msg, 1, 0, -EIDRM},
	{"futex_wait", act_futex2, 0, 0, 0},
	{"futex_wait, timed", act_futex2, 0, 1, 0},
};

/* In a call other than the read for its next order; or that is over, which
 * the answer is going to tell. */
static void until_it_waits(void)
{
	struct pollfd answer = {.fd = pup.answer, .events = POLLIN};
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pup.pid);
	do
		usleep(1000);
	while (poll(&answer, 1, 0) <= 0 &&
	       (puppet_state(pup.pid) != 'S' ||
		smco_slurp(path, line, sizeof(line)) <= 0 ||
		strtol(line, NULL, 10) == SYS_read));
}

static void begin(const struct kind *k)
{
	struct {
		long type;
		char bytes[1024];
	} m = {.type = 1};
	memset(shm, 0, sizeof(*shm));
	shm->sem = semget(IPC_PRIVATE, 1, 0600);
	shm->msg = msgget(IPC_PRIVATE, 0600);
	while (msgsnd(shm->msg, &m, sizeof(m.bytes), IPC_NOWAIT) == 0)
		;
	puppet_begin(&pup, k->fn, k->a, k->b);
	until_it_waits();
}

static void change(void)
{
	shm->words[1] = 1;
	syscall(SYS_futex, &shm->words[1], FUTEX_WAKE, 1, NULL, NULL, 0);
	semctl(shm->sem, 0, IPC_RMID);
	msgctl(shm->msg, IPC_RMID, NULL);
}

static void pass(struct tracer *tr, uint64_t ms)
{
	uint64_t until = smco_now_ns() + ms * NSEC_PER_MSEC;
	struct tevent ev;
	while (smco_now_ns() < until)
		if (tracer_next(tr, until, &ev) > 0 && ev.task)
			tracer_resume(tr, ev.task, 0);
}

static struct tproc *come(struct tracer *tr)
{
	struct smco_err err = {0};
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!p) {
		printf("Bail out! %s\n", err.msg);
		exit(2);
	}
	return p;
}

static void leave(struct tproc *p)
{
	struct smco_err err = {0};
	check_int(tproc_detach(p, &err), 0);
}

static void ends_as_woken(const struct kind *k)
{
	check_msg(true, "%s", k->name);
	check_int(puppet_wait(&pup), k->expected);
}

/* Held in the stop we came with, or in one of many. */
static void held(struct tracer *tr, const struct kind *k, int nr_before)
{
	begin(k);
	struct tproc *p = come(tr);
	if (nr_before)
		tproc_resume_new(p);
	for (int i = 0; i < nr_before; i++) {
		pass(tr, 3);
		check_int(traced_stop(p, NULL), 0);
		if (i + 1 < nr_before)
			tproc_cont(p);
	}
	change();
	if (nr_before)
		tproc_cont(p);
	else
		tproc_resume_new(p);
	pass(tr, 20);
	leave(p);
	ends_as_woken(k);
}

/* Changed between our stops, and not at all: it goes on waiting for that. */
static void woken(struct tracer *tr, const struct kind *k)
{
	begin(k);
	struct tproc *p = come(tr);
	tproc_resume_new(p);
	pass(tr, 5);
	until_it_waits();
	change();
	pass(tr, 20);
	leave(p);
	ends_as_woken(k);
}

/* Left in the middle of it. */
static void left(struct tracer *tr, const struct kind *k, bool is_changed)
{
	begin(k);
	struct tproc *p = come(tr);
	tproc_resume_new(p);
	pass(tr, 5);
	check_int(traced_stop(p, NULL), 0);
	if (is_changed)
		change();
	leave(p);
	if (!is_changed) {
		static uint8_t now[VDSO_LEN];
		until_it_waits();
		read_vdso(now);
		check(!memcmp(now, vdso_was, VDSO_LEN));
		change();
	}
	ends_as_woken(k);
}

/* Left in the moment when the kernel has prepared to make it again, and the
 * thread has not entered it yet. */
static void left_before(struct tracer *tr, const struct kind *k)
{
	struct user_regs_struct regs;

	begin(k);
	struct tproc *p = come(tr);
	tproc_resume_new(p);
	pass(tr, 5);
	check_int(traced_stop(p, NULL), 0);
	struct task *t = tproc_first_task(p);
	check_int(task_get_regs(t, &regs), 0);
	check(arch.restart_pending(&regs));
	arch.restart_by_hand(&regs);
	check_int(task_set_regs(t, &regs), 0);
	leave(p);
	until_it_waits();
	change();
	ends_as_woken(k);
}

static void on_usr1(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *c = context;
	(void)sig, (void)si;
	shm->stood = (taddr_t)c->uc_mcontext.gregs[REG_RIP];
}

static long act_handle(long flags, long unused)
{
	struct sigaction sa = {.sa_sigaction = on_usr1,
			       .sa_flags = (int)flags | SA_SIGINFO};
	(void)unused;
	return sigaction(SIGUSR1, &sa, NULL);
}

/* A handler ends it, or it is begun anew, as ever. */
static void handled(struct tracer *tr, const struct kind *k, int flags)
{
	puppet_do(&pup, act_handle, flags, 0);
	begin(k);
	struct tproc *p = come(tr);
	tproc_resume_new(p);
	pass(tr, 5);
	until_it_waits();
	kill(pup.pid, SIGUSR1);
	pass(tr, 20);
	bool ends = !flags || k->expected == -EIDRM || k->b;
	for (int i = 0; i < 3000 && ends && !shm->stood; i++)
		pass(tr, 20); /* a busy machine */
	if (!ends)
		until_it_waits();
	change();
	leave(p);
	check_msg(true, "%s, handled with flags %x", k->name, flags);
	check_int(puppet_wait(&pup), ends ? -EINTR : k->expected);
	/* At the program's own call. */
	check(shm->stood && shm->stood - vdso >= VDSO_LEN);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	size_t nr = ARRAY_SIZE(kinds);

	vdso = getauxval(AT_SYSINFO_EHDR);
	if (syscall(SYS_futex_wait, NULL, 0L, 0L, 0, NULL, 0) < 0 &&
	    errno == ENOSYS)
		nr = NR_IN_ALL;
	shm = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	read_vdso(vdso_was);
	for (size_t i = 0; i < nr; i++) {
		const struct kind *k = &kinds[i];
		held(tr, k, 0);
		held(tr, k, 1);
		held(tr, k, 3);
		woken(tr, k);
		left(tr, k, false);
		left_before(tr, k);
		left(tr, k, true);
		handled(tr, k, 0);
		if (k->fn != act_waitv && k->fn != act_futex2)
			handled(tr, k, SA_RESTART);
	}
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
