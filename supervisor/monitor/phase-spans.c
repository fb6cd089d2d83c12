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

void phase_spans_take(struct phases *ph, struct thread_phase *o,
		      const struct ev_phase *ev, uint64_t nr, uint64_t own_ns,
		      uint64_t end_ns)
{
	struct phase *phase = &ph->phase[o->phase];
	size_t max =
		ev->length_ns >= LEAST_SPAN_NS ? MAX_ALONE_LONG : MAX_ALONE;
	if (!o->nr_in_span && !o->nr_alone) {
		o->next_in_span = ph->span;
		ph->span = o;
	}
	if (nr == 1 && phase->nr_alone < max) {
		phase->nr_alone++;
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
};

/*
 * Entries that nobody timed are shared out among the threads whose others were:
 * rounded so that together they are all.
 */
static void emit_thread(struct phases *ph, struct thread_phase *o,
			struct span *s, uint64_t length_ns, uint64_t now_ns)
{
	uint64_t until = s->before + o->nr_alone + o->nr_in_span;
	struct ev_phase_span ev = {
		.length_ns = length_ns,
		.count = o->nr_in_span + share_of(s->untimed, until, s->timed) -
			 share_of(s->untimed, s->before, s->timed),
		.nr_seen = o->nr_in_span,
		.seen_ns = o->span_ns,
		.pid = o->pid,
	};
	s->before = until;
	if (ev.count)
		emit(ph, o->phase, o->tid, &ev, now_ns);
	o->nr_alone = o->nr_in_span = o->span_ns = 0;
}

static void emit_span(struct phases *ph, uint64_t now_ns, bool is_last)
{
	struct span span[PHASES_MAX] = {0};
	uint64_t length_ns = sat_sub_u64(now_ns, ph->span_start_ns);
	for (size_t i = 0; i < ph->p.nr; i++) {
		const struct phase *p = &ph->phase[i];
		uint64_t known = p->told + (is_last ? 0 : p->open);
		if (p->is_missed || is_last)
			span[i].untimed = sat_sub_u64(p->began, known);
	}
	for (struct thread_phase *o = ph->span; o; o = o->next_in_span) {
		struct span *s = &span[o->phase];
		s->timed += o->nr_alone + o->nr_in_span;
		s->untimed = sat_sub_u64(s->untimed, o->nr_in_span);
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
