#include "supervisor/monitor/counters-private.h"

#include "pmu/open.h"
#include "supervisor/control/fixed.h"
#include "supervisor/probe/jot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEASURE_NS (50 * NSEC_PER_MSEC) /* two calls, of eight each 10 ms */
#define CROWDED_NS (5 * NSEC_PER_MSEC)
/* What an interval's end costs where that cannot be measured. */
#define USUAL_END_NS 5000

/* Waiting for another CPU's answer counts, being put off does not. */
#define OWN_CLOCK CLOCK_THREAD_CPUTIME_ID

static struct thread **find(struct counters *c, pid_t tid)
{
	struct thread **link = &c->hash[(unsigned)tid % COUNTERS_HASH];
	while (*link && ((*link)->tid != tid || (*link)->is_kept))
		link = &(*link)->next;
	return link;
}

/* -------------------------------------------------------------- records --- */

void counters_charge_switches(struct counters *c, struct thread *t,
			      uint64_t waiting)
{
	uint64_t now = t->nr_switches + waiting;
	if (now <= t->nr_charged)
		return;
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
		      (now - t->nr_charged) * c->switch_ns);
	t->nr_charged = now;
}

static void add_sum(struct counter_sum *to, const struct counter_sum *from,
		    size_t nr)
{
	to->enabled_ns += from->enabled_ns;
	to->running_ns += from->running_ns;
	for (size_t i = 0; i < nr; i++)
		to->value[i] += from->value[i];
}

void counters_settle(struct counters *c, struct thread *t, size_t group,
		     struct counter_sum *sum)
{
	if (c->has_switches && group == c->switch_group) {
		t->nr_switches += sum->value[c->switch_index];
		counters_charge_switches(c, t, 0);
	}
	counters_take_price(c, t, group, sum);
	if (c->has_moves && group == c->move_group)
		c->nr_moves += sum->value[c->move_index];
	counters_take_off_stops(c, t, group, sum);
	add_sum(&t->pending[group].sum, sum, c->plan.group[group].nr);
}

/* Context switches that only the ledger wants need not be read. */
static bool take_told(struct counters *c, struct thread *t, size_t group)
{
	uint64_t nr;
	if (!c->has_switches || group != c->switch_group ||
	    c->plan.group[group].nr != 1 || counters_nr_shown(c, group) ||
	    !counter_thread_told(t->counters, group, c->switch_index, &nr))
		return false;
	t->nr_switches = nr;
	counters_charge_switches(c, t, 0);
	return true;
}

static void take_group(struct counters *c, struct thread *t, size_t g)
{
	struct counter_sum sum;
	bool busy = false;
	if (take_told(c, t, g))
		return;
	c->nr_readings += counter_thread_has(t->counters, g) && t->tid;
	if (counter_thread_take(t->counters, g, &sum, &busy)) {
		if (c->every.nr && c->plan.group[g].has_every)
			c->nr_joined += sum.value[c->plan.group[g].nr - 1] /
					c->every.nr;
		counters_settle(c, t, g, &sum);
	}
	c->nr_busy += busy;
}

void counters_take_all(struct counters *c, struct thread *t)
{
	size_t first = counter_thread_first(t->counters);
	for (size_t i = 0; i < c->plan.nr_groups; i++)
		take_group(c, t, (first + i) % c->plan.nr_groups);
}

/* Between two windows others have nothing to tell. */
static void take_clocks(struct counters *c, struct thread *t)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (!c->plan.group[g].is_traced)
			take_group(c, t, g);
}

static void collect(struct counters *c, struct thread *t)
{
	/* Not every reading was a taking if events end the intervals. */
	if (!c->every.nr && !c->is_last && !counter_thread_has_run(t->counters))
		return;
	if (c->level == COUNTER_CLOCKS && !c->is_last && t->tid)
		take_clocks(c, t);
	else
		counters_take_all(c, t);
}

static void write_out(struct counters *c, struct thread *t, uint64_t now_ns)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		counters_write_group(c, t, g, now_ns);
}

/* The end of an interval that is no thread's end, in units. */
static uint64_t told_ns(const struct counters *c, const struct thread *t,
			uint64_t now_ns)
{
	uint64_t unit = unit_for(c->p.interval_ns, COUNTS_TIME_UNIT_NS);
	uint64_t told = c->p.start_ns + in_units(now_ns - c->p.start_ns, unit);
	return told > t->pending[0].read_ns ? told : now_ns;
}

static void read_thread(struct counters *c, struct thread *t, uint64_t now_ns)
{
	counters_drain(c, t);
	counters_jot_drain(c, t, now_ns);
	counters_take_all(c, t);
	write_out(c, t, now_ns);
}

/* -------------------------------------------------------------- threads --- */

static void note_failure(struct counters *c, const struct smco_err *err)
{
	if (err->code == SMCO_GONE)
		return;
	if (!c->nr_failed++)
		c->why_failed = *err;
}

static void start(struct counters *c, struct thread *t,
		  enum counter_since since)
{
	struct smco_err err = {0};
	t->pending = calloc(c->plan.nr_groups, sizeof(*t->pending));
	t->stops = calloc(c->plan.nr_events, sizeof(*t->stops));
	if (!t->pending || !t->stops)
		smco_fail(&err, SMCO_NOMEM, 0, "out of memory");
	if (!t->pending || !t->stops ||
	    counter_thread_open(&c->plan, t->tid, since, &t->counters, &err)) {
		note_failure(c, &err);
		t->counters = NULL;
		free(t->pending);
		free(t->stops);
		t->pending = NULL;
		t->stops = NULL;
		return;
	}
	counters_jot_add(c, t, since == COUNTER_BIRTH);
	counter_thread_set_level(t->counters, c->level);
	uint64_t now_ns = smco_now_ns();
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		t->pending[g].read_ns = now_ns;
	uint64_t nr_stops = t->task ? c->p.nr_stops(t->task) : 0;
	t->nr_before = since == COUNTER_BIRTH ? 0 : nr_stops;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		counters_begin_stops(c, t, &c->plan.group[g], since, nr_stops);
}

/* Are there threads of @pid? They know of one more now. */
static bool note_siblings(struct counters *c, pid_t pid)
{
	bool any = false;
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			if (t->pid == pid)
				any = t->had_siblings = true;
	return any;
}

void counters_add(struct counters *c, pid_t pid, pid_t tid, const void *task,
		  enum counter_since since)
{
	counters_gone(c, tid, smco_now_ns()); /* the number's former owner */
	struct thread *t = calloc(1, sizeof(*t));
	if (!t) {
		note_failure(c, &(struct smco_err){.code = SMCO_NOMEM,
						   .msg = "out of memory"});
		return;
	}
	*t = (struct thread){
		.slot = -1,
		.pid = pid,
		.tid = tid,
		.task = task,
		.had_siblings = note_siblings(c, pid),
	};
	start(c, t, since);
	if (!t->counters) {
		free(t);
		return;
	}
	*find(c, tid) = t;
	if (c->first_ns)
		return;
	c->first_ns = smco_now_ns();
	c->check_ns = counters_next_check_ns(c, c->first_ns);
}

bool counters_want_creators(const struct counters *c)
{
	return c->inherits && !c->plan.of_creators;
}

void counters_born(struct counters *c, pid_t pid, pid_t tid, const void *task,
		   pid_t creator)
{
	struct smco_err err = {0};
	struct thread *t = *find(c, creator);
	if (counters_want_creators(c) && creator && t) {
		counters_owe_stops(c, t, c->p.nr_stops(task));
		counters_jot_stands(c, t, smco_now_ns());
		counters_take_all(c, t);
		if (counter_thread_renew(t->counters, &err))
			note_failure(c, &err);
		counters_jot_renewed(c, t);
	}
	counters_add(c, pid, tid, task, COUNTER_BIRTH);
}

static void count_stops(struct counters *c, const struct thread *t)
{
	if (t->task)
		c->nr_stops += c->p.nr_stops(t->task) - t->nr_before;
}

static void free_thread(struct counters *c, struct thread *t)
{
	counters_jot_remove(c, t);
	counters_sieve_forget(c, t);
	counter_thread_close(t->counters);
	free(t->pending);
	free(t->stops);
	free(t);
}

static void end_thread(struct counters *c, struct thread **link,
		       uint64_t now_ns)
{
	struct thread *t = *link;
	read_thread(c, t, now_ns);
	count_stops(c, t);
	if (c->plan.of_creators && counter_thread_keep(t->counters)) {
		counters_sieve_forget(c, t);
		t->task = NULL;
		t->is_kept = true;
		return;
	}
	*link = t->next;
	free_thread(c, t);
}

void counters_gone(struct counters *c, pid_t tid, uint64_t now_ns)
{
	struct thread **link = find(c, tid);
	if (*link)
		end_thread(c, link, now_ns);
}

void counters_exec(struct counters *c, pid_t pid, pid_t tid, const void *task,
		   uint64_t now_ns)
{
	struct thread *t = *find(c, tid);
	/* One that was always alone goes on with what it has. */
	if (t && (t->pid != pid || !t->had_siblings)) {
		t->pid = pid;
		t->task = task;
		counter_thread_execs(t->counters);
		return;
	}
	/* The kernel's counters went along with whichever thread called exec;
	 * all are read while nothing runs, and begin anew. */
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread **link = &c->hash[i]; *link;) {
			struct thread *at = *link;
			if (at->pid == pid && !at->is_kept)
				end_thread(c, link, now_ns);
			if (*link == at)
				link = &at->next;
		}
	counters_add(c, pid, tid, task, COUNTER_AGAIN);
}

/* -------------------------------------------------------------- reading --- */

static uint64_t reading_due_ns(const struct counters *c)
{
	if (counters_jots_all(c))
		return c->due_ns;
	/* Where there is no limit nothing need be known before. */
	bool checks = c->p.target_overhead_ppb != INT64_MAX || c->every.nr;
	return checks && c->check_ns < c->due_ns ? c->check_ns : c->due_ns;
}

uint64_t counters_due_ns(const struct counters *c)
{
	uint64_t due_ns = reading_due_ns(c);
	return c->nr_fresh && c->fresh_ns < due_ns ? c->fresh_ns : due_ns;
}

/* Who is new has its first record, and is written down by the kernel then. */
static void begin_jots(struct counters *c, uint64_t now_ns)
{
	if (!c->nr_fresh || now_ns < c->fresh_ns)
		return;
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			if (!t->is_fresh)
				continue;
			counters_take_all(c, t);
			write_out(c, t, told_ns(c, t, now_ns));
			counters_jot_begin(c, t);
		}
}

static void read_jotted(struct counters *c, struct thread *t, uint64_t now_ns)
{
	bool has_more = counters_jot_drain(c, t, now_ns);
	if (!has_more && c->level == COUNTER_ALL && !c->is_last)
		return;
	counters_take_all(c, t);
	if (!c->is_last) /* which is written with all others */
		write_out(c, t, told_ns(c, t, now_ns));
	t->at_ns = 0;
}

/* Intervals that events have ended, and what the ledger must know before. */
static void look_at(struct counters *c, struct thread *t)
{
	c->is_crowded |= counters_drain(c, t);
	if (c->has_switches)
		counters_charge_switches(c, t,
					 counter_thread_peek(t->counters,
							     c->switch_group,
							     c->switch_index));
}

/* A running thread is interrupted to be read; what took longer than by itself
 * was that, at the most. Those that were not measured took as long as this one,
 * or the one that was measured before them. */
static void charge_reading(struct counters *c, uint64_t more_ns,
			   uint64_t now_ns)
{
	uint64_t others_ns = min_u64(more_ns, c->measured_ns);
	uint64_t cost_ns = more_ns + others_ns * (c->nr_unmeasured - 1);
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR, cost_ns);
	c->reading_ns += cost_ns;
	c->measured_ns = more_ns;
	c->nr_unmeasured = 0;
	c->measure_ns = now_ns + MEASURE_NS;
}

void counters_write_all(struct counters *c, uint64_t now_ns)
{
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			if ((t->slot < 0 && !t->is_fresh) || c->is_last)
				write_out(c, t, told_ns(c, t, now_ns));
}

/* @whole: records, too. */
static void read_all(struct counters *c, bool whole, uint64_t now_ns)
{
	bool measures = !counters_jots_all(c) &&
			(c->is_last || now_ns >= c->measure_ns);
	uint64_t nr = 0, began_ns = measures ? smco_clock_ns(OWN_CLOCK) : 0;
	if (c->machine.counters)
		collect(c, &c->machine);
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next, nr++)
			if (c->every.nr)
				look_at(c, t);
			else if (t->slot >= 0)
				read_jotted(c, t, now_ns);
			else if (!t->is_fresh || c->is_last)
				collect(c, t);
	c->nr_unmeasured++;
	if (measures) {
		uint64_t took_ns = smco_clock_ns(OWN_CLOCK) - began_ns,
			 own_ns = nr * c->own_read_ns;
		charge_reading(c, took_ns > own_ns ? took_ns - own_ns : 0,
			       now_ns);
	}
	if (!whole)
		return;
	if (c->machine.counters)
		write_out(c, &c->machine, told_ns(c, &c->machine, now_ns));
	if (c->every.nr) /* threads have ends of their own */
		return;
	counters_write_all(c, now_ns);
}

void counters_tick(struct counters *c, uint64_t now_ns)
{
	bool jots = counters_jots_all(c);
	begin_jots(c, now_ns);
	if (now_ns < reading_due_ns(c) && !counters_may_tick(c, now_ns))
		return;
	c->ticked_ns = now_ns;
	bool whole = jots || now_ns >= c->due_ns;
	/* On the grid, so that intervals do not drift. */
	if (whole && !jots)
		c->due_ns += ((now_ns - c->due_ns) / c->p.interval_ns + 1) *
			     c->p.interval_ns;
	c->is_crowded = false;
	if (whole || !counters_are_idle(c))
		read_all(c, whole, now_ns);
	if (jots)
		c->due_ns = counters_jot_due_ns(c, now_ns);
	c->check_ns = c->is_crowded ? now_ns + CROWDED_NS
				    : counters_next_check_ns(c, now_ns);
	counters_pause_or_go_on(c, now_ns);
}

static void drop_all(struct counters *c)
{
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		while (c->hash[i]) {
			struct thread *t = c->hash[i];
			c->hash[i] = t->next;
			free_thread(c, t);
		}
	counters_sample_end(c);
	counters_tally_at(c, COUNTER_NONE);
	jot_close(c->jot);
	c->jot = NULL;
	counters_sieve_close(c);
	counter_thread_close(c->machine.counters);
	counters_drop_rests(c);
	free(c->machine.pending);
	free(c->machine.stops);
	c->machine.stops = NULL;
	c->machine.counters = NULL;
	c->machine.pending = NULL;
}

void counters_finish(struct counters *c, uint64_t now_ns)
{
	char text[800];
	c->is_last = true;
	read_all(c, true, now_ns);
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			if (c->every.nr)
				read_thread(c, t, now_ns);
			count_stops(c, t);
		}
	if (counters_say_ours(c, text, sizeof(text)))
		c->p.put_meta(c->p.ctx, "counters.stops", text);
	drop_all(c); /* who is left alone has no task any more to ask */
	if (c->nr_failed) {
		snprintf(text, sizeof(text), "%ju thread%s: %s",
			 (uintmax_t)c->nr_failed, c->nr_failed == 1 ? "" : "s",
			 c->why_failed.msg);
		c->p.put_meta(c->p.ctx, "counters.failed", text);
	}
	if (c->nr_busy) {
		snprintf(text, sizeof(text), "%ju", (uintmax_t)c->nr_busy);
		c->p.put_meta(c->p.ctx, "counters.lost", text);
	}
	if (c->nr_joined) {
		snprintf(text, sizeof(text), "%ju", (uintmax_t)c->nr_joined);
		c->p.put_meta(c->p.ctx, "counters.every_joined", text);
	}
}

/* ------------------------------------------------------ coming and going ---
 */

int counters_create(const struct counters_params *p, struct ledger *ledger,
		    struct counters **ret, struct smco_err *err)
{
	struct counters *c = calloc(1, sizeof(*c));
	if (!c)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	c->p = *p;
	c->ledger = ledger;
	c->level = COUNTER_ALL;
	uint64_t before_ns = p->events ? counter_bare_call_ns() : 0;
	int rc = counters_plan(c, err);
	if (rc) {
		counters_tally_close(c);
		free(c);
		return rc;
	}
	if (c->every.nr)
		c->every_ns = counter_every_cost_ns(&c->plan);
	if (!c->every_ns)
		c->every_ns = USUAL_END_NS;
	c->own_read_ns = counters_read_cost_ns(&c->plan);
	c->switch_ns = counter_switch_cost_ns(&c->plan);
	counters_measure_prices(c, before_ns);
	counters_tally_at(c, c->level);
	c->due_ns = p->start_ns + p->interval_ns;
	c->check_ns = UINT64_MAX;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (c->plan.group[g].is_machine_wide && !c->machine.counters)
			start(c, &c->machine, COUNTER_NOW);
	*ret = c;
	return 0;
}

void counters_destroy(struct counters *c)
{
	if (!c)
		return;
	drop_all(c);
	counter_plan_deinit(&c->plan);
	counters_tally_close(c);
	free(c);
}
