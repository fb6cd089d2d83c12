/*
 * What trials say a hit costs: of programs whose price is known, which do
 * something else in each moment.
 */
#include <string.h>

#include "supervisor/monitor/range-witness.h"
#include "t/unit/tap.h"

static uint64_t seed;

/* In [-1000, 1000]. */
static int64_t noise(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(seed >> 33) % 2001 - 1000;
}

struct program {
	int64_t price;	 /* what a hit costs, of 1000 */
	int64_t charged; /* of the work's time, when all are in, of 1000 */
	int64_t ripple;	 /* how much what it does differs, of 1000 */
	int64_t trend;	 /* from slice to slice, of 1000 */
};

#define SLICE_NS 2000000
#define KEPT	 10 /* of 100 of what is charged, without */

/* Three witnesses, of which one is passed now and then. */
static bool try_once(struct range_witness *w, const struct program *p)
{
	struct range_witness_trial t;
	struct range_witness_hits hits[3];
	int64_t pace = 1000 + noise() * p->trend / 1000;
	for (int i = 0; i < RANGE_WITNESS_SLICES; i++) {
		bool is_in = i != RANGE_WITNESS_WITHOUT;
		int64_t charged = is_in ? p->charged : p->charged * KEPT / 100;
		/* Work is done in what they leave of the time. */
		int64_t work =
			SLICE_NS * 1000LL / (1000 + charged * p->price / 1000);
		t.run_ns[i] = SLICE_NS;
		t.cost_ps[i] = (uint64_t)(work * charged);
		for (int k = 0; k < 2; k++) {
			int64_t by = pace + noise() * p->ripple / 1000;
			hits[k].in[i] =
				(uint64_t)(work * by / 1000 / (20 * (k + 1)));
		}
		hits[2].in[i] =
			40 + (uint64_t)(work / 1000 * (noise() + 1000) / 50);
		pace = pace * (1000 + p->trend) / 1000;
	}
	return range_witness_learn(w, &t, hits, 3);
}

static uint32_t price_by(const struct program *p, int nr)
{
	static struct range_witness w;
	w = (struct range_witness){.price = 0};
	for (int i = 0; i < nr; i++)
		try_once(&w, p);
	return range_witness_price(&w);
}

/* Of many runs: what is off in the same way in each. */
static uint32_t mean_price_by(const struct program *p, int nr)
{
	uint32_t sum = 0;
	for (int i = 0; i < 32; i++)
		sum += price_by(p, nr);
	return sum / 32;
}

static void check_near(uint32_t price, int64_t true_price, int64_t off)
{
	int64_t want = true_price * RANGE_WITNESS_WHOLE / 1000;
	check_range(price, (double)(want - off), (double)(want + off));
}

static void test_true_price(void)
{
	for (int64_t price = 600; price <= 1200; price += 100) {
		const struct program even = {price, 400, 0, 0};
		check_near(price_by(&even, 64), price, 20);
		const struct program wild = {price, 400, 250, 100};
		check_near(mean_price_by(&wild, 128), price, 80);
	}
}

/* What a program does from moment to moment is not what hits cost: however
 * wild, or going one way, one whose hits cost what they do by the laboratory
 * is not said to be far from that. */
static void test_phases(void)
{
	const struct program wild = {1000, 400, 600, 0};
	check_near(mean_price_by(&wild, 128), 1000, 100);
	const struct program slower = {1000, 400, 100, -300};
	check_near(mean_price_by(&slower, 128), 1000, 100);
	const struct program faster = {1000, 400, 100, 300};
	check_near(mean_price_by(&faster, 128), 1000, 100);
}

/* The less was charged, the less a trial says. */
static void test_shrinks(void)
{
	const struct program cheap = {500, 30, 600, 0};
	uint32_t of_cheap = mean_price_by(&cheap, 64);
	const struct program dear = {500, 600, 100, 0};
	uint32_t of_dear = mean_price_by(&dear, 64);
	check(of_cheap > of_dear);
	check(of_cheap > RANGE_WITNESS_WHOLE * 2 / 3);
	const struct program usual = {1000, 30, 600, 0};
	for (int i = 0; i < 32; i++)
		check_near(price_by(&usual, 20), 1000,
			   RANGE_WITNESS_WHOLE * 2 / 5);
}

static void test_clamp(void)
{
	for (int64_t price = -1000; price <= 6000; price += 250)
		for (int64_t charged = 50; charged <= 800; charged += 250) {
			const struct program p = {price, charged, 700, 0};
			uint32_t got = price_by(&p, 40);
			if (got < RANGE_WITNESS_LEAST ||
			    got > RANGE_WITNESS_MOST)
				check_int(got, RANGE_WITNESS_WHOLE);
		}
	const struct program free = {0, 400, 50, 0};
	check_int(price_by(&free, 40), RANGE_WITNESS_LEAST);
	const struct program twice = {2500, 400, 50, 0};
	check_int(price_by(&twice, 40), RANGE_WITNESS_MOST);
}

/* Without witnesses, or before there are some trials, it is the laboratory's.
 */
static void test_nothing(void)
{
	static struct range_witness w;
	const struct program half = {500, 400, 50, 0};
	check_int(range_witness_price(&w), RANGE_WITNESS_WHOLE);
	check_int(price_by(&half, 5), RANGE_WITNESS_WHOLE);
	struct range_witness_trial t = {
		.run_ns = {SLICE_NS, SLICE_NS, SLICE_NS},
		.cost_ps = {SLICE_NS * 300ull, 0, SLICE_NS * 300ull},
	};
	const struct range_witness_hits seldom = {{5, 900, 900}};
	const struct range_witness_hits often = {{900, 900, 900}};
	for (int i = 0; i < 40; i++) {
		check(!range_witness_learn(&w, &t, NULL, 0));
		check(!range_witness_learn(&w, &t, &seldom, 1));
	}
	t.cost_ps[RANGE_WITNESS_WITHOUT] = SLICE_NS * 300ull;
	check(!range_witness_learn(&w, &t, &often, 1));
	t.run_ns[RANGE_WITNESS_BEFORE] = 1000;
	check(!range_witness_learn(&w, &t, &often, 1));
	check_int(range_witness_nr(&w), 0);
	check_int(range_witness_price(&w), RANGE_WITNESS_WHOLE);
}

/* Times and counts as large as they can be do not overflow. */
static void test_large(void)
{
	static struct range_witness w;
	const struct range_witness_trial t = {
		.run_ns = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
		.cost_ps = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
	};
	const struct range_witness_trial other = {
		.run_ns = {SLICE_NS, UINT64_MAX, SLICE_NS},
		.cost_ps = {UINT64_MAX, 0, UINT64_MAX},
	};
	const struct range_witness_hits hits[] = {
		{{UINT64_MAX, UINT64_MAX, UINT64_MAX}},
		{{UINT64_MAX, 30, UINT64_MAX}},
		{{30, UINT64_MAX, 30}},
	};
	for (int i = 0; i < 300; i++) {
		range_witness_learn(&w, &t, hits, 3);
		range_witness_learn(&w, &other, hits + i % 3, 1);
	}
	check(range_witness_price(&w) >= RANGE_WITNESS_LEAST);
	check(range_witness_price(&w) <= RANGE_WITNESS_MOST);
}

/* What was long ago counts no more. */
static void test_changes(void)
{
	static struct range_witness w;
	const struct program was = {600, 400, 50, 0};
	const struct program is = {1200, 400, 50, 0};
	for (int i = 0; i < 1000; i++)
		try_once(&w, &was);
	check_near(range_witness_price(&w), 600, 30);
	for (int i = 0; i < RANGE_WITNESS_TRIALS; i++)
		try_once(&w, &is);
	check_near(range_witness_price(&w), 1200, 40);
}

int main(void)
{
	test_true_price();
	test_phases();
	test_shrinks();
	test_clamp();
	test_nothing();
	test_large();
	test_changes();
	return tap_done();
}
