/* What an overflow costs, of the times that rounds of work took with one and
 * without. */
#include "pmu/overflow.h"
#include "t/unit/tap.h"

#define R OVERFLOW_ROUNDS

static void test_medians(void)
{
	/* One had to wait, one began late. */
	uint64_t gap[] = {R * 1000 + 20000, R * 1000 + 900000, R * 1000 + 22000,
			  R * 1000 + 3, R * 1000 + 21000};
	uint64_t round[] = {1000, 70000, 990, 1000, 1010, 1000, 980};
	check_int(overflow_cost_of(gap, 5, round, 7),
		  21000 + 21000 / OVERFLOW_LATER);
	/* Of an even number the greater one of the middle. */
	uint64_t four[] = {R * 10 + 4, R * 10 + 1, R * 10 + 3, R * 10 + 2};
	uint64_t two[] = {10, 5};
	check_int(overflow_cost_of(four, 4, two, 2), 3 + 3 / OVERFLOW_LATER);
}

/* No time at all cannot be: a rate would be made of it. */
static void test_edges(void)
{
	uint64_t gap[] = {R * 100}, less[] = {R * 100 - 1}, one[] = {100};
	check_int(overflow_cost_of(gap, 1, one, 1), 1);
	check_int(overflow_cost_of(less, 1, one, 1), 1);
	check_int(overflow_cost_of(gap, 0, one, 1), 0);
	check_int(overflow_cost_of(gap, 1, one, 0), 0);
}

int main(void)
{
	test_medians();
	test_edges();
	return tap_done();
}
