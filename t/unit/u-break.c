/*
 * Breakpoints: what registers hold, and memory that they lead to, when an
 * instruction is reached, which runs once; of every register, width and sign;
 * no hit once the limit is reached; of all threads, and of no copy; they share
 * the four registers with watchpoints, and nothing is left in the program.
 */
#include <pthread.h>

#include "t/unit/watching.h"

static volatile int64_t word, other;
static struct {
	uint64_t before[16], rsp, after;
} regs;
#define OFFSET_RSP   "128"
#define OFFSET_AFTER "136"

/* The registers become what @state has, but for rsp, which is kept there; then
 * "site" adds 1 to rax. */
void pass(void *state);
extern const uint8_t site[], behind_site[];
__asm__(".text\n"
	"pass: push %rbx; push %rbp; push %r12; push %r13; push %r14; push "
	"%r15\n"
	"push %rdi\n"
	"mov %rsp, " OFFSET_RSP "(%rdi)\n"
	"mov (%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx\n"
	"mov 24(%rdi), %rbx; mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
	"mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10\n"
	"mov 88(%rdi), %r11; mov 96(%rdi), %r12; mov 104(%rdi), %r13\n"
	"mov 112(%rdi), %r14; mov 120(%rdi), %r15; mov 56(%rdi), %rdi\n"
	"site: inc %rax\n"
	"behind_site: pop %rdi\n"
	"mov %rax, " OFFSET_AFTER "(%rdi)\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n");

/* Register i is first + i * step: what rax is then. */
static long act_pass(long first, long step)
{
	for (long i = 0; i < 16; i++)
		regs.before[i] = (uint64_t)(first + i * step);
	pass(&regs);
	return (long)regs.after;
}

static long act_rsp(long first, long step)
{
	act_pass(first, step);
	return (long)regs.rsp;
}

/* All lead to 8 bytes behind the word. */
static long act_lead(long value, long nr)
{
	for (long i = 0; i < nr; i++) {
		word = value + i;
		act_pass((long)(uintptr_t)(&word + 1), 0);
	}
	return 0;
}

static void *thread_main(void *value)
{
	act_pass((long)value, 0);
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

static long act_fork(long value, long unused)
{
	pid_t pid = fork();
	int status = 0;
	(void)unused;
	if (!pid)
		_exit(act_pass(value, 0) != value + 1);
	waitpid(pid, &status, 0);
	return status;
}

static long act_write(long value, long unused)
{
	(void)unused;
	word = value;
	return 0;
}

static struct watch_what at_site(size_t nr_fields)
{
	struct watch_what what = {
		.addr = (taddr_t)(uintptr_t)site,
		.is_insn = true,
		.nr_fields = nr_fields,
	};
	for (size_t i = 0; i < nr_fields; i++)
		what.field[i] = (struct watch_field){
			.bits = 64,
			.is_signed = true,
			.source = WATCH_REG,
			.bytes = 8,
		};
	return what;
}

static void test_registers(void)
{
	for (uint8_t first = 0; first < 16; first += WATCH_FIELDS) {
		struct watch_what what = at_site(WATCH_FIELDS);
		for (uint8_t i = 0; i < WATCH_FIELDS; i++)
			what.field[i].reg = first + i;
		struct watchpoint *w = armed(&what, INT64_MAX);
		check_int(puppet_do(&pup, act_pass, 1000, 7), 1001);
		int64_t rsp = puppet_do(&pup, act_rsp, -2000, -9);
		check_int(watchpoint_hits(w), 2);
		for (uint8_t i = 0; i < WATCH_FIELDS; i++) {
			int64_t lo = -2000 - 9 * (first + i);
			int64_t hi = 1000 + 7 * (first + i);
			if (first + i == 4)
				lo = hi = rsp;
			check(is_range(w, i, lo, hi));
		}
		watchpoint_disarm(w);
		check_int(puppet_do(&pup, act_pass, 5, 0), 6);
	}
}

static void test_sources(void)
{
	struct watch_what what = at_site(8);
	struct watch_field *f = what.field;
	/* Of the last pass: word is 0x1234_f6f7_8899_aabc. */
	f[0] = (struct watch_field){.source = WATCH_AT_REG,
				    .reg = 3,
				    .offset = -8,
				    .bytes = 8,
				    .bits = 64,
				    .is_signed = true};
	f[1] = (struct watch_field){.source = WATCH_AT_REG,
				    .reg = 15,
				    .offset = -4,
				    .bytes = 2,
				    .bits = 16,
				    .is_signed = true};
	f[2] = (struct watch_field){.source = WATCH_AT_REG,
				    .reg = 0,
				    .offset = -8,
				    .bytes = 1,
				    .bits = 8};
	f[3] = (struct watch_field){.source = WATCH_AT,
				    .offset = (int64_t)(uintptr_t)&word,
				    .bytes = 4,
				    .bits = 32};
	f[4] = (struct watch_field){.source = WATCH_AT,
				    .offset = (int64_t)(uintptr_t)&word,
				    .bytes = 4,
				    .shift = 2,
				    .bits = 3,
				    .is_signed = true};
	f[5] = (struct watch_field){.source = WATCH_SUM,
				    .reg = 1,
				    .offset = -1 - (int64_t)(uintptr_t)&word,
				    .bytes = 1,
				    .bits = 8};
	f[6] = (struct watch_field){.source = WATCH_CONST,
				    .offset = -3,
				    .bytes = 4,
				    .bits = 32,
				    .is_signed = true};
	/* Nothing is there. */
	f[7] = (struct watch_field){
		.source = WATCH_AT, .offset = 64, .bytes = 4, .bits = 32};
	struct watchpoint *w = armed(&what, INT64_MAX);
	int64_t lo, hi;
	puppet_do(&pup, act_lead, 0x1234f6f78899aabb, 2);
	check(is_range(w, 0, 0x1234f6f78899aabb, 0x1234f6f78899aabc));
	check(is_range(w, 1, (int16_t)0xf6f7, (int16_t)0xf6f7));
	check(is_range(w, 2, 0xbb, 0xbc));
	check(is_range(w, 3, 0x8899aabb, 0x8899aabc));
	check(is_range(w, 4, -2, -1));
	check(is_range(w, 5, 7, 7));
	check(is_range(w, 6, -3, -3));
	check(!watchpoint_read(w, 7, &lo, &hi));
	check_int(watchpoint_hits(w), 2);
	watchpoint_disarm(w);
	/* What says that its library is there says that it is not. */
	what = at_site(1);
	what.pointer[0] =
		(struct watch_pointer){(taddr_t)(uintptr_t)&other, 4711};
	what.nr_pointers = 1;
	w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_pass, 1, 1);
	check(!watchpoint_read(w, 0, &lo, &hi));
	check_int(watchpoint_hits(w), 1);
	watchpoint_disarm(w);
}

/* Are @a and @b what @ops make of registers in two passes? */
static bool is_made(const struct watch_op *ops, uint8_t nr, int64_t a,
		    int64_t b)
{
	int64_t lo = a < b ? a : b, hi = a < b ? b : a;
	struct watch_what what = at_site(2);
	memcpy(what.op, ops, nr * sizeof(*ops));
	what.nr_ops = nr;
	what.field[0].source = WATCH_EXPR;
	what.field[0].nr_ops = nr;
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_pass, 7000, 1);
	puppet_do(&pup, act_pass, 6000, -2);
	bool made = w && is_range(w, 0, lo, hi) && is_range(w, 1, 6000, 7000);
	watchpoint_disarm(w);
	return made;
}
#define IS_MADE(a, b, ...)                                                     \
	do {                                                                   \
		const struct watch_op ops[] = {__VA_ARGS__};                   \
		check(is_made(ops, sizeof(ops) / sizeof(*ops), a, b));         \
	} while (0)

/* Registers 3 and 5 are 7003 and 7005, then 5994 and 5990. */
#define REG(i)                                                                 \
	{                                                                      \
		WATCH_PUSH_REG, i                                              \
	}
#define PUSH(c)                                                                \
	{                                                                      \
		WATCH_PUSH, c                                                  \
	}
#define OP(o)                                                                  \
	{                                                                      \
		WATCH_##o, 0                                                   \
	}
static void test_expressions(void)
{
	IS_MADE(5994, 7003, REG(3));
	IS_MADE(5994 + 5990, 7003 + 7005, REG(3), REG(5), OP(ADD));
	IS_MADE(-2, 4, REG(3), REG(5), OP(SUB));
	IS_MADE(5994L * 5990, 7003L * 7005, REG(3), REG(5), OP(MUL));
	IS_MADE(5994 & 15, 7003 & 15, REG(3), PUSH(15), OP(AND));
	IS_MADE(5994 | 5990, 7003 | 7005, REG(3), REG(5), OP(OR));
	IS_MADE(5994 ^ 5990, 7003 ^ 7005, REG(3), REG(5), OP(XOR));
	IS_MADE(5994L << 40, 7003L << 40, REG(3), PUSH(40), OP(SHL));
	IS_MADE(-7003 >> 3, -5994 >> 3, REG(3), OP(NEG), PUSH(3), OP(SAR));
	IS_MADE((int64_t)(-7003UL >> 3), (int64_t)(-5994UL >> 3), REG(3),
		OP(NEG), PUSH(3), OP(SHR));
	IS_MADE(~7003, ~5994, REG(3), OP(NOT));
	IS_MADE(5994 - 5, 7003 - 5, REG(3), {WATCH_PLUS, -5});
	IS_MADE(5994 & 255, 7003 & 255, REG(3), {WATCH_ZEXT, 1});
	IS_MADE((int8_t)7003, (int8_t)5994, REG(3), {WATCH_SEXT, 1});
	IS_MADE((int16_t)(6 * 7003), (int16_t)(6 * 5994), REG(3), PUSH(6),
		OP(MUL), {WATCH_SEXT, 2});
	/* 7003 times 0 or 1, or 5994 times: which of them is seen. */
	IS_MADE(7003, 0, REG(3), PUSH(5994), OP(NE), REG(3), OP(MUL));
	IS_MADE(7003, 0, REG(3), PUSH(7003), OP(EQ), REG(3), OP(MUL));
	IS_MADE(7003, 0, PUSH(-1), REG(3), PUSH(7000), OP(SUB), OP(LT), REG(3),
		OP(MUL));
	IS_MADE(0, 5994, REG(3), PUSH(5994), OP(LE), REG(3), OP(MUL));
	IS_MADE(7003, 0, REG(3), PUSH(5994), OP(GT), REG(3), OP(MUL));
	IS_MADE(7003, 0, REG(3), PUSH(7003), OP(GE), REG(3), OP(MUL));
	/* Three on the stack; what is below stays there. */
	IS_MADE(1000 - 7003 * 10, 1000 - 5994 * 10, PUSH(1000), REG(3),
		PUSH(10), OP(MUL), OP(SUB));
	/* Memory, of its first bytes. */
	word = 0x1122334455667788;
	int64_t at = (int64_t)(uintptr_t)&word;
	puppet_do(&pup, act_write, word, 0);
	IS_MADE(0x7788, 0x7788, PUSH(at), {WATCH_LOAD, 2});
	IS_MADE(0x55667788, 0x55667788, PUSH(at - 4), {WATCH_PLUS, 4},
		{WATCH_LOAD, 4});
}

static bool is_refused(const struct watch_op *ops, uint8_t nr)
{
	struct smco_err err = {0};
	struct watchpoint *w = NULL;
	struct watch_what what = at_site(1);
	memcpy(what.op, ops, nr * sizeof(*ops));
	what.nr_ops = nr;
	what.field[0].source = WATCH_EXPR;
	what.field[0].nr_ops = nr;
	int rc = watchpoint_arm(&w, ws, proc, &what, 1, &err);
	watchpoint_disarm(w);
	return rc == SMCO_UNSUPPORTED;
}
#define IS_REFUSED(...)                                                        \
	do {                                                                   \
		const struct watch_op ops[] = {__VA_ARGS__};                   \
		check(is_refused(ops, sizeof(ops) / sizeof(*ops)));            \
	} while (0)

static void test_no_expressions(void)
{
	IS_REFUSED(REG(1), REG(2));
	IS_REFUSED(REG(1), OP(ADD));
	IS_REFUSED(OP(NEG));
	IS_REFUSED(PUSH(1), PUSH(2), PUSH(3), PUSH(4), OP(ADD), OP(ADD),
		   OP(ADD));
	IS_REFUSED(PUSH(1), {WATCH_LOAD, 3});
	/* Memory that is not there: of that one nothing, of others all. */
	struct watch_what what = at_site(2);
	what.op[0] = (struct watch_op){WATCH_PUSH, 64};
	what.op[1] = (struct watch_op){WATCH_LOAD, 4};
	what.nr_ops = 2;
	what.field[0].source = WATCH_EXPR;
	what.field[0].nr_ops = 2;
	struct watchpoint *w = armed(&what, INT64_MAX);
	int64_t lo, hi;
	puppet_do(&pup, act_pass, 7000, 1);
	check(!watchpoint_read(w, 0, &lo, &hi));
	check(is_range(w, 1, 7000, 7000));
	watchpoint_disarm(w);
}

/* Each thread's own, where its pointer leads. */
static __thread int64_t own;

static void *own_thread(void *value)
{
	own = (long)value;
	act_pass(0, 0);
	own = 0;
	return NULL;
}

static long act_own(long value, long unused)
{
	pthread_t t;
	(void)unused;
	own_thread((void *)value);
	pthread_create(&t, NULL, own_thread, (void *)(-2 * value));
	pthread_join(t, NULL);
	return 0;
}

static void test_limit(void)
{
	const struct watch_what what = at_site(1);
	struct watchpoint *w = armed(&what, 10);
	for (int i = 0; i < 9; i++)
		puppet_do(&pup, act_pass, i, 0);
	check(watchpoint_spent_ns(w) == UINT64_MAX);
	bool refilled = watchpoint_refill(w, 5); /* since Linux 6.9 */
	for (int i = 9; i < 1000; i++)
		puppet_do(&pup, act_pass, i, 0);
	check_int(watchpoint_hits(w), refilled ? 14 : 10);
	check(is_range(w, 0, 0, refilled ? 13 : 9));
	check(watchpoint_spent_ns(w) <= smco_now_ns());
	check(!watchpoint_refill(w, 5));
	watchpoint_disarm(w);
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
		check_int(watchpoint_add_task(w, task_tid(ev.task), &err), 0);
		tracer_resume(tr, ev.task, 0);
	} else if (ev.kind == TEV_TASK_GONE) {
		watchpoint_drop_task(w, task_tid(ev.task));
	} else if (ev.kind == TEV_PROC_NEW) {
		tproc_resume_new(ev.proc);
	}
	return true;
}

/* Until it is done, and the threads that it made are gone. */
static long run(struct watchpoint *w, puppet_fn fn, long a)
{
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	puppet_begin(&pup, fn, a, 0);
	while ((poll(&fd, 1, 0) <= 0 || task_next(tproc_first_task(proc))) &&
	       follow(w))
		;
	return puppet_wait(&pup);
}

static void test_own(void)
{
	struct watch_what what = at_site(1);
	what.field[0].source = WATCH_AT_THREAD;
	what.field[0].offset =
		(char *)&own - (char *)__builtin_thread_pointer();
	struct watchpoint *w = armed(&what, INT64_MAX);
	run(w, act_own, 111);
	check(is_range(w, 0, -222, 111));
	watchpoint_disarm(w);
}

static void test_threads(void)
{
	const struct watch_what what = at_site(1);
	struct watchpoint *w = armed(&what, INT64_MAX);
	puppet_do(&pup, act_pass, 10, 0);
	run(w, act_thread, 55);
	check(is_range(w, 0, 10, 55));
	/* A copy has none. */
	check_int(run(w, act_fork, 99), 0);
	check(is_range(w, 0, 10, 55));
	check_int(watchpoint_hits(w), 2);
	watchpoint_disarm(w);
}

static void test_shared(void)
{
	struct smco_err err = {0};
	struct watchpoint *w[WATCH_REGISTERS], *more = NULL;
	struct watch_what data = {
		.addr = (taddr_t)(uintptr_t)&word,
		.bytes = 8,
		.field = {{.bits = 64, .is_signed = true}},
		.nr_fields = 1,
	};
	struct watch_what what = at_site(1);
	check_int(nr_free(HW_BREAKPOINT_X, behind_site), WATCH_REGISTERS);
	w[0] = armed(&what, INT64_MAX);
	w[1] = armed(&data, INT64_MAX);
	what.addr = (taddr_t)(uintptr_t)behind_site;
	w[2] = armed(&what, INT64_MAX);
	data.addr = (taddr_t)(uintptr_t)&other;
	w[3] = armed(&data, INT64_MAX);
	check_int(nr_free(HW_BREAKPOINT_X, behind_site), 0);
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err), SMCO_BUSY);
	puppet_do(&pup, act_write, 33, 0);
	check_int(puppet_do(&pup, act_pass, 44, 1), 45);
	check(is_range(w[0], 0, 44, 44));
	check(is_range(w[1], 0, 33, 33));
	check(is_range(w[2], 0, 45, 45));
	check_int(watchpoint_hits(w[3]), 0);
	for (int i = 0; i < WATCH_REGISTERS; i++)
		watchpoint_disarm(w[i]);
	check_int(nr_free(HW_BREAKPOINT_X, behind_site), WATCH_REGISTERS);
	/* What nothing can be read from. */
	what = at_site(1);
	what.field[0].reg = 16;
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err),
		  SMCO_UNSUPPORTED);
	what = at_site(1);
	what.field[0].bytes = 3;
	check_int(watchpoint_arm(&more, ws, proc, &what, 1, &err),
		  SMCO_UNSUPPORTED);
}

static void test_without_bpf(void)
{
	struct smco_err err = {0};
	struct watchpoint *w = NULL;
	struct watch_what what = at_site(1);
	watchpoints_close(ws);
	ws = NULL;
	if (!check_int(watchpoints_open_without_bpf(&ws, &err), 0))
		return;
	check_int(watchpoint_arm(&w, ws, proc, &what, 1, &err),
		  SMCO_UNSUPPORTED);
	check(!w);
}

int main(void)
{
	struct smco_err err = {0};
	const struct tracer_options opts = {.follow = true,
					    .hold_new_tasks = true};
	if (watchpoints_open(&ws, &err) || !watchpoints_have_bpf(ws)) {
		printf("1..0 # SKIP %s\n", ws ? "no BPF" : err.msg);
		watchpoints_close(ws);
		return 0;
	}
	check_int(tracer_create(&tr, &opts, &err), 0);
	pup = puppet_start();
	proc = traced_attach(tr, pup.pid, &err);
	if (!check(proc != NULL))
		return tap_done();
	tproc_resume_new(proc);
	test_registers();
	test_sources();
	test_expressions();
	test_no_expressions();
	test_limit();
	test_own();
	test_threads();
	test_shared();
	test_without_bpf();
	tracer_destroy(tr);
	check_int(nr_free(HW_BREAKPOINT_X, behind_site), WATCH_REGISTERS);
	watchpoints_close(ws);
	puppet_end(&pup);
	return tap_done();
}
