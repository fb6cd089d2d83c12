/*
 * Watchpoints: the smallest and largest value that was written, by whomever, of
 * every width and sign; no hit once the limit is reached, none after disarming;
 * what hits are charged; no more than four; nothing is left in the program.
 * With BPF, and without.
 */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "supervisor/monitor/range-private.h"
#include "supervisor/tracee/internal.h"
#include "t/unit/watching.h"

/* What the puppet writes to. */
static volatile union {
	int64_t i64;
	uint32_t u32;
	int16_t i16;
	int8_t i8;
} words[6];

/* The only stores to them whose instruction is known, see insn_before. */
extern const uint8_t store_64[], store_64_end[], store_32[], store_32_end[];
static __attribute__((noinline)) void put(volatile void *to, int64_t value)
{
	__asm__ volatile(".globl store_64, store_64_end\n"
			 "store_64: mov %1, (%0)\n"
			 "store_64_end:"
			 :
			 : "r"(to), "r"(value)
			 : "memory");
}

static __attribute__((noinline)) void put32(volatile void *to, int32_t value)
{
	__asm__ volatile(".globl store_32, store_32_end\n"
			 "store_32: movl %1, -8(%0)\n"
			 "store_32_end:"
			 :
			 : "r"((volatile char *)to + 8), "r"(value)
			 : "memory");
}

static const uint8_t *insn_before(void *ctx, taddr_t ip, size_t *len_ret)
{
	(void)ctx;
	bool is_64 = ip == (taddr_t)(uintptr_t)store_64_end;
	const uint8_t *from = is_64 ? store_64 : store_32;
	if (!is_64 && ip != (taddr_t)(uintptr_t)store_32_end)
		return NULL;
	*len_ret = (size_t)(ip - (taddr_t)(uintptr_t)from);
	return from;
}

static long act_write(long word, long value)
{
	put(&words[word].i64, value);
	return 0;
}

static long act_add(long word, long value)
{
	words[word].i64 += value;
	return 0;
}

static long act_write32(long word, long value)
{
	put32(&words[word].u32, (int32_t)value);
	return 0;
}

static long act_many(long word, long nr)
{
	for (long i = 1; i <= nr; i++)
		put(&words[word].i64, i);
	return 0;
}

static void *thread_main(void *value)
{
	put(&words[0].i64, (long)value);
	return NULL;
}

static long act_thread(long value, long unused)
{
	pthread_t t;
	(void)unused;
	pthread_create(&t, NULL, thread_main, (void *)value);
	pthread_join(t, NULL);
	return 0;
}

/* The kernel writes for it: eight bytes of zeros. */
static long act_read(long word, long unused)
{
	int fd = open("/dev/zero", O_RDONLY);
	ssize_t n = read(fd, (void *)&words[word], 8);
	(void)unused;
	close(fd);
	return n;
}

static long act_fork(long value, long unused)
{
	pid_t pid = fork();
	(void)unused;
	if (!pid) {
		words[0].i64 = value;
		_exit(0);
	}
	return waitpid(pid, NULL, 0);
}

static struct watch_what word_at(int i, unsigned bytes, bool is_signed)
{
	return (struct watch_what){
		.addr = (taddr_t)(uintptr_t)&words[i],
		.bytes = bytes,
		.field = {{.bits = (uint8_t)(8 * bytes),
			   .is_signed = is_signed}},
		.nr_fields = 1,
		.insn = insn_before,
	};
}

static void test_values(void)
{
	int64_t lo, hi;
	const struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, INT64_MAX);
	check(!watchpoint_read(w, 0, &lo, &hi));
	puppet_do(&pup, act_write, 0, -5);
	check(is_range(w, 0, -5, -5));
	puppet_do(&pup, act_write, 0, INT64_MAX);
	puppet_do(&pup, act_write, 0, INT64_MIN);
	puppet_do(&pup, act_write, 1, 3);
	check(is_range(w, 0, INT64_MIN, INT64_MAX));
	check_int(watchpoint_hits(w), 3);
	watchpoint_disarm(w);
	puppet_do(&pup, act_write, 0, 7);
	/* Unsigned, and of the four bytes only. */
	const struct watch_what u32 = word_at(0, 4, false);
	w = armed(&u32, INT64_MAX);
	puppet_do(&pup, act_write32, 0, -2);
	puppet_do(&pup, act_write, 0, 0x700000009);
	check(is_range(w, 0, 9, 0xfffffffe));
	/* Written by the kernel. */
	check_int(puppet_do(&pup, act_read, 0, 0), 8);
	check(is_range(w, 0, 0, 0xfffffffe));
	watchpoint_disarm(w);
	const struct watch_what i8 = word_at(0, 1, true);
	w = armed(&i8, INT64_MAX);
	puppet_do(&pup, act_write, 0, 0x180);
	check(is_range(w, 0, -128, -128));
	watchpoint_disarm(w);
}

/* Three bit-fields of one word: 4 bits unsigned, 3 signed, 9 unsigned. */
static void test_fields(void)
{
	struct watch_what what = word_at(0, 2, false);
	what.nr_fields = 3;
	what.field[0] = (struct watch_field){.shift = 0, .bits = 4};
	what.field[1] =
		(struct watch_field){.shift = 4, .bits = 3, .is_signed = true};
	what.field[2] = (struct watch_field){.shift = 7, .bits = 9};
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write, 0, 0x3 | 0x4 << 4 | 0x1ff << 7);
	puppet_do(&pup, act_write, 0, 0xe | 0x3 << 4 | 0x100 << 7);
	check(is_range(w, 0, 3, 14));
	check(is_range(w, 1, -4, 3));
	check(is_range(w, 2, 256, 511));
	watchpoint_disarm(w);
}

/* What is written counts as long as pointers lead there. */
static void test_pointers(void)
{
	struct watch_what what = word_at(0, 8, true);
	for (int i = 0; i < 2; i++)
		what.pointer[i] = (struct watch_pointer){
			.addr = (taddr_t)(uintptr_t)&words[1 + i],
			.value = (uint64_t)(40 + i)};
	what.nr_pointers = 2;
	puppet_do(&pup, act_write, 1, 40);
	puppet_do(&pup, act_write, 2, 41);
	if (!watchpoints_have_bpf(ws)) {
		struct smco_err err = {0};
		struct watchpoint *none;
		check_int(watchpoint_arm(&none, ws, proc, &what, 10, &err),
			  SMCO_UNSUPPORTED);
		return;
	}
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write, 0, 5);
	check(is_range(w, 0, 5, 5));
	puppet_do(&pup, act_write, 2, 0);
	puppet_do(&pup, act_write, 0, 6);
	puppet_do(&pup, act_write, 2, 41);
	puppet_do(&pup, act_write, 1, 41);
	puppet_do(&pup, act_write, 0, 7);
	check(is_range(w, 0, 5, 5));
	check_int(watchpoint_hits(w), 3);
	puppet_do(&pup, act_write, 1, 40);
	puppet_do(&pup, act_write, 0, -8);
	check(is_range(w, 0, -8, 5));
	watchpoint_disarm(w);
}

static void test_limit(void)
{
	const struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, 10);
	puppet_do(&pup, act_many, 0, 9);
	check(watchpoint_spent_ns(w) == UINT64_MAX);
	check(watchpoint_refill(w, 5));
	uint64_t before_ns = smco_now_ns();
	puppet_do(&pup, act_many, 0, 1000);
	check_int(watchpoint_hits(w), 14);
	check(is_range(w, 0, 1, 9));
	check(watchpoint_spent_ns(w) >= before_ns);
	check(watchpoint_spent_ns(w) <= smco_now_ns());
	check(!watchpoint_refill(w, 5));
	watchpoint_disarm(w);
}

/* Without BPF each thread has its part, and one that may come. */
static int64_t limit_for_one(int64_t hits)
{
	return watchpoints_have_bpf(ws) ? hits : 2 * hits;
}

static void test_limit_told(void)
{
	const struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, limit_for_one(10));
	puppet_do(&pup, act_many, 0, 9);
	check(watchpoint_spent_ns(w) == UINT64_MAX);
	check(!watchpoint_refill(w, 5));
	uint64_t before_ns = smco_now_ns();
	puppet_do(&pup, act_many, 0, 1000);
	check(watchpoint_spent_ns(w) >= before_ns);
	check(watchpoint_spent_ns(w) <= smco_now_ns());
	check_int(watchpoint_hits(w), 10);
	check(is_range(w, 0, 1, 9));
	watchpoint_disarm(w);
	/* As many as there is room for, however many it may have: none is lost.
	 */
	w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_many, 0, 100000);
	int64_t hits = (int64_t)watchpoint_hits(w);
	check(hits >= 20 && hits < 1000);
	check(is_range(w, 0, 1, hits));
	check(watchpoint_spent_ns(w) <= smco_now_ns());
	watchpoint_disarm(w);
}

/* What the instruction does not tell, because nobody knows it, or because it is
 * no plain store, is looked at: a value that was there. */
static void test_untold(void)
{
	int64_t lo, hi;
	struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write, 0, 40);
	puppet_do(&pup, act_add, 0, 2);
	puppet_do(&pup, act_add, 0, 2);
	check_int(watchpoint_hits(w), 3);
	check(is_range(w, 0, 40, 44));
	watchpoint_disarm(w);
	what.insn = NULL;
	w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_many, 0, 100);
	check_int(watchpoint_hits(w), 100);
	check(is_range(w, 0, 100, 100));
	watchpoint_disarm(w);
	/* A store to a part of it. */
	what = word_at(0, 8, true);
	puppet_do(&pup, act_write, 0, 0);
	w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write32, 0, -2);
	check(is_range(w, 0, 0xfffffffe, 0xfffffffe));
	/* Not looked at when it is over. */
	puppet_do(&pup, act_add, 0, 1);
	watchpoint_stop(w);
	check(is_range(w, 0, 0xfffffffe, 0xfffffffe));
	check_int(watchpoint_hits(w), 2);
	watchpoint_disarm(w);
	what.insn = NULL;
	w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write, 0, 5);
	watchpoint_stop(w);
	check(!watchpoint_read(w, 0, &lo, &hi));
	watchpoint_disarm(w);
}

static uint64_t cost_of(struct watchpoint *w, uint64_t hits)
{
	uint64_t nr, ns = watchpoint_take_cost_ns(w, &nr);
	check_int(nr, hits);
	return ns;
}

/* What is charged: each hit once, at what one costs now; switching off, too. */
static void test_cost(void)
{
	const struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, limit_for_one(10));
	uint64_t hit_ns = watchpoints_hit_ns(ws);
	check_int(cost_of(w, 0), 0);
	puppet_do(&pup, act_many, 0, 4);
	check_int(cost_of(w, 4), 4 * hit_ns);
	check_int(cost_of(w, 0), 0);
	puppet_do(&pup, act_many, 0, 1000);
	check_int(cost_of(w, 6), 7 * hit_ns);
	puppet_do(&pup, act_many, 0, 1000);
	check_int(cost_of(w, 0), 0);
	watchpoint_disarm(w);
	/* One that is left with room has cost its hits, those of the end, too.
	 */
	w = armed(&what, 10);
	puppet_do(&pup, act_many, 0, 3);
	watchpoint_stop(w);
	puppet_do(&pup, act_many, 0, 3);
	check_int(cost_of(w, 3), 3 * hit_ns);
	check(is_range(w, 0, 1, 3));
	watchpoint_disarm(w);
	/* Measured anew beside those that are armed, whose hits it is not. */
	w = armed(&what, 10);
	watchpoints_measure_again(ws, 0);
	check_int(watchpoints_hit_ns(ws), hit_ns);
	puppet_do(&pup, act_many, 0, 2);
	watchpoints_measure_again(ws, UINT64_MAX);
	hit_ns = watchpoints_hit_ns(ws);
	check(hit_ns >= 1);
	check_int(cost_of(w, 2), 2 * hit_ns);
	check(is_range(w, 0, 1, 2));
	watchpoint_disarm(w);
}

/* What being armed is taken to cost: by what is moved, pages as 4096 bytes;
 * then they rest for as long as that is four times the target. */
static void test_standing(void)
{
	uint64_t page_ns = watchpoints_standing_ns(ws, 4096, 0);
	printf("# a page is moved in %ju ns more\n", (uintmax_t)page_ns);
	check_int(watchpoints_standing_ns(ws, 0, 0), 0);
	check_int(watchpoints_standing_ns(ws, 0, 1), page_ns);
	check(watchpoints_standing_ns(ws, 4096 * 999, 1) >= 1000 * page_ns);
	check_int(range_watch_rest_ns(4000, 100000000), 160000);
	check_int(range_watch_rest_ns(0, 100000000), 0);
	check_int(range_watch_rest_ns(4000, 0), 0);
	/* Nor does looking at them: an eighth of the target, up to 0.1 s. */
	check_int(range_watch_gap_ns(600000, 100000000), 48000000);
	check_int(range_watch_gap_ns(10000, 100000000), 20000000);
	check_int(range_watch_gap_ns(600000, 10000000), 100000000);
	check_int(range_watch_gap_ns(600000, 0), 20000000);
}

static uint64_t cpu_ns(void)
{
	return smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* What is done to arm is charged, what is waited for meanwhile is not. */
static void test_charge(void)
{
	struct range_monitor m = {.ledger = ledger_create(PPB)};
	const struct timespec wait = {.tv_nsec = 20 * NSEC_PER_MSEC};
	uint64_t before_ns = cpu_ns();
	nanosleep(&wait, NULL);
	uint64_t ns = range_watch_charge(&m, before_ns);
	check(ns && ns <= cpu_ns() - before_ns);
	check_int(ledger_spent_ns(m.ledger, LEDGER_ARM, RANGE_WATCH_MONITOR),
		  ns);
	ledger_destroy(m.ledger);
}

static void test_four(void)
{
	struct smco_err err = {0};
	struct watchpoint *w[WATCH_REGISTERS], *more = NULL;
	struct watch_what what;
	check_int(nr_free(HW_BREAKPOINT_W, &words[0]), WATCH_REGISTERS);
	for (int i = 0; i < WATCH_REGISTERS; i++) {
		what = word_at(i, 8, true);
		w[i] = armed(&what, INT64_MAX);
	}
	check_int(nr_free(HW_BREAKPOINT_W, &words[0]), 0);
	what = word_at(4, 8, true);
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err), SMCO_BUSY);
	check(strstr(err.msg, "in use") != NULL);
	for (int i = 0; i < 5; i++)
		puppet_do(&pup, act_write, i, 100 + i);
	for (int i = 0; i < WATCH_REGISTERS; i++) {
		check(is_range(w[i], 0, 100 + i, 100 + i));
		watchpoint_disarm(w[i]);
	}
	check_int(nr_free(HW_BREAKPOINT_W, &words[0]), WATCH_REGISTERS);
	/* What no register can watch. */
	what = word_at(0, 4, true);
	what.addr++;
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err),
		  SMCO_UNSUPPORTED);
	what = word_at(0, 4, true);
	what.field[0].shift = 1;
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err),
		  SMCO_UNSUPPORTED);
}

/* One of the tracer's events: new threads are told of before they run. False:
 * there is none to come. */
static bool follow(struct watchpoint *w)
{
	struct smco_err err = {0};
	struct tevent ev;
	if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) < 1)
		return false;
	if (ev.kind == TEV_TASK_NEW) {
		if (w)
			check_int(
				watchpoint_add_task(w, task_tid(ev.task), &err),
				0);
		tracer_resume(tr, ev.task, 0);
	} else if (ev.kind == TEV_TASK_GONE && w) {
		watchpoint_drop_task(w, task_tid(ev.task));
	} else if (ev.kind == TEV_PROC_NEW) {
		tproc_resume_new(ev.proc);
	}
	return true;
}

/* Until it is done, and the threads that it made are gone. */
static void run(struct watchpoint *w, puppet_fn fn, long a)
{
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	puppet_begin(&pup, fn, a, 0);
	while ((poll(&fd, 1, 0) <= 0 || task_next(tproc_first_task(proc))) &&
	       follow(w))
		;
	puppet_wait(&pup);
}

static void test_threads(void)
{
	const struct watch_what what = word_at(0, 8, true);
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_write, 0, 10);
	run(w, act_thread, 55);
	check(is_range(w, 0, 10, 55));
	uint64_t nr, off_ns = watchpoint_take_cost_ns(w, &nr);
	check_int(off_ns, 2 * watchpoints_hit_ns(ws));
	/* A copy's variable is another one. */
	run(w, act_fork, 99);
	check(is_range(w, 0, 10, 55));
	check_int(watchpoint_hits(w), 2);
	watchpoint_disarm(w);
	/* Spent, it is switched off for each thread that hits it, which costs
	 * each as much as a hit. */
	w = armed(&what, limit_for_one(1));
	puppet_do(&pup, act_many, 0, 100);
	run(w, act_thread, 55);
	off_ns = watchpoint_take_cost_ns(w, &nr);
	check_int(nr, 2);
	check_int(off_ns, 4 * watchpoints_hit_ns(ws));
	/* And where all have had their part, there is none for another. */
	if (!watchpoints_have_bpf(ws)) {
		struct smco_err err = {0};
		check_int(watchpoint_add_task(w, pup.pid, &err), SMCO_SYS);
	}
	watchpoint_disarm(w);
}

static void test_all(void)
{
	bool bpf = watchpoints_have_bpf(ws);
	printf("# %s BPF a hit costs %ju ns\n", bpf ? "with" : "without",
	       (uintmax_t)watchpoints_hit_ns(ws));
	check(watchpoints_hit_ns(ws) >= 1);
	test_values();
	test_fields();
	test_pointers();
	if (bpf) {
		test_limit();
	} else {
		test_limit_told();
		test_untold();
	}
	test_cost();
	test_standing();
	test_four();
	test_threads();
}

static bool catches_trap(void)
{
	uint64_t caught = 0;
	proc_status_u64(getpid(), "SigCgt", 16, &caught);
	return caught >> (SIGTRAP - 1) & 1;
}

static volatile bool was_caught, is_over;

static void *look_on(void *unused)
{
	while (!was_caught && !is_over)
		was_caught = catches_trap();
	return unused;
}

/* A hit that is lost on its way would end us, too. Only while there are some:
 * a SIGTRAP that somebody sends is none of these. */
static void test_survives(void)
{
	pthread_t other;
	check(!catches_trap());
	check_int(pthread_create(&other, NULL, look_on, NULL), 0);
	for (int i = 0; i < 20000 && !was_caught; i++)
		watchpoints_measure_again(ws, UINT64_MAX);
	is_over = true;
	pthread_join(other, NULL);
	check(was_caught);
	check(!catches_trap());
}

int main(void)
{
	struct smco_err err = {0};
	const struct tracer_options opts = {.follow = true,
					    .hold_new_tasks = true};
	if (watchpoints_open(&ws, &err)) {
		printf("1..0 # SKIP %s\n", err.msg);
		return 0;
	}
	test_charge();
	test_survives();
	check_int(tracer_create(&tr, &opts, &err), 0);
	pup = puppet_start();
	proc = traced_attach(tr, pup.pid, &err);
	if (!check(proc != NULL))
		return tap_done();
	tproc_resume_new(proc);
	if (watchpoints_have_bpf(ws)) {
		test_all();
		watchpoints_close(ws);
		check_int(watchpoints_open_without_bpf(&ws, &err), 0);
		check(!watchpoints_have_bpf(ws));
	}
	test_all();
	tracer_destroy(tr);
	check_int(nr_free(HW_BREAKPOINT_W, &words[0]), WATCH_REGISTERS);
	watchpoints_close(ws);
	puppet_end(&pup);
	return tap_done();
}
