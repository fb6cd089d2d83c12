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
		{1000, 400, 0, 1, 0},	       {1000, 400, 375, 1, 375},
		{1000, 400, 376, 1, 375},      {1000, 400, UINT64_MAX, 1, 375},
		{1000, 0, 300, 1, 0},	       {400, 400, 300, 1, 300},
		{1000, 15, UINT64_MAX, 1, 15},
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

static struct counters *start(const char *events, int64_t target_ppb,
			      struct ledger *l, pid_t pid)
{
	struct counters *c = NULL;
	const struct counters_params p = {
		.events = events,
		.interval_ns = NSEC_PER_SEC,
		.reads_all = true,
		.target_overhead_ppb = target_ppb,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	check_int(counters_create(&p, l, &c, NULL), 0);
	counters_add(c, pid, pid, NULL, COUNTER_NOW);
	c->call_ns = 2000;
	c->bare_ns = BARE_NS;
	return c;
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
	size_t unused;
	size_t calls = group_of(c, CALLS, &unused),
	       clock = group_of(c, "task-clock", &unused);
	uint64_t cost = off ? 2 * MS : 0;
	interval(c, t, 6, 1000);
	check_int(nr_records, c->plan.nr_groups);
	check_int(last[calls].enabled_ns, 10 * MS - cost);
	check_int(last[calls].missed_ns, 4 * MS);
	check_int(last[clock].enabled_ns, 10 * MS);
	check_int(last[clock].missed_ns, 4 * MS);
	check_int(last[calls].value[0] + last[calls].value[1], 1000);
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
	cost = off ? in_units(MS - MS / 16, COUNTS_UNIT_NS) : 0;
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
	test_records("task-clock," CALLS, INT64_MAX, false);
	/* Who wants both over the same time has one time for both. */
	test_records("{task-clock," CALLS "}", 100000000, false);
	return tap_done();
}
