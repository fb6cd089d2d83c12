#include "reports/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/model.h"
#include "reports/select.h"
#include "reports/units.h"

#define MAX_PHASES 4096 /* more are a forgery */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Index of the phase called @name; UINT32_MAX when out of memory. */
static uint32_t phase_of(struct model_phases *m, const char *name)
{
	for (size_t i = 0; i < m->nr; i++)
		if (!strcmp(m->phase[i].name, name))
			return (uint32_t)i;
	if (!ARRAY_ROOM(m->phase, m->nr, m->cap))
		return UINT32_MAX;
	m->phase[m->nr] = (struct model_phase){.name = name};
	return (uint32_t)m->nr++;
}

static struct phase_part *part_of(struct model_phases *m,
				  struct trace_reader *reader, uint32_t file,
				  uint32_t id)
{
	char key[32];
	for (size_t i = m->nr_parts; i--;)
		if (m->part[i].file == file && m->part[i].id == id)
			return &m->part[i];
	snprintf(key, sizeof(key), "phase.%u", id);
	const char *name = trace_meta(reader, key);
	uint32_t phase = phase_of(m, name ? name : "?");
	if (phase == UINT32_MAX ||
	    !ARRAY_ROOM(m->part, m->nr_parts, m->cap_parts))
		return NULL;
	struct phase_part *p = &m->part[m->nr_parts++];
	*p = (struct phase_part){
		.file = file, .id = id, .phase = phase, .reader = reader};
	return p;
}

int model_phases_index(struct model_phases *m, struct trace_reader *reader,
		       uint32_t file, uint32_t id, uint32_t *ret)
{
	if (m->nr_parts >= MAX_PHASES)
		return SMCO_NOTFOUND;
	struct phase_part *p = part_of(m, reader, file, id);
	if (!p)
		return SMCO_NOMEM;
	*ret = p->phase;
	return SMCO_OK;
}

/* Cumulative: what it has more than the last one. Sums never go down, or it is
 * no trace of ours. */
static uint64_t growth(uint64_t now, uint64_t last)
{
	return now > last ? now - last : 0;
}

int model_phases_take(struct model_phases *m, struct trace_reader *reader,
		      uint32_t file, const struct record *r)
{
	struct ev_phase_total ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (m->nr_parts >= MAX_PHASES)
		return SMCO_OK;
	struct phase_part *p = part_of(m, reader, file, r->param);
	if (!p)
		return SMCO_NOMEM;
	struct ev_phase_total *sum = &m->phase[p->phase].sum;
	sum->count = add(sum->count, growth(ev.count, p->last.count));
	sum->nr_seen = add(sum->nr_seen, growth(ev.nr_seen, p->last.nr_seen));
	sum->seen_ns = add(sum->seen_ns, growth(ev.seen_ns, p->last.seen_ns));
	if (ev.longest_ns > sum->longest_ns)
		sum->longest_ns = ev.longest_ns;
	p->last = ev;
	return SMCO_OK;
}

/* @piece of phase @p in the @length_ns that end with record @r. */
static int add_when(struct model_phases *m, uint32_t file,
		    const struct select *select, const struct phase_part *p,
		    const struct record *r, uint32_t pid, uint64_t length_ns,
		    struct when_piece piece)
{
	if (!select_thread(select, pid, r->tid) ||
	    !when_clip(&piece, r->time_ns, length_ns, select->from_ns,
		       select->to_ns))
		return SMCO_OK;
	return model_when_add(&m->when, file, p->phase, pid, r->tid, &piece);
}

int model_phases_take_timed(struct model_phases *m, struct trace_reader *reader,
			    uint32_t file, const struct select *select,
			    const struct record *r)
{
	struct ev_phase ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (m->nr_parts >= MAX_PHASES)
		return SMCO_OK;
	struct phase_part *p = part_of(m, reader, file, r->param);
	if (!p)
		return SMCO_NOMEM;
	p->nr_timed++;
	p->timed_ns += (double)ev.length_ns;
	return add_when(m, file, select, p, r, ev.pid, ev.length_ns,
			(struct when_piece){.in_ns = ev.length_ns, .nr = 1});
}

/* Known late: whenever it was in that time. */
static int add_late(struct model_phases *m, uint32_t file,
		    const struct select *select, const struct phase_part *p,
		    const struct record *r, const struct ev_phase_span *ev)
{
	struct when_piece piece = {.in_ns = ev->in_ns};
	if (!select_thread(select, ev->pid, r->tid) ||
	    !when_clip(&piece, r->time_ns, ev->length_ns, select->from_ns,
		       select->to_ns))
		return SMCO_OK;
	return model_when_add_late(&m->when, file, p->phase, ev->pid, r->tid,
				   &piece);
}

int model_phases_take_span(struct model_phases *m, struct trace_reader *reader,
			   uint32_t file, const struct select *select,
			   const struct record *r)
{
	struct ev_phase_span ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (m->nr_parts >= MAX_PHASES)
		return SMCO_OK;
	struct phase_part *p = part_of(m, reader, file, r->param);
	if (!p)
		return SMCO_NOMEM;
	p->nr_timed += (double)ev.nr_seen;
	p->timed_ns += (double)ev.seen_ns;
	/* Those that were not timed were like those that were: at that time if
	 * there are any, or else until then. */
	double mean_ns = ev.nr_seen ? (double)ev.seen_ns / (double)ev.nr_seen
			 : p->nr_timed > 0 ? p->timed_ns / p->nr_timed
					   : 0;
	double in_ns =
		ev.in_ns ? (double)(ev.in_ns - 1) : mean_ns * (double)ev.count;
	if (!ev.count && !ev.nr_seen)
		return add_late(m, file, select, p, r, &ev);
	struct when_piece piece = {.nr = ev.count};
	piece.in_ns =
		in_ns < (double)ev.length_ns ? (uint64_t)in_ns : ev.length_ns;
	return add_when(m, file, select, p, r, ev.pid, ev.length_ns, piece);
}

/* How long all of a file were; false: not known. */
static bool estimate_of(const struct phase_part *p, uint64_t *ret)
{
	char key[40];
	*ret = p->last.seen_ns;
	if (p->last.nr_seen >= p->last.count)
		return true;
	snprintf(key, sizeof(key), "phase.%u.about_ns", p->id);
	*ret = model_reader_u64(p->reader, key, 0);
	return *ret != 0;
}

static void estimate(struct model_phases *m)
{
	for (size_t i = 0; i < m->nr; i++)
		m->phase[i].is_estimated = true;
	for (size_t i = 0; i < m->nr_parts; i++) {
		struct model_phase *p = &m->phase[m->part[i].phase];
		uint64_t ns;
		if (!estimate_of(&m->part[i], &ns))
			p->is_estimated = false;
		p->about_ns = add(p->about_ns, ns);
	}
}

uint64_t phase_about_ns(const struct model_phases *m, size_t phase, size_t file)
{
	uint64_t sum = 0, ns;
	bool any = false;
	for (size_t i = 0; i < m->nr_parts; i++) {
		const struct phase_part *p = &m->part[i];
		if (p->phase != phase || p->file != file)
			continue;
		if (!estimate_of(p, &ns))
			return 0;
		any |= p->last.nr_seen < p->last.count;
		sum = add(sum, ns);
	}
	return any ? sum : 0;
}

int model_phases_finish(struct model_phases *m)
{
	estimate(m);
	int rc = model_when_finish(&m->when);
	for (size_t i = 0; i < m->when.nr; i++) {
		const struct when_track *t = &m->when.track[i];
		struct model_phase *p = &m->phase[t->phase];
		for (size_t k = 0; k < t->nr; k++) {
			p->in_ns += (double)t->piece[k].in_ns;
			p->nr_in = add(p->nr_in, t->piece[k].nr);
		}
	}
	return rc;
}

void model_phases_free(struct model_phases *m)
{
	model_when_free(&m->when);
	phase_sums_free(m->sums, m->nr_sums);
	free(m->phase);
	free(m->part);
}

static double timed_mean_ns(const struct model_phase *p)
{
	return p->sum.nr_seen ? (double)p->sum.seen_ns / (double)p->sum.nr_seen
			      : 0;
}

static bool is_all_timed(const struct model_phase *p)
{
	return p->sum.nr_seen >= p->sum.count;
}

double phase_mean_ns(const struct model_phase *p)
{
	return !is_all_timed(p) && p->is_estimated
		       ? (double)p->about_ns / (double)p->sum.count
		       : timed_mean_ns(p);
}

uint64_t phase_total_ns(const struct model_phase *p)
{
	double ns = timed_mean_ns(p) * (double)p->sum.count;
	if (is_all_timed(p))
		return p->sum.seen_ns;
	if (p->is_estimated)
		return p->about_ns;
	/* Where it is known when each was. */
	if (p->nr_in >= p->sum.count && ns > p->in_ns)
		ns = p->in_ns;
	return units_whole(ns);
}

int phases_none(struct smco_err *err)
{
	return smco_fail(err, SMCO_NOTFOUND, 0,
			 "no phases in the trace: they are recorded by "
			 "smco-trace --phase NAME");
}
