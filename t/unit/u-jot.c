/*
 * What the kernel writes down of counts by itself: records that are told of it
 * long after, without a reading, say together what a reading of the events says
 * in the end, and follow each other. Of processes that sleep, spin, touch
 * memory, fork, make threads, end.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "pmu/open.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "supervisor/probe/jot.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#include "pmu/counter-private.h"

#define EVENTS                                                                 \
	"task-clock,minor-faults,major-faults,context-switches,"               \
	"cpu-migrations,page-faults:u,alignment-faults,emulation-faults"
#define NR_EVENTS   8
#define INTERVAL_NS (10 * NSEC_PER_MSEC)

/* ------------------------------------------------------------- records --- */

struct told {
	uint64_t nr, nr_wrong; /* records; those that begin before the last */
	uint64_t begin_ns;     /* of the first since this was 0 */
	uint64_t end_ns;
	struct counter_sum sum;
};

static struct told told[2]; /* of two threads */
static uint32_t tids[2];
static uint32_t only_group = UINT32_MAX; /* of records that are told */
static uint64_t start_ns;

static void emit(void *ctx, const struct record *r)
{
	const struct ev_counts *ev = r->payload;
	(void)ctx;
	for (size_t i = 0; i < 2; i++) {
		struct told *t = &told[i];
		if (r->event != EV_COUNTS || r->tid != tids[i] ||
		    (only_group != UINT32_MAX && r->param != only_group))
			continue;
		t->nr++;
		t->nr_wrong += r->time_ns < t->end_ns + ev->length_ns ||
			       !ev->length_ns;
		t->end_ns = r->time_ns;
		if (!t->begin_ns)
			t->begin_ns = r->time_ns - ev->length_ns;
		t->sum.enabled_ns += ev->enabled_ns;
		for (size_t k = 0; k < NR_EVENTS; k++)
			t->sum.value[k] += ev->value[k];
	}
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static struct thread *thread_of(struct counters *c, pid_t tid)
{
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			if (t->tid == tid)
				return t;
	return NULL;
}

static uint64_t no_stops(const void *task)
{
	return task ? 1 : 0;
}

static struct counters *start(const char *events, struct ledger *l)
{
	struct counters *c = NULL;
	start_ns = smco_now_ns() - INTERVAL_NS;
	const struct counters_params p = {
		.events = events,
		.follows = true,
		.interval_ns = INTERVAL_NS,
		.nr_stops = no_stops,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = start_ns,
		.emit = emit,
		.put_meta = put_meta,
	};
	memset(told, 0, sizeof(told));
	check_int(counters_create(&p, l, &c, NULL), 0);
	return c;
}

/* ------------------------------------------------------- what they do --- */

static long spin(long ms, long unused)
{
	uint64_t until_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) +
			    (uint64_t)ms * NSEC_PER_MSEC;
	while (smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
	return unused;
}

static long doze(long times, long us)
{
	for (long i = 0; i < times; i++)
		usleep((useconds_t)us);
	return 0;
}

static long touch(long pages, long unused)
{
	char *at = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < pages; i++)
		at[i * 4096] = 1;
	munmap(at, (size_t)pages * 4096);
	return unused;
}

static long fork_some(long nr, long unused)
{
	for (long i = 0; i < nr; i++) {
		pid_t pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return unused;
}

static void *thread_does(void *arg)
{
	touch(3, 0);
	return arg;
}

static long make_threads(long nr, long unused)
{
	for (long i = 0; i < nr; i++) {
		pthread_t t;
		if (!pthread_create(&t, NULL, thread_does, NULL))
			pthread_join(t, NULL);
	}
	return unused;
}

/* It waits for its next order. */
static void settle(const struct puppet *p)
{
	while (puppet_state(p->pid) != 'S')
		usleep(1000);
}

/* One that waits, the first of those that records are told of. */
static struct puppet told_of(void)
{
	struct puppet p = puppet_start();
	tids[0] = (uint32_t)p.pid;
	settle(&p);
	return p;
}

/* And is counted. */
static struct puppet watched(struct counters *c)
{
	struct puppet p = told_of();
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	check(counters_jots_all(c));
	return p;
}

/* Where what the kernel's program knows of threads is mapped. */
static struct jot_slot *find_slots(void)
{
	static const size_t bytes = JOT_MAX_THREADS * sizeof(struct jot_slot);
	char line[512];
	struct jot_slot *ret = NULL;
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t start, end;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " rw-s", &start,
			   &end) == 2 &&
		    end - start == bytes && strstr(line, "bpf-map"))
			ret = (struct jot_slot *)(uintptr_t)start;
	}
	if (f)
		fclose(f);
	return ret;
}

static void end(struct counters *c, struct ledger *l, struct puppet *p)
{
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(p);
}

/* What was written down by now is in records, for all intervals are over. */
static void drain(struct counters *c)
{
	usleep(130000);
	counters_tick(c, smco_now_ns());
}

/* The records say what the events do. */
static void check_sums(struct counters *c, const struct puppet *p, bool to_end)
{
	struct counter_reading now;
	struct thread *t = thread_of(c, p->pid);
	if (!check(t != NULL) ||
	    !check_int(counter_read_group(&t->counters->open[0], &now), 1))
		return;
	/* The clock, in units, may have one left. */
	if (to_end)
		check(now.value[0] - told[0].sum.value[0] < 2 * COUNTS_UNIT_NS);
	else
		check(told[0].sum.value[0] <= now.value[0]);
	for (size_t i = 1; i < NR_EVENTS; i++)
		check_int(told[0].sum.value[i], now.value[i]);
}

static void test_sums(void)
{
	static const struct {
		puppet_fn fn;
		long a, b;
		uint64_t least; /* records */
	} does[] = {
		{touch, 70, 0, 1},   {spin, 60, 0, 4},
		{doze, 8, 7000, 4},  {touch, 5, 0, 1},
		{doze, 300, 100, 2}, {fork_some, 5, 0, 1},
		{spin, 1, 0, 1},     {make_threads, 5, 0, 1},
		{doze, 1, 50000, 1},
	};
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(EVENTS, l);
	struct puppet p = watched(c);
	/* From here on it is known when it was on no CPU. */
	puppet_do(&p, touch, 5, 0);
	settle(&p);
	drain(c);
	for (size_t i = 0; i < ARRAY_SIZE(does); i++) {
		uint64_t before = told[0].nr;
		usleep(2 * INTERVAL_NS / NSEC_PER_USEC);
		uint64_t now_ns = smco_now_ns() - start_ns;
		told[0].begin_ns = 0;
		puppet_do(&p, does[i].fn, does[i].a, does[i].b);
		settle(&p);
		drain(c);
		check(told[0].nr >= before + does[i].least);
		/* Nothing was counted while it waited. */
		check(told[0].begin_ns >= now_ns - now_ns % INTERVAL_NS);
		check_sums(c, &p, false);
	}
	/* Nobody does anything. */
	uint64_t nr = told[0].nr, nr_readings = c->nr_readings;
	drain(c);
	drain(c);
	check_int(told[0].nr, nr);
	check_int(c->nr_readings, nr_readings);
	/* What switches cost more with counters, and what was written down. */
	const struct thread *costs = thread_of(c, p.pid);
	check(costs->cost_ns > 0);
	check_int(ledger_spent_ns(l, LEDGER_OTHER, COUNTERS_MONITOR),
		  costs->cost_ns + costs->nr_charged * c->switch_ns);
	/* The last of it is a reading. */
	puppet_do(&p, touch, 20, 0);
	settle(&p);
	struct thread *t = thread_of(c, p.pid);
	struct counter_reading now;
	check_int(counter_read_group(&t->counters->open[0], &now), 1);
	counters_finish(c, smco_now_ns());
	check(now.value[0] - told[0].sum.value[0] < 2 * COUNTS_UNIT_NS);
	for (size_t i = 1; i < NR_EVENTS; i++)
		check_int(told[0].sum.value[i], now.value[i]);
	check(now.enabled_ns - told[0].sum.enabled_ns < 2 * COUNTS_UNIT_NS);
	check_int(told[0].nr_wrong, 0);
	end(c, l, &p);
}

/*
 * One that comes to its CPU without anybody being told: not each switch from a
 * thread that the kernel hides is seen. It comes from where nothing is to be
 * read, and from where it left without its counts being written down.
 */
static void test_unseen(void)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(EVENTS, l);
	struct puppet p = watched(c);
	volatile struct jot_slot *slots = find_slots();
	puppet_do(&p, touch, 5, 0);
	settle(&p);
	drain(c);
	for (int i = 0; check(slots != NULL) && i < 8; i++) {
		volatile struct jot_slot *s = &slots[thread_of(c, p.pid)->slot];
		puppet_do(&p, doze, i % 2 ? 300 : 1, i % 2 ? 100 : 1);
		settle(&p);
		drain(c);
		usleep(2 * INTERVAL_NS / NSEC_PER_USEC);
		const struct jot_slot slept = *s;
		uint64_t now_ns = smco_now_ns() - start_ns;
		told[0].begin_ns = 0;
		puppet_begin(&p, spin, 30, 0);
		while (s->arrived_ns == slept.arrived_ns &&
		       s->left_ns == slept.left_ns)
			;
		s->arrived_ns = slept.arrived_ns;
		s->first_ns = slept.first_ns;
		puppet_wait(&p);
		settle(&p);
		drain(c);
		check(told[0].begin_ns >= now_ns - now_ns % INTERVAL_NS);
		check_sums(c, &p, false);
	}
	check_int(told[0].nr_wrong, 0);
	end(c, l, &p);
}

/* One that ends, beside one that goes on; another counter of each is read. */
static void test_end(void)
{
	struct pmu_event *event = NULL;
	struct counter_plan plan;
	struct counter_thread *beside[2];
	struct puppet p[2];
	struct counter_sum sum;
	size_t nr;
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(EVENTS, l);
	check_int(pmu_event_parse_list(EVENTS, &event, &nr, NULL), 0);
	check_int(counter_plan_make(event, nr, false, NULL, &plan, NULL), 0);
	free(event);
	for (size_t i = 0; i < 2; i++) {
		p[i] = puppet_start();
		tids[i] = (uint32_t)p[i].pid;
		settle(&p[i]);
		counters_add(c, p[i].pid, p[i].pid, NULL, COUNTER_NOW);
		check_int(counter_thread_open(&plan, p[i].pid, COUNTER_NOW,
					      &beside[i], NULL),
			  0);
	}
	for (int i = 0; i < 5; i++) {
		puppet_begin(&p[0], doze, 20, 1000);
		puppet_do(&p[1], touch, 11, 0);
		puppet_wait(&p[0]);
		drain(c);
	}
	/* Intervals that nobody has asked for until it has ended. */
	uint64_t before = told[0].nr;
	puppet_do(&p[0], doze, 6, 15000);
	puppet_end(&p[0]);
	counters_gone(c, p[0].pid, smco_now_ns());
	check(told[0].nr >= before + 4);
	settle(&p[1]);
	counters_gone(c, p[1].pid, smco_now_ns());
	for (size_t i = 0; i < 2; i++) {
		counter_thread_take(beside[i], 0, &sum, NULL);
		for (size_t k = 1; k < NR_EVENTS; k++)
			check_int(told[i].sum.value[k], sum.value[k]);
		check_int(told[i].nr_wrong, 0);
		counter_thread_close(beside[i]);
	}
	puppet_end(&p[1]);
	counter_plan_deinit(&plan);
	counters_destroy(c);
	ledger_destroy(l);
}

/* A new one is read at the end of its first interval, and not after that. */
static void test_new(void)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(EVENTS, l);
	struct puppet p = told_of();
	counters_born(c, p.pid, p.pid, NULL, 0);
	struct thread *t = thread_of(c, p.pid);
	check(t->slot < 0 && counters_jots_all(c));
	check(counters_due_ns(c) <= smco_now_ns() + INTERVAL_NS);
	puppet_do(&p, touch, 10, 0);
	settle(&p);
	usleep(INTERVAL_NS / NSEC_PER_USEC);
	counters_tick(c, smco_now_ns());
	check(t->slot >= 0);
	check(told[0].nr == 1 && told[0].sum.value[1] >= 10);
	uint64_t before = told[0].sum.value[1];
	puppet_do(&p, touch, 50, 0);
	puppet_do(&p, doze, 3, 15000);
	settle(&p);
	drain(c);
	check(told[0].nr >= 4 && told[0].sum.value[1] >= before + 50);
	for (size_t i = 1; i < NR_EVENTS; i++)
		check_int(counter_thread_peek(t->counters, 0, i), 0);
	check_int(told[0].nr_wrong, 0);
	end(c, l, &p);
}

/* Tracepoints, in two groups, one of which is hidden. */
static void test_groups(void)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c =
		start("{raw_syscalls:sys_enter:u,context-switches}", l);
	struct puppet p = watched(c);
	puppet_do(&p, doze, 30, 500);
	settle(&p);
	drain(c);
	/* Each a call and a switch, those of the order beside. */
	check(told[0].sum.value[0] + told[0].sum.value[1] >= 30);
	check_int(told[0].nr_wrong, 0);
	end(c, l, &p);
}

/*
 * Events that inherit, which the kernel lets nobody have in a ring: what is
 * read where they count is what a reading says. What a new task has done before
 * it stood is its creator's, once; from then on it counts for itself.
 */
#define TRACED                                                                 \
	"{context-switches,syscalls:sys_exit_getppid,"                         \
	"sched:sched_process_fork},minor-faults"
enum { SWITCHES, CALLS, FORKS, NR_TRACED };

static long call_some(long nr, long unused)
{
	for (long i = 0; i < nr; i++)
		syscall(SYS_getppid);
	return unused;
}

/* Children that nobody is told of. */
static long fork_callers(long nr, long calls)
{
	for (long i = 0; i < nr; i++) {
		pid_t pid = fork();
		if (!pid) {
			call_some(calls, 0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}

/* A child that calls so often, stands still, goes on as often and waits. */
static long fork_one(long calls, long again)
{
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		call_some(calls, 0);
		raise(SIGSTOP);
		call_some(again, 0);
		doze(3, 15000);
		pause();
	}
	return pid;
}

/* The group's events say what the records do; all of the latter is told. */
static void check_traced(struct counters *c, pid_t pid, const struct told *has,
			 const uint64_t *before)
{
	struct counter_reading now;
	const struct counter_thread *t = thread_of(c, pid)->counters;
	check(t->open[0].group == 0 && t->plan->group[0].is_direct);
	check_int(counter_read_group(&t->open[0], &now), 1);
	for (size_t i = 0; i < NR_TRACED; i++)
		check_int(has->sum.value[i], before[i] + now.value[i]);
	/* A new group's time begins anew. */
	check(t->open[0].last.enabled_ns <= now.enabled_ns);
}

static void await(pid_t pid, char state)
{
	while (puppet_state(pid) != state)
		usleep(1000);
}

static void test_inherited(void)
{
	static const uint64_t none[NR_TRACED];
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(TRACED, l);
	struct puppet p = told_of();
	only_group = 0;
	check(c->inherits);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	check(counters_jots_all(c));
	struct thread *t = thread_of(c, p.pid);
	uint64_t nr_readings = c->nr_readings;
	puppet_do(&p, call_some, 1000, 0);
	puppet_do(&p, doze, 4, 15000);
	puppet_do(&p, fork_callers, 3, 50);
	puppet_do(&p, doze, 2, 15000);
	settle(&p);
	drain(c);
	check(told[0].nr >= 5);
	check_int(told[0].sum.value[CALLS], 1000 + 3 * 50);
	check_int(told[0].sum.value[FORKS], 3);
	check_traced(c, p.pid, &told[0], none);
	check_int(c->nr_readings, nr_readings);
	/* One that is told of. */
	pid_t child = (pid_t)puppet_do(&p, fork_one, 7, 5);
	await(child, 'T');
	settle(&p);
	tids[1] = (uint32_t)child;
	counters_born(c, child, child, NULL, p.pid);
	const uint64_t before[NR_TRACED] = {
		told[0].sum.value[SWITCHES] + t->pending[0].sum.value[SWITCHES],
		1157, 4};
	check_int(told[0].sum.value[CALLS] + t->pending[0].sum.value[CALLS],
		  before[CALLS]);
	counters_tick(c, smco_now_ns() + 2 * INTERVAL_NS);
	check(counters_jots_all(c));
	nr_readings = c->nr_readings;
	kill(child, SIGCONT);
	puppet_do(&p, call_some, 20, 0);
	puppet_do(&p, doze, 3, 15000);
	await(child, 'S');
	settle(&p);
	drain(c);
	check_int(told[0].sum.value[CALLS], 1177);
	check_traced(c, p.pid, &told[0], before);
	check_int(told[1].sum.value[CALLS], 5);
	check_traced(c, child, &told[1], none);
	check_int(c->nr_readings, nr_readings);
	kill(child, SIGKILL);
	counters_finish(c, smco_now_ns());
	check(told[0].sum.enabled_ns > 0 &&
	      told[0].sum.enabled_ns < smco_now_ns() - start_ns);
	check_int(told[0].nr_wrong + told[1].nr_wrong, 0);
	only_group = UINT32_MAX;
	end(c, l, &p);
}

/* The time stamp counter, where there is one to be had. */
static void test_tsc(void)
{
	struct ledger *l;
	struct counter_reading now;
	struct pmu_event ev;
	if (pmu_event_parse("msr/tsc/", &ev, NULL) || pmu_try(&ev, NULL))
		return;
	l = ledger_create(INT64_MAX);
	struct counters *c = start("minor-faults,msr/tsc/", l);
	struct puppet p = watched(c);
	puppet_do(&p, spin, 40, 0);
	puppet_do(&p, touch, 30, 0);
	settle(&p);
	uint64_t nr_readings = c->nr_readings;
	drain(c);
	check(told[0].nr >= 3);
	check(told[0].sum.value[1] > 0);
	/* What came too often to be written down. */
	check(c->nr_readings <= nr_readings + 1);
	struct thread *t = thread_of(c, p.pid);
	check_int(counter_read_group(&t->counters->open[0], &now), 1);
	counters_finish(c, smco_now_ns());
	check_int(told[0].sum.value[0], now.value[0]);
	check(now.value[1] - told[0].sum.value[1] < 2 * COUNTS_UNIT_NS);
	end(c, l, &p);
}

/* Nobody takes the CPU from one that runs on, if that is permitted. */
static void run_on(bool begin)
{
	const struct sched_param prio = {.sched_priority = begin};
	sched_setscheduler(0, begin ? SCHED_FIFO : SCHED_OTHER, &prio);
}

/* One that runs on is seen in the tick. */
static void test_runs_on(void)
{
	struct pmu_event event;
	struct counter_plan plan;
	struct counter_thread *self;
	struct jot *j = NULL;
	struct counter_sum sum;
	struct jot_note note = {.leaves = 1};
	int fd[COUNTER_MAX_GROUPS];
	size_t group;
	check_int(pmu_event_parse("page-faults", &event, NULL), 0);
	check_int(counter_plan_make(&event, 1, false, NULL, &plan, NULL), 0);
	check(counter_plan_jot(&plan));
	check_int(
		counter_thread_open(&plan, gettid(), COUNTER_NOW, &self, NULL),
		0);
	check_int(jot_open(smco_now_ns(), INTERVAL_NS, NULL, &j, NULL), 0);
	check_int(counter_thread_make_room(self, NULL), 0);
	check_int(counter_thread_leaders(self, fd), 1);
	const struct jot_events events = {
		.ring = fd, .nr_rings = 1, .place = -1};
	int slot = jot_add(j, gettid(), &events, NULL);
	check(slot >= 0);
	for (int i = 0; i < 100 && note.leaves; i++) {
		run_on(true);
		spin(20, 0);
		run_on(false);
		while (note.leaves &&
		       counter_thread_next_jotted(self, &group, &sum, &note,
						  sizeof(note)))
			;
	}
	check_int(note.leaves, 0);
	check(note.at_ns > note.first_ns);
	jot_remove(j, slot, gettid());
	jot_close(j);
	counter_thread_close(self);
	counter_plan_deinit(&plan);
}

int main(void)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct counters *c = start(EVENTS, l);
	bool can = counters_jots_all(c);
	counters_destroy(c);
	ledger_destroy(l);
	if (!can) {
		tap_skip("the kernel lets us not write counts down here");
		return tap_done();
	}
	test_sums();
	test_unseen();
	test_end();
	test_new();
	test_groups();
	test_inherited();
	test_tsc();
	test_runs_on();
	return tap_done();
}
