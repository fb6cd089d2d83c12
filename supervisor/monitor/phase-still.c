/*
 * Gaps between two passings that last, of which nothing needs to be timed.
 * Slices mostly miss what is one in a million, however long it is. So of each
 * gap only so much is taken from slices as is no longer than a cut; what goes
 * on behind that is seen by looks: those that see nothing passed for as long as
 * the cut are to all looks as the time behind the cut is to all the time. Both
 * are right whatever the cut is. One cut is from a look to the next. Where few
 * passings are timed there is a shorter one before that, for which one looks
 * again soon after a look, where that is not too dear; so that what is seldom
 * and long is told by the clock.
 *
 * Whether the thread was inside meanwhile say its counts (phase-levels.h). Of
 * points it was, if any was passed and one is again.
 */
#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

#define LEAST_CUT_NS (100 * NSEC_PER_USEC)
#define MOST_CUT_NS  (2 * NSEC_PER_MSEC)
#define LOOK_NS	     (10 * NSEC_PER_MSEC)
#define LOOK_COST_NS (10 * NSEC_PER_USEC)
#define COST_SHARE   8 /* of the budget, at most, for second looks */
/* Where less of a phase is timed its cuts are short, %. */
#define FAR_PERCENT 30

static uint64_t least_gap_ns(const struct phases *ph)
{
	if (ph->p.m_t_ppb == INT64_MAX || ph->p.m_t_ppb <= 0)
		return 0;
	return (uint64_t)((u128)LOOK_COST_NS * COST_SHARE * PPB /
			  (uint64_t)ph->p.m_t_ppb);
}

static double timed_share(const struct phases *ph, uint32_t i)
{
	uint64_t all = phase_passed(ph, i);
	return all ? (double)ph->phase[i].nr_recorded / (double)all : 1;
}

uint64_t phase_still_again_ns(struct phases *ph, uint64_t now_ns)
{
	double least = 1;
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		double share = timed_share(ph, i);
		ph->phase[i].is_far = share * 100 >= FAR_PERCENT;
		if (!ph->phase[i].is_far && share < least)
			least = share;
	}
	uint64_t gap_ns = least_gap_ns(ph);
	if (!ph->again_from_ns)
		ph->again_from_ns = now_ns + phase_draw(ph, gap_ns + 1);
	if (least == 1 || now_ns < ph->again_from_ns)
		return 0;
	ph->again_from_ns = now_ns + gap_ns / 2 + phase_draw(ph, gap_ns + 1);
	uint64_t cut_ns = (uint64_t)(least * (double)LOOK_NS);
	return now_ns + max_u64(LEAST_CUT_NS, min_u64(cut_ns, MOST_CUT_NS));
}

static void note_cut(struct phase_cut *cut, uint64_t ns, uint64_t for_ns)
{
	cut->ns[cut->nr % PHASE_CUTS] = ns;
	cut->for_ns[cut->nr++ % PHASE_CUTS] = for_ns;
	cut->sum_ns += for_ns;
}

/* No second kind of look: marks of both kinds have one name. */
static bool is_mixed(const struct phase *phase)
{
	return phase->has_points && phase->has_pairs;
}

/* Nobody else counts there. */
static bool is_ones(const struct shared *sh, size_t place)
{
	return place ? !sh->is_mixed : !sh->is_shared;
}

double phase_still_short_ns(const struct phase *phase, uint64_t ns)
{
	bool is_near = !phase->is_far && phase->near.nr;
	const struct phase_cut *cut = is_near ? &phase->near : &phase->far;
	unsigned nr = cut->nr < PHASE_CUTS ? cut->nr : PHASE_CUTS;
	double sum = 0, all = 0;
	for (unsigned i = 0; i < nr; i++) {
		sum += (double)min_u64(ns, cut->ns[i]) * (double)cut->for_ns[i];
		all += (double)cut->for_ns[i];
	}
	return all > 0 && !is_mixed(phase) ? sum / all : (double)ns;
}

/* Nothing was passed since the last look. */
static bool is_still(const struct phase_still *s, const struct mark_pair *now)
{
	return now->begun == s->begun && now->ended == s->ended &&
	       now->number == s->number;
}

static double near_times(const struct phase *phase)
{
	double near_ns = (double)phase->near.sum_ns;
	return near_ns > 0 ? (double)phase->near_ns / near_ns : 1;
}

static void leave(struct phases *ph, struct shared *sh, uint32_t i,
		  struct phase_still *s, const struct mark_pair *now)
{
	struct phase *phase = &ph->phase[i];
	int64_t level = (int64_t)(now->begun - now->ended);
	if (phase->has_points)
		level = is_still(s, now) ? 1 : 0;
	struct phase_inside in = phase_levels_leave(&s->levels, level);
	double ns = in.ns + in.part[0] * near_times(phase);
	struct thread_phase *o =
		ns > 0 ? phase_times_find(ph, sh, s->number, i) : NULL;
	phase_inside_add(&phase->still, &in);
	if (o)
		phase_spans_inside(ph, o, ns);
}

/* From the last look to this one, or to the second one between. */
static void add(const struct phase *phase, struct phase_still *s,
		const struct mark_pair *now, uint64_t since_ns)
{
	int64_t level = (int64_t)(s->begun - s->ended);
	struct phase_inside in = {0, {0, 0}};
	if (!phase->name.function && level <= 0)
		return;
	if (is_still(s, now))
		in.ns = (double)since_ns;
	else if (s->is_again)
		in.part[0] = (double)since_ns;
	if (in.ns > 0 || in.part[0] > 0)
		phase_levels_add(&s->levels, phase->has_points ? 1 : level,
				 &in);
}

double phase_still_ns(const struct phase *phase)
{
	struct phase_inside in = phase->still;
	const double times[2] = {near_times(phase), 0};
	phase_inside_scale(&in, times);
	return in.ns;
}

/* A place and a phase of it that is looked at: its counts now. False: not. */
static bool pair_of(const struct phases *ph, struct shared *sh, size_t place,
		    uint32_t i, struct phase_still **ret, struct mark_pair *now)
{
	if (!is_ones(sh, place) || is_mixed(&ph->phase[i]))
		return false;
	if (!sh->still[place])
		sh->still[place] = calloc(ph->p.nr, sizeof(**sh->still));
	if (!sh->still[place])
		return false;
	*ret = &sh->still[place][i];
	*now = mark_shm_pair(sh->shm, place, i);
	return true;
}

void phase_still_look(struct phases *ph, struct shared *sh, uint64_t now_ns)
{
	uint64_t since_ns = sh->look_ns ? sat_sub_u64(now_ns, sh->look_ns) : 0;
	struct mark_pair now;
	struct phase_still *s;
	for (size_t place = 0; place < mark_shm_nr_places(sh->shm); place++)
		for (uint32_t i = 0; i < ph->p.nr; i++) {
			if (!pair_of(ph, sh, place, i, &s, &now))
				continue;
			if (now.number != s->number)
				s->levels.nr = 0;
			else if (since_ns)
				add(&ph->phase[i], s, &now, since_ns);
			leave(ph, sh, i, s, &now);
			s->begun = now.begun;
			s->ended = now.ended;
			s->number = now.number;
			s->is_again = false;
		}
	for (uint32_t i = 0; since_ns && i < ph->p.nr; i++) {
		struct phase *phase = &ph->phase[i];
		note_cut(&phase->far, since_ns, since_ns);
		if (!phase->is_far && sh->again_ns)
			note_cut(&phase->near, sh->again_ns, since_ns);
		if (!phase->is_far && phase->near.nr)
			phase->near_ns += since_ns;
	}
	sh->look_ns = now_ns;
	sh->again_ns = 0;
}

void phase_still_look_again(struct phases *ph, struct shared *sh,
			    uint64_t now_ns)
{
	struct mark_pair now;
	struct phase_still *s;
	for (size_t place = 0; place < mark_shm_nr_places(sh->shm); place++)
		for (uint32_t i = 0; i < ph->p.nr; i++)
			if (!ph->phase[i].is_far &&
			    pair_of(ph, sh, place, i, &s, &now) &&
			    is_still(s, &now))
				s->is_again = true;
	sh->again_ns = sat_sub_u64(now_ns, sh->look_ns);
}

void phase_still_leave(struct phases *ph, struct shared *sh)
{
	struct mark_pair now;
	struct phase_still *s;
	for (size_t place = 0; place < mark_shm_nr_places(sh->shm); place++)
		for (uint32_t i = 0; i < ph->p.nr; i++)
			if (pair_of(ph, sh, place, i, &s, &now) &&
			    now.number == s->number)
				leave(ph, sh, i, s, &now);
}

void phase_still_free(struct shared *sh)
{
	for (size_t i = 0; i < MARK_PLACES; i++)
		free(sh->still[i]);
}
