#include "supervisor/monitor/range-due.h"

#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-cheap.h"

/* Shares differ by so much at most; and no plant has more than so many times
 * the even share. */
#define LEAST_PART (CONTROL_WHOLE / 512)
#define MOST_TIMES 16
/* How often the controller corrects itself: windows come and go in a few
 * milliseconds, so sooner than the paper's 0.4 s. */
#define INTERVAL_NS (100 * NSEC_PER_MSEC)
#define TELL_NS	    (20 * NSEC_PER_MSEC)
/* A window that has cost less since it came in is left alone. */
#define QUANTUM_PS (2 * NSEC_PER_USEC * 1000)
/* One that was passed less often so far keeps what each may cost before it is
 * looked at, whatever the others have spent: what its variables get at the
 * beginning, or now and then, is seen. One switch for all knows no such. */
#define RARE_HITS 1000
/* Stops to put some in may take this part of the target: the shorter turns are,
 * the more of them there are, and the more the program does is seen at all.
 * With one switch for all, many come at a time anyway. */
#define STOPS_SHARE	2
#define STOPS_SHARE_ONE 6
/* Of what the window of 10 s has room for, those put in at once may take this
 * part before they can be put out. */
#define CREDIT 16
/* For as long again as it took, that at least, until a window came along that
 * had never been passed before, others are to be expected: what is in may begin
 * to cost all of the time at any moment, and does so until somebody looks. */
#define START_NS (100 * NSEC_PER_MSEC)
/* The cheap that are out come back, for stops of no more than this part of the
 * target. */
#define BACK_PART 16
/* The program stands while they come: so many at once. */
#define MOST_AT_ONCE 1024
/* A turn for all, but for what takes a large part of the time wherever it runs:
 * all together this part of the target, and of what the window of 10 s has room
 * for. Each of them is out again soon after it has begun to run, if somebody
 * looks often, as long as that costs the program nothing. */
#define GLANCE_SHARE  8
#define GLANCE_CREDIT 4
#define GLANCE_MOST   (PPB / 8)
#define GLANCE_NS     (50 * NSEC_PER_MSEC)
/* So many may follow each other after a while without: what was told first may
 * not have been what changes most. */
#define GLANCES_IN_A_ROW 3
/* A trial needs a target of that at least (as m), and that what is in costs so
 * much: otherwise it says too little for what it takes. */
#define TRIAL_TARGET (PPB / 8)
#define TRIAL_LOAD   (PPB / 32)
/* A process' time is told late, by a tick of its kernel. */
#define TOLD_LATE_NS (12 * NSEC_PER_MSEC)

int range_duty_init(struct range_duty *d, struct range_cheap *cheap,
		    enum controller_kind kind, int64_t target_overhead_ppb,
		    size_t nr, uint64_t now_ns)
{
	const struct control_params params = {
		.kind = kind,
		.target_overhead_ppb = target_overhead_ppb,
		.interval_ns = kind == CONTROL_ADHOC ? 0 : INTERVAL_NS,
	};
	*d = (struct range_duty){
		.cheap = cheap,
		.kind = kind,
		.nr = nr,
		.m_t_ppb =
			target_is_unlimited(target_overhead_ppb)
				? INT64_MAX
				: control_m_from_overhead(target_overhead_ppb),
		.last_ns = now_ns,
		.ran_ns = now_ns,
		.back_ns = now_ns,
		.born_ns = now_ns,
		.new_ns = now_ns + START_NS,
		.told_ns = now_ns,
		.control = control_create(&params, now_ns),
		.window = calloc(nr + 1, sizeof(*d->window)),
		.want = calloc(nr + 1, sizeof(*d->want)),
		.leaving = calloc(nr + 1, sizeof(*d->leaving)),
		.changed = calloc(nr + 1, sizeof(*d->changed)),
		.planted = calloc(nr + 1, sizeof(*d->planted)),
		/* What is in at first may cost anything. */
		.load_ppb = PPB,
		.begin_ppb = PPB,
	};
	return d->control && d->window && d->want && d->leaving && d->changed &&
			       d->planted
		       ? 0
		       : SMCO_NOMEM;
}

void range_duty_deinit(struct range_duty *d)
{
	range_cheap_leave(d);
	control_destroy(d->control);
	free(d->window);
	free(d->want);
	free(d->leaving);
	free(d->changed);
	free(d->planted);
	*d = (struct range_duty){.nr = 0};
}

uint32_t range_duty_nr_plants(const struct range_duty *d)
{
	return control_nr_plants(d->control);
}

static void make_plant(struct range_duty *d, uint32_t i, uint64_t now_ns)
{
	struct range_duty_window *w = &d->window[i];
	w->plant = control_add(d->control, now_ns, (void *)(uintptr_t)i);
	if (w->plant == PLANT_NONE)
		return;
	d->sum_parts += w->part;
	if (!w->was_planted)
		d->planted[d->nr_planted++] = i;
	w->was_planted = true;
}

static void set_part(struct range_duty *d, struct range_duty_window *w,
		     uint32_t worth)
{
	uint32_t part = (uint32_t)max_u64(worth, LEAST_PART);
	if (w->plant != PLANT_NONE)
		d->sum_parts = d->sum_parts - w->part + part;
	w->part = part;
}

/* Its share, of CONTROL_WHOLE of the even one: all together have what as many
 * even ones would have. */
static uint32_t share_of(const struct range_duty *d,
			 const struct range_duty_window *w)
{
	uint64_t nr = control_nr_plants(d->control);
	if (w->plant == PLANT_NONE || !d->sum_parts)
		return CONTROL_WHOLE;
	return (uint32_t)min_u64(w->part * nr * CONTROL_WHOLE / d->sum_parts,
				 MOST_TIMES * CONTROL_WHOLE);
}

void range_duty_add(struct range_duty *d, uint32_t i, bool in, uint64_t now_ns)
{
	d->end = max_u64(d->end, (uint64_t)i + 1);
	d->window[i].exists = true;
	d->window[i].plant = PLANT_NONE;
	d->window[i].part = CONTROL_WHOLE;
	if (!in)
		make_plant(d, i, now_ns);
	range_duty_put(d, i, in, now_ns);
}

void range_duty_inherit(struct range_duty *d, const struct range_duty *from)
{
	if (d->is_there)
		return;
	for (size_t i = 0; i < d->end && i < from->end; i++) {
		d->window[i].lately_ps = from->window[i].lately_ps;
		d->window[i].rate_ppb = from->window[i].rate_ppb;
	}
}

void range_duty_put(struct range_duty *d, uint32_t i, bool in, uint64_t now_ns)
{
	struct range_duty_window *w = &d->window[i];
	/* What could not be done is taken up again as if it were new. */
	if (in != d->want[i] && w->plant != PLANT_NONE) {
		if (in)
			control_armed(d->control, w->plant, now_ns);
		else
			control_disarm(d->control, w->plant, now_ns,
				       now_ns + SLOW_STEP_NS);
	}
	d->want[i] = in;
	if (in == w->is_in)
		return;
	if (!in || w->is_spent)
		w->watched_ns += sat_sub_u64(now_ns, w->since_ns);
	w->is_spent &= !in;
	w->is_in = in;
	w->since_ns = w->cycle_ns = now_ns;
	w->cost_ps = 0;
}

void range_duty_rest(struct range_duty *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->end; i++)
		if (d->window[i].exists)
			range_duty_put(d, i, false, now_ns);
	range_cheap_leave(d);
}

uint64_t range_duty_watched_ns(const struct range_duty *d, uint32_t i,
			       uint64_t now_ns)
{
	const struct range_duty_window *w = &d->window[i];
	bool is_seen = w->is_in || w->is_spent;
	return w->watched_ns + (is_seen ? sat_sub_u64(now_ns, w->since_ns) : 0);
}

/* It will not come back. */
static void retire(struct range_duty *d, struct range_duty_window *w)
{
	if (w->plant == PLANT_NONE)
		return;
	d->sum_parts -= w->part;
	control_remove(d->control, w->plant);
	w->plant = PLANT_NONE;
}

/* Its turn is over: when it would be due again, by the controller. */
static void end_cycle(struct range_duty *d, struct range_duty_window *w,
		      uint64_t now_ns)
{
	uint64_t p_ns = w->cost_ps / 1000;
	uint64_t armed_ns = sat_sub_u64(now_ns, w->cycle_ns);
	if (w->plant == PLANT_NONE) {
		make_plant(d, (uint32_t)(w - d->window), now_ns);
		control_armed(d->control, w->plant, now_ns);
	}
	control_event_part(d->control, w->plant, now_ns,
			   sat_sub_u64(armed_ns, p_ns), p_ns, share_of(d, w));
	w->cycle_ns = now_ns;
	w->cost_ps = 0;
}

/* Has it cost more than its share of the time since it came in? */
static bool is_beyond(const struct range_duty *d,
		      const struct range_duty_cost *cost,
		      const struct range_duty_state *s)
{
	const struct range_duty_window *w = &d->window[cost->window];
	uint64_t armed_ns = sat_sub_u64(s->now_ns, w->cycle_ns);
	int64_t least =
		d->m_t_ppb / (OWING * ((int64_t)range_cheap_nr_plants(d) + 1));
	int64_t share = control_local_target_ppb(d->control);
	if (w->cost_ps < QUANTUM_PS / (s->room_ns < 0 ? OWING : 1) ||
	    range_is_cheap(d, w) ||
	    (d->kind != CONTROL_GLOBAL && cost->hits < RARE_HITS))
		return false;
	/* One switch for all, but for those that all together cost little. */
	if (s->window_room_ns < 0 ||
	    s->room_ns < -(int64_t)mul_ppb(RANGE_DEEP_NS, d->m_t_ppb) ||
	    (d->kind == CONTROL_GLOBAL &&
	     (!control_is_on(d->control) || s->room_ns < 0)))
		share = least;
	else if (d->kind == CONTROL_GLOBAL)
		return false;
	else if (s->room_ns < 0)
		share = share *
			(int64_t)min_u64(share_of(d, w), CONTROL_WHOLE) /
			(CONTROL_WHOLE * OWING);
	else
		share = clamp_i64(share * share_of(d, w) / CONTROL_WHOLE, 0,
				  d->m_t_ppb);
	return (u128)w->cost_ps * PPB / 1000 > (u128)armed_ns * (uint64_t)share;
}

/* What each cost. */
static void note(struct range_duty *d, const struct range_duty_cost *cost,
		 size_t nr, uint64_t dt_ns, const struct range_duty_state *s)
{
	bool any_new = false;
	uint64_t new_ps = 0;
	d->load_ppb = 0;
	for (size_t i = 0; i < nr; i++) {
		struct range_duty_window *w = &d->window[cost[i].window];
		if (!w->was_passed) {
			any_new = true;
			new_ps = sat_add_u64(new_ps, cost[i].cost_ps);
		}
		w->was_passed = true;
		if (!w->is_in || !dt_ns)
			continue;
		w->is_spent = !cost[i].worth;
		set_part(d, w, cost[i].worth);
		w->cost_ps = sat_add_u64(w->cost_ps, cost[i].cost_ps);
		range_cheap_note(d, w, cost[i].cost_ps);
		w->rate_ppb =
			sat_u64((u128)cost[i].cost_ps * (PPB / 1000) / dt_ns);
		d->load_ppb = sat_add_u64(d->load_ppb, w->rate_ppb);
	}
	if (any_new) {
		d->new_ns = max_u64(d->new_ns, s->now_ns);
		d->nr_new++;
		range_due_begin(d, new_ps, dt_ns);
	}
	range_cheap_find(d, s);
}

/* Those that are in and have cost more than they may: how many. */
static size_t judge(struct range_duty *d, const struct range_duty_cost *cost,
		    size_t nr, uint64_t dt_ns, const struct range_duty_state *s)
{
	size_t nr_leaving = 0;
	for (size_t i = 0; i < nr && dt_ns; i++) {
		struct range_duty_window *w = &d->window[cost[i].window];
		if (!w->is_in)
			continue;
		if (cost[i].news && range_is_cheap(d, w))
			d->news_ns = s->now_ns;
		if (w->is_spent || is_beyond(d, &cost[i], s)) {
			d->leaving[nr_leaving++] = cost[i].window;
			d->overrun_ps =
				sat_add_u64(d->overrun_ps, cost[i].cost_ps);
		} else if (w->cost_ps >= QUANTUM_PS) {
			end_cycle(d, w, s->now_ns);
			control_armed(d->control, w->plant, s->now_ns);
		}
	}
	return nr_leaving;
}

static void want(struct range_duty *d, uint32_t i, bool in)
{
	d->want[i] = in;
	if (in != d->window[i].is_in)
		d->changed[d->nr_changed++] = i;
}

/* Not for good. */
static bool is_out(const struct range_duty_window *w)
{
	return w->exists && w->plant != PLANT_NONE && !w->is_in && !w->is_spent;
}

bool range_duty_follow(struct range_duty *d, const struct range_duty *from,
		       uint64_t now_ns)
{
	d->nr_changed = 0;
	for (uint32_t i = 0; i < d->end && i < from->end; i++) {
		struct range_duty_window *w = &d->window[i];
		const struct range_duty_window *f = &from->window[i];
		bool is_dear = f->lately_ps && !range_is_cheap(from, f);
		if (!w->exists || !w->is_in || !(is_out(f) || is_dear))
			continue;
		if (w->plant == PLANT_NONE)
			make_plant(d, i, now_ns);
		want(d, i, false);
	}
	return d->nr_changed;
}

bool range_duty_may_try(const struct range_duty *d)
{
	return d->m_t_ppb != INT64_MAX && d->m_t_ppb >= TRIAL_TARGET &&
	       d->load_ppb >= TRIAL_LOAD &&
	       d->load_ppb <= 2 * (uint64_t)d->m_t_ppb;
}

bool range_duty_try(struct range_duty *d, const uint32_t *windows, size_t nr,
		    bool in)
{
	d->nr_changed = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct range_duty_window *w = &d->window[windows[i]];
		if (w->plant != PLANT_NONE && !w->is_spent)
			want(d, windows[i], in);
	}
	return d->nr_changed;
}

void range_duty_skip(struct range_duty *d, uint64_t now_ns)
{
	d->last_ns = now_ns;
}

/* How long it is until @ns are a @share of the target, of which each that costs
 * something has as much as any other one. */
static uint64_t part_for(const struct range_duty *d, uint64_t ns,
			 unsigned share)
{
	uint64_t all_ns = sat_u64((u128)ns * share * range_cheap_nr(d->cheap));
	return div_ppb(all_ns, d->m_t_ppb);
}

/* Those whose turn it is, as long as there is room for a step of them. */
static bool come(struct range_duty *d, const struct range_duty_state *s)
{
	unsigned share =
		d->kind == CONTROL_GLOBAL ? STOPS_SHARE_ONE : STOPS_SHARE;
	uint64_t gap_ns = part_for(d, s->stop_ns, share);
	int64_t room_ns = s->window_room_ns /
			  (CREDIT * (int64_t)range_cheap_nr(d->cheap));
	bool any = false;
	plant_t id;
	if (s->room_ns <= 0 || s->now_ns < d->put_in_ns + gap_ns)
		return false;
	if (room_ns < s->room_ns)
		room_ns = s->room_ns;
	while (control_next_due(d->control, s->now_ns, &id)) {
		uint32_t i = (uint32_t)(uintptr_t)control_user(d->control, id);
		uint64_t ns = mul_ppb(
			max_u64(QUICK_STEP_NS, s->took_ns),
			(int64_t)min_u64(d->window[i].rate_ppb, INT64_MAX));
		if ((int64_t)min_u64(ns, INT64_MAX) > room_ns) {
			control_defer(d->control, id, s->now_ns);
			break;
		}
		room_ns -= (int64_t)ns;
		d->load_ppb = sat_add_u64(d->load_ppb, d->window[i].rate_ppb);
		control_armed(d->control, id, s->now_ns);
		want(d, i, true);
		any = true;
	}
	if (any)
		d->put_in_ns = s->now_ns;
	return any;
}

/* Nor does it cost too much for a glance at all. */
static bool is_in_glance(const struct range_duty_window *w)
{
	return is_out(w) && w->rate_ppb <= GLANCE_MOST;
}

/* All of those, if there is news; when there is room, if that is soon. */
static bool glance(struct range_duty *d, const struct range_duty_state *s)
{
	uint64_t sum_ppb = 0;
	size_t nr = 0;
	if (!d->news_ns || d->kind == CONTROL_GLOBAL ||
	    s->now_ns - d->news_ns > GLANCE_NS ||
	    s->now_ns < d->next_glance_ns || s->window_room_ns < 0)
		return false;
	for (size_t k = 0; k < d->nr_planted && nr < MOST_AT_ONCE; k++) {
		const struct range_duty_window *w = &d->window[d->planted[k]];
		if (!is_in_glance(w))
			continue;
		sum_ppb += w->rate_ppb;
		nr++;
	}
	/* They are not all passed at once: see range_duty_bound. */
	sum_ppb = min_u64(sum_ppb, (uint64_t)PPB * s->nr_threads);
	/* Until it is looked at again, and they are out. */
	uint64_t step_ns = d->is_free ? GLANCE_STEP_NS : QUICK_STEP_NS;
	uint64_t ns =
		s->stop_ns + mul_ppb(step_ns + s->took_ns, sat_i64(sum_ppb));
	if (ns > (uint64_t)s->window_room_ns / GLANCE_CREDIT)
		return false;
	for (size_t k = 0; d->nr_changed < nr; k++) {
		uint32_t i = d->planted[k];
		if (!is_in_glance(&d->window[i]))
			continue;
		control_armed(d->control, d->window[i].plant, s->now_ns);
		want(d, i, true);
	}
	d->load_ppb = sat_add_u64(d->load_ppb, sum_ppb);
	d->news_ns = 0;
	uint64_t gap_ns = part_for(d, ns, GLANCE_SHARE);
	uint64_t spare_ns = sat_u64((u128)gap_ns * (GLANCES_IN_A_ROW - 1));
	d->next_glance_ns =
		max_u64(d->next_glance_ns, sat_sub_u64(s->now_ns, spare_ns)) +
		gap_ns;
	d->glance_ns = s->now_ns + GLANCE_NS;
	return nr;
}

/* The cheap that went out when they were new, or had cost more for a moment. */
static bool back(struct range_duty *d, const struct range_duty_state *s)
{
	uint64_t gap_ns = part_for(d, s->stop_ns, 2 * BACK_PART);
	uint64_t step_ns = max_u64(QUICK_STEP_NS, s->took_ns);
	uint64_t left_ns = mul_ppb(QUICK_STEP_NS, d->m_t_ppb);
	if (s->now_ns < d->back_ns + gap_ns ||
	    s->room_ns < -2 * (int64_t)mul_ppb(RANGE_DEEP_NS, d->m_t_ppb))
		return false;
	d->back_ns = s->now_ns;
	for (size_t k = 0; k < d->nr_planted && d->nr_changed < MOST_AT_ONCE;
	     k++) {
		uint32_t i = d->planted[k];
		struct range_duty_window *w = &d->window[i];
		if (!is_out(w) || !range_is_cheap(d, w) ||
		    !range_cheap_is_among(d, w, 1))
			continue;
		uint64_t ns = mul_ppb(step_ns, (int64_t)w->rate_ppb);
		if (ns > left_ns)
			continue;
		left_ns -= ns;
		control_armed(d->control, w->plant, s->now_ns);
		want(d, i, true);
	}
	return d->nr_changed;
}

static bool all_or_none(struct range_duty *d, bool in)
{
	for (uint32_t i = 0; i < d->end; i++)
		want(d, i, in && d->window[i].exists);
	return d->nr_changed;
}

bool range_duty_step(struct range_duty *d, const struct range_duty_cost *cost,
		     size_t nr, const struct range_duty_state *s)
{
	uint64_t dt_ns = sat_sub_u64(s->now_ns, d->last_ns);
	d->last_ns = s->now_ns;
	range_due_learn(d, s);
	d->nr_changed = 0;
	if (d->m_t_ppb == INT64_MAX || d->m_t_ppb <= 0)
		return all_or_none(d, d->m_t_ppb > 0);
	d->run_ns += s->run_ns;
	if (s->now_ns - d->told_ns >= TELL_NS) {
		control_tick(d->control, s->now_ns, d->run_ns);
		d->told_ns = s->now_ns;
		d->run_ns = 0;
	}
	note(d, cost, nr, dt_ns, s);
	size_t nr_leaving = judge(d, cost, nr, dt_ns, s);
	/* Whatever runs may come to what is in at any time. */
	d->is_young =
		sat_sub_u64(s->now_ns, d->new_ns) <= d->new_ns - d->born_ns;
	if (nr || s->run_ns)
		d->ran_ns = s->now_ns;
	bool runs = s->now_ns - d->ran_ns < TOLD_LATE_NS;
	d->idle_ns = nr || ((d->is_free || d->is_young) && runs)
			     ? 0
			     : min_u64(2 * dt_ns, SLOW_STEP_NS);
	bool any = glance(d, s) || back(d, s) || come(d, s);
	/* A stop of their own is worth it when they have cost one. */
	if (!any && d->overrun_ps / 1000 < s->stop_ns)
		return false;
	d->overrun_ps = 0;
	for (size_t i = 0; i < nr_leaving; i++) {
		struct range_duty_window *w = &d->window[d->leaving[i]];
		if (w->is_spent)
			retire(d, w);
		else
			end_cycle(d, w, s->now_ns);
		want(d, d->leaving[i], false);
		any = true;
	}
	return any;
}
