/*
 * Processes that are not followed: what the kernel keeps of them is told as
 * one more thread, to the last, where it keeps all that is counted.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "t/unit/tap.h"

#define EVENTS                                                                 \
	"task-clock,minor-faults,major-faults,page-faults,context-switches,"   \
	"cpu-migrations"
#define MS NSEC_PER_MSEC

static struct {
	size_t nr;
	uint64_t value[COUNTER_MAX_GROUPS][COUNTER_GROUP_MAX];
	uint64_t enabled_ns, missed_ns, length_ns;
	uint64_t all_missed_ns[COUNTER_MAX_GROUPS];
} told;

static void emit(void *ctx, const struct record *r)
{
	struct ev_counts ev;
	(void)ctx;
	memcpy(&ev, r->payload, sizeof(ev));
	check_int(r->event, EV_COUNTS);
	check_int(r->tid, 0);
	check_int(ev.pid, 77);
	for (size_t i = 0; i < ev.nr; i++)
		told.value[r->param][i] += ev.value[i];
	told.all_missed_ns[r->param] += ev.missed_ns;
	told.nr++;
	if (r->param)
		return;
	told.enabled_ns += ev.enabled_ns;
	told.missed_ns += ev.missed_ns;
	told.length_ns += ev.length_ns;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static struct ledger *l;

static struct counters *start(const char *events, uint64_t every_nr,
			      bool follows)
{
	struct counters *c = NULL;
	const struct counters_params p = {
		.events = events,
		.follows = follows,
		.interval_ns = NSEC_PER_SEC,
		.if_available = true,
		.every_nr = every_nr,
		.every_event = every_nr ? "page-faults" : NULL,
		.target_overhead_ppb = 10000000,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	l = ledger_create(10000000);
	check_int(counters_create(&p, l, &c, NULL), 0);
	return c;
}

static void end(struct counters *c)
{
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
}

static uint64_t told_of(const struct counters *c, const char *name)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++)
			if (!strcmp(c->plan.event[c->plan.group[g].first + i]
					    .name,
				    name))
				return told.value[g][i];
	check(!"there");
	return 0;
}

static void test_sums(void)
{
	struct counters *c = start(EVENTS, 0, false);
	struct counter_past all = {.minor_faults = 1000,
				   .major_faults = 3,
				   .switches = 20,
				   .migrations = 4,
				   .run_ns = 5 * MS};
	uint64_t now_ns = c->p.start_ns + 100 * MS;
	counters_unfollowed(c, 0, 77, 0, &all, now_ns);
	check_int(told_of(c, "task-clock"), 5 * MS);
	check_int(told_of(c, "minor-faults"), 1000);
	check_int(told_of(c, "major-faults"), 3);
	check_int(told_of(c, "page-faults"), 1003);
	check_int(told_of(c, "context-switches"), 20);
	check_int(told_of(c, "cpu-migrations"), 4);
	check_int(told.enabled_ns, 5 * MS);
	check_int(told.length_ns, 100 * MS);
	/* Nothing new is no record. */
	size_t nr = told.nr;
	counters_unfollowed(c, 0, 77, 0, &all, now_ns + 50 * MS);
	check_int(told.nr, nr);
	all = (struct counter_past){.minor_faults = 1500,
				    .major_faults = 3,
				    .switches = 21,
				    .migrations = 9,
				    .run_ns = 7 * MS};
	counters_unfollowed(c, 0, 77, 0, &all, now_ns + 100 * MS);
	check(told.nr > nr);
	check_int(told_of(c, "task-clock"), 7 * MS);
	check_int(told_of(c, "page-faults"), 1503);
	check_int(told_of(c, "context-switches"), 21);
	check_int(told_of(c, "cpu-migrations"), 9);
	check_int(told.enabled_ns, 7 * MS);
	check_int(told.missed_ns, 0);
	/* From the last look on, whether that had a record or not. */
	check_int(told.length_ns, 150 * MS);
	nr = told.nr;
	end(c);
	check_int(told.nr, nr);
}

/* What is inherited is with creators, but for what was done in pauses. */
static void test_pauses(void)
{
	struct counters *c = start("task-clock,kmem:mm_page_alloc", 0, true);
	struct counter_past all = {.run_ns = 4 * MS};
	uint64_t start_ns = c->p.start_ns;
	size_t clock = c->plan.group[0].inherits, other = !clock;
	check(c->plan.group[other].inherits);
	memset(&told, 0, sizeof(told));
	c->level = COUNTER_CLOCKS;
	counters_unfollowed(c, 0, 77, 0, &all, start_ns + 100 * MS);
	check_int(told.all_missed_ns[other], 4 * MS);
	all.run_ns = 6 * MS;
	c->level = COUNTER_ALL;
	counters_unfollowed(c, 0, 77, 0, &all, start_ns + 200 * MS);
	check_int(told.all_missed_ns[other], 4 * MS);
	/* Half of the time. */
	counters_note_pauses(c, start_ns + 250 * MS);
	c->level = COUNTER_CLOCKS;
	all.run_ns = 10 * MS;
	counters_unfollowed(c, 0, 77, 0, &all, start_ns + 300 * MS);
	check_int(told.all_missed_ns[other], 6 * MS);
	check_int(told.all_missed_ns[clock], 0);
	check_int(told.value[other][0], 0);
	c->level = COUNTER_ALL;
	end(c);
}

static void test_which(void)
{
	static const struct {
		const char *events;
		uint64_t every_nr;
		bool may, follows;
	} of[] = {
		{EVENTS, 0, true, false},
		{NULL, 0, true, false}, /* what there is without a PMU */
		{"task-clock:u", 0, true, false},
		{"{minor-faults,major-faults}", 0, true, false},
		{"minor-faults:u", 0, false, false},
		{"context-switches:k", 0, false, false},
		{"task-clock,alignment-faults", 0, false, false},
		{"cpu-clock", 0, false, false},
		{"task-clock,sched:sched_switch", 0, false, false},
		{"task-clock", 1000, false, false},
		/* Those that are inherited, once processes do so. */
		{EVENTS, 0, true, true},
		{"task-clock,cpu-clock", 0, true, true},
		{"task-clock,kmem:mm_page_alloc", 0, true, true},
		{"{minor-faults,kmem:mm_page_alloc}", 0, true, true},
		{"minor-faults:u", 0, false, true},
		{"kmem:mm_page_alloc,minor-faults:u", 0, false, true},
		{"sched:sched_switch", 0, false, true},
		{"{context-switches,kmem:mm_page_alloc}", 0, false, true},
		{"{cpu-migrations,kmem:mm_page_alloc}", 0, false, true},
		{"{syscalls-io,kmem:mm_page_alloc}", 0, false, true},
		{"kmem:mm_page_alloc", 1000, false, true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct counters *c =
			start(of[i].events, of[i].every_nr, of[i].follows);
		bool has_pmu = false;
		for (size_t k = 0; c && k < c->plan.nr_events; k++)
			has_pmu |= c->plan.event[k].role == PMU_CYCLES;
		if (c)
			check_int(counters_may_leave_births(c),
				  of[i].may && !has_pmu);
		end(c);
	}
}

int main(void)
{
	test_sums();
	test_pauses();
	test_which();
	return tap_done();
}
