/*
 * What one decision of the cascade costs: a due plant is taken out, armed, its
 * event handled and its next turn scheduled, with the ledger's part (room,
 * reserve, release, charge). Prints a line per number of plants.
 */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/control/control.h"
#include "t/unit/rnd.h"

static uint64_t seed = 88172645463325252;

static uint64_t rnd(void)
{
	return rnd_next(&seed);
}

/* ns per decision, best of five rounds: others use this machine too. */
static double measure(uint32_t n, uint64_t nr_decisions)
{
	struct control_params params = {
		.kind = CONTROL_CASCADE,
		.target_overhead_ppb = PPB / 10,
	};
	struct ledger *l = ledger_create(params.target_overhead_ppb);
	struct control *c = control_create(&params, 0);
	double best = 1e9;
	uint64_t now = 0;
	plant_t id;
	for (uint32_t i = 0; i < n; i++)
		control_add(c, 0, NULL);
	for (int round = 0; round < 5; round++) {
		uint64_t start = smco_now_ns(), nr = 0;
		while (nr < nr_decisions) {
			uint64_t next = control_next_due_ns(c);
			uint64_t tick = 10 * NSEC_PER_MSEC;
			if (next > now + tick)
				tick = next - now;
			now += tick;
			ledger_advance(l, now, tick);
			control_tick(c, now, tick);
			for (; nr < nr_decisions; nr++) {
				uint64_t p = 300 + rnd() % 2700;
				if (ledger_room_ns(l) <= 0 ||
				    !control_next_due(c, now, &id))
					break;
				ledger_reserve(l, 3000);
				control_armed(c, id, now);
				ledger_release(l, 3000);
				ledger_charge(l, LEDGER_TOUCH, 0, p);
				control_event(c, id, now, rnd() % 10000, p);
			}
		}
		double ns = (double)(smco_now_ns() - start) / (double)nr;
		if (ns < best)
			best = ns;
	}
	control_destroy(c);
	ledger_destroy(l);
	return best;
}

int main(void)
{
	static const uint32_t sizes[] = {1, 100, 10000, 100000};
	printf("%10s  %s\n", "plants", "ns per decision");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		printf("%10u  %.1f\n", sizes[i],
		       measure(sizes[i], sizes[i] > 1 ? 1000000 : 200000));
	return 0;
}
