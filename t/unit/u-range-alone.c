/*
 * What windows of a function cost at least: what the one that is passed most
 * often does alone.
 */
#include "supervisor/monitor/range-alone.h"
#include "t/unit/tap.h"

#define ALONE_PS 2000

static struct range_duty_cost cost[4];

/* @nr windows, each hit costs a nanosecond. */
static void add(const struct range_news *news, size_t nr, uint32_t alone_ps)
{
	for (size_t i = 0; i < nr; i++)
		cost[i] = (struct range_duty_cost){.window = news[i].window,
						   .cost_ps =
							   news[i].hits * 1000};
	range_alone_add(cost, news, nr, alone_ps);
}

static void test_one(void)
{
	const struct range_news one = {
		.window = 7, .function = 3, .hits = 400000};
	add(&one, 1, ALONE_PS);
	check_int(cost[0].cost_ps, 400000ull * ALONE_PS);
	add(&one, 1, 999);
	check_int(cost[0].cost_ps, 400000ull * 1000);
}

/* Three at the same time are as dear as they are, if that is more; otherwise
 * each costs more by its hits. */
static void test_together(void)
{
	struct range_news news[] = {
		{.window = 1, .function = 5, .hits = 300000},
		{.window = 2, .function = 5, .hits = 300000},
		{.window = 3, .function = 5, .hits = 300000},
	};
	add(news, 3, ALONE_PS);
	for (size_t i = 0; i < 3; i++)
		check_int(cost[i].cost_ps, 300000ull * 1000);
	news[1].hits = 100000;
	news[2].hits = 80000;
	add(news, 3, ALONE_PS);
	check_int(cost[0].cost_ps, 300000ull * 1250);
	check_int(cost[1].cost_ps, 100000ull * 1250);
	check_int(cost[2].cost_ps, 80000ull * 1250);
}

/* Those of other functions do not wait at the same time. */
static void test_functions(void)
{
	const struct range_news news[] = {
		{.window = 1, .function = 5, .hits = 200000},
		{.window = 2, .function = 5, .hits = 200000},
		{.window = 9, .function = 6, .hits = 200000},
		{.window = 10, .function = 6, .hits = 0},
	};
	add(news, 4, ALONE_PS);
	check_int(cost[0].cost_ps, 200000ull * 1000);
	check_int(cost[1].cost_ps, 200000ull * 1000);
	check_int(cost[2].cost_ps, 200000ull * ALONE_PS);
	check_int(cost[3].cost_ps, 0);
}

/* Of counters that two threads have set back no sum wraps round. */
static void test_bounds(void)
{
	const struct range_news news[] = {
		{.window = 1, .hits = UINT64_MAX},
		{.window = 2, .hits = UINT64_MAX},
	};
	add(news, 2, UINT32_MAX);
	check(cost[0].cost_ps >= UINT64_MAX / 4);
	range_alone_add(cost, news, 0, ALONE_PS);
	check(cost[1].cost_ps >= UINT64_MAX / 4);
}

int main(void)
{
	test_one();
	test_together();
	test_functions();
	test_bounds();
	return tap_done();
}
