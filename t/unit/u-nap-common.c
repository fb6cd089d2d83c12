/*
 * A page that two blocks have in common is reset once and touched once, and so
 * it is charged once, whichever of them is armed, and how often. What could not
 * be reset is not charged.
 */
#include "t/unit/napsim.h"

#include <string.h>

#define LOWER  0x100010ull
#define SIZE   8192ull
#define UPPER  (LOWER + SIZE + 16)
#define FIRST  (LOWER & ~(TPAGE_SIZE - 1))
#define PAGES  5
#define RUN_NS (20 * NSEC_PER_SEC)

static struct {
	bool young[PAGES];
	bool is_new[PAGES]; /* cannot be reset yet */
	uint64_t nr_resets;
} sim;

static unsigned page_of(taddr_t addr)
{
	return (unsigned)((addr - FIRST) / TPAGE_SIZE);
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		unsigned first = page_of(r[i].start), end = page_of(r[i].end);
		r[i].nr_present = end - first;
		r[i].nr_touched = 0;
		r[i].nr_aged = 0;
		r[i].first_touched = 0;
		for (unsigned k = first; k < end; k++) {
			r[i].nr_touched += sim.young[k];
			if (sim.young[k] && !r[i].first_touched)
				r[i].first_touched = FIRST + k * TPAGE_SIZE;
		}
	}
	return 0;
}

/* All ranges are looked at before the first one is reset. */
static int arm(struct access *a, struct page_range *r, size_t n)
{
	collect(a, r, n);
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = r[i].nr_stuck = r[i].nr_waiting = 0;
		for (unsigned k = page_of(r[i].start); k < page_of(r[i].end);
		     k++) {
			r[i].nr_waiting += sim.is_new[k];
			r[i].nr_reset += sim.young[k];
			sim.nr_resets += sim.young[k] && !sim.is_new[k];
			sim.young[k] = sim.is_new[k];
		}
	}
	return 0;
}

static const struct access_ops ops = NAPSIM_POLLED(arm, collect);

/* @every ticks of 10 ms each page is touched; what is not charged by the end
 * may stand reset still. */
static void run(unsigned every)
{
	struct napsim s;
	napsim_start(&s, &ops, PPB, 500 * MS, napsim_emit);
	napsim_allocate(&s, LOWER, SIZE);
	napsim_allocate(&s, UPPER, SIZE);
	memset(sim.young, true, sizeof(sim.young));
	sim.nr_resets = 0;
	unsigned tick = 0;
	for (uint64_t end = now + RUN_NS; now < end; tick++) {
		for (unsigned k = 0; k < PAGES; k++)
			sim.young[k] |= tick % every == k % every;
		napsim_run_until(&s, now + 10 * MS);
	}
	struct ledger_totals t;
	ledger_get(s.l, &t);
	uint64_t nr_charged = t.mech_ns[LEDGER_TOUCH] / NAPSIM_COST_NS;
	printf("# %u resets, %u charged\n", (unsigned)sim.nr_resets,
	       (unsigned)nr_charged);
	check(sim.nr_resets > 20 * PAGES);
	check_range((double)nr_charged, (double)(sim.nr_resets - PAGES),
		    (double)sim.nr_resets);
	napsim_stop(&s);
}

int main(void)
{
	run(1);
	run(2);
	run(5);
	sim.is_new[0] = true;
	run(1);
	return tap_done();
}
