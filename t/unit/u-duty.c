/*
 * Spells of guards that cost by standing, against the ledger itself: the bound
 * holds whatever they cost, and within it they stand long enough to see naps,
 * as much of the time as there is budget for.
 */
#include "supervisor/control/control.h"
#include "supervisor/control/duty.h"
#include "t/unit/tap.h"

#define MS	NSEC_PER_MSEC
#define NAP	(600 * MS)
#define TICK	(12 * MS)
#define PERCENT (PPB / 100)

struct outcome {
	unsigned nr_spells, nr_long; /* long enough to see a nap */
	double on;		     /* share of the time */
	double overhead, worst;
};

static int64_t first_rate; /* of the first second that they stand; 0 = same */

static struct outcome run(int64_t target, int64_t rate, unsigned seconds)
{
	struct ledger *l = ledger_create(target);
	struct ledger_totals t;
	struct outcome out = {0};
	struct duty d;
	uint64_t start = 5 * NSEC_PER_SEC, end = start + seconds * NSEC_PER_SEC;
	uint64_t on_ns = 0, began = 0;
	bool on = false;
	ledger_advance(l, start, 0);
	duty_init(&d, NAP, start);
	for (uint64_t now = start; now < end; now += TICK) {
		/* A program that waits most of the time. */
		ledger_advance(l, now, now > start ? TICK : 0);
		if (on)
			ledger_charge(
				l, LEDGER_STOP, 0,
				(uint64_t)TICK *
					(uint64_t)(on_ns < MS * 100 &&
								   first_rate
							   ? first_rate
							   : rate) /
					PPB);
		ledger_get(l, &t);
		const struct duty_state s = {
			.now_ns = now,
			.spent_ns = t.spent_ns,
			.room_ns = ledger_room_ns(l),
			.window_room_ns = ledger_window_room_ns(l),
			.window_most_ns = ledger_window_most_ns(l),
		};
		bool was = on;
		on = duty_step(&d, &s);
		if (on && !was) {
			began = now;
			out.nr_spells++;
		}
		if (on)
			on_ns += TICK;
		else if (was && now - began >= NAP)
			out.nr_long++;
	}
	out.nr_long += on && end - began >= NAP;
	out.on = (double)on_ns / (double)(end - start);
	out.overhead = (double)t.overhead_ppb / PPB;
	out.worst = (double)t.worst_window_ppb / PPB;
	ledger_destroy(l);
	return out;
}

int main(void)
{
	/* target, what standing costs, least share of the time on */
	static const struct {
		int64_t target, rate;
		double on;
	} cases[] = {
		{10 * PERCENT, 2 * PERCENT, 0.9},
		{10 * PERCENT, 8 * PERCENT, 0.9},
		{10 * PERCENT, 18 * PERCENT, 0.4},
		{10 * PERCENT, 30 * PERCENT, 0.25},
		{10 * PERCENT, 90 * PERCENT, 0.05},
		{50 * PERCENT, 60 * PERCENT, 0.4},
		{1 * PERCENT, 8 * PERCENT, 0.1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct outcome o = run(cases[i].target, cases[i].rate, 60);
		double bound = (double)cases[i].target / PPB;
		bound += bound / 10 > 0.01 ? bound / 10 : 0.01;
		printf("# %.0f %% target, standing costs %.0f %%: on %.1f %%, "
		       "%u spells, %u long, overhead %.2f %%, worst %.2f %%\n",
		       (double)cases[i].target / PERCENT,
		       (double)cases[i].rate / PERCENT, o.on * 100, o.nr_spells,
		       o.nr_long, o.overhead * 100, o.worst * 100);
		check_range(o.on, cases[i].on, 1);
		check_range(o.overhead, 0, bound);
		check_range(o.worst, 0, bound);
		/* The first ones find out what it costs. */
		check(o.nr_long > 0 && o.nr_long + 3 >= o.nr_spells);
	}
	/* Not even a window pays for one: looked at now and then, briefly. */
	struct outcome o = run(1 * PERCENT, 90 * PERCENT, 100);
	check_int(o.nr_long, 0);
	check_range(o.nr_spells, 3, 12);
	check_range(o.worst, 0, 0.02);
	/* A busy moment at the start does not spoil the rest. */
	first_rate = 300 * PERCENT;
	o = run(10 * PERCENT, 18 * PERCENT, 20);
	first_rate = 0;
	check_range(o.on, 0.25, 1);
	check(o.nr_long > 3);
	check_range(o.worst, 0, 0.11);
	/* A target of 0 leaves nothing, no bound everything. */
	check_int(run(0, 8 * PERCENT, 20).nr_spells, 0);
	check_range(run(INT64_MAX, 500 * PERCENT, 20).on, 0.99, 1.01);
	return tap_done();
}
