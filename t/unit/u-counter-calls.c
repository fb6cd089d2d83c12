/*
 * What reading counters takes, in system calls: one for each group of a thread
 * that was on a CPU, none for one that was not, whatever their number; and what
 * the wait for the next reading takes. And that counting those of the program
 * is charged, each of them.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu/open.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define NR_THREADS 12
#define EVENTS                                                                 \
	"task-clock,minor-faults,major-faults,context-switches,"               \
	"cpu-migrations,page-faults:u,alignment-faults,emulation-faults"
/* Beside the readings: what it took us, twice, each 50 ms. */
#define NR_OWN	   2
#define MEASURE_NS (50 * NSEC_PER_MSEC)

/* -------------------------------------------------------- our own calls --- */

static struct counter_plan calls_plan;
static struct counter_thread *calls;

static bool count_calls(void)
{
	struct pmu_event *event = NULL;
	size_t nr;
	int rc = pmu_event_parse_list("raw_syscalls:sys_enter", &event, &nr,
				      NULL);
	if (!rc)
		rc = counter_plan_make(event, nr, false, NULL, &calls_plan,
				       NULL);
	free(event);
	return !rc && !counter_thread_open(&calls_plan, gettid(), COUNTER_NOW,
					   &calls, NULL);
}

/* Since the last call of this. */
static uint64_t nr_calls(void)
{
	struct counter_sum sum;
	counter_thread_take(calls, 0, &sum, NULL);
	return sum.value[0] - 1; /* the one that tells */
}

/* --------------------------------------------------------------- ticks --- */

static void emit(void *ctx, const struct record *r)
{
	(void)ctx, (void)r;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static long nothing(long unused1, long unused2)
{
	return unused1 + unused2;
}

static uint64_t now_ns;

static uint64_t tick_after(struct counters *c, uint64_t ns)
{
	now_ns += ns;
	nr_calls();
	counters_tick(c, now_ns);
	return nr_calls();
}

static uint64_t tick(struct counters *c)
{
	return tick_after(c, MEASURE_NS);
}

/* Until nobody has been on a CPU since the last tick. */
static bool settle(struct counters *c)
{
	for (int i = 0; i < 5000; i++) {
		if (tick(c) == NR_OWN)
			return true;
		usleep(1000);
	}
	return false;
}

/* Of two ticks in a row. */
struct ticks {
	uint64_t first, second;
};

/*
 * Calls of ticks after which @nr of them have done something. One that did
 * before may have had to wait for a CPU until now to go to sleep again: so the
 * least of some, which are to be @want.
 */
static struct ticks least_calls(struct counters *c, struct puppet *pup,
				size_t nr, const struct ticks *want)
{
	struct ticks least = {UINT64_MAX, UINT64_MAX};
	for (int i = 0; i < 100 && (least.first > want->first ||
				    least.second > want->second);
	     i++) {
		check(settle(c));
		for (size_t k = 0; k < nr; k++)
			puppet_do(&pup[k], nothing, 0, 0);
		uint64_t first = tick(c), second = tick(c);
		least.first = first < least.first ? first : least.first;
		least.second = second < least.second ? second : least.second;
	}
	return least;
}

/* Calls of ten ticks 10 ms apart, after which nobody has done anything. */
static uint64_t least_of_ten(struct counters *c)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 100 && least > 2 * NR_OWN; i++) {
		uint64_t sum = 0;
		check(settle(c));
		for (int k = 0; k < 10; k++)
			sum += tick_after(c, MEASURE_NS / 5);
		least = sum < least ? sum : least;
	}
	return least;
}

/* From now on, with all the budget there is. */
static struct counters *start_counting(const char *events, struct ledger *l,
				       bool reads_all)
{
	struct counters *c = NULL;
	now_ns = smco_now_ns();
	const struct counters_params p = {
		.events = events,
		.interval_ns = 10 * NSEC_PER_MSEC,
		.reads_all = reads_all,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = now_ns,
		.emit = emit,
		.put_meta = put_meta,
	};
	check_int(counters_create(&p, l, &c, NULL), 0);
	return c;
}

/* @again: it is not known that who was read had left its CPU. */
static void test_ticks(const char *events, bool again)
{
	static struct puppet pup[NR_THREADS];
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start_counting(events, l, true);
	for (size_t i = 0; i < NR_THREADS; i++) {
		pup[i] = puppet_start();
		counters_add(c, pup[i].pid, pup[i].pid, NULL, COUNTER_NOW);
	}
	for (size_t nr = 0; nr <= NR_THREADS; nr++) {
		const struct ticks want = {NR_OWN + nr,
					   NR_OWN + (again ? nr : 0)};
		struct ticks least = least_calls(c, pup, nr, &want);
		check_int(least.first, want.first);
		check_int(least.second, want.second);
	}
	check_int(least_of_ten(c), 2 * NR_OWN);
	counters_finish(c, now_ns);
	counters_destroy(c);
	ledger_destroy(l);
	for (size_t i = 0; i < NR_THREADS; i++)
		puppet_end(&pup[i]);
}

/* --------------------------------------------------------------- exact --- */

#define NR_BURSTS 200

static long burst(long rounds, long unused)
{
	for (volatile long i = 0; i < rounds; i++)
		;
	return unused;
}

static size_t nr_left(const struct counter_thread *t, size_t nr)
{
	size_t left = 0;
	for (size_t i = 0; i < nr; i++)
		left += counter_thread_peek(t, 0, i) != 0;
	return left;
}

/* The software events; or tracepoints that inherit, with switches among them
 * and others by themselves, whose page tells of both. */
static void plan_for(struct counter_plan *plan, bool inherits)
{
	struct pmu_event *event = NULL, three[3];
	size_t nr;
	if (!inherits) {
		check_int(pmu_event_parse_list(EVENTS, &event, &nr, NULL), 0);
		check_int(counter_plan_make(event, nr, false, NULL, plan, NULL),
			  0);
		free(event);
		return;
	}
	check_int(pmu_event_parse("raw_syscalls:sys_exit", &three[0], NULL), 0);
	check_int(pmu_event_parse("context-switches", &three[1], NULL), 0);
	three[1].is_hidden = true;
	three[2] = three[1];
	three[2].is_with_creator = true;
	check_int(counter_plan_make(three, 3, false, NULL, plan, NULL), 0);
	check(counter_plan_inherit(plan, false));
	check_int(plan->nr_groups, 2);
	check_int(plan->group[0].nr, 2);
}

/* @pid's and ours, so that one runs while the other reads; @all to undo it. */
static void part(pid_t pid, cpu_set_t *all)
{
	cpu_set_t one;
	int cpu = 0;
	sched_getaffinity(0, sizeof(*all), all);
	if (CPU_COUNT(all) < 2)
		return;
	for (int i = 0; i < 2; i++) {
		while (!CPU_ISSET(cpu, all))
			cpu++;
		CPU_ZERO(&one);
		CPU_SET(cpu++, &one);
		sched_setaffinity(i ? pid : 0, sizeof(one), &one);
	}
}

/* Bursts after which something was left; *nr_skipped_ret: there was nothing to
 * take. */
static size_t nr_lacking(struct counter_thread *t, size_t nr,
			 struct puppet *pup, size_t *nr_skipped_ret)
{
	struct counter_sum sum;
	size_t nr_bad = 0;
	for (long i = 0; i < NR_BURSTS; i++) {
		uint64_t until_ns = smco_now_ns() + (uint64_t)i * 10000;
		puppet_begin(pup, burst, 1000 << i % 12, 0);
		while (smco_now_ns() < until_ns)
			if (counter_thread_has_run(t))
				counter_thread_take(t, 0, &sum, NULL);
			else
				++*nr_skipped_ret;
		puppet_wait(pup);
		usleep(1000); /* it waits for the next order */
		/* It may come on a CPU between one question and the next. */
		size_t left = nr_left(t, nr);
		if (!counter_thread_has_run(t))
			nr_bad += left != 0;
	}
	return nr_bad;
}

/*
 * Whatever moment it was read at, coming, running and going: if there is
 * nothing to take now there is nothing that was not taken, but for the moment
 * of going itself: the kernel tells one count after the other, and a hypervisor
 * may take the CPU away meanwhile.
 */
static void test_nothing_is_left(bool inherits)
{
	struct puppet pup = puppet_start();
	struct counter_plan plan;
	struct counter_thread *t = NULL;
	size_t least = SIZE_MAX, nr_skipped = 0;
	cpu_set_t all;
	part(pup.pid, &all);
	plan_for(&plan, inherits);
	size_t nr = plan.group[0].nr;
	check_int(counter_thread_open(&plan, pup.pid, COUNTER_NOW, &t, NULL),
		  0);
	for (int i = 0; i < 5 && least > NR_BURSTS / 20; i++)
		least = min_u64(least, nr_lacking(t, nr, &pup, &nr_skipped));
	check_range((double)least, 0, NR_BURSTS / 20.0);
	check(nr_skipped > 0);
	sched_setaffinity(0, sizeof(all), &all);
	counter_thread_close(t);
	counter_plan_deinit(&plan);
	puppet_end(&pup);
}

/* ------------------------------------------------------------- charges --- */

#define NR_CHARGED 100000

static long make_calls(long nr, long unused)
{
	for (long i = 0; i < nr; i++)
		syscall(SYS_getppid);
	return unused;
}

/* What is charged of a puppet's calls where @event is counted: each something
 * (beside a load 5 ns were measured), and not a millisecond. */
static void test_charged(const char *event)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start_counting(event, l, true);
	counters_add(c, pup.pid, pup.pid, NULL, COUNTER_NOW);
	puppet_do(&pup, make_calls, NR_CHARGED, 0);
	tick(c);
	uint64_t spent_ns = ledger_spent_ns(l, LEDGER_OTHER, COUNTERS_MONITOR);
	check_range((double)spent_ns, NR_CHARGED * 1.0, NR_CHARGED * 1e6);
	counters_finish(c, now_ns);
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

/* ------------------------------------------------------------- a life --- */

/* For a new thread that does nothing; one that @stays ends after its first
 * interval. */
static uint64_t calls_of_life(bool reads_all, bool stays)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start_counting(EVENTS, l, reads_all);
	puppet_do(&pup, nothing, 0, 0);
	while (puppet_state(pup.pid) != 'S')
		usleep(1000);
	nr_calls();
	counters_born(c, pup.pid, pup.pid, NULL, 0);
	now_ns = smco_now_ns() + 20 * NSEC_PER_MSEC;
	if (stays)
		counters_tick(c, now_ns);
	counters_gone(c, pup.pid, now_ns);
	uint64_t ret = nr_calls();
	counters_finish(c, now_ns);
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
	return ret;
}

/* The sanitizer's allocator maps memory for what is as large as a ring. */
#ifdef __SANITIZE_ADDRESS__
#define RING_CALLS 9
#else
#define RING_CALLS 8
#endif

/* What the kernel writes down takes two calls to map its ring and unmap it, one
 * for the number of what leads the group, two each to have it written and to
 * end that, and a reading of what came before; nothing if the thread does not
 * live so long. */
static void test_life(void)
{
	/* What is allocated once. */
	calls_of_life(true, false);
	calls_of_life(false, true);
	uint64_t read = calls_of_life(true, false);
	uint64_t written = calls_of_life(false, false);
	check_range((double)written, 1, (double)read);
	check_range((double)calls_of_life(false, true), (double)written,
		    (double)written + RING_CALLS);
}

/* ---------------------------------------------------------------- waits --- */

/* What a wait until @until_ns takes, 0 if it did not end by itself. */
static uint64_t calls_of_wait(struct tracer *tr, uint64_t until_ns)
{
	struct tevent ev;
	nr_calls();
	int rc = tracer_next(tr, until_ns, &ev);
	uint64_t nr = nr_calls();
	return rc > 0 && ev.kind == TEV_NONE ? nr : 0;
}

/* The timer is set, the wait begins, its signal ends it. That a deadline has
 * passed needs no second look. Where we got no CPU in time the deadline is
 * over before, or its signal comes more than once: so one of some. */
static void test_wait(struct tracer *tr)
{
	uint64_t nr = 0;
	for (int i = 0; i < 500 && nr != 3; i++)
		nr = calls_of_wait(tr, smco_now_ns() + 5 * NSEC_PER_MSEC);
	check_int(nr, 3);
}

/* One that ends 10 ms after the last one has its timer set already; it ends at
 * the right time. */
static void test_next_wait(struct tracer *tr)
{
	uint64_t until_ns = 0, nr = 0;
	for (int i = 0; i < 500 && nr != 2; i++) {
		uint64_t now = smco_now_ns();
		if (until_ns + 9 * NSEC_PER_MSEC < now)
			until_ns = now;
		until_ns += 10 * NSEC_PER_MSEC;
		nr = calls_of_wait(tr, until_ns);
		check(!nr || smco_now_ns() >= until_ns);
	}
	check_int(nr, 2);
}

static void test_waits(void)
{
	struct puppet pup = puppet_start();
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check(p != NULL))
		exit(2);
	tproc_resume_new(p);
	test_wait(tr);
	test_next_wait(tr);
	test_wait(tr);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
}

/* How many events beside @events their threads' children inherit. */
static unsigned beside(const char *events)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start_counting(events, l, false);
	unsigned nr = 0;
	for (size_t i = 0; c && i < c->plan.nr_events; i++)
		nr += c->plan.event[i].is_with_creator;
	counters_destroy(c);
	ledger_destroy(l);
	return nr;
}

/* Each kind of event that a child inherits is an allocation more. */
static void test_allocations(void)
{
	struct pmu_event ev;
	if (pmu_event_parse("kmem:kmalloc", &ev, NULL) || pmu_try(&ev, NULL))
		return;
	check_int(beside("sched:sched_wakeup_new"), 1);
	check_int(beside("kmem:kmalloc"), 0);
	check_int(beside("sched:sched_wakeup_new,kmem:kfree"), 0);
}

int main(void)
{
	if (!count_calls()) {
		tap_skip("no tracepoint of system calls here");
		test_allocations();
		return tap_done();
	}
	test_ticks(EVENTS, false);
	/* The switches are not the first of them. */
	test_ticks("page-faults,context-switches", false);
	test_ticks("task-clock,minor-faults", false);
	/* The switches that only the ledger wants are told without one; others
	 * that go along tell that one had left its CPU. */
	test_ticks("raw_syscalls:sys_exit", false);
	test_nothing_is_left(false);
	test_nothing_is_left(true);
	test_charged("raw_syscalls:sys_enter");
	test_charged("syscalls-wait"); /* of which there is none */
	test_charged("raw_syscalls:sys_exit");
	test_life();
	test_waits();
	counter_thread_close(calls);
	counter_plan_deinit(&calls_plan);
	test_allocations();
	return tap_done();
}
