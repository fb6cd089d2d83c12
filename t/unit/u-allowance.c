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
	struct allowance a;
	allowance_init(&a, TEN_PPB);
	return allowance_ns(&a, room_ns, GAP_NS, nr);
}

static uint64_t dear_at(int64_t room_ns, size_t nr)
{
	struct allowance a;
	allowance_init(&a, TEN_PPB);
	return allowance_dear_ns(&a, room_ns, GAP_NS, nr);
}

/* Of a program that always wants what is dear: its room then. */
static int64_t owed_after(uint64_t end_ns)
{
	struct allowance a;
	int64_t room = 0, spent = 0;
	allowance_init(&a, TEN_PPB);
	for (uint64_t now = 0; now < end_ns; now += GAP_NS) {
		allowance_advance(&a, now, (uint64_t)spent);
		int64_t most = (int64_t)allowance_dear_ns(&a, room, GAP_NS, 1);
		spent += most;
		room += (int64_t)GAP_NS / 10 - most;
	}
	return room;
}

/* Of a program that allocates all the time and would have all blocks armed:
 * what recording got of the budget in the end, percent. */
static int64_t share_of_recording(int64_t arming_wants_ns)
{
	struct allowance a;
	int64_t room = 0, recorded = 0, budget = 0;
	allowance_init(&a, TEN_PPB);
	for (int i = 0; i < 50 * TICKS; i++) {
		budget += (int64_t)GAP_NS / 10;
		room += (int64_t)GAP_NS / 10;
		if (room > 0)
			room -= room < arming_wants_ns ? room : arming_wants_ns;
		allowance_advance(&a, (uint64_t)(i + 1) * GAP_NS,
				  (uint64_t)recorded);
		int64_t most = (int64_t)allowance_ns(&a, room, GAP_NS, 1);
		int64_t spent = most < COST_NS ? most : COST_NS;
		recorded += spent;
		room -= spent;
	}
	return recorded * 100 / budget;
}

static uint64_t of(int64_t m_t_ppb, int64_t room_ns, uint64_t gap_ns)
{
	struct allowance a;
	allowance_init(&a, m_t_ppb);
	return allowance_ns(&a, room_ns, gap_ns, 1);
}

/* What there is after a burst of @spent_ns, and after @rest_ns of rest. */
static uint64_t after_burst(int64_t spent_ns, uint64_t rest_ns)
{
	struct allowance a;
	allowance_init(&a, TEN_PPB);
	allowance_advance(&a, 0, (uint64_t)spent_ns);
	allowance_advance(&a, rest_ns, (uint64_t)spent_ns);
	return allowance_ns(&a, 0, GAP_NS, 1);
}

/* Each wants more than there is at every tick: the deepest debt. */
static int64_t deepest_debt(size_t nr)
{
	struct allowance a;
	int64_t room = 0, deepest = 0, recorded = 0;
	allowance_init(&a, TEN_PPB);
	for (int i = 0; i < TICKS; i++) {
		allowance_advance(&a, (uint64_t)i * GAP_NS, (uint64_t)recorded);
		int64_t most = (int64_t)allowance_ns(&a, room, GAP_NS, nr);
		int64_t spent = (int64_t)nr * (most < COST_NS ? most : COST_NS);
		recorded += spent;
		room -= spent;
		if (room < deepest)
			deepest = room;
		room += (int64_t)GAP_NS / 10;
	}
	return deepest;
}

/*
 * Counting costs @own_ns of each tick of a program, unless it pauses, others
 * cannot but take @others_ns, and watching has what is left. What all cost in
 * @ticks, in parts per thousand; *pauses_ret: ticks without counting.
 */
static int64_t cost_with(int64_t own_ns, int64_t others_ns, bool watches,
			 int ticks, int *pauses_ret)
{
	int64_t room = 0, spent = 0, own = 0;
	*pauses_ret = 0;
	for (int i = 1; i <= ticks; i++) {
		bool pause = allowance_must_pause(TEN_PPB, (uint64_t)i * GAP_NS,
						  room, (uint64_t)own);
		int64_t now = others_ns + (pause ? 0 : own_ns);
		own += pause ? 0 : own_ns;
		*pauses_ret += pause;
		room += (int64_t)GAP_NS / 10;
		if (watches && room > now)
			now = room;
		room -= now;
		spent += now;
	}
	return spent * 1000 / ((int64_t)GAP_NS * ticks);
}

static void pauses(void)
{
	const int64_t percent = (int64_t)GAP_NS / 100;
	int nr;
	/* Alone it may have all. */
	check_int(cost_with(9 * percent, 0, false, 150, &nr), 90);
	check_int(nr, 0);
	check(cost_with(20 * percent, 0, false, 150, &nr) <= 101);
	/* 10 and what our CPU time costs are more than the bound, soon. */
	check(cost_with(20 * percent, 3 * percent, false, 150, &nr) <= 106);
	check(cost_with(10 * percent, 3 * percent, false, 150, &nr) <= 106);
	check(nr > 0 && nr < 75);
	check(cost_with(20 * percent, 3 * percent, false, 5000, &nr) <= 106);
	/* Whoever watches takes what is left, and it does not pause for that.
	 */
	check_int(cost_with(6 * percent, 3 * percent, true, 5000, &nr), 100);
	check_int(nr, 0);
	/* Where others take all, it has its half. */
	check(cost_with(20 * percent, 12 * percent, false, 5000, &nr) <= 171);
	check(cost_with(20 * percent, 12 * percent, false, 5000, &nr) >= 165);
	check_int(cost_with(4 * percent, 12 * percent, false, 150, &nr), 160);
	check_int(nr, 0);
	/* No limit, and little of anything. */
	check(!allowance_must_pause(PPB, NSEC_PER_SEC, INT64_MAX / 2,
				    1u << 30));
	check(!allowance_must_pause(TEN_PPB, 0, -9 * MS, 2 * MS));
	check(allowance_must_pause(TEN_PPB, 0, -9 * MS, 2 * MS + 1));
	check(allowance_must_pause(0, NSEC_PER_SEC, -9 * MS, UINT64_MAX));
}

int main(void)
{
	pauses();
	check_int(allowance_credit_ns(TEN_PPB), CREDIT_NS);
	/* A burst at the start, before anything was saved. */
	check_int(at(0, 1), CREDIT_NS);
	check_int(at(CREDIT_NS, 1), CREDIT_NS);
	check_int(at(4 * CREDIT_NS, 1), 2 * CREDIT_NS);
	/* In debt: what is left of the credit. */
	check_int(at(-10 * MS, 1), 40 * MS);
	check_int(at(-CREDIT_NS, 1), CREDIT_NS / 4);
	check_int(at(INT64_MIN / 2, 1), CREDIT_NS / 4);
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
	check_int(at(-10 * CREDIT_NS, 40), CREDIT_NS / 4 / 40);
	check(deepest_debt(1) >= -CREDIT_NS - LEAST_NS);
	check(deepest_debt(40) >= -CREDIT_NS - LEAST_NS);
	/* A gap of half a second between ticks, and no budget. */
	check_int(of(TEN_PPB, -10 * CREDIT_NS, 2 * NSEC_PER_SEC), 20 * MS);
	check_int(of(0, 0, GAP_NS), 0);
	check_int(of(PPB, 0, 10 * NSEC_PER_SEC), NSEC_PER_SEC);
	/* Half of the budget where the rest is wanted, more where not. */
	check_int(share_of_recording(CREDIT_NS), 50);
	check(share_of_recording(0) >= 99);
	/* A burst is paid back from that half. */
	check_int(after_burst(40 * MS, 0), 10 * MS);
	check_int(after_burst(40 * MS, NSEC_PER_SEC / 2), 35 * MS);
	check_int(after_burst(0, NSEC_PER_SEC / 2), CREDIT_NS);
	check_int(after_burst(0, NSEC_PER_SEC / 4 * 3), CREDIT_NS / 2);
	/* From a second on as much as the bound has room for. */
	check_int(after_burst(40 * MS, NSEC_PER_SEC), 5 * MS);
	check_int(after_burst(40 * MS, 4 * NSEC_PER_SEC), 20 * MS);
	check_int(after_burst(40 * MS, 10 * NSEC_PER_SEC), CREDIT_NS);
	check_int(after_burst(40 * MS, 20 * NSEC_PER_SEC), CREDIT_NS);
	check_int(after_burst(9 * CREDIT_NS, 0), LEAST_NS);
	check_int(after_burst(9 * CREDIT_NS, 2 * NSEC_PER_SEC), 10 * MS);
	/* What is dear is not bought by who owes all of the credit. */
	check_int(dear_at(0, 1), CREDIT_NS / 10);
	check_int(dear_at(4 * CREDIT_NS, 2), CREDIT_NS);
	check_int(dear_at(-2 * MS, 1), 3 * MS);
	check_int(dear_at(-CREDIT_NS, 1), LEAST_NS);
	check_int(dear_at(-2 * CREDIT_NS, 1), LEAST_NS);
	/* Whenever it ends, who always wants that owes no more than the budget
	 * of 50 ms, and a twentieth of all that was to be spent later. */
	for (unsigned tenths = 1; tenths <= 10; tenths++)
		check(owed_after(tenths * NSEC_PER_SEC / 10) >=
		      -5 * MS - LEAST_NS);
	check(owed_after(4 * NSEC_PER_SEC) >= -20 * MS - LEAST_NS);
	return tap_done();
}
