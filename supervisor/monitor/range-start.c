/*
 * Functions of a process come in. Those of a large program do so little by
 * little, and are planned then, too: to plan them and to make and write their
 * stubs takes longer than the program may stand, or be held up. First come
 * those that threads were seen in.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* So many windows at once, in a part of what the target allows: looking at
 * those that are in takes as much, and they are to be seen meanwhile. */
#define MORE_WINDOWS 128
#define START_SHARE  4

static bool had_turn(const struct range_part *rp, uint32_t f)
{
	return rp->had_turn[f / 8] & 1 << f % 8;
}

/* The windows of function @f are the duty's from now on. */
static void hand_over(struct range_part *rp, uint32_t f, uint64_t now_ns)
{
	const struct range_plan *plan = rp->unit->plan;
	uint32_t first, end = range_plan_windows_of(plan, f, &first);
	for (uint32_t w = first; w < end; w++)
		if (!ranges_window_is_ready(rp->ranges, w))
			continue;
		else if (rp->duty.window[w].exists) /* it is back */
			range_duty_put(&rp->duty, w,
				       ranges_window_is_in(rp->ranges, w),
				       now_ns);
		else
			range_duty_add(&rp->duty, w,
				       ranges_window_is_in(rp->ranges, w),
				       now_ns);
}

struct batch {
	uint32_t *function;
	size_t nr, nr_windows;
};

/* One more whose turn it is; nothing if it had it. */
static void take(struct range_part *rp, struct batch *b, uint32_t f)
{
	if (had_turn(rp, f))
		return;
	rp->had_turn[f / 8] |= (uint8_t)(1 << f % 8);
	if (!range_unit_plan(rp->unit, f))
		return;
	b->nr_windows += range_plan_function(rp->unit->plan, f)->nr_windows;
	b->function[b->nr++] = f;
}

/* The next functions, of @most windows, but for a large one. */
static void put_some_in(struct range_part *rp, size_t most)
{
	uint32_t end = (uint32_t)rp->unit->vars->nr_functions;
	uint32_t seen[RANGE_MOST_SEEN];
	struct smco_err err = {0};
	size_t nr_seen = ranges_seen(rp->ranges, seen);
	struct batch b = {
		.function = calloc(end - rp->next_function + nr_seen + 1,
				   sizeof(*b.function)),
	};
	if (!b.function) {
		rp->next_function = end;
		return;
	}
	for (size_t i = 0; i < nr_seen; i++)
		take(rp, &b, seen[i]);
	while (rp->next_function < end && b.nr_windows < most)
		take(rp, &b, rp->next_function++);
	if (ranges_set(rp->ranges, b.function, b.nr, true, NULL, &err))
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
	uint64_t now_ns = smco_now_ns();
	for (size_t i = 0; i < b.nr; i++) {
		hand_over(rp, b.function[i], now_ns);
		range_plan_forget(rp->unit->plan, b.function[i]);
	}
	free(b.function);
}

void range_start_first(struct range_part *rp, size_t most)
{
	put_some_in(rp, most);
}

void range_start_fork(struct range_part *rp, const struct range_part *parent)
{
	rp->next_function = parent->next_function;
	memcpy(rp->had_turn, parent->had_turn,
	       rp->unit->vars->nr_functions / 8 + 1);
}

/* While something is owed, what its parent has out goes out in the stop that it
 * wakes in: on a busy machine it is long until somebody looks. */
void range_start_wake(const struct range_monitor *m, struct range_part *rp,
		      const struct range_part *parent)
{
	uint32_t nr = (uint32_t)rp->unit->vars->nr_functions;
	uint64_t now_ns = smco_now_ns();
	for (uint32_t f = 0; f < nr; f++)
		if (had_turn(rp, f))
			hand_over(rp, f, now_ns);
	if (!parent)
		return;
	range_duty_inherit(&rp->duty, &parent->duty);
	if (ledger_room_ns(m->ledger) < 0 &&
	    range_duty_follow(&rp->duty, &parent->duty, now_ns))
		range_part_change(rp, 0);
}

/* For all that is done here it is as if it were the program's time. */
void range_start_some(struct range_part *rp, uint64_t now_ns, int64_t room_ns)
{
	if (rp->next_function >= rp->unit->vars->nr_functions ||
	    now_ns < rp->next_start_ns || room_ns <= 0)
		return;
	put_some_in(rp, MORE_WINDOWS);
	uint64_t ns = smco_now_ns() - now_ns;
	rp->next_start_ns =
		now_ns + sat_u64((u128)ns * START_SHARE * PPB * rp->nr_sharing /
				 (uint64_t)rp->duty.m_t_ppb);
}
