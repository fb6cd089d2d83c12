/*
 * What counting takes is no time of the program's: in records of groups that
 * go by what a thread gets done, and of no others.
 */
#include <unistd.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#define CALLS	"raw_syscalls:sys_enter"
#define MS	NSEC_PER_MSEC
#define BARE_NS 100

static struct ev_counts last[COUNTER_MAX_GROUPS];
static size_t nr_records;

static void emit(void *ctx, const struct record *r)
{
	(void)ctx;
	memcpy(&last[r->param], r->payload, sizeof(last[0]));
	nr_records++;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static void test_without(void)
{
	static const struct {
		uint64_t enabled, running, cost, unit, off;
	} c[] = {
		{1000, 400, 300, 1, 300},      {1000, 400, 300, 128, 256},
		{1000, 400, 0, 1, 0},	       {1000, 400, 394, 1, 394},
		{1000, 400, 395, 1, 394},      {1000, 400, UINT64_MAX, 1, 394},
		{1000, 0, 300, 1, 0},	       {400, 400, 300, 1, 300},
		{1000, 63, UINT64_MAX, 1, 63},
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t enabled = c[i].enabled, running = c[i].running;
		check_int(counter_without(&enabled, &running, c[i].cost,
					  c[i].unit),
			  c[i].off);
		check_int(enabled, c[i].enabled - c[i].off);
		check_int(running, c[i].running - c[i].off);
	}
	/* 100 calls in 400, 300 of which counting took: one each unit. */
	uint64_t enabled = 1000, running = 400;
	counter_without(&enabled, &running, 300, 1);
	check_int(counter_scale(100, enabled, running), 700);
}

static struct counters *start_with(const char *events, int64_t target_ppb,
				   bool by_events, struct ledger *l, pid_t pid)
{
	struct counters *c = NULL;
	const struct counters_params p = {
		.events = events,
		.interval_ns = NSEC_PER_SEC,
		.reads_all = true,
		.by_events = by_events,
		.target_overhead_ppb = target_ppb,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	check_int(counters_create(&p, l, &c, NULL), 0);
	counters_add(c, pid, pid, NULL, COUNTER_NOW);
	c->call_ns = 2000;
	c->cheap_ns = counters_has_cheap(c) ? 100 : 2000;
	c->bare_ns = BARE_NS;
	c->idle_ns = 0;
	return c;
}

static struct counters *start(const char *events, int64_t target_ppb,
			      struct ledger *l, pid_t pid)
{
	return start_with(events, target_ppb, true, l, pid);
}

/* Which group has event @name; its place there. */
static size_t group_of(const struct counters *c, const char *name,
		       size_t *place_ret)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++) {
			size_t nr = c->plan.group[g].first + i;
			*place_ret = i;
			if (!strcmp(c->plan.event[nr].name, name))
				return g;
		}
	check(!"there");
	return 0;
}

static void settle(struct counters *c, struct thread *t, size_t group,
		   uint64_t counted_ns, size_t place, uint64_t nr)
{
	struct counter_sum sum = {10 * MS, counted_ns, {0}};
	sum.value[place] = nr;
	counters_settle(c, t, group, &sum);
}

static void write_all(struct counters *c, struct thread *t)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		counters_write_group(c, t, g, smco_now_ns());
}

/* @group's record: what of 10 ms is left, and missed. */
#define check_times(group, enabled, missed)                                    \
	do {                                                                   \
		check_int(last[group].enabled_ns,                              \
			  in_units(enabled, COUNTS_UNIT_NS));                  \
		check_int(last[group].missed_ns,                               \
			  in_units(missed, COUNTS_UNIT_NS));                   \
	} while (0)

static uint64_t spent_ns(const struct ledger *l)
{
	return ledger_spent_ns(l, LEDGER_OTHER, COUNTERS_MONITOR);
}

/* Where calls are counted by themselves for a while their time is known, and so
 * is what it costs to count all. */
static void test_cheap(void)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(10000000);
	struct counters *c = start("os", 10000000, l, pup.pid);
	struct thread *t = c->hash[(unsigned)pup.pid % COUNTERS_HASH];
	size_t call, class;
	size_t calls = group_of(c, CALLS, &call),
	       classes = group_of(c, "syscalls-io", &class);
	check(calls != classes);
	check(counters_has_cheap(c));
	/* 20000 in 6.4 ms, of which 2 are for counting. */
	c->level = COUNTER_CHEAP;
	settle(c, t, calls, 64 * MS / 10, call, 20000);
	settle(c, t, classes, 0, class, 0);
	write_all(c, t);
	check_int(spent_ns(l), 2 * MS);
	check_int(t->calm_ns, 44 * MS / 10);
	check_int(t->nr_calm, 20000);
	check_times(calls, 8 * MS, 36 * MS / 10);
	check_times(classes, 8 * MS, 8 * MS);
	/* 220 ns each, so these are 0.44 of 6.4 ms, whatever their price. */
	c->level = COUNTER_ALL;
	settle(c, t, calls, 64 * MS / 10, call, 2000);
	settle(c, t, classes, 64 * MS / 10, class, 2000);
	write_all(c, t);
	check_int(spent_ns(l), 6 * MS);
	check_int(t->nr_calm, 20000);
	check_times(calls, 404 * MS / 100, 36 * MS / 10);
	check_times(classes, 404 * MS / 100, 36 * MS / 10);
	check_int(last[classes].value[class], 2000);
	/* Half, or three times the price. */
	settle(c, t, calls, 9 * MS, call, 1000);
	settle(c, t, classes, 9 * MS, class, 1000);
	write_all(c, t);
	check_times(classes, 4 * MS, MS);
	settle(c, t, calls, 23 * MS / 10, call, 2000);
	settle(c, t, classes, 23 * MS / 10, class, 2000);
	write_all(c, t);
	check_times(classes, 8 * MS, 77 * MS / 10);
	/* Nor less than calls take that do nothing. */
	settle(c, t, calls, 2 * MS, call, 3000);
	settle(c, t, classes, 2 * MS, class, 3000);
	write_all(c, t);
	check_times(classes, 83 * MS / 10, 8 * MS);
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

/* Calls that are long have the price that was measured; and while it pauses
 * each costs a little all the same. */
static void test_long_calls(void)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(10000000);
	struct counters *c = start("os", 10000000, l, pup.pid);
	struct thread *t = c->hash[(unsigned)pup.pid % COUNTERS_HASH];
	size_t call, class;
	size_t calls = group_of(c, CALLS, &call),
	       classes = group_of(c, "syscalls-io", &class);
	c->idle_ns = 10;
	c->level = COUNTER_CHEAP;
	settle(c, t, calls, 41 * MS / 10, call, 1000);
	check_int(t->calm_ns, 4 * MS);
	/* 1475 calls in the 5.9 ms that were not seen. */
	check_int(spent_ns(l), 100000 + 10000 + 14750);
	check_int(c->unseen_cost_ns, 10000 + 14750);
	settle(c, t, classes, 0, class, 0);
	write_all(c, t);
	c->level = COUNTER_ALL;
	settle(c, t, calls, 6 * MS, call, 1000);
	settle(c, t, classes, 6 * MS, class, 1000);
	write_all(c, t);
	check_times(classes, 8 * MS, 4 * MS);
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

/* 10 ms of @c's thread, of which @counted_ms are counted, with @nr calls in
 * them; the records. */
static void interval(struct counters *c, struct thread *t, uint64_t counted_ms,
		     uint64_t nr)
{
	size_t place;
	size_t calls = group_of(c, CALLS, &place);
	nr_records = 0;
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		struct counter_sum sum = {10 * MS, counted_ms * MS, {0}};
		if (g == calls)
			sum.value[place] = nr;
		counters_settle(c, t, g, &sum);
	}
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		counters_write_group(c, t, g, smco_now_ns());
}

static void test_records(const char *events, int64_t target_ppb, bool off)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(target_ppb);
	struct counters *c = start(events, target_ppb, l, pup.pid);
	struct thread *t = c->hash[(unsigned)pup.pid % COUNTERS_HASH];
	size_t call, unused;
	size_t calls = group_of(c, CALLS, &call),
	       clock = group_of(c, "task-clock", &unused);
	uint64_t cost = off ? 2 * MS : 0;
	interval(c, t, 6, 1000);
	check_int(nr_records, c->plan.nr_groups);
	check_int(last[calls].enabled_ns, 10 * MS - cost);
	check_int(last[calls].missed_ns, 4 * MS);
	check_int(last[clock].enabled_ns, 10 * MS);
	check_int(last[clock].missed_ns, 4 * MS);
	check_int(last[calls].value[call], 1000);
	/* None was counted: nothing is to be taken off. */
	interval(c, t, 0, 0);
	check_int(last[calls].enabled_ns, 10 * MS);
	check_int(last[calls].missed_ns, 10 * MS);
	/* The calls themselves take some of it, whatever counting costs. */
	interval(c, t, 1, 1000);
	cost = off ? MS - 1000 * BARE_NS : 0;
	check_int(last[calls].enabled_ns, 10 * MS - cost);
	check_int(last[calls].missed_ns, 9 * MS);
	/* Only as much as there is; the rest later. */
	c->bare_ns = 0;
	interval(c, t, 1, 1000);
	cost = off ? in_units(MS - MS / 64, COUNTS_UNIT_NS) : 0;
	check_int(last[calls].enabled_ns, 10 * MS - cost);
	interval(c, t, 6, 0);
	cost = off ? 2 * MS - cost : 0;
	check_int(last[calls].enabled_ns, 10 * MS - cost);
	check_int(last[calls].missed_ns, 4 * MS);
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

/* What BPF counts besides calls costs what a call does, whenever it comes;
 * where events count it, what was measured of those. */
static void test_hits(bool by_events)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(10000000);
	struct counters *c = start_with("task-clock,net:net_dev_queue," CALLS,
					10000000, by_events, l, pup.pid);
	struct thread *t = c->hash[(unsigned)pup.pid % COUNTERS_HASH];
	bool by_bpf = c->tally; /* where BPF may */
	uint64_t cost_ns = by_bpf ? 70000 : 300000;
	size_t hit, unused;
	check(!by_events || !by_bpf);
	size_t hits = group_of(c, "net:net_dev_queue", &hit),
	       clock = group_of(c, "task-clock", &unused);
	check_int(c->plan.event[c->plan.group[hits].first + hit].is_hit,
		  by_bpf);
	c->cheap_ns = 70;
	c->hit_ns = 300;
	settle(c, t, hits, 10 * MS, hit, 1000);
	check_int(spent_ns(l), cost_ns);
	settle(c, t, clock, 10 * MS, unused, 10 * MS);
	check_int(spent_ns(l), cost_ns);
	check_int(t->counting_ns, cost_ns);
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

/* Of readings that are not measured each is charged as the next one that is,
 * but no more than the last one before them. */
static void test_readings(void)
{
	struct puppet pup = puppet_start();
	struct ledger *l = ledger_create(10000000);
	struct counters *c = start("minor-faults", 10000000, l, pup.pid);
	uint64_t before = spent_ns(l);
	c->own_read_ns = 0;
	c->measure_ns = 0;
	c->nr_unmeasured = 4;
	c->measured_ns = UINT64_MAX;
	counters_tick(c, c->due_ns);
	uint64_t one_ns = c->measured_ns;
	check(one_ns > 0 && one_ns < UINT64_MAX);
	check_int(c->nr_unmeasured, 0);
	check_int(spent_ns(l) - before, 5 * one_ns);
	check_int(c->reading_ns, 5 * one_ns);
	before = spent_ns(l);
	c->measure_ns = 0;
	c->nr_unmeasured = 4;
	c->measured_ns = 1;
	counters_tick(c, c->due_ns);
	check_int(spent_ns(l) - before, c->measured_ns + 4);
	/* What a reading takes by itself disturbs nobody. */
	before = spent_ns(l);
	c->own_read_ns = NSEC_PER_SEC;
	c->measure_ns = 0;
	counters_tick(c, c->due_ns);
	check_int(c->measured_ns, 0);
	check_int(spent_ns(l), before);
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

int main(void)
{
	struct pmu_event ev;
	test_without();
	if (pmu_event_parse(CALLS, &ev, NULL)) {
		tap_skip("no tracepoint of system calls here");
		return tap_done();
	}
	test_records("task-clock," CALLS, 100000000, true);
	test_records("os", 100000000, true);
	test_cheap();
	test_long_calls();
	test_hits(false);
	test_hits(true);
	test_readings();
	test_records("task-clock," CALLS, INT64_MAX, false);
	/* Who wants both over the same time has one time for both. */
	test_records("{task-clock," CALLS "}", 100000000, false);
	return tap_done();
}
