/* The ledger alone: what it adds up, and how much it lets be spent. */
#include "supervisor/control/control.h"
#include "supervisor/control/window.h"
#include "t/unit/rnd.h"
#include "t/unit/tap.h"

#define MS	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define PERCENT (PPB / 100)

static uint64_t seed = 7;

static uint64_t rnd(void)
{
	return rnd_next(&seed);
}

/* What the product promises: target + max(1 point, a tenth), as ppb of base. */
static double m_allowed(int64_t target)
{
	double o = (double)target / PPB;
	o += o / 10 > 0.01 ? o / 10 : 0.01;
	return o / (1 + o);
}

static void test_percentage(void)
{
	check_int(control_m_from_overhead(0), 0);
	check_int(control_m_from_overhead(-PPB), 0);
	check_int(control_m_from_overhead(10 * PERCENT), 90909090);
	check_int(control_m_from_overhead(PPB), PPB / 2);
	check_int(control_m_from_overhead(INT64_MAX - 1), PPB - 1);
	check_int(control_m_from_overhead(INT64_MAX), PPB);
	int64_t last = 0;
	bool is_rising = true;
	for (int64_t o = 1; o < INT64_MAX / 3; o *= 3) {
		int64_t m = control_m_from_overhead(o);
		is_rising &= m >= last && m < PPB;
		last = m;
	}
	check(is_rising);
}

static void test_books(void)
{
	struct ledger *l = ledger_create(10 * PERCENT);
	struct ledger_totals t;
	ledger_advance(l, 5 * SEC, 0);
	ledger_advance(l, 6 * SEC, SEC);
	ledger_charge(l, LEDGER_STOP, 0, 10);
	ledger_charge(l, LEDGER_STOP, 1, 20);
	ledger_charge(l, LEDGER_TOUCH, 1, 400);
	ledger_charge(l, LEDGER_CPU, 99, 3000);
	ledger_charge(l, (enum ledger_mech)77, 2, 50000);
	ledger_get(l, &t);
	check_int(t.run_ns, SEC);
	check_int(t.base_ns, SEC);
	check_int(t.spent_ns, 53430);
	check_int(t.mech_ns[LEDGER_STOP], 30);
	check_int(t.mech_ns[LEDGER_AGENT], 0);
	check_int(t.mech_ns[LEDGER_TOUCH], 400);
	check_int(t.mech_ns[LEDGER_CPU], 3000);
	check_int(t.mech_ns[LEDGER_OTHER], 50000);
	check_int(ledger_spent_ns(l, LEDGER_STOP, 1), 20);
	check_int(ledger_spent_ns(l, LEDGER_TOUCH, 0), 0);
	check_int(ledger_spent_ns(l, LEDGER_CPU, 15), 3000);
	check_int(ledger_spent_ns(l, (enum ledger_mech)77, 2), 0);
	check_int(t.overhead_ppb, 53430 * PPB / (int64_t)(SEC - 53430));
	check_int(t.recent_ppb, t.overhead_ppb);
	check_int(t.worst_window_ppb, t.overhead_ppb);
	check_str(ledger_mech_name(LEDGER_TOUCH), "touch");
	check_str(ledger_mech_name((enum ledger_mech)77), "other");
	ledger_destroy(l);
	ledger_destroy(NULL);
}

static void test_room(void)
{
	struct ledger *l = ledger_create(10 * PERCENT);
	check_int(ledger_room_ns(l), 0);
	ledger_advance(l, 0, 0);
	ledger_advance(l, 10 * MS, 10 * MS);
	check_int(ledger_room_ns(l), 909090);
	ledger_charge(l, LEDGER_TOUCH, 0, 909090 + 1000);
	check_int(ledger_room_ns(l), -1000);

	/* Nothing used for a minute: no more than a tick's share and a pile,
	 * and of that no more at once than four ticks' share. */
	int i = 2;
	for (; i < 6000; i++)
		ledger_advance(l, i * 10 * MS, 10 * MS);
	check_int(ledger_room_ns(l), 4 * 909090);
	ledger_charge(l, LEDGER_TOUCH, 0, 20 * MS);
	check_range((double)ledger_room_ns(l), 0.5e6, 2e6);

	/* Reserved is not spent, but as much as the window may hold is all. */
	for (; i < 12000; i++)
		ledger_advance(l, i * 10 * MS, 10 * MS);
	int64_t quiet = ledger_quiet_room_ns(l);
	ledger_reserve(l, 3 * MS);
	check_int(ledger_quiet_room_ns(l), quiet);
	check_int(ledger_quiet_window_ns(l) - ledger_window_room_ns(l), 3 * MS);
	check_int(ledger_room_ns(l), 4 * 909090 - 3 * MS);
	int64_t reserved = 3 * MS;
	for (; ledger_room_ns(l) > 0; i++) {
		reserved += ledger_room_ns(l);
		ledger_reserve(l, (uint64_t)ledger_room_ns(l));
		ledger_advance(l, i * 10 * MS, 10 * MS);
	}
	check_range((double)reserved, 0.965e9, 0.975e9);
	ledger_release(l, MS);
	ledger_advance(l, i++ * 10 * MS, 10 * MS);
	check_range((double)ledger_room_ns(l), 1, 1e6);
	ledger_reserve(l, MS);
	/* What has been quiet for long counts a sixteenth. */
	ledger_settle(l, 160 * MS);
	ledger_advance(l, i++ * 10 * MS, 10 * MS);
	check_int(ledger_room_ns(l), 4 * 909090);
	ledger_reserve(l, 151 * MS);
	ledger_advance(l, i++ * 10 * MS, 10 * MS);
	check(ledger_room_ns(l) <= 0);
	ledger_release_settled(l, 160 * MS);
	check_int(ledger_room_ns(l), 4 * 909090);
	ledger_release(l, 5 * SEC);
	ledger_release_settled(l, 5 * SEC);
	struct ledger_totals t;
	ledger_get(l, &t);
	check_int(t.reserved_ns + t.settled_ns, 0);
	ledger_destroy(l);
}

/* On credit, as far as things pile up, and half of what the window holds. */
static void test_reservable(void)
{
	struct ledger *l = ledger_create(10 * PERCENT);
	int i = 0;
	for (; i < 6000; i++)
		ledger_advance(l, i * 10 * MS, 10 * MS);
	check_int(ledger_reservable_ns(l), 4 * 909090);
	/* At most 20.7 ms pile up, and a tick's share is there. */
	ledger_charge(l, LEDGER_CPU, 0, 30 * MS);
	check(ledger_room_ns(l) < 0);
	check_int(ledger_reservable_ns(l), 4 * 909090);
	ledger_charge(l, LEDGER_CPU, 0, 20 * MS);
	check_int(ledger_reservable_ns(l), 0);

	for (; i < 12000; i++)
		ledger_advance(l, i * 10 * MS, 10 * MS);
	int64_t reserved = 0;
	for (; ledger_reservable_ns(l) > 0 && i < 24000; i++) {
		reserved += ledger_reservable_ns(l);
		ledger_reserve(l, (uint64_t)ledger_reservable_ns(l));
		ledger_advance(l, i * 10 * MS, 10 * MS);
	}
	/* Each time half of the rest, so all of it at last, but never more. */
	check_range((double)reserved, 0.94e9, 0.975e9);
	ledger_destroy(l);
}

static void test_zero(void)
{
	struct ledger *l = ledger_create(0);
	bool is_closed = ledger_room_ns(l) <= 0;
	is_closed &= ledger_reservable_ns(l) <= 0;
	for (int i = 0; i < 1000; i++) {
		ledger_advance(l, i * SEC, i % 3 ? SEC : 0);
		is_closed &= ledger_room_ns(l) <= 0;
		is_closed &= ledger_reservable_ns(l) <= 0;
	}
	ledger_reserve(l, 10);
	is_closed &= ledger_room_ns(l) <= 0;
	ledger_release(l, 1000);
	is_closed &= ledger_room_ns(l) <= 0;
	check(is_closed);
	ledger_destroy(l);

	l = ledger_create(-PPB);
	ledger_advance(l, 0, SEC);
	check(ledger_room_ns(l) <= 0);
	ledger_destroy(l);
}

static void test_unlimited(void)
{
	struct ledger *l = ledger_create(INT64_MAX);
	struct ledger_totals t;
	check(ledger_room_ns(l) == INT64_MAX);
	check(ledger_reservable_ns(l) == INT64_MAX);
	ledger_advance(l, 0, 0);
	ledger_reserve(l, UINT64_MAX);
	ledger_charge(l, LEDGER_TOUCH, 0, 3600 * SEC);
	check(ledger_room_ns(l) == INT64_MAX);
	ledger_advance(l, 7200 * SEC, 7200 * SEC);
	ledger_get(l, &t);
	check_int(t.spent_ns, 3600 * SEC);
	check_int(t.overhead_ppb, PPB);
	ledger_destroy(l);
}

static void test_idle(void)
{
	/* An hour asleep: watched, with at most 1 % of m_t of the wall. */
	struct ledger *l = ledger_create(10 * PERCENT);
	struct ledger_totals t;
	uint64_t spent = 0;
	for (int i = 0; i < 360000; i++) {
		ledger_advance(l, i * 10 * MS, 0);
		while (ledger_room_ns(l) > 0) {
			ledger_charge(l, LEDGER_TOUCH, 0, 2000);
			spent += 2000;
		}
	}
	check_range((double)spent / (3600e9 * 0.0909e-2), 0.98, 1.001);

	/*
	 * A program that wakes for 1 ms ten times a second and one that runs
	 * for a second in ten get the share of their CPU time and nothing more.
	 */
	for (int which = 0; which < 2; which++) {
		ledger_destroy(l);
		l = ledger_create(10 * PERCENT);
		for (int i = 0; i < 100000; i++) {
			uint64_t run = which	? i % 1000 < 100 ? 10 * MS : 0
				       : i % 10 ? 0
						: 2 * MS;
			ledger_advance(l, i * 10 * MS, run);
			while (ledger_room_ns(l) > 0)
				ledger_charge(l, LEDGER_TOUCH, 0, 2000);
		}
		ledger_get(l, &t);
		double m = (double)t.spent_ns / (double)t.run_ns;
		check_range(m, 0.0900, which ? 0.0980 : 0.0912);
	}
	ledger_destroy(l);
}

/* The worst window, found by looking at every one. */
enum { NR_TICKS = 20000 };
static uint64_t tick_len[NR_TICKS], tick_base[NR_TICKS], tick_spent[NR_TICKS];

/* Highest percentage in any stretch in which it ran for @len_ns. */
static double worst_window(int nr, double len_ns)
{
	double worst = 0, len = 0, base = 0, spent = 0;
	for (int i = 0, first = 0; i < nr; i++) {
		len += (double)tick_len[i];
		base += (double)tick_base[i];
		spent += (double)tick_spent[i];
		while (len - (double)tick_len[first] >= len_ns) {
			len -= (double)tick_len[first];
			base -= (double)tick_base[first];
			spent -= (double)tick_spent[first++];
		}
		if (len >= len_ns && spent / base > worst)
			worst = spent / base;
	}
	return worst;
}

/* The whole run's percentage when it was at its worst. */
static double worst_mean(int nr)
{
	double worst = 0, base = 0, spent = 0;
	for (int i = 0; i < nr; i++) {
		base += (double)tick_base[i];
		spent += (double)tick_spent[i];
		/* The first microseconds are no run yet. */
		if (base > 100e6 && spent / base > worst)
			worst = spent / base;
	}
	return worst;
}

/*
 * A spender as bad as the rules allow: waits for any time, then arms all there
 * is room for, lets it pile up unfired, then has it all fire at once.
 */
static void test_windows(int64_t target, int nr_threads, int how)
{
	struct ledger *l = ledger_create(target);
	struct ledger_totals t;
	uint64_t now = 0, armed = 0, hold = 0;
	bool was_idle_mostly = false;
	for (int i = 0; i < NR_TICKS; i++) {
		uint64_t run = 10 * MS * (uint64_t)nr_threads;
		if (how == 1 && i / 700 % 2)
			run = 0;
		if (how == 2)
			run = rnd() % 4 ? 0 : rnd() % (run + 1);
		struct ledger_totals before;
		ledger_get(l, &before);
		now += 10 * MS;
		ledger_advance(l, now, run);
		if (hold) {
			hold--;
		} else {
			if (armed && rnd() % 3) {
				ledger_release(l, armed);
				ledger_charge(l, LEDGER_TOUCH, 0, armed);
				armed = 0;
			}
			while (ledger_room_ns(l) > 0) {
				ledger_reserve(l, 3000);
				armed += 3000;
			}
			if (rnd() % 200 == 0)
				hold = rnd() % 1500;
		}
		ledger_get(l, &t);
		tick_base[i] = t.base_ns - before.base_ns;
		tick_len[i] = tick_base[i] < 10 * MS ? tick_base[i] : 10 * MS;
		tick_spent[i] = t.spent_ns - before.spent_ns;
		was_idle_mostly |= t.base_ns > t.run_ns + SEC;
	}
	double worst = worst_window(NR_TICKS, 10e9);
	double whole = worst_mean(NR_TICKS);
	double allowed = m_allowed(target);
	check_msg(worst <= allowed,
		  "target %g, %d threads, case %d: worst window %g <= %g",
		  (double)target / PPB, nr_threads, how, worst, allowed);
	check_msg(whole <= allowed, "  whole run at its worst %g", whole);
	ledger_get(l, &t);
	check(!was_idle_mostly || how == 2);

	/* What the ledger itself says about its worst window: not less, and
	 * more only by what a slot and two ticks more can hold. */
	double said = (double)t.worst_window_ppb / PPB;
	double wider = worst_window(NR_TICKS, 10e9 + 45e6) * 1.0045;
	check_range(said / (1 + said), 0.99 * worst, 1.001 * wider);
	ledger_destroy(l);
}

static void test_worst_window(void)
{
	/* One known burst of 2 s, in a run without any other cost. */
	struct ledger *l = ledger_create(10 * PERCENT);
	struct ledger_totals t;
	for (int i = 0; i < 6000; i++) {
		ledger_advance(l, i * 10 * MS, 10 * MS);
		if (i >= 3033 && i < 3133)
			ledger_charge(l, LEDGER_STOP, 0, 20 * MS);
		if (i == 3500) {
			ledger_get(l, &t);
			check_range((double)t.recent_ppb / PPB, 0.2475, 0.25);
		}
	}
	ledger_get(l, &t);
	check_range((double)t.worst_window_ppb / PPB, 0.2475, 0.25);
	check_int(t.recent_ppb, 0);
	check_range((double)t.overhead_ppb / PPB, 2 / 58.01, 2 / 57.99);
	ledger_destroy(l);
}

static void test_ends(void)
{
	/* The ends of the numbers: nothing wraps, nothing opens the room. */
	struct ledger *l = ledger_create(10 * PERCENT);
	struct ledger_totals t;
	ledger_advance(l, UINT64_MAX, 0);
	ledger_advance(l, 0, 0);
	check_int(ledger_room_ns(l), 0);
	ledger_charge(l, LEDGER_TOUCH, 0, UINT64_MAX);
	ledger_charge(l, LEDGER_TOUCH, 0, UINT64_MAX);
	check(ledger_room_ns(l) == INT64_MIN);
	ledger_reserve(l, UINT64_MAX);
	ledger_reserve(l, UINT64_MAX);
	check(ledger_room_ns(l) == INT64_MIN);
	ledger_advance(l, UINT64_MAX, UINT64_MAX);
	ledger_get(l, &t);
	check(t.spent_ns == UINT64_MAX);
	check(t.run_ns == UINT64_MAX);
	check_int(t.overhead_ppb, OVERHEAD_MAX_PPB);
	ledger_destroy(l);

	/* 64 threads, four weeks, a second at a time. */
	l = ledger_create(5 * PERCENT);
	uint64_t weeks = 4 * 7 * 86400, spent = 0;
	for (uint64_t i = 0; i < weeks; i++) {
		ledger_advance(l, i * SEC, 64 * SEC);
		for (int64_t room; (room = ledger_room_ns(l)) > 0;) {
			ledger_charge(l, LEDGER_TOUCH, i % 16, (uint64_t)room);
			spent += (uint64_t)room;
		}
	}
	ledger_get(l, &t);
	check_int(t.spent_ns, spent);
	check_int(t.run_ns, weeks * 64 * SEC);
	check_range((double)t.overhead_ppb / PPB, 0.0499999, 0.05);
	check_range((double)t.worst_window_ppb / PPB, 0.0499, 0.0556);
	ledger_destroy(l);
}

/* All that there is room for is spent until @until_ns, each 10 ms. Returns when
 * there was room first. */
static uint64_t spend_all(struct ledger *l, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t first_ns = 0;
	for (uint64_t t = from_ns; t < until_ns; t += 10 * MS) {
		ledger_advance(l, t, 10 * MS);
		int64_t room = ledger_room_ns(l);
		if (room <= 0)
			continue;
		ledger_charge(l, LEDGER_TOUCH, 0, (uint64_t)room);
		first_ns = first_ns ? first_ns : t;
	}
	return first_ns;
}

/* What nobody could foresee, as much as two seconds earn: soon there is room
 * again, for half of what is earned, and in the end all of it is paid back. */
static void test_debt(void)
{
	struct ledger *l = ledger_create(PERCENT);
	struct ledger_totals t, then;
	double earned = (double)control_m_from_overhead(PERCENT) / PPB;
	ledger_advance(l, 0, 0);
	spend_all(l, 10 * MS, 12 * SEC);
	ledger_charge(l, LEDGER_STOP, 0, 20 * MS);
	check_range((double)(spend_all(l, 12 * SEC, 13 * SEC) - 12 * SEC),
		    300 * MS, 500 * MS);
	ledger_get(l, &then);
	spend_all(l, 13 * SEC, 14 * SEC);
	ledger_get(l, &t);
	check_range((double)(t.spent_ns - then.spent_ns) / SEC, 0.49 * earned,
		    0.51 * earned);
	spend_all(l, 14 * SEC, 30 * SEC);
	ledger_get(l, &t);
	check_range((double)t.spent_ns / (double)t.base_ns, 0.999 * earned,
		    earned);
	ledger_destroy(l);

	/* More than may be left over is not put off: of 60 ms 24 are. */
	l = ledger_create(PERCENT);
	ledger_advance(l, 0, 0);
	spend_all(l, 10 * MS, 12 * SEC);
	ledger_charge(l, LEDGER_STOP, 0, 60 * MS);
	check_range((double)(spend_all(l, 12 * SEC, 30 * SEC) - 12 * SEC),
		    3500 * MS, 4 * SEC);
	ledger_destroy(l);
}

int main(void)
{
	static const int targets[] = {1, 2, 5, 10, 20, 50, 100, 1000};
	test_percentage();
	test_books();
	test_room();
	test_reservable();
	test_zero();
	test_unlimited();
	test_idle();
	test_worst_window();
	for (unsigned i = 0; i < ARRAY_SIZE(targets); i++)
		for (int how = 0; how < 3; how++)
			test_windows(targets[i] * PERCENT, i % 3 ? 1 : 8, how);
	test_ends();
	test_debt();
	return tap_done();
}
