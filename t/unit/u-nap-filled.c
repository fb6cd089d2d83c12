/*
 * A large block beside a thousand small ones that are in use: it is watched
 * before it is filled, and what that touches was never reset. That is no reason
 * to leave it alone for long.
 */
#include "t/unit/napsim.h"

#include <string.h>

#define NR_SMALL   1000
#define SMALL_SIZE (2 * TPAGE_SIZE)
#define PAGES	   4096
#define LARGE_SIZE (PAGES * TPAGE_SIZE)
#define NR_LARGE   1
#define NAP_NS	   (1000 * MS)
#define LARGE	   0x100000000ull

struct large {
	bool is_present[PAGES], is_young[PAGES];
	unsigned nr_resets;
} larges[NR_LARGE];

static void see(struct page_range *r, bool is_reset)
{
	struct large *l = &larges[(r->start - LARGE) / LARGE_SIZE];
	uint64_t first = (r->start - LARGE) % LARGE_SIZE / TPAGE_SIZE;
	uint64_t end = first + (r->end - r->start) / TPAGE_SIZE;
	for (uint64_t i = first; i < end; i++) {
		r->nr_present += l->is_present[i];
		if (l->is_young[i] && !r->nr_touched++)
			r->first_touched = r->start + (i - first) * TPAGE_SIZE;
		if (is_reset) {
			l->nr_resets += l->is_young[i];
			l->is_young[i] = false;
		}
	}
}

/* The small ones are touched again at once. */
static void see_all(struct page_range *r, size_t n, bool is_reset)
{
	for (size_t i = 0; i < n; i++) {
		bool is_large = r[i].start >= LARGE;
		r[i].nr_present = is_large ? 0 : 2;
		r[i].nr_touched = is_large ? 0 : 1;
		r[i].first_touched = is_large ? 0 : r[i].start;
		r[i].nr_aged = 0;
		if (is_large)
			see(&r[i], is_reset);
		r[i].nr_reset = r[i].nr_touched;
	}
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	see_all(r, n, false);
	return 0;
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	see_all(r, n, true);
	return 0;
}

static const struct access_ops ops = NAPSIM_POLLED(arm, collect);

static void run_for(struct napsim *s, uint64_t ns)
{
	for (uint64_t until_ns = now + ns; now < until_ns; now += 10 * MS) {
		ledger_advance(s->l, now, 10 * MS);
		control_tick(s->c, now, 10 * MS);
		while (nap_tick(s->n, now))
			;
	}
}

static void fill(struct large *l)
{
	memset(l->is_present, 1, sizeof(l->is_present));
	memset(l->is_young, 1, sizeof(l->is_young));
}

static void start(struct napsim *s, unsigned nr_large)
{
	napsim_start(s, &ops, PPB / 10, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < NR_SMALL; i++)
		napsim_allocate(s, NAPSIM_BLOCK + i * SMALL_SIZE, SMALL_SIZE);
	memset(larges, 0, sizeof(larges));
	for (unsigned i = 0; i < nr_large; i++)
		napsim_allocate(s, LARGE + i * LARGE_SIZE, LARGE_SIZE);
	nr_naps = 0;
}

static void test_filled(void)
{
	struct napsim s;
	start(&s, 1);
	run_for(&s, 100 * MS);
	check_int(larges[0].nr_resets, 0); /* there is nothing */
	fill(&larges[0]);
	run_for(&s, 3 * NAP_NS / 2);
	check_int(larges[0].nr_resets, PAGES);
	check_int(nr_naps, 1);
	napsim_stop(&s);
}

int main(void)
{
	test_filled();
	return tap_done();
}
