/*
 * From records to how long each thread was inside, where not all are recorded:
 * by the gaps between a thread's records, of which it is known whether the
 * thread was in the phase, not by whole passings, of which long ones are seldom
 * within a slice, those of a function that calls itself least of all.
 *
 * Of marks the record at its beginning says what a gap is. Of a function its
 * level does, once a lower one is seen (phase-levels.h). Where several threads
 * count in one place it is not known; there passings count that are wholly in a
 * slice.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

#define MOST_WEIGHT 16

/*
 * Of a slice of n records what begins with one of them and ends with the k-th
 * after it could have begun with n - k: what others' passings come within has
 * less room. Which is made up for, as far as there is any.
 */
static double weight(const struct phase_slice *s, uint64_t records)
{
	double n = (double)(s->end - s->begin), room = n - (double)records;
	double weight = room * MOST_WEIGHT > n ? (n - 1) / room : MOST_WEIGHT;
	return weight < 1 ? 1 : weight; /* the slice was not begun by us */
}

/* The thread was inside. */
static void take(struct phases *ph, struct thread_phase *o,
		 const struct phase_inside *in)
{
	const double *times = o->slice->times;
	phase_inside_add(&o->slice->in, in);
	phase_spans_inside(ph, o,
			   times[0] * in->part[0] + times[1] * in->part[1]);
}

void phase_gaps_take_call(struct phases *ph, struct thread_phase *o,
			  uint64_t first, uint64_t ns)
{
	double w = weight(o->slice, o->slice->nr_records - first);
	const struct phase_inside in = {0, {w * (double)ns, 0}};
	take(ph, o, &in);
}

static void forget(struct thread_phase *o)
{
	struct thread_phase **at = o->is_touched ? &o->slice->touched : NULL;
	while (at && *at != o)
		at = &(*at)->next_touched;
	if (at)
		*at = o->next_touched;
	o->is_touched = false;
	o->levels = (struct phase_levels){.nr = 0};
}

static void leave(struct phases *ph, struct thread_phase *o, int64_t level)
{
	struct phase_inside in = phase_levels_leave(&o->levels, level);
	ph->phase[o->phase].weighted_ns += in.ns;
	phase_spans_inside(ph, o, in.ns);
	in.ns = 0;
	take(ph, o, &in);
}

/* From the thread's last record to @r. */
static void take_gap(struct phases *ph, struct thread_phase *o,
		     const struct mark_record *r, enum mark_kind kind)
{
	struct phase_slice *s = o->slice;
	const struct phase *phase = &ph->phase[o->phase];
	uint64_t ns = sat_sub_u64(r->time_ns, o->last_ns);
	double w = weight(s, s->nr_records - o->last_record);
	double short_ns =
		o->knows_level ? phase_still_short_ns(phase, ns) : (double)ns;
	struct phase_inside in = {0, {0, 0}};
	in.part[o->is_behind_end] = w * (short_ns - (double)ph->timing_ns);
	s->nr_gaps[o->is_behind_end] += w;
	if (!phase->name.function) {
		if (o->nr_calls && kind != MARK_BEGIN)
			take(ph, o, &in);
		return;
	}
	if (!o->knows_level)
		return;
	phase_levels_add(&o->levels, o->level, &in);
	if (!o->is_touched) {
		o->next_touched = s->touched;
		s->touched = o;
		o->is_touched = true;
	}
}

void phase_gaps_take(struct phases *ph, struct shared *sh,
		     struct thread_phase *o, const struct mark_record *r)
{
	struct phase_slice *s = &sh->slice[o->phase];
	bool owns = mark_shm_owns(sh->shm, r->tid);
	bool knows = !sh->is_mixed && (owns || !sh->is_shared);
	if (o->slice != s || o->owns != owns || !knows)
		forget(o);
	if (o->slice == s && o->run == r->run && o->knows_level == knows)
		take_gap(ph, o, r, (enum mark_kind)(r->what % 4));
	o->slice = s;
	o->knows_level = knows;
	o->owns = owns;
	o->number = r->tid;
	o->level = r->level;
	o->is_behind_end = r->what % 4 == MARK_END;
	o->last_ns = r->left_ns;
	o->last_record = s->nr_records;
	if (knows)
		leave(ph, o, r->level);
}

void phase_gaps_weigh(struct phase *phase, struct phase_slice *s,
		      const double times[2])
{
	phase_inside_scale(&s->in, times);
	s->times[0] = times[0];
	s->times[1] = times[1];
	phase->weighted_ns += s->in.ns;
	s->in.ns = 0;
	while (s->touched) {
		struct thread_phase *o = s->touched;
		s->touched = o->next_touched;
		o->is_touched = false;
		phase_levels_scale(&o->levels, times);
	}
}

/* @o's level by now; false: it counts where it did not, or nowhere. */
static bool level_of(const struct shared *sh, const struct thread_phase *o,
		     int32_t *ret)
{
	size_t place = mark_shm_place(sh->shm, o->number);
	struct mark_pair now = mark_shm_pair(sh->shm, place, o->phase);
	*ret = (int32_t)(now.begun - now.ended);
	return o->owns ? place != 0 : !place && !sh->is_shared;
}

void phase_gaps_look(struct phases *ph, struct shared *sh)
{
	int32_t level;
	if (sh->is_mixed)
		return;
	for (size_t i = 0; i < PHASES_HASH_SIZE; i++)
		for (struct thread_phase *o = ph->open[i]; o; o = o->next)
			if (o->levels.nr && o->slice == &sh->slice[o->phase] &&
			    level_of(sh, o, &level))
				leave(ph, o, level);
}

void phase_gaps_end(struct phases *ph, struct shared *sh)
{
	for (size_t i = 0; i < PHASES_HASH_SIZE; i++)
		for (struct thread_phase *o = ph->open[i]; o; o = o->next)
			if (o->slice == &sh->slice[o->phase]) {
				forget(o);
				o->slice = NULL;
			}
}
