/*
 * Sensors note which thread has called them. The number is read from the
 * thread's own memory where each keeps it: also in a container, where it is
 * another than ours; not where a thread shares that memory with another.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "t/unit/hook-run.h"
#include "t/unit/traced.h"

#define SIZE 123456

static struct tracer *tr;
static pid_t heard;

static void hear(struct run *r, const struct heap_event *ev)
{
	(void)r;
	if (ev->kind == HEAP_ALLOC && ev->size == SIZE)
		heard = ev->tid;
}

static long allocate(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	void *volatile block = malloc(SIZE);
	free(block);
	return syscall(SYS_gettid);
}

/* A thread that has the memory of its creator's for itself, too. */
static int order[2], done[2];

static int second_thread(void *arg)
{
	char c;
	(void)arg;
	while (read(order[0], &c, 1) == 1) {
		int tid = (int)allocate(0, 0);
		if (write(done[1], &tid, sizeof(tid)) != sizeof(tid))
			break;
	}
	return 0;
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

/* And one after it that has its own. */
static long make_threads(long unused, long unused2)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	pthread_t t;
	(void)unused;
	(void)unused2;
	if (pipe(order) || pipe(done) ||
	    clone(second_thread, stack + sizeof(stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM,
		  NULL) < 0)
		return -1;
	return pthread_create(&t, NULL, waits, NULL);
}

/* The creator is in none of libc meanwhile. */
static long second_allocates(long unused, long unused2)
{
	int tid = -1;
	(void)unused;
	(void)unused2;
	if (write(order[1], "x", 1) != 1 ||
	    read(done[0], &tid, sizeof(tid)) != sizeof(tid))
		return -1;
	return tid;
}

/* @fn's own number is the one that is heard. */
static void heard_of(struct run *r, struct puppet *p, puppet_fn fn, bool known)
{
	struct smco_err err = {0};
	*r = (struct run){.cutoff = 8192, .tokens = 1u << 29, .hear = hear};
	r->tr = tr;
	r->p = traced_attach(tr, p->pid, &err);
	if (!check(r->p != NULL) || !check_int(run_plant(r, &err), 0)) {
		printf("# %s\n", err.msg);
		return;
	}
	check_int(r->h->plan.priv.tid_offset != 0, known);
	hooks_set_trap_tokens(r->h, 0); /* nobody answers */
	tproc_resume_new(r->p);
	heard = 0;
	long tid = traced_do(tr, p, fn, 0, 0);
	hooks_drain(r->h, run_hear, r);
	check(tid > 0);
	check_int(heard, tid);
	hooks_remove(r->h, NULL);
	hooks_destroy(r->h);
	check_int(tproc_detach(r->p, &err), 0);
	sym_space_destroy(r->syms);
}

/* In there it has a number of which no other word around it can be. */
static bool start_contained(struct puppet *p)
{
	int own _cleanup_close_ =
		open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (own < 0 || unshare(CLONE_NEWPID))
		return false;
	fflush(stdout);
	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();
		if (!pid && i)
			_exit(0);
		if (!pid)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!pid) /* the first one there has to stay */
			pause();
		if (i)
			waitpid(pid, NULL, 0);
	}
	*p = puppet_start();
	/* What looks for leaks at the end starts a helper, which it could not
	 * find in there. */
	check_int(setns(own, CLONE_NEWPID), 0);
	return true;
}

int main(void)
{
	static struct run r;
	struct smco_err err = {0};
	struct puppet p = puppet_start();

	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	heard_of(&r, &p, allocate, true);
	check_int(puppet_do(&p, make_threads, 0, 0), 0);
	heard_of(&r, &p, second_allocates, false);
	puppet_end(&p);
	if (start_contained(&p)) {
		heard_of(&r, &p, allocate, true);
		puppet_end(&p);
	} else {
		tap_skip("no PID namespaces here");
	}
	tracer_destroy(tr);
	return tap_done();
}
