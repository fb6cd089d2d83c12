/*
 * Which windows have their sensors in: on a simulated program the bound holds,
 * cold ones stay in, hot ones get turns, and nobody is forgotten.
 */
#include <sys/resource.h>

#include "supervisor/control/fixed.h"
#include "supervisor/pace.h"
#include "t/unit/range-sim.h"

static void test_bound(enum controller_kind kind, int64_t target)
{
	struct sim s;
	sim_init(&s, kind, target);
	sim_run(&s);
	double spent = (double)s.spent_ns / (double)(RUN_NS - s.spent_ns);
	double most = (double)target / 1e9;
	check_range(spent / most, kind == CONTROL_GLOBAL ? 0.3 : 0.6, 1.1);
	struct ledger_totals t;
	ledger_get(s.ledger, &t);
	check_range((double)t.worst_window_ppb / 1e9, 0,
		    most * 1.1 < most + 0.01 ? most + 0.01 : most * 1.1);
	/* Looking 60 us each time would take no more than this part of it. */
	check_range(s.nr_steps * 60e-6 * 1e9 / (double)RUN_NS / most, 0, 0.6);
	/* A millionth of the time costs nothing worth mentioning. */
	check_range(watched(&s, 0), 0.99, 1.01);
	/* And the hottest are not left out. */
	check_msg(watched(&s, NR - 1) > 0, "hottest watched %g of the time",
		  watched(&s, NR - 1));
	for (size_t i = 1; i < NR; i++)
		if (watched(&s, i) > watched(&s, i - 1) * 1.5 + 0.05)
			check_msg(false, "%zu costs more, and is watched more",
				  i);
	sim_end(&s);
}

static void test_ends(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, INT64_MAX);
	sim_run(&s);
	check_int(s.nr_stops, 0);
	check_range(watched(&s, NR - 1), 0.99, 1.01);
	sim_end(&s);
	sim_init(&s, CONTROL_CASCADE, 0);
	sim_run(&s);
	/* What is in goes out in the first step, and stays out. */
	check_int(s.nr_stops, 1);
	check_range(watched(&s, NR - 1), 0, 0.01);
	sim_end(&s);
}

/* Others have the CPU for most of the time: the bound is one on its own. */
static void test_waits(enum controller_kind kind, int64_t target)
{
	struct sim s;
	nr_waiting = 9;
	sim_init(&s, kind, target);
	sim_run(&s);
	nr_waiting = 0;
	double own = (double)RUN_NS / 10, spent = (double)s.spent_ns;
	check_range(spent / (own - spent) * 1e9 / (double)target, 0.3, 1.1);
	check_range(watched(&s, 0), 0.99, 1.01);
	sim_end(&s);
}

#define NR_FILES 8
/* Each of several libraries has its own windows, and the time in turn: together
 * they keep to the bound. */
static void test_files(enum controller_kind kind, int64_t target)
{
	struct sim s[NR_FILES];
	uint64_t now_ns, ran_ns[NR_FILES] = {0}, spent_ns = 0;
	for (size_t i = 0; i < NR_FILES; i++)
		sim_init_of(&s[i], i ? s : NULL, kind, target);
	uint64_t end_ns = s[0].now_ns + RUN_NS;
	for (now_ns = s[0].now_ns; now_ns < end_ns;) {
		size_t next = 0;
		for (size_t i = 1; i < NR_FILES; i++)
			if (range_duty_due_ns(&s[i].duty) <
			    range_duty_due_ns(&s[next].duty))
				next = i;
		uint64_t due_ns = range_duty_due_ns(&s[next].duty);
		uint64_t dt_ns = sat_sub_u64(due_ns, now_ns);
		now_ns += dt_ns;
		for (size_t i = 0; i < NR_FILES; i++)
			ran_ns[i] += dt_ns / NR_FILES;
		ledger_advance(s->ledger, now_ns, dt_ns);
		sim_step_at(&s[next], now_ns, ran_ns[next]);
		ran_ns[next] = 0;
	}
	for (size_t i = 0; i < NR_FILES; i++) {
		spent_ns += s[i].spent_ns;
		check_range(watched(&s[i], 0), 0.99, 1.01);
		check(watched(&s[i], NR - 1) > 0);
	}
	double spent = (double)spent_ns;
	check_range(spent / ((double)RUN_NS - spent) * 1e9 / (double)target,
		    0.3, 1.1);
	for (size_t i = NR_FILES; i-- > 0;)
		sim_end(&s[i]);
}

/* One that was quiet becomes hot, and goes out in a step or two. */
static void test_burst(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 1000;
	sim_run(&s);
	check_int(s.nr_stops, 0);
	check(is_in(&s, 0));
	s.rate_ppb[0] = 900000000;
	uint64_t before_ns = s.spent_ns;
	/* It is noticed at the end of the first. */
	for (int i = 0; i < 2 && is_in(&s, 0); i++)
		sim_step(&s);
	check(!is_in(&s, 0));
	check_range((double)(s.spent_ns - before_ns), 0, 20e6);
	uint64_t start_ns = s.now_ns;
	before_ns = s.spent_ns;
	sim_run(&s);
	check_range((double)(s.spent_ns - before_ns) /
			    (double)(s.now_ns - start_ns),
		    0.05, 0.11);
	check(is_in(&s, 1));
	sim_end(&s);
}

/* What a copy's parent knows to be dear goes out as soon as it is passed. */
static void test_inherit(bool inherits)
{
	struct sim s, copy;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	sim_run(&s);
	sim_init_of(&copy, &s, CONTROL_CASCADE, 100000000);
	range_duty_deinit(&copy.duty);
	check_int(range_duty_init(&copy.duty, &s.cheap, CONTROL_CASCADE,
				  100000000, NR, s.now_ns),
		  0);
	copy.now_ns = s.now_ns;
	for (uint32_t i = 0; i < NR - 1; i++)
		range_duty_add(&copy.duty, i, true, s.now_ns);
	if (inherits)
		range_duty_inherit(&copy.duty, &s.duty);
	sim_step_at(&copy, s.now_ns + NSEC_PER_MSEC, NSEC_PER_MSEC);
	check(is_in(&copy, 0));
	check_int(is_in(&copy, NR - 3), !inherits);
	/* One that comes later counts from then on. */
	uint64_t sum_ps = 0, all_ps = 0;
	range_duty_add(&copy.duty, NR - 1, true, copy.now_ns);
	sim_step_at(&copy, copy.now_ns + NSEC_PER_MSEC, NSEC_PER_MSEC);
	for (unsigned b = 0; b < RANGE_CHEAP_POWERS; b++)
		sum_ps += s.cheap.sum_ps[b];
	for (uint32_t i = 0; i < NR; i++)
		all_ps += s.duty.window[i].lately_ps +
			  copy.duty.window[i].lately_ps;
	check_int(sum_ps, all_ps);
	range_duty_deinit(&copy.duty);
	sim_end(&s);
}

/* What is out at the beginning, as in a forked copy, comes in. */
static void test_starts_out(int64_t target)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, target);
	for (uint32_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 1000;
	range_duty_deinit(&s.duty);
	check_int(range_duty_init(&s.duty, &s.cheap, CONTROL_CASCADE, target,
				  NR, s.now_ns),
		  0);
	/* The last number is of none. */
	for (uint32_t i = 0; i < NR - 1; i++)
		range_duty_add(&s.duty, i, i % 2, s.now_ns);
	sim_run(&s);
	for (uint32_t i = 0; i < NR - 1; i++)
		if (!is_in(&s, i))
			check_msg(false, "%u is in", i);
	check(!is_in(&s, NR - 1));
	check_range(watched(&s, 0), 0.9, 1.01);
	sim_end(&s);
}

/* Long pauses: the average stays bound, the bursts are seen in part. */
static void test_pauses(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i ? 1000 : 800000000;
	s.burst_ns = 300 * NSEC_PER_MSEC;
	sim_run(&s);
	check_range((double)s.spent_ns / (double)RUN_NS, 0.01, 0.11);
	check(watched(&s, 0) > 0);
	sim_end(&s);
}

/* Turns are short, and many: of what may be spent stops take a good part. */
static void test_turns(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 50000000;
	sim_run(&s);
	double stops_ns = (double)s.nr_stops * STOP_NS;
	printf("# %u stops, %g of what was spent\n", s.nr_stops,
	       stops_ns / (double)s.spent_ns);
	check_range(stops_ns / (double)s.spent_ns, 0.25, 0.6);
	check_range((double)s.spent_ns / (double)(RUN_NS - s.spent_ns), 0.06,
		    0.11);
	sim_end(&s);
}

/* Where it takes long until they are out again, few come in at once. */
static void test_took(void)
{
	uint64_t most[2];
	for (int i = 0; i < 2; i++) {
		struct sim s;
		sim_init(&s, CONTROL_CASCADE, 100000000);
		for (size_t k = 0; k < NR; k++)
			s.rate_ppb[k] = 50000000;
		s.took_ns = i ? 20 * NSEC_PER_MSEC : 0;
		sim_run(&s);
		most[i] = s.most_in_ppb;
		check(s.nr_stops > 100);
		sim_end(&s);
	}
	printf("# %g at once, %g\n", (double)most[0] / 1e9,
	       (double)most[1] / 1e9);
	check(most[1] < most[0] / 2);
}

/* In its first tenths of a second a program does something else every 10 ms,
 * 20 times, each of which takes @rate_ppb of the time while all of it is in:
 * what part of the time that took, looks of 60 us too, of which @ppk are its
 * own. */
static double begun(uint32_t ppk, int64_t target, uint64_t rate_ppb)
{
	struct sim s;
	taken_ppk = ppk;
	sim_init(&s, CONTROL_CASCADE, target);
	uint64_t start_ns = s.now_ns, end_ns = start_ns + NSEC_PER_SEC / 5;
	while (s.now_ns < end_ns) {
		uint64_t turn = (s.now_ns - start_ns) / (10 * NSEC_PER_MSEC);
		for (size_t i = 0; i < NR; i++)
			s.rate_ppb[i] = i == turn ? rate_ppb : 0;
		sim_step(&s);
	}
	double ns = (double)s.spent_ns + s.nr_steps * 60e3 * ppk / TAKEN_ALL;
	sim_end(&s);
	taken_ppk = TAKEN_ALL;
	return ns / (double)(NSEC_PER_SEC / 5);
}

static void test_young(void)
{
	double is_free = begun(0, 20000000, 600000000);
	double own = begun(TAKEN_ALL, 20000000, 600000000);
	/* Where what begins takes little, so do looks. */
	double little = begun(TAKEN_ALL, 20000000, 10000000);
	printf("# what begins takes %g, %g where looks are its own, %g\n",
	       is_free, own, little);
	check(is_free < 0.03);
	check(own < 0.2);
	check(little < 0.05);
}

/* While much is owed nobody costs what a large share would allow. */
static void test_deep(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 4 ? 15000000 : 1000;
	sim_run(&s);
	for (int i = 0; i < 4; i++)
		check(is_in(&s, (size_t)i));
	ledger_charge(s.ledger, LEDGER_OTHER, 2, NSEC_PER_SEC / 5);
	for (int i = 0; i < 20; i++)
		sim_step(&s);
	for (int i = 0; i < 4; i++)
		check(!is_in(&s, (size_t)i));
	check(is_in(&s, NR - 1));
	sim_end(&s);
}

/* Of those that cost the same, some are worth more: they have a larger share,
 * the others no less than a small one, and all is spent as before. */
static void test_worth(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = 50000000;
		s.worth[i] = i < 4 ? CONTROL_WHOLE : 1;
	}
	sim_run(&s);
	double spent = (double)s.spent_ns / (double)(RUN_NS - s.spent_ns);
	check_range(spent, 0.06, 0.11);
	printf("# worth something %g, little %g\n", watched(&s, 0),
	       watched(&s, NR - 1));
	check(watched(&s, 0) > 4 * watched(&s, NR - 1));
	check(watched(&s, NR - 1) > 0.001);
	sim_end(&s);
	/* One switch is for all. */
	sim_init(&s, CONTROL_GLOBAL, 100000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = 50000000;
		s.worth[i] = i < 4 ? CONTROL_WHOLE : 1;
	}
	sim_run(&s);
	check_range(watched(&s, 0) / watched(&s, NR - 1), 0.8, 1.25);
	sim_end(&s);
}

/* What can show nothing new goes out for good, and nothing is missed there. */
static void test_spent(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = 50000000;
		s.worth[i] = i < 20 ? 0 : CONTROL_WHOLE;
	}
	sim_run(&s);
	check_int(control_nr_plants(s.duty.control), NR - 20);
	check(!is_in(&s, 0) && !is_in(&s, 19));
	check_range(watched(&s, 0), 0.99, 1.01);
	check(watched(&s, NR - 1) < 0.5);
	/* Unless it could not be put out, or is put in: then as all others. */
	range_duty_put(&s.duty, 0, true, s.now_ns);
	s.worth[0] = CONTROL_WHOLE;
	sim_run(&s);
	check_int(control_nr_plants(s.duty.control), NR - 19);
	check_range(watched(&s, 0), 1, 1.6);
	sim_end(&s);
}

/* While much is owed those that cost least stay in: together a part of the
 * target, and no more at their start, when all cost as much. */
static void test_cheap(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 40000000;
	sim_run(&s);
	ledger_charge(s.ledger, LEDGER_OTHER, 2, 100 * NSEC_PER_MSEC);
	uint64_t spent_ns = s.spent_ns, start_ns = s.now_ns;
	while (s.now_ns < start_ns + 2 * NSEC_PER_SEC)
		sim_step(&s);
	for (size_t i = 0; i < NR; i++)
		if (is_in(&s, i) != (i < 20))
			check_msg(false, "%zu is %s", i, i < 20 ? "out" : "in");
	check_range((double)(s.spent_ns - spent_ns), 3.9e6, 4.5e6);
	/* Not if they are as hot now: nor are they all in for long. */
	for (size_t i = 0; i < 20; i++)
		s.rate_ppb[i] = 5000000;
	spent_ns = s.spent_ns, start_ns = s.now_ns;
	while (s.now_ns < start_ns + NSEC_PER_SEC / 2)
		sim_step(&s);
	check_range((double)(s.spent_ns - spent_ns), 0, 15e6);
	check(!is_in(&s, 0) && !is_in(&s, 19));
	sim_end(&s);
}

/* For a tenth of the target they need not be worth anything; for three
 * quarters, less while so much is owed, those come first that are. */
static void test_worthy(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = i < 8 ? 120000 : i < 20 ? 270000 : 40000000;
		s.worth[i] = i < 10 ? 1 : CONTROL_WHOLE;
	}
	sim_run(&s);
	ledger_charge(s.ledger, LEDGER_OTHER, 2, 100 * NSEC_PER_MSEC);
	uint64_t end_ns = s.now_ns + 2 * NSEC_PER_SEC;
	while (s.now_ns < end_ns)
		sim_step(&s);
	for (size_t i = 0; i < NR; i++)
		if (is_in(&s, i) != (i < 8 || (i >= 10 && i < 20)))
			check_msg(false, "%zu is %s", i,
				  is_in(&s, i) ? "in" : "out");
	check(ledger_room_ns(s.ledger) < 0);
	sim_end(&s);
}

/* How many of those are in that are worth it, and take two fifths of the
 * target, in a run of 0.4 s that owes @debt_ns from its start. */
static size_t nr_worthy(uint64_t debt_ns)
{
	struct sim s;
	size_t nr = 0;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = i < 10 ? 800000 : 40000000;
		s.worth[i] = i < 10 ? CONTROL_WHOLE : 1;
	}
	uint64_t end_ns = s.now_ns + 2 * NSEC_PER_SEC / 5;
	if (debt_ns)
		ledger_charge(s.ledger, LEDGER_OTHER, 2, debt_ns);
	while (s.now_ns < end_ns)
		sim_step(&s);
	check((ledger_room_ns(s.ledger) < 0) == (debt_ns > 0));
	for (size_t i = 0; i < 10; i++)
		nr += is_in(&s, i);
	printf("# worthy %zu\n", nr);
	sim_end(&s);
	return nr;
}

/* A run may end before it is paid back. */
static void test_soon(void)
{
	check_int(nr_worthy(0), 10);
	check_range((double)nr_worthy(12 * NSEC_PER_MSEC), 0, 5);
}

/* Those that were put out, because at first nothing was known to cost more or
 * because they cost more for a moment, come back though much is owed. */
static void test_back(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 5000000 : 40000000;
	sim_step(&s);
	sim_step(&s);
	check(!is_in(&s, 0) && !is_in(&s, NR - 1));
	for (size_t i = 0; i < 20; i++)
		s.rate_ppb[i] = 10000;
	ledger_charge(s.ledger, LEDGER_OTHER, 2, 25 * NSEC_PER_MSEC);
	uint64_t end_ns = s.now_ns + NSEC_PER_SEC;
	while (s.now_ns < end_ns)
		sim_step(&s);
	check(ledger_room_ns(s.ledger) < 0);
	for (size_t i = 0; i < NR; i++)
		if (is_in(&s, i) != (i < 20))
			check_msg(false, "%zu is %s", i, i < 20 ? "out" : "in");
	sim_end(&s);
}

/* What was passed less than a thousand times is seen though much is owed and it
 * is not cheap, and then no more; one switch is for all. Its step number. */
static unsigned until_out(enum controller_kind kind)
{
	struct sim s;
	sim_init(&s, kind, 20000000);
	for (size_t i = 0; i < NR; i++) {
		s.rate_ppb[i] = i ? 40000000 : 5000000;
		s.is_rare[i] = !i;
	}
	ledger_charge(s.ledger, LEDGER_OTHER, 2, 10 * NSEC_PER_SEC);
	while (is_in(&s, 0) && s.nr_steps < 2000)
		sim_step(&s);
	check(!is_in(&s, NR - 1));
	unsigned nr = s.nr_steps;
	sim_end(&s);
	return nr;
}

static void test_rare(void)
{
	check_int(until_out(CONTROL_CASCADE), 1000);
	check_int(until_out(CONTROL_GLOBAL), 1);
}

static void test_sum(void)
{
	struct range_duty_cost cost[2] = {{.cost_ps = 3000000},
					  {.cost_ps = 1000000}};
	check_int(range_duty_bound(cost, 2, 4000000, 4000), 4000000);
	check_int(cost[0].cost_ps, 3000000);
	check_int(range_duty_bound(cost, 2, 4000000, 2000), 2000000);
	check_int(cost[0].cost_ps, 1500000);
	check_int(cost[1].cost_ps, 500000);
}

static uint64_t nr_faults(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_minflt;
}

/* Of a large program few windows are there at first: a step does not go through
 * the memory of all others, for which the command would stand. */
static void test_few(void)
{
	struct range_cheap cheap = {0};
	struct range_duty d;
	const size_t nr = 1 << 20;
	uint64_t now_ns = NSEC_PER_SEC;
	struct range_duty_cost cost = {.worth = CONTROL_WHOLE};
	check_int(range_duty_init(&d, &cheap, CONTROL_CASCADE, 100000000, nr,
				  now_ns),
		  0);
	for (uint32_t i = 0; i < 100; i++)
		range_duty_add(&d, i, true, now_ns);
	uint64_t before = nr_faults();
	/* Long enough for all that is done now and then. */
	for (unsigned i = 0; i < 300; i++) {
		now_ns += 20 * NSEC_PER_MSEC;
		cost.window = i % 100;
		cost.cost_ps = 10000000;
		cost.news = !(i % 10);
		const struct range_duty_state s = {
			.now_ns = now_ns,
			.run_ns = 20 * NSEC_PER_MSEC,
			.base_ns = now_ns,
			.room_ns = NSEC_PER_SEC,
			.window_room_ns = NSEC_PER_SEC,
			.stop_ns = 50000,
			.taken_ppk = TAKEN_ALL,
			.nr_threads = 1,
		};
		range_duty_step(&d, &cost, 1, &s);
		for (size_t k = 0; k < d.nr_changed; k++)
			range_duty_put(&d, d.changed[k], d.want[d.changed[k]],
				       now_ns);
	}
	uint64_t faults = nr_faults() - before;
	check_msg(faults < nr * sizeof(*d.window) / 4096 / 4,
		  "%lu pages were touched", (unsigned long)faults);
	/* One far behind is seen to as well. */
	range_duty_add(&d, (uint32_t)nr - 1, false, now_ns);
	const struct range_duty_state s = {
		.now_ns = now_ns + 100 * NSEC_PER_MSEC,
		.run_ns = 20 * NSEC_PER_MSEC,
		.base_ns = now_ns + 100 * NSEC_PER_MSEC,
		.room_ns = NSEC_PER_SEC,
		.window_room_ns = NSEC_PER_SEC,
		.stop_ns = 50000,
		.taken_ppk = TAKEN_ALL,
		.nr_threads = 1,
	};
	range_duty_step(&d, &cost, 0, &s);
	check(d.want[nr - 1]);
	range_duty_deinit(&d);
}

int main(void)
{
	static const int64_t targets[] = {10000000, 20000000, 100000000,
					  300000000, 1000000000};
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		printf("# target %g\n", (double)targets[i] / 1e9);
		test_bound(CONTROL_CASCADE, targets[i]);
		test_bound(CONTROL_GLOBAL, targets[i]);
		test_waits(CONTROL_CASCADE, targets[i]);
		test_files(CONTROL_CASCADE, targets[i]);
		test_waits(CONTROL_GLOBAL, targets[i]);
	}
	test_inherit(true);
	test_inherit(false);
	test_few();
	test_ends();
	test_burst();
	test_pauses();
	test_turns();
	test_took();
	test_young();
	test_deep();
	test_worth();
	test_spent();
	test_sum();
	test_cheap();
	test_worthy();
	test_soon();
	test_back();
	test_rare();
	test_starts_out(100000000);
	test_starts_out(INT64_MAX);
	return tap_done();
}
