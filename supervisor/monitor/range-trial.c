/*
 * Trials: the windows that cost most go out for two milliseconds or so, as long
 * as the program has run with them before and will behind that, and what it is
 * faster is the price of a hit (range-witness.h). Each slice ends in a stop,
 * for a process that runs tells its CPU time by ticks.
 *
 * Only where there is a target, a large one, and for a program of one thread:
 * others' stops take too long.
 */
#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* A slice takes that long, and up to three times as long. */
#define SLICE_NS NSEC_PER_MSEC
/* From the end of one to the beginning of the next: that, and up to three times
 * as long; the first ones follow each other sooner. */
#define FIRST_GAP_NS (5 * NSEC_PER_MSEC)
#define GAP_NS	     (20 * NSEC_PER_MSEC)
#define NR_FIRST     96
/* What its stops may take: such a part of a slice each. */
#define STOP_PART 8
/* What is in all the time may cost such a part of all; but one of each function
 * stays in, if it is not more than another part, and passed so often. */
#define STAYING_PART 8
#define WITNESS_PART 10
#define WITNESS_HITS 100

/* From @ns to three times that: splitmix64. */
static uint64_t about(struct range_trial *t, uint64_t ns)
{
	if (!t->random)
		t->random = smco_now_ns();
	uint64_t z = t->random += 0x9e3779b97f4a7c15;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return ns + (z ^ (z >> 31)) % (2 * ns);
}

void range_trial_free(struct range_trial *t)
{
	free(t->out);
	free(t->witness);
	free(t->hits);
	t->out = NULL;
	t->witness = NULL;
	t->hits = NULL;
	t->nr_out = t->nr_witnesses = 0;
	t->is_on = false;
}

void range_trial_price(struct range_part *rp, struct range_duty_cost *cost,
		       size_t nr)
{
	uint32_t price = range_witness_price(&rp->trial.says);
	for (size_t i = 0; i < nr; i++) {
		rp->trial.cost_ps =
			sat_add_u64(rp->trial.cost_ps, cost[i].cost_ps);
		cost[i].cost_ps = sat_u64((u128)cost[i].cost_ps * price /
					  RANGE_WITNESS_WHOLE);
	}
}

/* A slice begins: all tasks stopped, and what was until now is charged. */
static void begin(struct range_part *rp, enum range_witness_slice slice)
{
	struct range_trial *t = &rp->trial;
	t->slice = slice;
	t->until_ns = smco_now_ns() + t->slice_ns;
	t->run_ns = tproc_cpu_ns(rp->proc);
	t->cost_ps = 0;
	for (size_t i = 0; i < t->nr_witnesses; i++)
		t->witness[i].hits = rp->hits[t->witness[i].window];
}

/* It has ended: the same. */
static void end(struct range_part *rp)
{
	struct range_trial *t = &rp->trial;
	t->is.run_ns[t->slice] = sat_sub_u64(tproc_cpu_ns(rp->proc), t->run_ns);
	t->is.cost_ps[t->slice] = t->cost_ps;
	for (size_t i = 0; i < t->nr_witnesses; i++)
		t->hits[i].in[t->slice] =
			rp->hits[t->witness[i].window] - t->witness[i].hits;
}

/* Those that cost less than that stay: a power of two, ps. */
static uint64_t staying_ps(const struct range_duty_cost *cost, size_t nr,
			   uint64_t all_ps)
{
	uint64_t least = 1;
	for (;; least *= 2) {
		uint64_t ps = 0;
		for (size_t i = 0; i < nr; i++)
			if (cost[i].cost_ps < 2 * least)
				ps = sat_add_u64(ps, cost[i].cost_ps);
		if (ps > all_ps / STAYING_PART || least > INT64_MAX / 2)
			return least;
	}
}

/* Of function @news[from] one that stays, though it costs more: of those up to
 * before *end_ret. SIZE_MAX: none. */
static size_t one_of_function(const struct range_monitor *m, size_t from,
			      size_t nr, uint64_t all_ps, size_t *end_ret)
{
	size_t i, best = SIZE_MAX;
	for (i = from; i < nr; i++) {
		const struct range_news *n = &m->news[i];
		if (n->function != m->news[from].function)
			break;
		if (n->hits >= WITNESS_HITS &&
		    m->cost[i].cost_ps < all_ps / WITNESS_PART &&
		    (best == SIZE_MAX || n->hits < m->news[best].hits))
			best = i;
	}
	*end_ret = i;
	return best;
}

/* Of the @nr windows that were passed before, who goes, and who is witness.
 * False: nobody, or no memory. */
static bool choose(struct range_monitor *m, struct range_part *rp, size_t nr)
{
	struct range_trial *t = &rp->trial;
	uint64_t all_ps = 0;
	t->out = calloc(nr + 1, sizeof(*t->out));
	t->witness = calloc(nr + 1, sizeof(*t->witness));
	t->hits = calloc(nr + 1, sizeof(*t->hits));
	if (!t->out || !t->witness || !t->hits)
		return false;
	for (size_t i = 0; i < nr; i++)
		all_ps = sat_add_u64(all_ps, m->cost[i].cost_ps);
	uint64_t least_ps = staying_ps(m->cost, nr, all_ps);
	for (size_t from = 0, behind; from < nr; from = behind) {
		size_t one = one_of_function(m, from, nr, all_ps, &behind);
		for (size_t i = from; i < behind; i++) {
			uint32_t w = m->news[i].window;
			if (!rp->duty.window[w].is_in)
				continue;
			if (i != one && m->cost[i].cost_ps >= least_ps) {
				t->out[t->nr_out++] = w;
				continue;
			}
			t->hits[t->nr_witnesses].in[RANGE_WITNESS_BEFORE] =
				m->news[i].hits;
			t->witness[t->nr_witnesses++].window = w;
		}
	}
	return t->nr_witnesses &&
	       range_duty_try(&rp->duty, t->out, t->nr_out, false);
}

static void over(struct range_part *rp)
{
	struct range_trial *t = &rp->trial;
	bool is_first = range_witness_nr(&t->says) < NR_FIRST;
	range_trial_free(t);
	t->next_ns = smco_now_ns() + about(t, is_first ? FIRST_GAP_NS : GAP_NS);
}

void range_trial_start(struct range_monitor *m, struct range_part *rp)
{
	struct range_trial *t = &rp->trial;
	if (t->is_on || !rp->ranges || rp->is_unloaded || rp->is_asleep ||
	    rp->nr_asleep || !range_duty_may_try(&rp->duty) ||
	    smco_now_ns() < t->next_ns || tproc_nr_tasks(rp->proc) != 1 ||
	    rp->stop_ns > SLICE_NS / STOP_PART || tproc_stop(rp->proc, NULL))
		return;
	range_part_charge(m, rp, false);
	t->is_on = true;
	t->slice_ns = about(t, SLICE_NS);
	begin(rp, RANGE_WITNESS_BEFORE);
	tproc_cont(rp->proc);
}

/* Others go out, or come, by what its duty wants now. */
static void change(struct range_part *rp)
{
	range_part_change(rp, 0);
	rp->changes = false;
}

static void end_before(struct range_monitor *m, struct range_part *rp, bool ok)
{
	size_t nr = range_part_step(m, rp, smco_now_ns());
	end(rp);
	if (rp->changes || !ok || !choose(m, rp, nr)) {
		if (rp->changes)
			change(rp);
		over(rp);
		return;
	}
	change(rp);
	begin(rp, RANGE_WITNESS_WITHOUT);
}

static void end_without(struct range_monitor *m, struct range_part *rp, bool ok)
{
	range_part_charge(m, rp, false);
	end(rp);
	if (range_duty_try(&rp->duty, rp->trial.out, rp->trial.nr_out, true))
		change(rp);
	range_duty_skip(&rp->duty, smco_now_ns());
	if (ok)
		begin(rp, RANGE_WITNESS_BEHIND);
	else
		over(rp);
}

static void end_behind(struct range_monitor *m, struct range_part *rp, bool ok)
{
	struct range_trial *t = &rp->trial;
	range_part_step(m, rp, smco_now_ns());
	end(rp);
	if (ok &&
	    range_witness_learn(&t->says, &t->is, t->hits, t->nr_witnesses))
		smco_debug("range", "pid %u: by %u trials hits cost %u of %u",
			   rp->pid, range_witness_nr(&t->says),
			   range_witness_price(&t->says), RANGE_WITNESS_WHOLE);
	if (rp->changes)
		change(rp);
	over(rp);
}

void range_trial_step(struct range_monitor *m, struct range_part *rp)
{
	bool stands = !tproc_stop(rp->proc, NULL);
	if (rp->trial.slice == RANGE_WITNESS_BEFORE)
		end_before(m, rp, stands);
	else if (rp->trial.slice == RANGE_WITNESS_WITHOUT)
		end_without(m, rp, stands);
	else
		end_behind(m, rp, stands);
	if (stands)
		tproc_cont(rp->proc);
}
