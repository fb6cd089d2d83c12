/*
 * How much of a burst of allocations is recorded: on credit that ends, shared
 * by the processes, and always a little.
 */
#include "supervisor/control/allowance.h"
#include "supervisor/control/control.h"
#include "t/unit/tap.h"

#define MS	  ((int64_t)NSEC_PER_MSEC)
#define GAP_NS	  (20 * NSEC_PER_MSEC)
#define TEN_PPB	  100000000 /* 10 % */
#define CREDIT_NS (50 * MS)
#define LEAST_NS  (MS / 5)
#define TICKS	  1000
#define COST_NS	  (10 * MS) /* what the program would take in each tick */

static uint64_t at(int64_t room_ns, size_t nr)
{
	return allowance_ns(TEN_PPB, room_ns, GAP_NS, nr);
}

/* Each wants more than there is at every tick: the deepest debt. */
static int64_t deepest_debt(size_t nr)
{
	int64_t room = 0, deepest = 0;
	for (int i = 0; i < TICKS; i++) {
		int64_t most = (int64_t)at(room, nr);
		room -= (int64_t)nr * (most < COST_NS ? most : COST_NS);
		if (room < deepest)
			deepest = room;
		room += (int64_t)GAP_NS / 10;
	}
	return deepest;
}

int main(void)
{
	check_int(allowance_credit_ns(TEN_PPB), CREDIT_NS);
	/* A burst at the start, before anything was saved. */
	check_int(at(0, 1), CREDIT_NS);
	check_int(at(CREDIT_NS, 1), CREDIT_NS);
	check_int(at(4 * CREDIT_NS, 1), 2 * CREDIT_NS);
	/* In debt: what is left of the credit. */
	check_int(at(-10 * MS, 1), 40 * MS);
	check_int(at(-CREDIT_NS, 1), LEAST_NS);
	check_int(at(INT64_MIN / 2, 1), LEAST_NS);
	/* More room is never less to spend. */
	uint64_t was = 0;
	bool is_monotonic = true;
	for (int64_t room = -3 * CREDIT_NS; room < 5 * CREDIT_NS; room += MS) {
		is_monotonic &= at(room, 1) >= was;
		was = at(room, 1);
	}
	check(is_monotonic);
	/* All processes together get what one does. */
	check_int(at(4 * CREDIT_NS, 40), 2 * CREDIT_NS / 40);
	check_int(at(-10 * CREDIT_NS, 40), LEAST_NS / 40);
	check(deepest_debt(1) >= -CREDIT_NS - LEAST_NS);
	check(deepest_debt(40) >= -CREDIT_NS - LEAST_NS);
	/* A gap of half a second between ticks, and no budget. */
	check_int(allowance_ns(TEN_PPB, -10 * CREDIT_NS, NSEC_PER_SEC / 2, 1),
		  5 * MS);
	check_int(allowance_ns(0, 0, GAP_NS, 1), 0);
	check_int(allowance_ns(PPB, 0, 10 * NSEC_PER_SEC, 1), NSEC_PER_SEC);
	return tap_done();
}
