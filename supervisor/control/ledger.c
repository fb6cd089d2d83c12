/*
 * The ledger is a token bucket that may owe. Its balance grows by m_t times
 * the program's time and shrinks by what is charged. It is kept within
 * [-debt, pile] of zero, where both are shares of
 *
 *	slack = m(o_t + max(1 point, o_t / 10)) - m(o_t)
 *
 * times B, the program's time so far, at most 10 s. In a stretch of time with
 * base R the program loses at most m_t R + pile + debt. With pile = slack B / 4
 * and debt = slack B / 2 that is below (m_t + slack) R for the whole run and
 * for every stretch of 10 s of the program's time; a quarter is left for
 * charges that nobody could reserve and for what falls between two ticks.
 *
 * Reservations lean on the debt first: of what is armed only the part beyond
 * it is taken out of the room. Else a thousand armed things that never cost
 * anything would stop the watching of all others.
 */
#include <stdlib.h>

#include "supervisor/control/control.h"
#include "supervisor/control/fixed.h"
#include "supervisor/control/window.h"

/* An idle program counts as running for this part of the wall time. */
#define FLOOR_DIVISOR 100
/*
 * The floor is a minimum over a stretch of time, not over each tick: run time
 * first makes up for floor granted before (at most this much) ...
 */
#define FLOOR_AHEAD_NS (100 * (int64_t)NSEC_PER_MSEC)
/* ... and surplus run time holds the floor back (at most for a second). */
#define FLOOR_BEHIND_NS (10 * (int64_t)NSEC_PER_MSEC)

#define NR_MONITORS 16

struct ledger {
	bool is_unlimited;
	int64_t m_t_ppb;
	int64_t slack_ppb;
	bool has_started; /* last_ns is valid */
	uint64_t last_ns;
	int64_t ahead_ns; /* base granted beyond run time; < 0: the reverse */
	int64_t balance_ns;
	uint64_t reserved_ns;
	uint64_t run_ns, base_ns, spent_ns;
	uint64_t by_ns[LEDGER_NR][NR_MONITORS];
	struct window recent; /* along wall time */
	struct window own;    /* along the program's time */
};

int64_t control_m_from_overhead(int64_t o)
{
	if (o <= 0)
		return 0;
	if (target_is_unlimited(o))
		return PPB;
	return (int64_t)((u128)(uint64_t)o * PPB / ((u128)(uint64_t)o + PPB));
}

const char *ledger_mech_name(enum ledger_mech m)
{
	static const char *const names[LEDGER_NR] = {
		[LEDGER_STOP] = "stop",	  [LEDGER_AGENT] = "agent",
		[LEDGER_TOUCH] = "touch", [LEDGER_ARM] = "arm",
		[LEDGER_CPU] = "cpu",	  [LEDGER_OTHER] = "other",
	};
	return (unsigned)m < LEDGER_NR ? names[m] : "other";
}

struct ledger *ledger_create(int64_t target)
{
	struct ledger *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->is_unlimited = target_is_unlimited(target);
	l->m_t_ppb = control_m_from_overhead(target);
	if (target > 0 && !l->is_unlimited) {
		int64_t more =
			target / 10 > PPB / 100 ? target / 10 : PPB / 100;
		int64_t hi = sat_i64((i128)target + more);
		l->slack_ppb = control_m_from_overhead(hi) - l->m_t_ppb;
	}
	window_init(&l->recent);
	window_init(&l->own);
	return l;
}

void ledger_destroy(struct ledger *l)
{
	free(l);
}

/* What @wall_ns with @run_ns in it adds to the program's time. */
static uint64_t add_base(struct ledger *l, uint64_t wall_ns, uint64_t run_ns)
{
	int64_t was = l->ahead_ns > 0 ? l->ahead_ns : 0;
	i128 ahead = (i128)l->ahead_ns + wall_ns / FLOOR_DIVISOR - run_ns;
	int64_t is = ahead > 0 ? sat_i64(ahead) : 0;
	l->ahead_ns =
		clamp_i64(sat_i64(ahead), -FLOOR_BEHIND_NS, FLOOR_AHEAD_NS);
	/* Not negative: is >= was - run. */
	return sat_u64((u128)((i128)run_ns + is - was));
}

static uint64_t slack_ns(const struct ledger *l)
{
	return mul_ppb(min_u64(l->base_ns, WINDOW_NS), l->slack_ppb);
}

void ledger_advance(struct ledger *l, uint64_t now_ns, uint64_t run_ns)
{
	uint64_t wall = l->has_started ? sat_sub_u64(now_ns, l->last_ns) : 0;
	l->has_started = true;
	l->last_ns = max_u64(now_ns, l->last_ns);

	uint64_t base = add_base(l, wall, run_ns);
	l->run_ns = sat_add_u64(l->run_ns, run_ns);
	l->base_ns = sat_add_u64(l->base_ns, base);
	window_advance(&l->recent, wall, base);
	window_advance(&l->own, base, base);

	/* The pile is what is left over; this tick's share comes on top. */
	int64_t pile = (int64_t)(slack_ns(l) / 4);
	if (l->balance_ns > pile)
		l->balance_ns = pile;
	l->balance_ns =
		sat_i64((i128)l->balance_ns + mul_ppb(base, l->m_t_ppb));
}

void ledger_charge(struct ledger *l, enum ledger_mech mech, unsigned monitor,
		   uint64_t p_ns)
{
	if ((unsigned)mech >= LEDGER_NR)
		mech = LEDGER_OTHER;
	if (monitor >= NR_MONITORS)
		monitor = NR_MONITORS - 1;
	uint64_t *by = &l->by_ns[mech][monitor];
	*by = sat_add_u64(*by, p_ns);
	l->spent_ns = sat_add_u64(l->spent_ns, p_ns);
	l->balance_ns = sat_i64((i128)l->balance_ns - p_ns);
	window_charge(&l->recent, p_ns);
	window_charge(&l->own, p_ns);
}

int64_t ledger_room_ns(const struct ledger *l)
{
	if (l->is_unlimited)
		return INT64_MAX;
	uint64_t debt = slack_ns(l) / 2;
	return sat_i64((i128)l->balance_ns - sat_sub_u64(l->reserved_ns, debt));
}

void ledger_reserve(struct ledger *l, uint64_t ns)
{
	l->reserved_ns = sat_add_u64(l->reserved_ns, ns);
}

void ledger_release(struct ledger *l, uint64_t ns)
{
	l->reserved_ns = sat_sub_u64(l->reserved_ns, ns);
}

uint64_t ledger_spent_ns(const struct ledger *l, enum ledger_mech mech,
			 unsigned monitor)
{
	if ((unsigned)mech >= LEDGER_NR)
		return 0;
	if (monitor >= NR_MONITORS)
		monitor = NR_MONITORS - 1;
	return l->by_ns[mech][monitor];
}

void ledger_get(const struct ledger *l, struct ledger_totals *ret)
{
	*ret = (struct ledger_totals){
		.run_ns = l->run_ns,
		.base_ns = l->base_ns,
		.spent_ns = l->spent_ns,
		.reserved_ns = l->reserved_ns,
	};
	for (int m = 0; m < LEDGER_NR; m++)
		for (int i = 0; i < NR_MONITORS; i++)
			ret->mech_ns[m] =
				sat_add_u64(ret->mech_ns[m], l->by_ns[m][i]);
	struct window_slot last = window_last(&l->recent);
	ret->overhead_ppb = overhead_ppb(l->base_ns, l->spent_ns);
	ret->recent_ppb = overhead_ppb(last.base_ns, last.spent_ns);
	ret->worst_window_ppb = window_worst_ppb(&l->own);
	if (ret->worst_window_ppb < 0)
		ret->worst_window_ppb = ret->overhead_ppb;
}
