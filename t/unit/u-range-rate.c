/*
 * What hits cost at present: at first what was measured at the start, then what
 * is measured where the program runs, as often as hits are worth it; as beside
 * a busy neighbour where that cannot be.
 */
#include "supervisor/probe/range-rate.h"

#include <sched.h>

#include "supervisor/probe/hop.h"
#include "t/unit/tap.h"

#define HITS 1000

/* Rather too much. */
static uint64_t more(uint64_t ps)
{
	return ps + ps / 8;
}

static void test_of(void)
{
	const struct range_cost *first = range_cost_here();
	uint64_t jumps_ps = (uint64_t)HITS * first->jumps;
	uint64_t rest_ps = (uint64_t)HITS * 3 * first->reg;
	struct range_rate r;
	range_rate_init(&r, 0);
	check_int(range_rate_of(&r, HITS, jumps_ps + rest_ps),
		  more(jumps_ps + rest_ps));
	check_int(range_rate_of(&r, 0, 0), 0);
	/* Each by itself. */
	r.now.jumps = 3 * first->jumps;
	check_int(range_rate_of(&r, HITS, jumps_ps + rest_ps),
		  more(3 * jumps_ps + rest_ps));
	r.now.reg = 2 * first->reg;
	check_int(range_rate_of(&r, HITS, jumps_ps + rest_ps),
		  more(3 * jumps_ps + 2 * rest_ps));
	/* No wrapping round to something cheap. */
	check(range_rate_of(&r, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
	check(range_rate_of(&r, 1, 0) == more(r.now.jumps));
}

/* As what is measured again does. */
static void test_alone(void)
{
	struct range_rate r;
	range_rate_init(&r, 0);
	uint32_t first = range_cost_here()->alone;
	check_int(range_rate_alone(&r), more(first));
	r.now.jumps *= 3;
	r.now.reg *= 3;
	check_int(range_rate_alone(&r), more(3 * (uint64_t)first));
	r.now.jumps = r.now.reg = UINT32_MAX;
	check(range_rate_alone(&r) > more(3 * first));
}

/* By time, and by what hits have cost. */
static void test_due(void)
{
	struct range_rate r;
	range_rate_init(&r, NSEC_PER_SEC);
	check(!range_rate_is_due(&r, 100 * NSEC_PER_SEC));
	range_rate_charged(&r, NSEC_PER_MSEC);
	check(!range_rate_is_due(&r, 100 * NSEC_PER_SEC));
	range_rate_charged(&r, 10 * NSEC_PER_MSEC);
	check(range_rate_is_due(&r, 100 * NSEC_PER_SEC));
	check(!range_rate_is_due(&r, NSEC_PER_SEC));
	range_rate_charged(&r, UINT64_MAX);
	check(range_rate_is_due(&r, 100 * NSEC_PER_SEC));
	range_rate_measure(&r, sched_getcpu());
	check(!range_rate_is_due(&r, UINT64_MAX));
}

/* Here, elsewhere, nowhere: this thread is where it was, and may be anywhere
 * again. */
static void test_measure(void)
{
	cpu_set_t before, after;
	struct range_rate r;
	/* Where that is not permitted it goes nowhere. */
	const struct sched_param first = {.sched_priority = 1};
	sched_setscheduler(0, SCHED_FIFO, &first);
	check(!sched_getaffinity(0, sizeof(before), &before));
	range_rate_init(&r, 0);
	for (int cpu = 0; cpu < CPU_COUNT(&before); cpu++) {
		range_rate_measure(&r, cpu);
		check(r.now.jumps >= range_cost_least.jumps);
		check(r.now.reg >= range_cost_least.reg);
		check(!sched_getaffinity(0, sizeof(after), &after));
		check(CPU_EQUAL(&before, &after));
	}
	/* Whoever may be there. */
	range_rate_measure(&r, -1);
	check(r.now.jumps >= range_cost_usual.jumps);
	check(r.now.reg >= range_cost_usual.reg);
	check(r.now.memory == range_cost_here()->memory);
}

int main(void)
{
	hop_prepare();
	test_of();
	test_alone();
	test_due();
	test_measure();
	return tap_done();
}
