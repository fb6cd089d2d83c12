/*
 * Which windows have their sensors in: on a simulated program whose windows
 * cost known rates, the bound holds, cold ones stay in, hot ones get turns, and
 * nobody is forgotten.
 */
#include "supervisor/monitor/range-duty.h"
#include "supervisor/pace.h"
#include "tap.h"

#define NR	40
#define STOP_NS (60 * NSEC_PER_USEC)
#define RUN_NS	(20 * NSEC_PER_SEC)

static uint64_t look_ns;	       /* of each look, but for waking up */
static uint64_t wake_ns;	       /* that */
static int64_t owed_ns;		       /* by others */
static uint32_t taken_ppk = TAKEN_ALL; /* of that, from the program */
static bool is_asleep;

struct sim {
	struct range_duty duty;
	struct ledger *ledger;
	uint64_t rate_ppb[NR]; /* what it would cost, were it in */
	uint32_t worth[NR];
	bool news[NR];	   /* in the next step */
	uint64_t burst_ns; /* window 0 costs only in every second of these */
	uint64_t now_ns, spent_ns;
	uint64_t took_ns;     /* a change */
	uint64_t most_in_ppb; /* what those put in at once cost */
	unsigned nr_stops, nr_steps;
};

static void sim_init(struct sim *s, enum controller_kind kind, int64_t target)
{
	*s = (struct sim){.now_ns = NSEC_PER_SEC};
	s->ledger = ledger_create(target);
	check_int(range_duty_init(&s->duty, kind, target, NR, s->now_ns), 0);
	ledger_advance(s->ledger, s->now_ns, 0);
	for (uint32_t i = 0; i < NR; i++) {
		/* From a millionth to 30 % of the time. */
		s->rate_ppb[i] = 1000ull << (i * 18 / NR);
		s->worth[i] = CONTROL_WHOLE;
		range_duty_add(&s->duty, i, true, s->now_ns);
	}
}

static void sim_end(struct sim *s)
{
	range_duty_deinit(&s->duty);
	ledger_destroy(s->ledger);
}

static bool is_in(const struct sim *s, size_t i)
{
	return s->duty.window[i].is_in;
}

static uint64_t rate_now(const struct sim *s, size_t i)
{
	if (!i && s->burst_ns && s->now_ns / s->burst_ns % 2)
		return 0;
	return s->rate_ppb[i];
}

static void sim_step(struct sim *s)
{
	uint64_t due_ns = range_duty_due_ns(&s->duty);
	uint64_t dt_ns = due_ns - s->now_ns, sum_ns = 0;
	struct range_duty_cost cost[NR];
	size_t nr = 0;
	for (uint32_t i = 0; i < NR; i++) {
		uint64_t ps = dt_ns * rate_now(s, i) / 1000000;
		if (!is_in(s, i) || !ps)
			continue;
		cost[nr++] = (struct range_duty_cost){.window = i,
						      .cost_ps = ps,
						      .worth = s->worth[i],
						      .news = s->news[i]};
		s->news[i] = false;
		sum_ns += ps / 1000;
	}
	s->now_ns = due_ns;
	ledger_charge(s->ledger, LEDGER_AGENT, 2, sum_ns);
	ledger_advance(s->ledger, s->now_ns, dt_ns);
	const struct range_duty_state state = {
		.now_ns = s->now_ns,
		.run_ns = is_asleep ? 0 : dt_ns,
		.room_ns = ledger_room_ns(s->ledger) - owed_ns,
		.window_room_ns = ledger_window_room_ns(s->ledger),
		.stop_ns = STOP_NS,
		.took_ns = s->took_ns,
		.look_ns = look_ns,
		.wake_ns = wake_ns,
		.taken_ppk = taken_ppk,
		.nr_threads = 1,
	};
	unsigned nr_others = 0;
	bool differs = false,
	     said = range_duty_step(&s->duty, cost, nr, &state);
	for (uint32_t i = 0; i < NR; i++) {
		differs |= s->duty.want[i] != is_in(s, i);
		nr_others += s->duty.want[i] != is_in(s, i);
	}
	uint64_t in_ppb = 0;
	for (uint32_t i = 0; i < NR; i++)
		if (s->duty.want[i] && !is_in(s, i))
			in_ppb += s->rate_ppb[i];
	if (in_ppb > s->most_in_ppb)
		s->most_in_ppb = in_ppb;
	/* Said are those, each once, and nobody else. */
	for (size_t k = 0; said && k < s->duty.nr_changed; k++) {
		uint32_t i = s->duty.changed[k];
		nr_others -= s->duty.want[i] != is_in(s, i);
		range_duty_put(&s->duty, i, s->duty.want[i], s->now_ns);
	}
	if (nr_others)
		check_int(nr_others, 0);
	if (said != differs)
		check(said == differs);
	uint64_t stops_ns = differs ? STOP_NS : 0;
	s->nr_stops += differs;
	s->nr_steps++;
	ledger_charge(s->ledger, LEDGER_STOP, 2, stops_ns);
	s->spent_ns += sum_ns + stops_ns;
}

static void sim_run(struct sim *s)
{
	uint64_t end_ns = s->now_ns + RUN_NS;
	while (s->now_ns < end_ns)
		sim_step(s);
}

static double watched(const struct sim *s, size_t i)
{
	return (double)range_duty_watched_ns(&s->duty, (uint32_t)i, s->now_ns) /
	       (double)RUN_NS;
}

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

static bool is_old; /* every window was passed before, long ago */

/* Until the next step, if all have cost @ppb together for some time. */
static uint64_t step_ns(int64_t target, uint64_t ppb)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, target);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = ppb / NR;
	for (size_t i = 0; is_old && i < NR; i++)
		s.duty.window[i].was_passed = true;
	if (is_old)
		s.duty.new_ns = s.duty.born_ns;
	sim_step(&s);
	uint64_t old_ns = s.now_ns + NSEC_PER_SEC / 2;
	while (!ppb && s.now_ns < old_ns)
		sim_step(&s);
	uint64_t ns = range_duty_due_ns(&s.duty) - s.now_ns;
	sim_end(&s);
	return ns;
}

/* The more what is in costs, the sooner it is looked at again; looks cost, too.
 */
static void test_steps(void)
{
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	check_range((double)step_ns(20000000, 10000000), 12e6, 13e6);
	/* Nor do looks cost more than what is looked at. */
	check_range((double)step_ns(20000000, 30000000), 1.9e6, 2.1e6);
	check_int(step_ns(1000000, 100000), 20 * NSEC_PER_MSEC);
	check_int(step_ns(100000000, 0), 20 * NSEC_PER_MSEC);
	check_range((double)step_ns(100000000, 10000000), 2.6e6, 2.7e6);
	check_range((double)step_ns(100000000, 500000000), 5.0 * STOP_NS,
		    7.0 * STOP_NS);
	check_range((double)step_ns(100000000, 1000000000), 2.0 * STOP_NS,
		    4.0 * STOP_NS);
	/* Of a large program a look costs more: never more than its part. */
	look_ns = 185 * NSEC_PER_USEC;
	check_range((double)step_ns(100000000, 10000000), 9.4e6, 9.5e6);
	check_int(step_ns(100000000, 1000000000), 430 * NSEC_PER_USEC);
	look_ns = 0;
}

/* What it takes to wake up is the program's, too, where it waits for us; and
 * what is owed is not paid back while looks take a quarter of the target. */
static void test_dear(void)
{
	wake_ns = 60 * NSEC_PER_USEC;
	check_int(step_ns(100000000, 10000000), 2640 * NSEC_PER_USEC);
	wake_ns = 120 * NSEC_PER_USEC;
	check_int(step_ns(100000000, 10000000), 5280 * NSEC_PER_USEC);
	check_range((double)step_ns(20000000, 30000000), 3.9e6, 4.1e6);
	/* Never so seldom that what begins to run is not noticed. */
	wake_ns = 6 * NSEC_PER_MSEC;
	check_int(step_ns(20000000, 30000000), 20 * NSEC_PER_MSEC);
	wake_ns = 0;
	owed_ns = 100 * NSEC_PER_MSEC;
	/* At first it is not looks that cost most. */
	check_int(step_ns(100000000, 10000000), 2640 * NSEC_PER_USEC);
	is_old = true;
	check_int(step_ns(100000000, 10000000), 10560 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 10000000), 20 * NSEC_PER_MSEC);
	/* That is not so where they are nearly free. */
	wake_ns = 120 * NSEC_PER_USEC;
	taken_ppk = TAKEN_ALL / 8;
	check_range((double)step_ns(20000000, 10000000), 3.0e6, 3.1e6);
	taken_ppk = 0;
	check_int(step_ns(20000000, 10000000), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 30000000), NSEC_PER_MSEC);
	taken_ppk = TAKEN_ALL;
	wake_ns = 0;
	owed_ns = 0;
	is_old = false;
}

/* What costs the program nothing is done more often, as long as it runs. */
static void test_free(void)
{
	taken_ppk = 0;
	check_int(step_ns(20000000, 10000000), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 0), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 30000000), NSEC_PER_MSEC);
	look_ns = 370 * NSEC_PER_USEC;
	check_int(step_ns(20000000, 10000000), 10 * NSEC_PER_MSEC);
	look_ns = 0;
	is_asleep = true;
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	is_asleep = false;
	taken_ppk = TAKEN_ALL / 4;
	check_range((double)step_ns(20000000, 10000000), 3e6, 3.2e6);
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	taken_ppk = TAKEN_ALL;
}

/* The looks in the next @run_ns of a program none of whose windows is passed,
 * where looking is not free. */
static unsigned looks(struct sim *s, uint64_t run_ns)
{
	uint64_t end_ns = s->now_ns + run_ns;
	unsigned before = s->nr_steps;
	while (s->now_ns < end_ns)
		sim_step(s);
	return s->nr_steps - before;
}

/* At first, and when something came that had not come before, it is looked
 * after as often as looking may cost; not when nothing new came for long. */
static void test_young(void)
{
	struct sim s;
	taken_ppk = TAKEN_ALL / 4;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) > 40);
	looks(&s, 50 * NSEC_PER_MSEC);
	check(looks(&s, 200 * NSEC_PER_MSEC) < 20);
	s.rate_ppb[0] = 1000;
	looks(&s, 50 * NSEC_PER_MSEC);
	s.rate_ppb[0] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) > 40);
	/* It was passed before. */
	looks(&s, NSEC_PER_SEC);
	s.rate_ppb[0] = 1000;
	looks(&s, 50 * NSEC_PER_MSEC);
	s.rate_ppb[0] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) < 20);
	is_asleep = true;
	sim_end(&s);
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) < 20);
	is_asleep = false;
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
}

/* Those that are due and wait for room are not looked after meanwhile. */
static void test_waiting(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 10000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 40000000 : 0;
	sim_run(&s);
	check(watched(&s, 0) > 0);
	printf("# %u steps\n", s.nr_steps);
	check_range(s.nr_steps, 100, 5000);
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
	check_int(
		range_duty_init(&s.duty, CONTROL_CASCADE, target, NR, s.now_ns),
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

/* For a fifth of the target they need not be worth anything; for a sixth those
 * come first that are. */
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

/* How many of the hot come in within @ns after window 0 told something new,
 * when the last 10 s have room for @room_ns. */
static unsigned came(struct sim *s, uint64_t ns, int64_t room_ns)
{
	unsigned nr = 0;
	bool came_in[NR] = {false};
	while (control_nr_armed(s->duty.control) > 20)
		sim_step(s);
	int64_t has_ns = ledger_window_room_ns(s->ledger);
	check(has_ns > room_ns);
	ledger_charge(s->ledger, LEDGER_OTHER, 2, (uint64_t)(has_ns - room_ns));
	uint64_t end_ns = s->now_ns + ns;
	s->news[0] = true;
	while (s->now_ns < end_ns) {
		sim_step(s);
		for (size_t i = 0; i < NR; i++)
			came_in[i] |= is_in(s, i);
	}
	for (size_t i = 20; i < NR; i++)
		nr += came_in[i];
	return nr;
}

/* The same within 20 ms, whatever is owed by the mean. */
static unsigned glanced(struct sim *s)
{
	while (control_nr_armed(s->duty.control) > 20)
		sim_step(s);
	return came(s, 20 * NSEC_PER_MSEC,
		    ledger_window_room_ns(s->ledger) -
			    20 * (int64_t)NSEC_PER_MSEC);
}

/* When something new comes where all is seen, the rest has a turn; not the
 * very hot, not again at once, and nobody without news. */
static void test_glance(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	s.rate_ppb[NR - 1] = 300000000;
	sim_run(&s);
	uint64_t spent_ns = s.spent_ns;
	check_int(glanced(&s), NR - 21);
	check_range((double)(s.spent_ns - spent_ns), 0, 1e6);
	check_int(glanced(&s), 0);
	sim_run(&s);
	check_int(glanced(&s), NR - 21);
	sim_end(&s);
	/* Looked after often meanwhile, where that is free. */
	taken_ppk = 0;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	sim_run(&s);
	for (size_t i = 20; i < NR; i++)
		s.rate_ppb[i] = 0;
	unsigned before = s.nr_steps;
	check_int(glanced(&s), NR - 20);
	check_range(s.nr_steps - before, 30, 60);
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
	/* One switch is for all. */
	sim_init(&s, CONTROL_GLOBAL, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	sim_run(&s);
	check_int(glanced(&s), 0);
	sim_end(&s);
}

/* Where there is no room for it yet, it comes when there is, if that is soon;
 * and all together cannot cost more than the time there is until the next look.
 */
static void test_glance_room(void)
{
	struct sim s;
	taken_ppk = 0;
	for (unsigned late = 0; late < 2; late++) {
		sim_init(&s, CONTROL_CASCADE, 20000000);
		for (size_t i = 0; i < NR; i++)
			s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
		sim_run(&s);
		check_int(
			came(&s, 200 * NSEC_PER_MSEC, late ? -500000 : 500000),
			late ? 0 : NR - 20);
		sim_end(&s);
	}
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 100000000;
	sim_run(&s);
	check_int(came(&s, 20 * NSEC_PER_MSEC, 3000000), NR - 20);
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
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

/* The kernel tells of a process' time only at its ticks: it runs all the same.
 */
static void test_told_late(void)
{
	struct sim s;
	unsigned before, nr = 0;
	taken_ppk = 0;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	looks(&s, NSEC_PER_SEC);
	before = s.nr_steps;
	uint64_t end_ns = s.now_ns + 100 * NSEC_PER_MSEC;
	while (s.now_ns < end_ns) {
		is_asleep = nr++ % 5;
		sim_step(&s);
	}
	check(s.nr_steps - before > 55);
	is_asleep = false;
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
}

int main(void)
{
	static const int64_t targets[] = {10000000, 20000000, 100000000,
					  300000000, 1000000000};
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		printf("# target %g\n", (double)targets[i] / 1e9);
		test_bound(CONTROL_CASCADE, targets[i]);
		test_bound(CONTROL_GLOBAL, targets[i]);
	}
	test_ends();
	test_burst();
	test_pauses();
	test_steps();
	test_free();
	test_dear();
	test_turns();
	test_took();
	test_deep();
	test_worth();
	test_spent();
	test_young();
	test_waiting();
	test_sum();
	test_told_late();
	test_cheap();
	test_worthy();
	test_back();
	test_glance();
	test_glance_room();
	test_starts_out(100000000);
	test_starts_out(INT64_MAX);
	return tap_done();
}
