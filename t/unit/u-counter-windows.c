/*
 * When counting pauses, and for how long: windows where it is tracepoints that
 * cost too much, of which two in three are without what is dearest.
 */
#include "supervisor/control/allowance.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "supervisor/probe/tally.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#define MS	   NSEC_PER_MSEC
#define TARGET_PPB 10000000 /* 1 % */

static void emit(void *ctx, const struct record *r)
{
	(void)ctx, (void)r;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static struct counters *c;
static struct ledger *l;
static struct puppet pup;
static uint64_t now_ns;

static void begin_with(bool by_events)
{
	pup = puppet_start();
	now_ns = smco_now_ns();
	const struct counters_params p = {
		.events = "os",
		.interval_ns = NSEC_PER_SEC,
		.reads_all = true,
		.by_events = by_events,
		.target_overhead_ppb = TARGET_PPB,
		.start_ns = now_ns,
		.emit = emit,
		.put_meta = put_meta,
	};
	l = ledger_create(TARGET_PPB);
	check_int(counters_create(&p, l, &c, NULL), 0);
	counters_add(c, pup.pid, pup.pid, NULL, COUNTER_NOW);
	ledger_advance(l, now_ns, 0);
}

static void begin(void)
{
	begin_with(true);
}

static void end(void)
{
	counters_destroy(c);
	ledger_destroy(l);
	puppet_end(&pup);
}

static void charge(uint64_t work_ns, uint64_t other_ns)
{
	c->work_ns += work_ns;
	ledger_charge(l, LEDGER_OTHER, COUNTERS_MONITOR, work_ns + other_ns);
}

static void step_at(uint64_t ns)
{
	now_ns = ns;
	counters_pause_or_go_on(c, now_ns);
}

/* The next window begins when it may; at once, as far as this test goes. */
static void open_next(enum counter_level level)
{
	check_int(c->check_ns, c->windows.next_ns);
	step_at(c->windows.next_ns - 1);
	check_int(c->level, COUNTER_CLOCKS);
	step_at(c->windows.next_ns);
	check_int(c->level, level);
	check(c->windows.opened_ns != 0);
	check_int(c->check_ns, c->windows.opened_ns + 2 * MS);
	c->windows.opened_ns = now_ns;
}

/* It cost so much: when may the next one begin? */
static void close_after(uint64_t cost_ns, uint64_t least_ns, uint64_t most_ns)
{
	uint64_t end_ns = now_ns + 2 * MS;
	charge(cost_ns, 0);
	step_at(end_ns - 1);
	check(c->windows.opened_ns != 0);
	step_at(end_ns);
	check_int(c->level, COUNTER_CLOCKS);
	check_int(c->windows.opened_ns, 0);
	check(c->windows.next_ns >= end_ns + least_ns);
	check(c->windows.next_ns < end_ns + most_ns);
}

static void test_windows(void)
{
	begin();
	step_at(now_ns);
	check_int(c->level, COUNTER_ALL);
	/* 2 ms are worth no pause. */
	charge(2 * MS, 0);
	step_at(now_ns);
	check_int(c->level, COUNTER_ALL);
	charge(1 * MS, 0);
	step_at(now_ns);
	check_int(c->level, COUNTER_CLOCKS);
	/* Nothing may be spent yet. */
	step_at(c->windows.next_ns);
	check_int(c->level, COUNTER_CLOCKS);
	ledger_advance(l, now_ns + 10 * NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	open_next(COUNTER_CHEAP);
	/* 202 ms, at which a ms is half of 1 %. */
	c->random = 1;
	close_after(1 * MS, 101 * MS, 303 * MS);
	check_int(c->windows.next_ns - now_ns,
		  101000001 + 1082269761 % 202000002);
	open_next(COUNTER_ALL);
	/* No longer than that. */
	close_after(20 * MS, 125 * MS, 375 * MS);
	open_next(COUNTER_CHEAP);
	close_after(0, 2 * MS, 6 * MS);
	open_next(COUNTER_CHEAP);
	close_after(0, 2 * MS, 6 * MS);
	open_next(COUNTER_ALL);
	end();
}

/* Eight that cost nothing: counting all the time would not, either. */
static void test_needless(void)
{
	begin();
	charge(3 * MS, 0);
	step_at(now_ns);
	ledger_advance(l, now_ns + 10 * NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	for (int i = 0; i < 22; i++) {
		open_next(i % 3 == 1 ? COUNTER_ALL : COUNTER_CHEAP);
		close_after(0, 2 * MS, 6 * MS);
	}
	open_next(COUNTER_ALL);
	close_after(0, 2 * MS, 6 * MS);
	step_at(c->windows.next_ns);
	check_int(c->level, COUNTER_ALL);
	check(!c->windows.is_used);
	end();
}

/* Where it is not calls all pauses. */
static void test_switches(void)
{
	begin();
	charge(1 * MS, 4 * MS);
	step_at(now_ns);
	check_int(c->level, COUNTER_NONE);
	check(!c->windows.is_used);
	ledger_advance(l, now_ns + 10 * NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	step_at(now_ns + 1);
	check_int(c->level, COUNTER_ALL);
	end();
}

/* It has begun: looks come soon, and then less and less often. */
static void test_checks(void)
{
	begin();
	c->first_ns = 1000 * MS;
	check_int(counters_next_check_ns(c, 1000 * MS), 1003 * MS);
	check_int(counters_next_check_ns(c, 1040 * MS), 1060 * MS);
	check_int(counters_next_check_ns(c, 1200 * MS), 1250 * MS);
	/* Also where the kernel writes counts down; but for who has no limit,
	 * or counts no calls. */
	check_int(counters_jot_due_ns(c, 1000 * MS), 1003 * MS);
	c->has_calls = false;
	check_int(counters_jot_due_ns(c, 1000 * MS), 1120 * MS);
	c->has_calls = true;
	c->p.target_overhead_ppb = INT64_MAX;
	check_int(counters_jot_due_ns(c, 1000 * MS), 1120 * MS);
	end();
}

static void wait_until_tallied(bool on)
{
	for (int i = 0; i < 5000 && tally_is_on(c->tally) != on; i++)
		usleep(1000);
	check_int(tally_is_on(c->tally), on);
}

/* Where a BPF program counts calls it is gone between windows, comes without
 * being waited for, and all are counted in each; coming and going has a price.
 */
static void test_tallied(void)
{
	begin_with(false);
	if (!c->tally) {
		tap_skip("no BPF in sys_enter here");
		end();
		return;
	}
	check(tally_is_on(c->tally));
	charge(3 * MS, 0);
	step_at(now_ns);
	check_int(c->level, COUNTER_CLOCKS);
	wait_until_tallied(false);
	/* Nothing may be spent yet. */
	step_at(c->windows.next_ns);
	check_int(c->level, COUNTER_CLOCKS);
	check(!tally_is_on(c->tally));
	uint64_t begun_ns = c->toggles_cost_ns;
	check(begun_ns > 0);
	check_int(ledger_spent_ns(l, LEDGER_OTHER, COUNTERS_MONITOR),
		  3 * MS + begun_ns);
	ledger_advance(l, now_ns + 100 * NSEC_PER_SEC, 100 * NSEC_PER_SEC);
	for (int i = 0; i < 3; i++) {
		step_at(c->windows.next_ns);
		check_int(c->level, COUNTER_CLOCKS);
		check_int(c->windows.next_ns, now_ns + 1 * MS);
		wait_until_tallied(true);
		step_at(c->windows.next_ns);
		check_int(c->level, COUNTER_ALL);
		c->windows.opened_ns = now_ns;
		charge(100000, 0);
		uint64_t whole_ns =
			100000 + c->toggles_cost_ns - c->windows.toggles_ns;
		check(whole_ns > 100000);
		step_at(now_ns + 2 * MS);
		check_int(c->level, COUNTER_CLOCKS);
		uint64_t gap_ns = 202 * whole_ns;
		check_range((double)(c->windows.next_ns - now_ns),
			    (double)min_u64(gap_ns, 250 * MS) / 2.02,
			    (double)min_u64(gap_ns, 250 * MS) * 1.51);
		wait_until_tallied(false);
	}
	/* One that is not opened after all does not stay. */
	step_at(c->windows.next_ns);
	wait_until_tallied(true);
	charge(2 * NSEC_PER_SEC, 0);
	step_at(c->windows.next_ns);
	check_int(c->level, COUNTER_CLOCKS);
	wait_until_tallied(false);
	end();
}

/* It does not come for the sake of coming: there is room for that, and to go
 * again, before it is asked for. */
static void test_room_for_coming(void)
{
	struct ledger_totals all;
	begin_with(false);
	if (!c->tally) {
		end();
		return;
	}
	charge(50 * MS, 0);
	step_at(now_ns);
	wait_until_tallied(false);
	for (int i = 0; i < 10000 && !c->has_asked; i++) {
		now_ns += MS;
		ledger_advance(l, now_ns, MS);
		step_at(max_u64(c->windows.next_ns, now_ns));
	}
	check(c->has_asked);
	check(c->toggle_ns > 2 * MS / 100);
	ledger_get(l, &all);
	int64_t budget_ns = allowance_budget_ns(
		all.base_ns, control_m_from_overhead(TARGET_PPB));
	uint64_t spent_ns = ledger_spent_ns(l, LEDGER_OTHER, COUNTERS_MONITOR);
	check(spent_ns + 2 * c->toggle_ns <= (uint64_t)budget_ns + 2 * MS);
	wait_until_tallied(true);
	end();
}

int main(void)
{
	struct pmu_event ev;
	if (pmu_event_parse("raw_syscalls:sys_enter", &ev, NULL)) {
		tap_skip("no tracepoint of system calls here");
		return tap_done();
	}
	test_windows();
	test_needless();
	test_switches();
	test_checks();
	test_tallied();
	test_room_for_coming();
	return tap_done();
}
