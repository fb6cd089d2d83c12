#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

#define LEAST_SPAN_NS (10 * NSEC_PER_MSEC)
/* Of one phase in an interval; those as long as the shortest interval cannot be
 * many. */
#define MAX_ALONE      32
#define MAX_ALONE_LONG 1024

void phase_spans_emit_one(struct phases *ph, const struct thread_phase *o,
			  const struct ev_phase *ev, uint64_t end_ns)
{
	ph->p.emit(ph->p.ctx,
		   &(struct record){
			   .event = EV_PHASE,
			   .time_ns = sat_sub_u64(end_ns, ph->p.start_ns),
			   .cpu = UINT32_MAX,
			   .tid = o->tid,
			   .param = o->phase,
			   .payload_len = sizeof(*ev),
			   .payload = ev,
		   });
}

static void join(struct phases *ph, struct thread_phase *o)
{
	if (o->is_in_span)
		return;
	o->is_in_span = true;
	o->next_in_span = ph->span;
	ph->span = o;
}

void phase_spans_inside(struct phases *ph, struct thread_phase *o, double ns)
{
	if (ns <= 0)
		return;
	o->inside_ns += ns;
	join(ph, o);
}

void phase_spans_take(struct phases *ph, struct thread_phase *o,
		      const struct ev_phase *ev, uint64_t nr, uint64_t own_ns,
		      uint64_t end_ns)
{
	struct phase *phase = &ph->phase[o->phase];
	size_t max =
		ev->length_ns >= LEAST_SPAN_NS ? MAX_ALONE_LONG : MAX_ALONE;
	join(ph, o);
	if (nr == 1 && phase->nr_alone < max) {
		phase->nr_alone++;
		phase->alone_ns += (double)own_ns;
		o->nr_alone++;
		phase->told++;
		phase_spans_emit_one(ph, o, ev, end_ns);
		return;
	}
	o->nr_in_span += nr;
	o->span_ns += own_ns;
}

static void emit(struct phases *ph, uint32_t phase, uint32_t tid,
		 const struct ev_phase_span *ev, uint64_t now_ns)
{
	ph->phase[phase].told += ev->count;
	ph->p.emit(ph->p.ctx,
		   &(struct record){
			   .event = EV_PHASE_SPAN,
			   .time_ns = sat_sub_u64(now_ns, ph->p.start_ns),
			   .cpu = UINT32_MAX,
			   .tid = tid,
			   .param = phase,
			   .payload_len = sizeof(*ev),
			   .payload = ev,
		   });
}

/* @part of @all, of @of; no 64 bits are too few. */
static uint64_t share_of(uint64_t all, uint64_t part, uint64_t of)
{
	return (uint64_t)((unsigned __int128)all * part / of);
}

/* Of a phase in an interval. */
struct span {
	uint64_t timed; /* by all threads, with records of their own or not */
	uint64_t
		untimed; /* entries that nobody timed, and no record tells of */
	uint64_t before; /* of those timed, by the threads before this one */
	/* Not all were timed: how long threads were inside, but for what has
	 * records of its own; of that, by what is known of each. */
	bool is_about;
	double about_ns, inside_ns;
};

/* What is more than an interval was before: until now, whenever. */
static void emit_late(struct phases *ph, const struct thread_phase *o,
		      double ns, uint64_t now_ns)
{
	const struct ev_phase_span ev = {
		.length_ns = sat_sub_u64(now_ns, ph->p.start_ns),
		.in_ns = (uint64_t)ns,
		.pid = o->pid,
	};
	if (ev.in_ns && ev.length_ns)
		emit(ph, o->phase, o->tid, &ev, now_ns);
}

/*
 * Entries that nobody timed are shared out among the threads whose others were:
 * rounded so that together they are all.
 */
static void emit_thread(struct phases *ph, struct thread_phase *o,
			struct span *s, uint64_t length_ns, uint64_t now_ns)
{
	uint64_t timed = o->nr_alone + o->nr_in_span;
	uint64_t until = s->before + timed;
	struct ev_phase_span ev = {
		.length_ns = length_ns,
		.count = o->nr_in_span,
		.nr_seen = o->nr_in_span,
		.seen_ns = o->span_ns,
		.pid = o->pid,
	};
	double in_ns = 0;
	if (s->timed)
		ev.count += share_of(s->untimed, until, s->timed) -
			    share_of(s->untimed, s->before, s->timed);
	if (s->is_about && s->inside_ns > 0)
		in_ns = s->about_ns * o->inside_ns / s->inside_ns;
	else if (s->is_about && s->timed)
		in_ns = s->about_ns * (double)timed / (double)s->timed;
	if (s->is_about)
		ev.in_ns = 1 + min_u64((uint64_t)in_ns, length_ns);
	s->before = until;
	if (ev.count || in_ns >= 1)
		emit(ph, o->phase, o->tid, &ev, now_ns);
	if (in_ns > (double)length_ns)
		emit_late(ph, o, in_ns - (double)length_ns, now_ns);
	o->nr_alone = o->nr_in_span = o->span_ns = 0;
	o->inside_ns = 0;
	o->is_in_span = false;
}

/* How long threads were inside since the last interval, as far as that is known
 * by now. */
static void find_about(const struct phases *ph, struct span *s, uint32_t i)
{
	struct phase *p = &ph->phase[i];
	double ns = phase_slices_inside_ns(ph, i);
	s->is_about = p->is_missed || s->untimed;
	s->about_ns = ns - p->told_ns - p->alone_ns;
	if (s->about_ns < 0)
		s->about_ns = 0;
	if (p->told_ns < ns)
		p->told_ns = ns;
	p->alone_ns = 0;
}

static void emit_span(struct phases *ph, uint64_t now_ns, bool is_last)
{
	struct span span[PHASES_MAX] = {0};
	uint64_t length_ns = sat_sub_u64(now_ns, ph->span_start_ns);
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		const struct phase *p = &ph->phase[i];
		uint64_t known = p->told + (is_last ? 0 : p->open);
		if (p->is_missed || is_last)
			span[i].untimed = sat_sub_u64(p->began, known);
		find_about(ph, &span[i], i);
	}
	for (struct thread_phase *o = ph->span; o; o = o->next_in_span) {
		struct span *s = &span[o->phase];
		s->timed += o->nr_alone + o->nr_in_span;
		s->untimed = sat_sub_u64(s->untimed, o->nr_in_span);
		s->inside_ns += o->inside_ns;
	}
	for (struct thread_phase *o = ph->span; o; o = o->next_in_span)
		emit_thread(ph, o, &span[o->phase], length_ns, now_ns);
	ph->span = NULL;
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		struct ev_phase_span ev = {.length_ns = length_ns,
					   .count = span[i].untimed};
		uint32_t tid = ph->has_more ? 0 : ph->sole_tid;
		ev.pid = ph->has_more ? 0 : ph->sole_pid;
		if (ev.count && !span[i].timed)
			emit(ph, i, tid, &ev, now_ns);
		ph->phase[i].nr_alone = 0;
		ph->phase[i].is_missed = false;
	}
	ph->span_start_ns = now_ns;
}

static bool is_due(const struct phases *ph, uint64_t now_ns)
{
	uint64_t span_ns = max_u64(ph->p.span_ns, LEAST_SPAN_NS);
	return now_ns >= ph->span_start_ns + span_ns;
}

static void look(struct phases *ph)
{
	for (size_t i = 0; i < ph->p.nr; i++)
		ph->phase[i].began = phases_count(ph, i);
}

void phase_spans_look(struct phases *ph, uint64_t now_ns)
{
	if (is_due(ph, now_ns))
		look(ph);
}

void phase_spans_tick(struct phases *ph, uint64_t now_ns)
{
	if (is_due(ph, now_ns))
		emit_span(ph, now_ns, false);
}

void phase_spans_finish(struct phases *ph, uint64_t now_ns)
{
	look(ph);
	emit_span(ph, now_ns, true);
}
