/*
 * Ranges by phase. Time is cut into pieces: at the end of each, what sensors
 * saw in it is taken, and where the process was in it is asked. Of a phase that
 * it was in all of that time those values are its own; of one that it was in
 * for a part they may be. So phases shorter than a piece have only values that
 * may be theirs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* A piece of time; longer where taking would cost more than one such part of
 * the target. */
#define PIECE_NS    (10 * NSEC_PER_MSEC)
#define PIECE_SHARE 20

void range_phases_begin(const struct range_monitor *m, struct range_part *rp)
{
	if (!m->p.nr_phases)
		return;
	/* Without the memory for it there is none of this. */
	rp->fresh = calloc(rp->unit->vars->nr_vars + 1, sizeof(*rp->fresh));
}

static bool less(const struct var_type *t, int64_t a, int64_t b)
{
	return t->is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

/* Is [*smallest, *largest] wider for it? */
static bool widen(const struct var_type *t, const struct range_value *v,
		  bool *any, int64_t *smallest, int64_t *largest)
{
	bool wider = !*any;
	if (!*any || less(t, v->smallest, *smallest)) {
		*smallest = v->smallest;
		wider = true;
	}
	if (!*any || less(t, *largest, v->largest)) {
		*largest = v->largest;
		wider = true;
	}
	*any = true;
	return wider;
}

static void add(struct range_phase_value *to, const struct var_type *t,
		const struct range_value *v, enum range_presence where)
{
	if (widen(t, v, &to->any, &to->smallest, &to->largest))
		to->is_new = true;
	if (where == RANGE_ALL &&
	    widen(t, v, &to->any_sure, &to->sure_smallest, &to->sure_largest))
		to->is_new = true;
}

static void hand_out(const struct range_monitor *m, struct range_part *rp,
		     const enum range_presence *where)
{
	const struct variables *vars = rp->unit->vars;
	for (size_t i = 0; i < vars->nr_vars; i++) {
		struct range_value *v = &rp->fresh[i];
		if (!v->flags)
			continue;
		for (size_t p = 0; p < m->p.nr_phases && rp->in_phase; p++)
			if (where[p] != RANGE_OUT)
				add(&rp->in_phase[p * vars->nr_vars + i],
				    &vars->vars[i].type, v, where[p]);
		v->flags = 0;
	}
}

void range_phases_step(struct range_monitor *m, struct range_part *rp)
{
	size_t nr_vars = rp->unit->vars ? rp->unit->vars->nr_vars : 0;
	if (!rp->fresh || !rp->proc)
		return;
	_cleanup_free_ enum range_presence *where =
		calloc(m->p.nr_phases, sizeof(*where));
	if (!where)
		return;
	m->p.look(m->p.ctx, rp->proc);
	range_collect(rp);
	m->p.presence(m->p.ctx, rp->proc, where);
	for (size_t p = 0; p < m->p.nr_phases && !rp->in_phase; p++)
		if (where[p] != RANGE_OUT)
			rp->in_phase = calloc(m->p.nr_phases * nr_vars,
					      sizeof(*rp->in_phase));
	hand_out(m, rp, where);
}

void range_phases_tick(struct range_monitor *m, uint64_t now_ns)
{
	int64_t share_ppb = m->p.target_overhead_ppb / PIECE_SHARE;
	for (struct range_part *rp = m->parts; rp; rp = rp->next) {
		if (!rp->fresh || !rp->proc || now_ns < rp->next_phases_ns)
			continue;
		uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		range_phases_step(m, rp);
		uint64_t ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
		u128 least =
			(u128)ns * PPB / (u128)(share_ppb > 0 ? share_ppb : 1);
		/* Ticks are as far apart as a piece. */
		rp->next_phases_ns = sat_add_u64(
			now_ns, max_u64(sat_u64(least), PIECE_NS / 2));
	}
}

bool range_phases_emit(struct range_monitor *m, struct range_part *rp,
		       uint64_t now_ns)
{
	const struct range_unit *u = rp->unit;
	size_t nr_vars = u->vars ? u->vars->nr_vars : 0;
	for (size_t k = 0; rp->in_phase && k < m->p.nr_phases * nr_vars; k++) {
		struct range_phase_value *v = &rp->in_phase[k];
		if (!v->is_new)
			continue;
		const struct ev_phase_range ev = {
			.smallest = v->smallest,
			.largest = v->largest,
			.sure_smallest = v->any_sure ? v->sure_smallest : 0,
			.sure_largest = v->any_sure ? v->sure_largest : 0,
			.phase = (uint32_t)(k / nr_vars),
			.pid = rp->pid,
			.flags = v->any_sure ? PHASE_RANGE_SURE : 0u,
		};
		if (!range_emit_record(m, EV_PHASE_RANGE,
				       u->first_id + (uint32_t)(k % nr_vars),
				       now_ns, &ev, sizeof(ev)))
			return false;
		v->is_new = false;
	}
	return true;
}
