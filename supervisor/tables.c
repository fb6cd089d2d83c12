#include "supervisor/tables.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/command.h"
#include "supervisor/control/allowance.h"
#include "supervisor/control/control.h"
#include "supervisor/control/fixed.h"
#include "symbols/ehframe.h"
#include "symbols/module.h"

/* So soon it is looked again whether anybody wants the CPU. */
#define MOST_REST_NS (50 * NSEC_PER_MSEC)

/* Who waits pays for it with what so much time brings in. */
#define PATIENCE_TIME_NS (25 * NSEC_PER_MSEC)
#define MOST_PATIENCE_NS (10 * NSEC_PER_MSEC)

struct tables {
	pthread_t thread;
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t more;
	struct sym_space **wanted; /* the next is the last */
	size_t nr, cap;
	pthread_cond_t done; /* leave is set */
	bool leave;	     /* read without the lock by who makes a table */
	struct sym_space *expected[2]; /* ours; NULL = none */
	int64_t m_t_ppb;
	/* The thread's: when it rested last, of its CPU time; how often it had
	 * been pushed off its CPU by then. */
	uint64_t rested_ns;
	long nr_pushed;
};

/* Of a CPU that others want, too. */
uint64_t tables_rest_ns(uint64_t cpu_ns, bool is_wanted, int64_t m_t_ppb)
{
	if (!is_wanted || m_t_ppb >= PPB)
		return 0;
	if (m_t_ppb <= 0)
		return MOST_REST_NS;
	uint64_t ns =
		sat_u64((u128)cpu_ns * (u128)(PPB - m_t_ppb) / (u128)m_t_ppb);
	return min_u64(ns, MOST_REST_NS);
}

uint64_t tables_patience_ns(const struct tables *t)
{
	if (t->m_t_ppb >= PPB)
		return MOST_PATIENCE_NS;
	int64_t ns = allowance_budget_ns(PATIENCE_TIME_NS, t->m_t_ppb);
	return min_u64((uint64_t)ns, MOST_PATIENCE_NS);
}

/* For @ns, or until we leave. */
static void rest(struct tables *t, uint64_t ns)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns += (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / NSEC_PER_SEC);
	ts.tv_nsec = (long)(ns % NSEC_PER_SEC);
	pthread_mutex_lock(&t->lock);
	while (!t->leave && !pthread_cond_clockwait(&t->done, &t->lock,
						    CLOCK_MONOTONIC, &ts))
		;
	pthread_mutex_unlock(&t->lock);
}

/* By now the program may want our CPU. */
static void give_way(struct tables *t)
{
	struct rusage usage;
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (getrusage(RUSAGE_THREAD, &usage))
		return;
	uint64_t ns =
		tables_rest_ns(cpu_ns - t->rested_ns,
			       usage.ru_nivcsw != t->nr_pushed, t->m_t_ppb);
	if (!ns || !module_cfi_begin_rest())
		return;
	t->nr_pushed = usage.ru_nivcsw;
	t->rested_ns = cpu_ns;
	rest(t, ns);
	module_cfi_end_rest();
}

/* Now and then while a table is made; false: nobody needs it any more. */
static bool may_go_on(void *arg)
{
	struct tables *t = arg;
	if (!__atomic_load_n(&t->leave, __ATOMIC_ACQUIRE))
		give_way(t);
	return !__atomic_load_n(&t->leave, __ATOMIC_ACQUIRE);
}

static void *run(void *arg)
{
	struct tables *t = arg;
	ehframe_set_pause(may_go_on, t);
	pthread_mutex_lock(&t->lock);
	while (!t->leave) {
		if (!t->nr) {
			pthread_cond_wait(&t->more, &t->lock);
			continue;
		}
		struct sym_space *space = t->wanted[--t->nr];
		pthread_mutex_unlock(&t->lock);
		sym_prepare_unwind(space);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/*
 * With the first thread glibc takes a signal for its own use, one that it hides
 * from sigaction(). Ignored before, as by some parents, it must be ignored in
 * the command, too; we change no user ids, which is what it is for.
 */
#define SIGNAL_OF_GLIBC 33
struct kernel_sigaction {
	void (*handler)(int sig);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static int create_thread(pthread_t *ret, void *arg)
{
	struct kernel_sigaction was = {0};
	long rc = syscall(SYS_rt_sigaction, SIGNAL_OF_GLIBC, NULL, &was,
			  sizeof(was.mask));
	int failed = pthread_create(ret, NULL, run, arg);
	if (!rc && was.handler == SIG_IGN)
		syscall(SYS_rt_sigaction, SIGNAL_OF_GLIBC, &was, NULL,
			sizeof(was.mask));
	return failed;
}

struct tables *tables_create(int64_t m_t_ppb)
{
	struct tables *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->m_t_ppb = m_t_ppb;
	pthread_cond_init(&t->done, NULL);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->more, NULL);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = create_thread(&t->thread, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		return t;
	pthread_cond_destroy(&t->more);
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

void tables_destroy(struct tables *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	__atomic_store_n(&t->leave, true, __ATOMIC_RELEASE);
	pthread_cond_signal(&t->more);
	pthread_cond_signal(&t->done);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->more);
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	for (size_t i = 0; i < ARRAY_SIZE(t->expected); i++)
		sym_space_destroy(t->expected[i]);
	free(t->wanted);
	free(t);
}

bool tables_want(struct tables *t, struct sym_space *space)
{
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	bool known = false;
	for (size_t i = 0; i < t->nr; i++)
		known |= t->wanted[i] == space;
	if (!known && t->nr == t->cap) {
		size_t cap = t->cap * 2 + 16;
		void *mem =
			realloc(t->wanted, cap * sizeof(struct sym_space *));
		if (mem) {
			t->wanted = mem;
			t->cap = cap;
		}
	}
	if (!known && t->nr < t->cap) {
		t->wanted[t->nr++] = space;
		known = true;
		pthread_cond_signal(&t->more);
	}
	pthread_mutex_unlock(&t->lock);
	return known;
}

static void expect(struct tables *t, size_t i, const char *name)
{
	_cleanup_free_ char *path = name ? realpath(name, NULL) : NULL;
	if (!t->expected[i] && path)
		t->expected[i] = sym_space_of_file(path);
	if (!t->expected[i])
		return;
	/* What is looked up there while the program stands is read now. */
	sym_find(t->expected[i], "malloc", "malloc", NULL, NULL, NULL);
	tables_want(t, t->expected[i]);
}

void tables_expect(struct tables *t, const char *command)
{
	Dl_info libc;
	if (!t)
		return;
	/* Almost every stack goes through it, and most likely ours is its. */
	if (dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc))
		expect(t, 1, libc.dli_fname);
	_cleanup_free_ char *found = command_find(command);
	expect(t, 0, found);
}
