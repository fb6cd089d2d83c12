/*
 * From records to how long phases lasted.
 *
 * A function may call itself, and be left without passing its end (an
 * exception, longjmp): each call is told by where its return address lies on
 * the stack. A call is over when the stack has shrunk beyond that; of those
 * whose end was not passed only the count is known. Calls within calls count
 * themselves only what is not within them, so that all together are as long as
 * the phase was. Where not all are recorded that is told by phase-gaps.c.
 *
 * Each record says how long it took to be written, which is no part of a call
 * (mark.h). From one to the next lies what the first still has to do and what
 * the second does before it looks at the clock: that is measured where nothing
 * else lies between them (mark-cost.h), and taken off, too. What else there is
 * in a sensor, of another phase or not recorded, is time of the program's.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

#define MAX_OPEN  65536
#define MAX_CALLS 64 /* of a function by itself; deeper ones are the last's */

static struct thread_phase **slot_of(struct phases *ph, uint32_t tid,
				     uint32_t phase)
{
	struct thread_phase **at =
		&ph->open[(tid * 31u + phase) % PHASES_HASH_SIZE];
	while (*at && ((*at)->tid != tid || (*at)->phase != phase))
		at = &(*at)->next;
	return at;
}

static struct thread_phase *open_of(struct phases *ph, const struct shared *sh,
				    uint32_t tid, uint32_t phase)
{
	struct thread_phase **at = slot_of(ph, tid, phase);
	if (*at || ph->nr_open == MAX_OPEN)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (!*at)
		return NULL;
	/* Of a thread that has ended it is known where there is but one. */
	uint32_t pid = ph->p.pid_of(ph->p.ctx, tid);
	**at = (struct thread_phase){
		.tid = tid,
		.pid = pid || sh->nr_owners > 1 ? pid : sh->pid,
		.phase = phase,
	};
	ph->nr_open++;
	return *at;
}

static uint32_t depth_of(struct phases *ph, uint32_t tid)
{
	uint32_t depth = 0;
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		const struct thread_phase *o = *slot_of(ph, tid, i);
		depth += o ? o->nr_calls : 0;
	}
	return depth;
}

/* The innermost call is over. */
static const struct call *drop_call(struct phases *ph, struct thread_phase *o)
{
	const struct call *c = &o->call[--o->nr_calls];
	ph->phase[o->phase].open -= 1 + c->nr_deeper;
	return c;
}

static void drop_calls(struct phases *ph, struct thread_phase *o)
{
	while (o->nr_calls)
		drop_call(ph, o);
}

static struct ev_phase ev_of(const struct thread_phase *o, const struct call *c,
			     uint64_t end_ns, uint64_t timing_ns)
{
	return (struct ev_phase){
		.length_ns = sat_sub_u64(end_ns, c->since_ns + timing_ns),
		.pid = o->pid,
		.depth = c->depth,
	};
}

/* The innermost call ends. */
static void end_call(struct phases *ph, struct thread_phase *o,
		     const struct mark_record *r)
{
	uint64_t end_ns = r->time_ns;
	struct phase *phase = &ph->phase[o->phase];
	const struct call *c = drop_call(ph, o);
	struct ev_phase ev = ev_of(o, c, end_ns, ph->timing_ns);
	uint64_t own_ns = sat_sub_u64(ev.length_ns, c->inner_ns);
	uint64_t nr = 1 + c->nr_deeper;
	phase->nr_seen += nr;
	phase->seen_ns += own_ns;
	if (phase->name.function && !o->knows_level)
		phase_gaps_take_call(ph, o, c->record, own_ns);
	phase->longest_ns = max_u64(phase->longest_ns, ev.length_ns);
	if (o->nr_calls)
		o->call[o->nr_calls - 1].inner_ns +=
			sat_sub_u64(r->left_ns, c->began_ns) + ph->timing_ns;
	phase_spans_take(ph, o, &ev, nr, own_ns, end_ns);
}

static void begin_call(struct phases *ph, struct thread_phase *o,
		       const struct mark_record *r)
{
	uint32_t depth = depth_of(ph, o->tid);
	if (o->nr_calls == MAX_CALLS) {
		o->call[MAX_CALLS - 1].nr_deeper++;
		ph->phase[o->phase].open++;
		return;
	}
	if (o->nr_calls == o->cap_calls) {
		uint32_t cap = o->cap_calls ? MAX_CALLS : 1;
		struct call *more = realloc(o->call, cap * sizeof(*more));
		if (!more)
			return;
		o->call = more;
		o->cap_calls = cap;
	}
	o->call[o->nr_calls++] = (struct call){.sp = r->sp,
					       .began_ns = r->time_ns,
					       .since_ns = r->left_ns,
					       .depth = depth,
					       .record = o->slice->nr_records};
	ph->phase[o->phase].open++;
}

static void take_function(struct phases *ph, struct thread_phase *o,
			  const struct mark_record *r, enum mark_kind kind)
{
	/* Left by other ways than their ends. */
	while (o->nr_calls &&
	       (o->call[o->nr_calls - 1].sp < r->sp ||
		(kind == MARK_BEGIN && o->call[o->nr_calls - 1].sp == r->sp)))
		drop_call(ph, o);
	if (kind == MARK_BEGIN)
		begin_call(ph, o, r);
	else if (o->nr_calls && o->call[o->nr_calls - 1].sp == r->sp)
		end_call(ph, o, r);
}

/* The number by which we know the thread that has @own itself; 0: it has ended,
 * and nobody is left to ask. */
static uint32_t tid_of_own(struct phases *ph, struct shared *sh, uint32_t own)
{
	struct own_number *n = &sh->number[own % PHASE_NUMBERS];
	if (!own)
		return sh->pid;
	if (!sh->has_own_numbers)
		return own;
	if (n->own != own || !n->tid)
		*n = (struct own_number){own,
					 ph->p.tid_of(ph->p.ctx, sh->pid, own)};
	return n->tid;
}

/* 0 also where it cannot be told. */
static uint32_t tid_of(struct phases *ph, struct shared *sh,
		       const struct mark_record *r)
{
	uint32_t tid;
	switch (phase_threads_find(sh, r, &tid)) {
	case PHASE_THREAD_TOLD:
		return tid;
	case PHASE_THREAD_UNKNOWN:
		ph->nr_unknown += r->what % 4 != MARK_END;
		return 0;
	default:
		return tid_of_own(ph, sh, r->tid);
	}
}

struct thread_phase *phase_times_find(struct phases *ph, struct shared *sh,
				      uint32_t own, uint32_t phase)
{
	return *slot_of(ph, tid_of_own(ph, sh, own), phase);
}

void phase_times_doubt(struct phases *ph, struct shared *sh, uint32_t own)
{
	uint32_t tid = tid_of_own(ph, sh, own);
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		struct thread_phase *o = *slot_of(ph, tid, i);
		while (o && o->nr_calls)
			ph->nr_unknown += 1 + drop_call(ph, o)->nr_deeper;
	}
}

/* What was passed without a record in between is of another run: such a pair
 * says nothing. */
void phase_times_take(struct phases *ph, struct shared *sh,
		      const struct mark_record *r)
{
	uint32_t number = r->what / 4;
	enum mark_kind kind = (enum mark_kind)(r->what % 4);
	if (number >= ph->p.nr) /* the tracee can write there */
		return;
	sh->slice[number].nr_records++;
	ph->phase[number].nr_recorded++;
	uint32_t tid = tid_of(ph, sh, r);
	struct thread_phase *o = tid ? open_of(ph, sh, tid, number) : NULL;
	if (!o)
		return;
	if (o->run != r->run || o->slice != &sh->slice[number])
		drop_calls(ph, o);
	phase_gaps_take(ph, sh, o, r);
	o->run = r->run;
	if (ph->phase[number].name.function) {
		take_function(ph, o, r, kind);
		return;
	}
	if (o->nr_calls && kind != MARK_BEGIN)
		end_call(ph, o, r);
	drop_calls(ph, o);
	if (kind != MARK_END)
		begin_call(ph, o, r);
}

/* Otherwise an end may be missing. */
bool phase_times_miss_none(const struct phases *ph, uint32_t phase)
{
	const struct phase *p = &ph->phase[phase];
	return p->nr_seen + p->open == phases_count(ph, phase);
}

static void leave(struct phases *ph, struct thread_phase *o, uint64_t now_ns)
{
	bool sure = o->nr_calls && phase_times_miss_none(ph, o->phase);
	while (o->nr_calls) {
		const struct call *c = drop_call(ph, o);
		struct ev_phase ev = ev_of(o, c, now_ns, 0);
		if (!sure)
			continue;
		ev.flags = PHASE_ONGOING;
		ph->phase[o->phase].told += 1 + c->nr_deeper;
		phase_spans_emit_one(ph, o, &ev, now_ns);
	}
}

void phase_times_leave(struct phases *ph, uint32_t pid, uint64_t now_ns)
{
	for (size_t i = 0; i < PHASES_HASH_SIZE; i++)
		for (struct thread_phase *o = ph->open[i]; o; o = o->next)
			if (o->pid == pid)
				leave(ph, o, now_ns);
}

void phase_times_free(struct phases *ph)
{
	for (size_t i = 0; i < PHASES_HASH_SIZE; i++)
		while (ph->open[i]) {
			struct thread_phase *o = ph->open[i];
			ph->open[i] = o->next;
			free(o->call);
			free(o);
		}
}
