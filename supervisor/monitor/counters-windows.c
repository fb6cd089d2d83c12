/* When counting pauses: all of it where switches cost too much, and what is
 * charged by the call or hit but for short windows of time. */
#include "supervisor/monitor/counters-private.h"

#include "supervisor/control/allowance.h"
#include "supervisor/control/fixed.h"

#include <unistd.h>

/* The first looks come soon: a program that does nothing but calls has spent a
 * second's budget in some ms. */
#define FIRST_NS (3 * NSEC_PER_MSEC)
#define CHECK_NS (50 * NSEC_PER_MSEC)

/* So long with a target of 1 %, and in proportion to it: what begins and ends
 * one takes the thread some 20 us. */
#define WINDOW_NS   (2 * NSEC_PER_MSEC)
#define LONGEST_NS  (5 * NSEC_PER_MSEC)
#define LEAST_NS    (4 * NSEC_PER_MSEC) /* between two */
#define MOST_NS	    (250 * NSEC_PER_MSEC)
#define TOO_DEAR_NS (10 * NSEC_PER_MSEC) /* until it is asked again */
#define READY_NS    (1 * NSEC_PER_MSEC)	 /* until it is looked again */
/* After so many with all it is asked whether they are needed. */
#define NR_ALL 8

uint64_t counters_next_check_ns(const struct counters *c, uint64_t now_ns)
{
	if (!c->has_calls && !c->hit_ns)
		return now_ns + CHECK_NS;
	uint64_t half_ns = sat_sub_u64(now_ns, c->first_ns) / 2;
	return now_ns + min_u64(CHECK_NS, max_u64(FIRST_NS, half_ns));
}

/* Without what nobody can help: what calls cost while counting pauses; and if
 * @more_ns come to it. */
static bool is_too_dear(const struct counters *c, uint64_t less_ns,
			uint64_t more_ns)
{
	struct ledger_totals t;
	ledger_get(c->ledger, &t);
	uint64_t own_ns =
		ledger_spent_ns(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR);
	return allowance_must_pause(
		control_m_from_overhead(c->p.target_overhead_ppb), t.base_ns,
		ledger_room_ns(c->ledger) - (int64_t)more_ns,
		sat_sub_u64(own_ns, c->unseen_cost_ns + less_ns) + more_ns);
}

static uint64_t window_ns(const struct counters *c)
{
	int64_t ns =
		allowance_budget_ns(100 * WINDOW_NS, c->p.target_overhead_ppb);
	return min_u64(max_u64(ns > 0 ? (uint64_t)ns : 0, WINDOW_NS),
		       LONGEST_NS);
}

/* What was counted up to the very end was so at the level before. */
static void set_level(struct counters *c, enum counter_level level)
{
	if (c->level == level ||
	    (level >= COUNTER_CHEAP && !counters_tally_at(c, level)))
		return;
	counters_note_pauses(c, smco_now_ns());
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			counter_thread_set_level(t->counters, level);
			if (level < c->level)
				counters_take_all(c, t);
		}
	c->level = level;
	counters_tally_at(c, level);
}

/* In [0, @below). */
static uint64_t random_below(struct counters *c, uint64_t below)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random % below;
}

/* By and large so long, at random: what a program does in turns is met in all
 * of them. */
static uint64_t about(struct counters *c, uint64_t ns)
{
	return ns / 2 + random_below(c, ns);
}

/* Is it the calls and hits that cost it? */
static bool is_worth_windows(const struct counters *c)
{
	return !c->every.nr &&
	       2 * c->work_ns > ledger_spent_ns(c->ledger, LEDGER_OTHER,
						COUNTERS_MONITOR) -
					c->unseen_cost_ns;
}

/* What attaching and detaching cost all threads that ran, as far as there are
 * CPUs for them. */
static void charge_toggles(struct counters *c)
{
	uint64_t each_ns = counters_tally_toggled_ns(c), nr = 0;
	if (!each_ns)
		return;
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			nr++;
	uint64_t nr_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t cost_ns = each_ns * min_u64(nr, nr_cpus);
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR, cost_ns);
	c->toggles_cost_ns += cost_ns;
	uint64_t usual_ns = c->toggle_ns ? c->toggle_ns : cost_ns;
	c->toggle_ns = (3 * usual_ns + min_u64(cost_ns, 4 * usual_ns)) / 4;
}

/* To attach for what cannot be counted then, and to detach again, would take
 * all that is earned. */
static uint64_t to_come_ns(const struct counters *c)
{
	return counters_tally_is_on(c) ? 0 : 2 * c->toggle_ns;
}

static void begin_windows(struct counters *c, uint64_t now_ns)
{
	counters_jot_leave(c, now_ns);
	/* What was counted all the time is told by itself. */
	counters_write_all(c, now_ns);
	set_level(c, COUNTER_CLOCKS);
	counters_sample_begin(c);
	c->windows = (struct counters_windows){
		.is_used = true,
		.next_ns = now_ns + about(c, LEAST_NS),
		.toggles_ns = c->toggles_cost_ns,
	};
}

static void end_windows(struct counters *c, uint64_t now_ns)
{
	counters_write_all(c, now_ns);
	set_level(c, COUNTER_ALL);
	counters_sample_end(c);
	c->windows = (struct counters_windows){0};
}

static void open_window(struct counters *c)
{
	struct counters_windows *w = &c->windows;
	bool has_cheap = counters_has_cheap(c);
	bool cheap = has_cheap && w->nr++ % 3 != 1;
	if (cheap == has_cheap)
		counters_age_calm(c);
	counters_sample_price(c, cheap ? COUNTER_CHEAP : COUNTER_ALL);
	w->opened_ns = smco_now_ns();
	w->work_ns = c->work_ns;
	set_level(c, cheap ? COUNTER_CHEAP : COUNTER_ALL);
}

/* What one has cost is to be half of the budget until the next. */
static void close_window(struct counters *c, uint64_t now_ns)
{
	struct counters_windows *w = &c->windows;
	int64_t m_ppb = control_m_from_overhead(c->p.target_overhead_ppb);
	bool had_all = c->level == COUNTER_ALL;
	set_level(c, COUNTER_CLOCKS);
	uint64_t cost_ns = c->work_ns - w->work_ns;
	uint64_t whole_ns = cost_ns + c->toggles_cost_ns - w->toggles_ns;
	uint64_t gap_ns = MOST_NS;
	if (m_ppb > 0 && whole_ns < (uint64_t)m_ppb)
		gap_ns = 2 * whole_ns * PPB / (uint64_t)m_ppb;
	w->toggles_ns = c->toggles_cost_ns;
	if (had_all) {
		w->nr_all++;
		w->all_ns += now_ns - w->opened_ns;
		w->all_cost_ns += cost_ns;
	}
	w->opened_ns = 0;
	w->next_ns =
		now_ns + about(c, max_u64(LEAST_NS, min_u64(gap_ns, MOST_NS)));
}

/* Would counting all the time cost half of the budget, at the most? */
static bool are_needless(struct counters *c)
{
	struct counters_windows *w = &c->windows;
	if (w->nr_all < NR_ALL)
		return false;
	int64_t budget_ns = allowance_budget_ns(
		w->all_ns, control_m_from_overhead(c->p.target_overhead_ppb));
	bool ret = (int64_t)w->all_cost_ns < budget_ns / 2;
	w->nr_all = 0;
	w->all_ns = w->all_cost_ns = 0;
	return ret;
}

/* The next window, or none any more. */
static void go_on(struct counters *c, uint64_t now_ns)
{
	if (!counters_tally_ready(c))
		c->windows.next_ns = now_ns + READY_NS;
	else if (are_needless(c))
		end_windows(c, now_ns);
	else
		open_window(c);
}

static void step_windows(struct counters *c, uint64_t now_ns)
{
	struct counters_windows *w = &c->windows;
	if (w->opened_ns) {
		if (now_ns < w->opened_ns + window_ns(c))
			return;
		close_window(c, now_ns);
		return;
	}
	if (now_ns < w->next_ns)
		return;
	if (!is_too_dear(c, 0, to_come_ns(c))) {
		go_on(c, now_ns);
		return;
	}
	bool others = is_too_dear(
		c, c->work_ns + c->toggles_cost_ns + c->reading_ns, 0);
	set_level(c, others ? COUNTER_NONE : COUNTER_CLOCKS);
	counters_tally_at(c, c->level);
	w->next_ns = now_ns + about(c, TOO_DEAR_NS);
}

/* Where the target does not allow for it, nothing is counted for a while. Where
 * others use the budget up that is no reason: a pause would not help. */
void counters_pause_or_go_on(struct counters *c, uint64_t now_ns)
{
	if (!c->random)
		c->random = now_ns | 1;
	charge_toggles(c);
	if (c->windows.is_used) {
		step_windows(c, now_ns);
	} else if (!is_too_dear(c, 0, to_come_ns(c))) {
		if (c->level == COUNTER_ALL || counters_tally_ready(c))
			set_level(c, COUNTER_ALL);
	} else if (c->level == COUNTER_ALL && is_worth_windows(c)) {
		begin_windows(c, now_ns);
	} else {
		set_level(c, COUNTER_NONE);
		counters_tally_at(c, COUNTER_NONE);
	}
	if (c->windows.is_used)
		c->check_ns = c->windows.opened_ns
				      ? c->windows.opened_ns + window_ns(c)
				      : c->windows.next_ns;
}

bool counters_are_idle(const struct counters *c)
{
	return c->level == COUNTER_NONE || c->windows.is_used;
}
