/*
 * Two bounds, of which the room is the smaller one.
 *
 * Mean: a token bucket. Its balance grows by m_t times the program's time and
 * shrinks by what is charged; it may go below zero when what is armed fires.
 * What is left over piles up to a fraction of
 *
 *	slack = m(o_t + max(1 point, o_t / 10)) - m(o_t)
 *
 * times 10 s and is lost beyond it. A machine that stands still for a moment
 * makes a debt of what it takes seconds to earn, in which nobody would be
 * watched. What is beyond a fifth of a second's earnings, up to as much as may
 * be left over, is paid back by half of what is earned.
 *
 * Window: in the last 10 s in which the program ran (all, if that was less)
 *
 *	spent + reserved <= (m_t + 3/4 slack) base
 *
 * whenever something is armed. What is charged later was reserved then, and
 * time only lets old charges leave the window; so no window exceeds it, and no
 * run, since a run is a row of windows. A quarter of the slack is left for what
 * nobody could reserve. Things armed that never cost anything take away from
 *what the others may spend, which is the price of a bound that holds when they
 *all fire at once; settled ones count a sixteenth, which is where it no longer
 *does.
 */
#include <stdlib.h>

#include "supervisor/control/control.h"
#include "supervisor/control/fixed.h"
#include "supervisor/control/least.h"
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

/* Of what is reserved and has been quiet for long, this part counts. */
#define SETTLED_DIVISOR 16
/*
 * No more is armed between two advances than this many times what accrued: what
 * may be armed at most is a twentieth of a second's worth of touches, and
 * having them all in one tick would be a hiccup of the program.
 */
#define ARM_FACTOR 4

/* What is owed beyond what this much of its time earns is paid back slowly. */
#define DEBT_NS	     (200 * NSEC_PER_MSEC)
#define PAID_DIVISOR 2

#define NR_MONITORS 16

struct ledger {
	bool is_unlimited;
	int64_t m_t_ppb;
	int64_t slack_ppb;
	bool has_started; /* last_ns is valid */
	uint64_t last_ns;
	struct least base; /* beyond the run time */
	int64_t balance_ns;
	int64_t owed_ns;    /* and not in the balance */
	int64_t armable_ns; /* until the next advance */
	uint64_t reserved_ns, settled_ns;
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

int64_t control_bound_ppb(int64_t target)
{
	int64_t more = target / 10 > PPB / 100 ? target / 10 : PPB / 100;
	return sat_i64((i128)target + more);
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
	if (target > 0 && !l->is_unlimited)
		l->slack_ppb =
			control_m_from_overhead(control_bound_ppb(target)) -
			l->m_t_ppb;
	window_init(&l->recent);
	window_init(&l->own);
	return l;
}

void ledger_destroy(struct ledger *l)
{
	free(l);
}

/* The slack of a whole window, or of the run so far. */
static uint64_t slack_ns(const struct ledger *l)
{
	return mul_ppb(min_u64(l->base_ns, WINDOW_NS), l->slack_ppb);
}

/* What may be left over, or overdrawn by what is reserved. */
static int64_t pile_ns(const struct ledger *l)
{
	return (int64_t)(slack_ns(l) / 4);
}

/* Of what was earned, @share_ns, what remains to be spent. */
static int64_t pay_back(struct ledger *l, int64_t share_ns)
{
	int64_t paid = share_ns / PAID_DIVISOR;
	if (paid > l->owed_ns)
		paid = l->owed_ns;
	l->owed_ns -= paid;
	return share_ns - paid;
}

/* What of the debt can be paid back slowly leaves the balance. */
static void put_off_debt(struct ledger *l)
{
	int64_t more = -(int64_t)mul_ppb(DEBT_NS, l->m_t_ppb) - l->balance_ns;
	if (more > pile_ns(l) - l->owed_ns)
		more = pile_ns(l) - l->owed_ns;
	if (more <= 0)
		return;
	l->owed_ns += more;
	l->balance_ns += more;
}

void ledger_advance(struct ledger *l, uint64_t now_ns, uint64_t run_ns)
{
	uint64_t wall = l->has_started ? sat_sub_u64(now_ns, l->last_ns) : 0;
	l->has_started = true;
	l->last_ns = max_u64(now_ns, l->last_ns);

	uint64_t base =
		least_add(&l->base, run_ns, (int64_t)(wall / FLOOR_DIVISOR),
			  FLOOR_AHEAD_NS, FLOOR_BEHIND_NS);
	l->run_ns = sat_add_u64(l->run_ns, run_ns);
	l->base_ns = sat_add_u64(l->base_ns, base);
	window_advance(&l->recent, wall, base);
	/*
	 * A window is 10 s in which the program ran: of wall time if at least
	 * one thread was busy, longer if it mostly slept.
	 */
	window_advance(&l->own, min_u64(wall, base), base);

	/* The pile is what is left over; this tick's share comes on top. */
	int64_t pile = pile_ns(l);
	int64_t share = (int64_t)min_u64(mul_ppb(base, l->m_t_ppb),
					 INT64_MAX / ARM_FACTOR);
	if (l->balance_ns > pile)
		l->balance_ns = pile;
	l->balance_ns = sat_i64((i128)l->balance_ns + pay_back(l, share));
	put_off_debt(l);
	l->armable_ns = share * ARM_FACTOR;
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

/* What counts of what is reserved. */
static i128 reserved(const struct ledger *l)
{
	return (i128)l->reserved_ns + l->settled_ns / SETTLED_DIVISOR;
}

/* What may still be reserved or spent without breaking the window's bound. */
static int64_t window_room(const struct ledger *l)
{
	int64_t m = l->m_t_ppb + l->slack_ppb / 4 * 3;
	uint64_t base = window_base_ns(&l->own);
	i128 room = (i128)mul_ppb(base, m) - window_spent_ns(&l->own);
	/* What is armed may all be touched by one thread: one's share only. */
	i128 cap = mul_ppb(WINDOW_NS, m);
	return sat_i64((room < cap ? room : cap) - reserved(l));
}

int64_t ledger_window_room_ns(const struct ledger *l)
{
	return l->is_unlimited ? INT64_MAX : window_room(l);
}

int64_t ledger_window_most_ns(const struct ledger *l)
{
	if (l->is_unlimited)
		return INT64_MAX;
	return (int64_t)mul_ppb(WINDOW_NS, l->m_t_ppb + l->slack_ppb / 4 * 3);
}

int64_t ledger_quiet_window_ns(const struct ledger *l)
{
	return l->is_unlimited ? INT64_MAX
			       : sat_i64(window_room(l) + reserved(l));
}

int64_t ledger_quiet_room_ns(const struct ledger *l)
{
	int64_t room = ledger_quiet_window_ns(l);
	return l->is_unlimited || room < l->balance_ns ? room : l->balance_ns;
}

int64_t ledger_room_ns(const struct ledger *l)
{
	if (l->is_unlimited)
		return INT64_MAX;
	int64_t room = window_room(l);
	if (room > l->balance_ns)
		room = l->balance_ns;
	return room < l->armable_ns ? room : l->armable_ns;
}

int64_t ledger_reservable_ns(const struct ledger *l)
{
	if (l->is_unlimited)
		return INT64_MAX;
	if (l->balance_ns < -pile_ns(l))
		return 0;
	int64_t room = window_room(l) / 2;
	return room < l->armable_ns ? room : l->armable_ns;
}

void ledger_reserve(struct ledger *l, uint64_t ns)
{
	l->reserved_ns = sat_add_u64(l->reserved_ns, ns);
	l->armable_ns = sat_i64((i128)l->armable_ns - ns);
}

void ledger_release(struct ledger *l, uint64_t ns)
{
	l->reserved_ns = sat_sub_u64(l->reserved_ns, ns);
}

void ledger_settle(struct ledger *l, uint64_t ns)
{
	ns = min_u64(ns, l->reserved_ns);
	l->reserved_ns -= ns;
	l->settled_ns = sat_add_u64(l->settled_ns, ns);
}

void ledger_release_settled(struct ledger *l, uint64_t ns)
{
	l->settled_ns = sat_sub_u64(l->settled_ns, ns);
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

uint64_t ledger_base_ns(const struct ledger *l)
{
	return l->base_ns;
}

void ledger_get(const struct ledger *l, struct ledger_totals *ret)
{
	*ret = (struct ledger_totals){
		.run_ns = l->run_ns,
		.base_ns = l->base_ns,
		.spent_ns = l->spent_ns,
		.reserved_ns = l->reserved_ns,
		.settled_ns = l->settled_ns,
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
