/*
 * A tick that takes seconds, and a program that ends meanwhile: what is put off
 * from the tick's beginning is due again by then, and the tick ends all the
 * same. It comes in slices, between which blocks end.
 */
#include <stdlib.h>

#include "t/unit/napsim.h"

#define NR     9000 /* planned and armed in several batches */
#define ENOUGH 100000

static bool is_slow, is_gone;
static unsigned nr_armed;

/* Everything was touched; the machine takes its time. */
static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	if (is_slow) {
		now += 3 * NSEC_PER_SEC;
		is_slow = false;
		is_gone = true;
	}
	for (size_t i = 0; i < n; i++) {
		r[i].nr_present = r[i].nr_touched =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		r[i].first_touched = r[i].start;
	}
	return 0;
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	collect(a, r, n); /* arm says so, too */
	nr_armed += (unsigned)n;
	now += 10 * MS;
	if (nr_armed > ENOUGH) {
		check_msg(false, "the tick ends");
		tap_done();
		exit(1);
	}
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = is_gone ? UINT32_MAX : 1;
		r[i].nr_stuck = r[i].nr_waiting = 0;
		r[i].armed_ns = now;
	}
	return is_gone ? SMCO_GONE : 0;
}

static const struct access_ops ops = NAPSIM_POLLED(arm, collect);

static void free_one(struct napsim *s, unsigned i)
{
	const struct heap_event ev = {
		.kind = HEAP_FREE,
		.time_ns = now,
		.addr = NAPSIM_BLOCK + i * 2 * NAPSIM_SIZE,
	};
	nap_heap_event(s->np, &ev);
}

int main(void)
{
	struct napsim s;
	napsim_start(&s, &ops, INT64_MAX, NSEC_PER_SEC, napsim_emit);
	for (unsigned i = 0; i < NR; i++)
		napsim_allocate(&s, NAPSIM_BLOCK + i * 2 * NAPSIM_SIZE,
				NAPSIM_SIZE);
	napsim_run_until(&s, now + 200 * MS);
	check(nr_armed > 0);
	nr_armed = 0;
	unsigned nr_slices = 0;
	is_slow = true;
	uint64_t began = now;
	for (; is_slow && now < began + NSEC_PER_SEC; now += 10 * MS) {
		ledger_advance(s.l, now, 10 * MS);
		while (nap_tick(s.n, now)) {
			free_one(&s, nr_slices++);
			now += 10 * MS;
		}
	}
	check(!is_slow);
	check_msg(nr_slices >= 2 && nr_slices < NR, "%u slices", nr_slices);
	check_msg(nr_armed <= 2 * NR, "tried %u times to arm %d blocks",
		  nr_armed, NR);
	napsim_stop(&s);
	return tap_done();
}
