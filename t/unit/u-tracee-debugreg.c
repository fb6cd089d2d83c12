/*
 * Debug registers by ptrace: a thread that has written stands behind the store,
 * once for each, of every width; so do threads and vfork children that come,
 * not copies, nor what the kernel writes. Nothing of it is in a thread when it
 * is left, also in the middle of hits; what the program does with SIGTRAP stays
 * its own.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/ptrace.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;
static struct puppet pup;
static struct tproc *proc;
static volatile uint64_t words[6]; /* the puppet's */

static struct {
	int nr;
	pid_t tid;
	uint64_t value; /* at the last */
	taddr_t addr;	/* of it */
	int most;	/* then it is over for the thread */
	uint32_t id;
} hits[TWATCH_MOST];

static void hit(struct task *t, uint64_t stop_ns, void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;
	check(stop_ns && stop_ns <= smco_now_ns());
	check_int(tmem_read(task_proc(t), hits[i].addr, &hits[i].value, 8), 0);
	hits[i].tid = task_tid(t);
	if (++hits[i].nr == hits[i].most)
		task_unwatch(t, hits[i].id);
}

/* Word @word by number @i of these. */
static int watch_at(size_t i, int word, unsigned offset, unsigned bytes)
{
	const struct twatch w = {
		.addr = (taddr_t)(uintptr_t)&words[word] + offset,
		.bytes = bytes,
		.hit = hit,
		.arg = (void *)(uintptr_t)i,
	};
	struct smco_err err = {0};
	memset(&hits[i], 0, sizeof(hits[i]));
	hits[i].addr = (taddr_t)(uintptr_t)&words[word];
	int rc;
	/* On a busy machine a thread may get no CPU to stop on for longer than
	 * that waits. */
	do
		rc = tproc_watch(proc, &w, &hits[i].id, &err);
	while (rc == SMCO_BUSY);
	if (rc)
		printf("# %s\n", err.msg);
	return rc;
}

static void unwatch(size_t i)
{
	tproc_unwatch(proc, hits[i].id);
	check(!tproc_is_watched(proc, hits[i].id));
}

/* --- what the puppet does --- */

static long act_write(long word, long value)
{
	words[word] = (uint64_t)value;
	return 0;
}

static long act_byte(long offset, long value)
{
	((volatile uint8_t *)words)[offset] = (uint8_t)value;
	return 0;
}

static long act_many(long word, long nr)
{
	for (long i = 1; i <= nr; i++)
		words[word] = (uint64_t)i;
	return 0;
}

static void *thread_main(void *value)
{
	words[0] = (uint64_t)(uintptr_t)value;
	return NULL;
}

static long act_thread(long value, long unused)
{
	pthread_t t;
	(void)unused;
	pthread_create(&t, NULL, thread_main, (void *)value);
	return pthread_join(t, NULL);
}

static long act_copy(long value, long is_vfork)
{
	pid_t pid = is_vfork ? vfork() : fork();
	if (!pid) {
		words[0] = (uint64_t)value;
		_exit(0);
	}
	int status;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static long act_read(long word, long unused)
{
	int fd = open("/dev/zero", O_RDONLY);
	(void)unused;
	long n = read(fd, (void *)&words[word], 8);
	close(fd);
	return n;
}

static volatile int nr_traps;

static void note(int sig)
{
	(void)sig;
	nr_traps++;
}

static long act_handle(long handle, long unused)
{
	(void)unused;
	return signal(SIGTRAP, handle == 1   ? note
			       : handle == 2 ? SIG_IGN
					     : SIG_DFL) == SIG_ERR;
}

static long act_block(long how, long unused)
{
	sigset_t set;
	(void)unused;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask((int)how, &set, NULL);
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGTRAP);
}

static long act_trap(long unused, long unused_too)
{
	(void)unused, (void)unused_too;
	raise(SIGTRAP);
	return nr_traps;
}

static volatile int go_on;

static void *write_for_ever(void *arg)
{
	for (uint64_t i = 1; go_on; i++)
		words[0] = i;
	return arg;
}

static long act_hot(long on, long unused)
{
	static pthread_t t[2];
	(void)unused;
	go_on = (int)on;
	for (int i = 0; i < 2; i++)
		if (on ? pthread_create(&t[i], NULL, write_for_ever, NULL)
		       : pthread_join(t[i], NULL))
			return -1;
	return 0;
}

/* --- tests --- */

static void attach(void)
{
	proc = traced_must_attach(tr, pup.pid);
	tproc_resume_new(proc);
}

static void run(puppet_fn fn, long a, long b)
{
	check_int(traced_do(tr, &pup, fn, a, b), 0);
}

static void test_hits(void)
{
	static const unsigned widths[] = {8, 4, 2, 1};
	for (int i = 0; i < TWATCH_MOST; i++)
		check_int(watch_at((size_t)i, i, 0, widths[i]), 0);
	struct smco_err err = {0};
	const struct twatch more = {.addr = hits[0].addr, .bytes = 8};
	uint32_t id;
	check_int(tproc_watch(proc, &more, &id, &err), SMCO_BUSY);
	run(act_many, 0, 100);
	check_int(hits[0].nr, 100);
	check_int(hits[0].value, 100);
	check_int(hits[0].tid, pup.pid);
	for (int i = 1; i < TWATCH_MOST; i++) {
		run(act_write, i, 70 + i);
		check_int(hits[i].nr, 1);
		check_int(hits[i].value, 70 + i);
		/* The last byte of it, the next one. */
		run(act_byte, 8 * i + (long)widths[i] - 1, 1);
		check_int(hits[i].nr, 2);
		run(act_byte, 8 * i + (long)widths[i], 1);
		check_int(hits[i].nr, 2);
	}
	run(act_write, 4, 1);
	check_int(hits[0].nr, 100);
	/* Over for this one. */
	hits[0].most = 105;
	run(act_many, 0, 50);
	check_int(hits[0].nr, 105);
	run(act_write, 1, 5);
	check_int(hits[1].nr, 3);
	check(tproc_is_watched(proc, hits[0].id));
	for (size_t i = 0; i < TWATCH_MOST; i++)
		unwatch(i);
	run(act_write, 1, 6);
	run(act_write, 2, 6);
	check_int(hits[1].nr + hits[2].nr, 5);
	/* Another word by the same register. */
	check_int(watch_at(0, 4, 0, 4), 0);
	run(act_write, 0, 6);
	run(act_write, 4, 6);
	check_int(hits[0].nr, 1);
	unwatch(0);
}

static void test_others(void)
{
	check_int(watch_at(0, 0, 0, 8), 0);
	run(act_thread, 55, 0);
	check_int(hits[0].nr, 1);
	check_int(hits[0].value, 55);
	check(hits[0].tid != pup.pid);
	run(act_copy, 66, false);
	check_int(hits[0].nr, 1);
	run(act_copy, 77, true);
	check_int(hits[0].nr, 2);
	check_int(hits[0].value, 77);
	check_int(traced_do(tr, &pup, act_read, 0, 0), 8);
	check_int(hits[0].nr, 2);
	unwatch(0);
}

static void test_signals(void)
{
	check_int(traced_do(tr, &pup, act_block, SIG_BLOCK, 0), 1);
	check_int(watch_at(0, 0, 0, 8), 0);
	run(act_many, 0, 3);
	check_int(hits[0].nr, 3);
	check_int(traced_do(tr, &pup, act_block, -1, 0), 1);
	check_int(traced_do(tr, &pup, act_block, SIG_UNBLOCK, 0), 0);
	unwatch(0);
	for (int how = 1; how <= 2; how++) {
		run(act_handle, how, 0);
		check_int(tproc_may_watch(proc, NULL), SMCO_UNSUPPORTED);
		check_int(watch_at(0, 0, 0, 8), SMCO_UNSUPPORTED);
		check_int(traced_do(tr, &pup, act_trap, 0, 0), 1);
	}
	run(act_handle, 0, 0);
	check_int(tproc_may_watch(proc, NULL), 0);
	/* Handled only afterwards: its own is its own. */
	check_int(watch_at(0, 0, 0, 8), 0);
	run(act_handle, 1, 0);
	run(act_many, 0, 3);
	check_int(hits[0].nr, 3);
	check_int(traced_do(tr, &pup, act_trap, 0, 0), 2);
	run(act_handle, 0, 0);
	unwatch(0);
}

/* What its threads' control registers say. */
static unsigned long control(void)
{
	unsigned long all = 0;
	if (traced_stop(proc, NULL))
		return ~0UL;
	for (struct task *t = tproc_first_task(proc); t; t = task_next(t))
		all |= (unsigned long)ptrace(PTRACE_PEEKUSER, task_tid(t),
					     arch.watch_control_at, NULL);
	tproc_cont(proc);
	return all;
}

static void test_leaving(void)
{
	struct smco_err err = {0};
	check_int(watch_at(0, 0, 0, 8), 0);
	check(control() != 0);
	check_int(tproc_detach(proc, &err), 0);
	puppet_do(&pup, act_many, 0, 10);
	attach();
	check_int(hits[0].nr, 0);
	check_int(control(), 0);
	/* In the middle of hits: who has hit it by then must not hear of it. */
	run(act_hot, 1, 0);
	int nr = 0;
	for (int i = 0; i < 50; i++) {
		struct tevent ev;
		check_int(watch_at(0, 0, 0, 8), 0);
		uint64_t end_ns = smco_now_ns() + (uint64_t)i * 40000;
		while (smco_now_ns() < end_ns)
			tracer_next(tr, end_ns, &ev);
		check_int(tproc_detach(proc, &err), 0);
		nr += hits[0].nr;
		puppet_do(&pup, act_write, 1, i);
		attach();
	}
	printf("# %d hits\n", nr);
	check(nr > 50);
	check_int(control(), 0);
	run(act_hot, 0, 0);
}

int main(void)
{
	const struct tracer_options opts = {.follow = true};
	struct smco_err err = {0};
	uint64_t ns = 0, own_ns = 0;
	int rc = twatch_try(&ns, &own_ns, &err);
	if (rc) {
		tap_skip(err.msg);
		return tap_done();
	}
	printf("# a hit takes %ju ns, %ju of them its own\n", (uintmax_t)ns,
	       (uintmax_t)own_ns);
	check(ns > 100);
	check(own_ns && own_ns <= ns);
	if (!check_int(tracer_create(&tr, &opts, &err), 0))
		return tap_done();
	pup = puppet_start();
	attach();
	test_hits();
	test_others();
	test_signals();
	test_leaving();
	/* The last does it, too. */
	check_int(watch_at(0, 0, 0, 8), 0);
	tracer_destroy(tr);
	puppet_do(&pup, act_many, 0, 10);
	puppet_end(&pup);
	return tap_done();
}
