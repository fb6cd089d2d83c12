/* How much the sensors record of allocations, and when that is read. */
#include <time.h>

#include "supervisor/control/fixed.h"
#include "supervisor/session-private.h"

#define MAX_TOKENS    (1u << 20)
#define TRAP_TOKENS   64
#define STACK_COST_NS (20 * NSEC_PER_USEC)
/* A ring that fills faster than this stops its program when it is full. */
#define SOONEST_NS (5 * NSEC_PER_MSEC)
#define ENOUGH	   (HOOKS_RING / 4 * 3)

void session_recording_init(struct session *s)
{
	allowance_init(&s->recording.allowance, session_budget_ppb(s));
	s->recording.read_ns = s->start_ns;
	s->recording.due_ns = UINT64_MAX;
	price_init(&s->recording.stack, STACK_COST_NS);
}

/* While the table is made that they all need, stacks are but stops. */
void session_recording_stack(struct session *s, struct watched *w,
			     uint64_t stop_ns)
{
	struct recording *r = &s->recording;
	r->stacks_ns +=
		smco_now_ns() - stop_ns + tracer_stop_cost_ns(s->tracer);
	r->nr_stacks++;
	if (!w || !w->hooks)
		return;
	price_note(&r->stack, !w->stack_late);
	if (w->stack_late && price_is_vain(&r->stack) && s->opt->target_ppb)
		hooks_set_trap_tokens(w->hooks, 0);
}

void session_recording_room(struct session *s, struct watched *w,
			    uint64_t now_ns)
{
	if (!w->hooks || now_ns < w->room_due_ns)
		return;
	if (!w->room_due_ns)
		w->memory_group = memory_rooms_find(s->rooms, w->pid);
	w->room_due_ns = now_ns + NSEC_PER_SEC;
	struct memory_spare spare =
		memory_rooms_look(s->rooms, w->memory_group, now_ns, NULL);
	if (hooks_set_spare(w->hooks, spare.small_bytes, spare.large_bytes))
		trace_put_meta(s->trace, "sensors", hooks_describe(w->hooks));
}

/* What they cost is known when the ledger has been told. */
static void learn_stacks(struct session *s, uint64_t charged_ns)
{
	struct recording *r = &s->recording;
	uint64_t seen_ns =
		tracer_stop_ns(s->tracer) +
		tracer_nr_stops(s->tracer) * tracer_stop_cost_ns(s->tracer);
	uint64_t ns =
		price_as_charged(r->stacks_ns, sat_sub_u64(seen_ns, r->seen_ns),
				 sat_sub_u64(charged_ns, r->charged_ns));
	price_learn_all(&r->stack, r->nr_stacks, ns);
	r->nr_stacks = 0;
	r->stacks_ns = 0;
	r->seen_ns = seen_ns;
	r->charged_ns = charged_ns;
}

uint64_t session_recording_due_ns(const struct session *s)
{
	return s->recording.is_due ? 0 : s->recording.due_ns;
}

void session_recording_read(struct session *s)
{
	struct recording *r = &s->recording;
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t now_ns = smco_now_ns(), since_ns = now_ns - r->read_ns;
	uint64_t most = 0;
	for (size_t i = 0; i < s->nr_ws; i++)
		most = max_u64(most, watched_drain(s->ws[i], s->stacks));
	r->is_due = false;
	r->read_ns = now_ns;
	r->due_ns = UINT64_MAX;
	if (most > ENOUGH / 8) /* else ticks are often enough */
		r->due_ns =
			now_ns + max_u64(since_ns * ENOUGH / most, SOONEST_NS);
	r->cpu_ns += smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

void session_recording_advance(struct session *s)
{
	struct recording *r = &s->recording;
	struct ledger_totals t;
	ledger_get(s->ledger, &t);
	learn_stacks(s, t.mech_ns[LEDGER_STOP]);
	/* Of the CPU time that we took from the program this part. */
	double own_ns = (double)smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	double reading = (double)t.mech_ns[LEDGER_CPU] * (double)r->cpu_ns /
			 (own_ns + 1);
	allowance_advance(&r->allowance, t.base_ns,
			  t.mech_ns[LEDGER_AGENT] + (uint64_t)reading +
				  r->stack.spent_ns);
}

void session_recording_refill(struct session *s, struct watched *w)
{
	if (!s->opt->target_ppb)
		return;
	const struct allowance *a = &s->recording.allowance;
	int64_t room_ns = ledger_room_ns(s->ledger);
	uint64_t ns = allowance_ns(a, room_ns, s->gap_ns, s->nr_ws);
	uint64_t dear_ns = allowance_dear_ns(a, room_ns, s->gap_ns, s->nr_ws);
	uint64_t tokens = ns / (hooks_cost_ns(w->hooks) + 1);
	uint64_t traps = price_buys(&s->recording.stack, dear_ns);
	hooks_set_tokens(w->hooks, (uint32_t)min_u64(tokens, MAX_TOKENS));
	hooks_set_trap_tokens(w->hooks, (uint32_t)min_u64(traps, TRAP_TOKENS));
}
