/*
 * The controllers and the ledger on simulated programs: the target
 * specification of the paper, and what the product promises on top of it.
 */
#include "t/unit/plantsim.h"

#define NEVER (1000000 * SEC)

/* The promise, and the first condition: the mean is not above the target. */
static void check_bounds(const struct sim *s, const char *what)
{
	double worst = sim_worst_window(s), mean = sim_mean(s);
	check_msg(worst <= sim_m_allowed(s), "%s: worst window %.5f <= %.5f",
		  what, worst, sim_m_allowed(s));
	check_msg(mean <= sim_m_t(s) * 1.005, "%s: mean %.5f <= %.5f", what,
		  mean, sim_m_t(s));
}

static void test_targets(void)
{
	static const int targets[] = {1, 2, 5, 10, 20, 50, 100, 200};
	for (unsigned i = 0; i < ARRAY_SIZE(targets); i++)
		for (uint32_t n = 10; n <= 1000; n *= 10) {
			struct sim s = {.has_ledger = true};
			char what[64];
			sim_init(&s, targets[i] * PERCENT, n);
			/* Four times as many events as there is budget for. */
			double p = sim_m_t(&s) * 4 * (double)s.tick_ns / n;
			for (uint32_t k = 0; k < n; k++)
				sim_add(&s, 0, (uint64_t)p);
			sim_run(&s, 60 * SEC);
			snprintf(what, sizeof(what), "target %d %%, %u plants",
				 targets[i], n);
			check_bounds(&s, what);
			double last = sim_mean_since(&s, s.nr_ticks / 2);
			check_msg(last > 0.97 * sim_m_t(&s),
				  "%s: uses what it may, %.5f", what, last);
			check_range(sim_unfairness(&s, 0, n), 0, 0.1);
			sim_deinit(&s);
		}
}

static void test_second_condition(void)
{
	/* One busy plant, less than the budget: an event in every tick. */
	struct sim s = {.has_ledger = true};
	sim_init(&s, 10 * PERCENT, 1);
	sim_add(&s, 0, 100 * US);
	sim_run(&s, 30 * SEC);
	check(sim_mean(&s) < 0.5 * sim_m_t(&s));
	check_range((double)s.nr_events / s.nr_ticks, 0.99, 1);
	sim_deinit(&s);

	/* A thousand seldom touched ones: every touch is seen. */
	s = (struct sim){.has_ledger = true};
	sim_init(&s, 10 * PERCENT, 1000);
	for (int i = 0; i < 1000; i++)
		sim_add(&s, 2 * SEC, 3 * US);
	sim_run(&s, 60 * SEC);
	check(sim_mean(&s) < 0.05 * sim_m_t(&s));
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 1000; i++)
		if (s.plants[i].nr_events < least)
			least = s.plants[i].nr_events;
	check_range((double)least, 29, 30);
	sim_deinit(&s);
}

/* Busy and rare plants together: the rare are all seen, the busy equally. */
static void test_rare(void)
{
	struct sim s = {.has_ledger = true};
	sim_init(&s, 5 * PERCENT, 1020);
	for (int i = 0; i < 1000; i++)
		sim_add(&s, 0, 3 * US);
	for (int i = 0; i < 20; i++)
		sim_add(&s, 5 * SEC, 3 * US);
	sim_run(&s, 60 * SEC);
	check_bounds(&s, "busy and rare");
	check_range(sim_mean_since(&s, s.nr_ticks / 2) / sim_m_t(&s), 0.97,
		    1.01);
	check_range(sim_unfairness(&s, 0, 1000), 0, 0.1);
	uint64_t least = UINT64_MAX;
	for (int i = 1000; i < 1020; i++)
		if (s.plants[i].nr_events < least)
			least = s.plants[i].nr_events;
	/* 12 touches each; the first may come before the first arming. */
	check_range((double)least, 11, 13);
	sim_deinit(&s);
}

/* Something else uses up half of the budget, in stops. */
static void charge_half(struct sim *s)
{
	double m = sim_m_t(s) / 2;
	ledger_charge(s->ledger, LEDGER_STOP, 1,
		      (uint64_t)(m * (double)s->tick_ns));
}

static void test_starved(enum controller_kind kind, uint32_t n, uint64_t p)
{
	struct sim s = {.has_ledger = true,
			.each_tick = charge_half,
			.params.kind = kind};
	sim_init(&s, 4 * PERCENT, n);
	for (uint32_t i = 0; i < n; i++)
		sim_add(&s, 0, p);
	sim_run(&s, 60 * SEC);
	double share = sim_mean_since(&s, s.nr_ticks / 2) / sim_m_t(&s);
	check_msg(share > 0.47 && share < 0.53,
		  "law %d, %u plants starved: the other half of it, %.3f", kind,
		  n, share);
	struct ledger_totals t;
	ledger_get(s.ledger, &t);
	check((double)t.worst_window_ppb < 5e7);
	/* The ad hoc law leaves m_lt too high; crowds of plants lock in. */
	check_range(sim_unfairness(&s, 0, n), 0,
		    kind == CONTROL_CASCADE ? 0.1 : 0.5);
	/* Round robin: nobody waits much longer than it takes to go around. */
	uint64_t gap = 0;
	for (uint32_t i = 0; i < n; i++)
		if (s.plants[i].longest_gap > gap)
			gap = s.plants[i].longest_gap;
	double round = (double)n * (double)p / (sim_m_t(&s) / 2);
	round = round > 1e8 ? round : 1e8;
	check_msg((double)gap < 4 * round, "longest gap %.3f s, a round %.3f s",
		  (double)gap / 1e9, round / 1e9);
	sim_deinit(&s);
}

/* Without the ledger: does the primary find the right m_lt, and keep it? */
static void test_convergence(uint32_t n, uint32_t nr_busy, uint64_t p)
{
	struct sim s = {0};
	sim_init(&s, 10 * PERCENT, n);
	for (uint32_t i = 0; i < n; i++)
		sim_add(&s, i < nr_busy ? 0 : NEVER, p);
	sim_run(&s, 90 * SEC);
	uint32_t from = s.nr_ticks;
	int64_t lo = INT64_MAX, hi = 0;
	for (int i = 0; i < 75; i++) {
		sim_run(&s, 400 * MS);
		int64_t m = control_local_target_ppb(s.control);
		lo = m < lo ? m : lo;
		hi = m > hi ? m : hi;
	}
	double mean = sim_mean_since(&s, from) / sim_m_t(&s);
	check_msg(mean > 0.96 && mean < 1.05,
		  "%u of %u busy: primary reaches %.4f of m_gt", nr_busy, n,
		  mean);
	/* Ten thousand fire in crowds, as they were added. */
	check_msg((double)hi < (n < 10000 ? 1.15 : 1.35) * (double)lo,
		  "  and keeps it: m_lt %" PRId64 " to %" PRId64 " ppb", lo,
		  hi);
	sim_deinit(&s);
}

static bool is_3_of_10(uint64_t t)
{
	return t % (10 * SEC) < 3 * SEC;
}

static bool is_tenth(uint64_t t)
{
	return t % SEC < 100 * MS;
}

static bool is_once_a_minute(uint64_t t)
{
	return t % (60 * SEC) < 500 * MS;
}

static bool is_chaotic(uint64_t t)
{
	uint64_t k = t / (300 * MS) * 0x9e3779b97f4a7c15ULL;
	return k >> 62 == 0;
}

static void test_bursts(void)
{
	static bool (*const is_awake[])(uint64_t) = {
		is_3_of_10, is_tenth, is_once_a_minute, is_chaotic};
	for (unsigned i = 0; i < ARRAY_SIZE(is_awake); i++)
		for (int target = 1; target <= 100; target *= 10) {
			struct sim s = {.has_ledger = true,
					.is_awake = is_awake[i]};
			char what[64];
			sim_init(&s, target * PERCENT, 3000);
			for (uint32_t k = 0; k < 3000; k++)
				sim_add(&s, k % 2 ? 0 : SEC, 3 * US);
			sim_run(&s, 200 * SEC);
			snprintf(what, sizeof(what), "bursts %u at %d %%", i,
				 target);
			double worst = sim_worst_window(&s);
			double mean = sim_mean(&s);
			double wall = sim_worst_wall_window(&s);
			/* Case 2 never runs for 10 s, case 3 not steadily. */
			check_msg(i >= 2 || wall <= sim_m_allowed(&s),
				  "%s: worst 10 s of wall time %.5f", what,
				  wall);
			check_msg(worst <= sim_m_allowed(&s) &&
					  mean <= sim_m_allowed(&s),
				  "%s: worst %.5f, mean %.5f of %.5f", what,
				  worst, mean, sim_m_t(&s));
			check_msg(mean >= 0.7 * sim_m_t(&s) || target == 100,
				  "%s: and it is used", what);
			sim_deinit(&s);
		}
}

static void test_many(void)
{
	struct sim s = {.has_ledger = true};
	sim_init(&s, 10 * PERCENT, 100000);
	for (int i = 0; i < 100000; i++)
		sim_add(&s, 0, US);
	sim_run(&s, 25 * SEC);
	check_bounds(&s, "100 000 plants");
	check_range(sim_mean(&s) / sim_m_t(&s), 0.97, 1.005);
	check_range(sim_unfairness(&s, 0, 100000), 0, 0.1);
	sim_deinit(&s);

	/* At 1 % a round takes 10 s: every one is seen all the same. */
	sim_init(&s, PERCENT, 100000);
	s.has_ledger = true;
	for (int i = 0; i < 100000; i++)
		sim_add(&s, 0, US);
	sim_run(&s, 40 * SEC);
	check_bounds(&s, "100 000 plants at 1 %");
	uint64_t least = UINT64_MAX, most = 0;
	for (int i = 0; i < 100000; i++) {
		least = s.plants[i].nr_events < least ? s.plants[i].nr_events
						      : least;
		most = s.plants[i].nr_events > most ? s.plants[i].nr_events
						    : most;
	}
	check(least >= 3 && most - least <= 2);
	sim_deinit(&s);
}

/* Armed plants that nobody touches must not stop the watching of others. */
static void test_quiet(bool has_settle)
{
	struct sim s = {.has_ledger = true, .has_settle = has_settle};
	sim_init(&s, 10 * PERCENT, 10000);
	for (int i = 0; i < 10000; i++)
		sim_add(&s, i < 100 ? 0 : NEVER, 40 * US);
	sim_run(&s, 100 * SEC);
	check_bounds(&s, "quiet and busy");
	double last = sim_mean_since(&s, s.nr_ticks / 2) / sim_m_t(&s);
	check_msg(last > (has_settle ? 0.9 : 0.5),
		  "busy beside quiet ones, %ssettled: %.3f of the budget",
		  has_settle ? "" : "not ", last);
	check_range(sim_unfairness(&s, 0, 100), 0, 0.1);
	sim_deinit(&s);
}

/* All that is armed fires in one moment. */
static void test_all_at_once(int target, uint32_t n)
{
	struct sim s = {.has_ledger = true};
	char what[64];
	sim_init(&s, target * PERCENT, n);
	for (uint32_t i = 0; i < n; i++) {
		struct sim_plant *p = sim_add(&s, i % 10 ? NEVER : 0, 40 * US);
		if (i % 10)
			p->phase_ns = 43 * SEC + 7 * MS;
	}
	sim_run(&s, 100 * SEC);
	snprintf(what, sizeof(what), "%u at once at %d %%", n / 10 * 9, target);
	check_bounds(&s, what);
	sim_deinit(&s);
}

static void test_change(void)
{
	struct sim s = {.has_ledger = true};
	sim_init(&s, 10 * PERCENT, 2000);
	for (int i = 0; i < 10; i++)
		sim_add(&s, 0, 300 * US);
	sim_run(&s, 40 * SEC);
	uint32_t at = s.nr_ticks;
	check_range(sim_mean_since(&s, at / 2) / sim_m_t(&s), 0.95, 1.01);
	for (int i = 0; i < 1000; i++)
		sim_add(&s, 0, 30 * US);
	sim_run(&s, 40 * SEC);
	check_range(sim_mean_since(&s, at) / sim_m_t(&s), 0.95, 1.01);
	check_range(sim_unfairness(&s, 10, 1010), 0, 0.1);
	for (int i = 10; i < 1010; i++)
		sim_remove(&s, &s.plants[i]);
	at = s.nr_ticks;
	sim_run(&s, 40 * SEC);
	check_range(sim_mean_since(&s, at + 1000) / sim_m_t(&s), 0.9, 1.01);
	check_bounds(&s, "10, 1010, 10 plants");
	sim_deinit(&s);
}

/* Ten blocks are freed and allocated in every tick. */
static void churn(struct sim *s)
{
	for (int i = 0; i < 10; i++) {
		uint32_t old = s->nr_plants - 1000;
		sim_remove(s, &s->plants[old]);
		sim_add(s, i % 2 ? 0 : 3 * SEC, 5 * US);
	}
}

static void test_churn(void)
{
	struct sim s = {.has_ledger = true};
	sim_init(&s, 2 * PERCENT, 200000);
	for (int i = 0; i < 1000; i++)
		sim_add(&s, 0, 5 * US);
	s.each_tick = churn;
	sim_run(&s, 60 * SEC);
	check_bounds(&s, "churn");
	check_range(sim_mean(&s) / sim_m_t(&s), 0.9, 1.005);
	check_int(control_nr_plants(s.control), 1000);
	/* Busy ones live for a second: each is seen before it goes. */
	uint32_t nr_unseen = 0, nr = 0;
	for (uint32_t i = 1000; i < s.nr_plants - 1000; i++)
		if (!s.plants[i].period_ns && ++nr)
			nr_unseen += !s.plants[i].nr_events;
	check_range((double)nr_unseen / nr, 0, 0.02);
	sim_deinit(&s);
}

static void test_other_laws(void)
{
	for (int kind = CONTROL_ADHOC; kind <= CONTROL_GLOBAL; kind++)
		for (int target = 1; target <= 100; target *= 10) {
			struct sim s = {.has_ledger = true,
					.params.kind = kind};
			char what[64];
			sim_init(&s, target * PERCENT, 100);
			for (int i = 0; i < 100; i++)
				sim_add(&s, i % 4 ? SEC : 0, 150 * US);
			sim_run(&s, 150 * SEC);
			snprintf(what, sizeof(what), "law %d at %d %%", kind,
				 target);
			check_bounds(&s, what);
			double last = sim_mean_since(&s, s.nr_ticks / 2);
			check_msg(last > 0.9 * sim_m_t(&s) || target == 100,
				  "%s: uses what it may, %.5f", what, last);
			sim_deinit(&s);
		}

	/* The global law needs no ledger to keep the mean. */
	struct sim s = {.params.kind = CONTROL_GLOBAL};
	sim_init(&s, 10 * PERCENT, 100);
	for (int i = 0; i < 100; i++)
		sim_add(&s, 0, 20 * US);
	sim_run(&s, 60 * SEC);
	check_range(sim_mean(&s) / sim_m_t(&s), 0.99, 1.01);
	sim_deinit(&s);
}

static void test_extremes(void)
{
	for (int kind = 0; kind <= CONTROL_GLOBAL; kind++) {
		struct sim s = {.params.kind = kind};
		sim_init(&s, 0, 100);
		for (int i = 0; i < 100; i++)
			sim_add(&s, 0, US);
		sim_run(&s, 10 * SEC);
		s.has_ledger = true;
		sim_run(&s, 10 * SEC);
		check_int(s.nr_events, 0);
		check_int(control_nr_armed(s.control), 0);
		sim_deinit(&s);

		/* No bound: all of them in every tick. */
		s = (struct sim){.has_ledger = true, .params.kind = kind};
		sim_init(&s, INT64_MAX, 100);
		for (int i = 0; i < 100; i++)
			sim_add(&s, 0, MS);
		sim_run(&s, 10 * SEC);
		check_int(s.nr_events, 100 * (s.nr_ticks - 1));
		sim_deinit(&s);
	}
}

static void test_weeks(enum controller_kind kind)
{
	struct sim s = {.has_ledger = true,
			.has_no_log = true,
			.tick_ns = 2 * SEC,
			.nr_threads = 8,
			.is_awake = is_3_of_10,
			.params.kind = kind};
	sim_init(&s, 5 * PERCENT, 5);
	for (int i = 0; i < 5; i++)
		sim_add(&s, i ? 0 : 3600 * SEC, i * SEC / 2 + MS);
	s.wall_ns = 1ULL << 62; /* a clock may start anywhere */
	sim_run(&s, 8 * 7 * 86400 * SEC);
	struct ledger_totals t;
	ledger_get(s.ledger, &t);
	check_int(t.run_ns, s.run_ns);
	check_range(sim_mean(&s) / sim_m_t(&s), 0.5, 1.001);
	int64_t m = control_local_target_ppb(s.control);
	check(m > 0 && m <= control_m_from_overhead(5 * PERCENT));
	for (int i = 0; i < 5; i++)
		check(s.plants[i].nr_events > 100);
	sim_deinit(&s);
}

int main(void)
{
	test_targets();
	test_second_condition();
	test_rare();
	for (int kind = 0; kind <= CONTROL_ADHOC; kind++) {
		test_starved(kind, 50, 40 * US);
		test_starved(kind, 1000, 3 * US);
		test_starved(kind, 10000, 3 * US);
	}
	test_convergence(100, 100, 40 * US);
	test_convergence(100, 10, 400 * US);
	test_convergence(1000, 1000, 10 * US);
	test_convergence(2000, 200, 20 * US);
	test_convergence(10000, 10000, 5 * US);
	test_bursts();
	test_many();
	test_quiet(false);
	test_quiet(true);
	test_all_at_once(10, 5000);
	test_all_at_once(10, 50000);
	test_all_at_once(1, 5000);
	test_change();
	test_churn();
	test_other_laws();
	test_extremes();
	for (int kind = 0; kind <= CONTROL_GLOBAL; kind++)
		test_weeks(kind);
	return tap_done();
}
