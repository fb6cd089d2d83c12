/*
 * Blocks that nobody watched: those that lived for less time than the shortest
 * nap missed nothing, the others may have.
 */
#include "t/unit/napsim.h"

#define NAP_NS (500 * MS)
#define FAR    0x100000ull

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r, (void)n;
	return 0;
}

static const struct access_ops guard_ops = NAPSIM_GUARD(fake_arm);

static void at(struct napsim *s, enum heap_event_kind kind, unsigned nr,
	       uint64_t size)
{
	const struct heap_event ev = {
		.kind = kind,
		.time_ns = now,
		.addr = NAPSIM_BLOCK + nr * FAR,
		.size = size,
	};
	nap_heap_event(s->np, &ev);
}

int main(void)
{
	struct napsim sim, *s = &sim;
	/* No budget: nothing is ever armed. */
	napsim_start(s, &guard_ops, 0, NAP_NS, napsim_keep_coverage);
	at(s, HEAP_ALLOC, 0, TPAGE_SIZE);
	at(s, HEAP_ALLOC, 1, 2 * TPAGE_SIZE);
	napsim_run_until(s, now + NAP_NS - 10 * MS);
	at(s, HEAP_FREE, 0, 0);
	napsim_run_until(s, now + 10 * MS);
	at(s, HEAP_FREE, 1, 0);
	at(s, HEAP_ALLOC, 2, 4 * TPAGE_SIZE);
	/* Nobody knows for how long it has been there. */
	nap_adopt_mapping(s->np, NAPSIM_BLOCK + 3 * FAR, 8 * TPAGE_SIZE, now);
	napsim_run_until(s, now + 10 * MS);
	nap_proc_destroy(s->np, now, true);
	nap_emit_coverage(s->n);
	nap_destroy(s->n);
	control_destroy(s->c);
	ledger_destroy(s->l);

	check_int(cover[COVER_SHORT_LIVED].nr_objects, 2);
	check_int(cover[COVER_SHORT_LIVED].bytes, 5 * TPAGE_SIZE);
	check_int(cover[COVER_NEVER_ARMED].nr_objects, 2);
	check_int(cover[COVER_NEVER_ARMED].bytes, 10 * TPAGE_SIZE);
	check_int(cover[COVER_WATCHED].nr_objects, 0);
	return tap_done();
}
