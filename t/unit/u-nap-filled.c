/*
 * Large blocks beside a thousand small ones that are in use. One is watched
 * before it is filled, and what that touches was never reset. One is used a
 * little, while others wait for room. Both are no reason to leave it alone for
 * long. Of those that wait the one that needs least comes first.
 */
#include "t/unit/napsim.h"

#include <string.h>

#define NR_SMALL   1000
#define SMALL_SIZE (2 * TPAGE_SIZE)
#define PAGES	   4096
#define LARGE_SIZE (PAGES * TPAGE_SIZE)
#define NR_LARGE   24
#define NAP_NS	   (1000 * MS)
#define LARGE	   0x100000000ull
#define FEW	   5 /* pages */
#define MIDDLE	   500
#define TICK_NS	   (20 * MS)

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
	for (uint64_t until_ns = now + ns; now < until_ns; now += TICK_NS) {
		ledger_advance(s->l, now, TICK_NS);
		control_tick(s->c, now, TICK_NS);
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

/*
 * All are watched. One of them is used a little, when larger ones come that
 * the room is not enough for yet: what it takes again is not what they leave.
 */
static void test_little(void)
{
	struct napsim s;
	start(&s, 1);
	fill(&larges[0]);
	run_for(&s, 150 * MS);
	check_int(larges[0].nr_resets, PAGES);
	for (unsigned i = 1; i < NR_LARGE; i++) {
		fill(&larges[i]);
		napsim_allocate(&s, LARGE + i * LARGE_SIZE, LARGE_SIZE);
	}
	run_for(&s, 100 * MS);
	for (unsigned i = 0; i < FEW; i++)
		larges[0].is_young[i * 7] = true;
	run_for(&s, 60 * MS);
	check_int(larges[0].nr_resets, PAGES + FEW);
	unsigned nr = 0;
	for (unsigned i = 1; i < NR_LARGE; i++)
		nr += larges[i].nr_resets;
	printf("# %u of %u pages\n", nr, (NR_LARGE - 1) * PAGES);
	check(nr < (NR_LARGE - 1) * PAGES); /* they wait */
	napsim_stop(&s);
}

/* Of all but the last. */
static unsigned nr_resets_before(void)
{
	unsigned nr = 0;
	for (unsigned i = 0; i < NR_LARGE - 1; i++)
		nr += larges[i].nr_resets;
	return nr;
}

/* Many are new that need more than there is room for, and behind them one
 * of @size with @nr pages that are there. */
static void start_many(struct napsim *s, unsigned nr, uint64_t size)
{
	struct large *l = &larges[NR_LARGE - 1];
	start(s, 0);
	run_for(s, 100 * MS);
	for (unsigned i = 0; i < NR_LARGE - 1; i++) {
		fill(&larges[i]);
		napsim_allocate(s, LARGE + i * LARGE_SIZE, LARGE_SIZE);
	}
	memset(l->is_present, 1, nr);
	memset(l->is_young, 1, nr);
	napsim_allocate(s, LARGE + (NR_LARGE - 1) * LARGE_SIZE, size);
}

static void test_least(void)
{
	struct napsim s;
	start_many(&s, MIDDLE, MIDDLE * TPAGE_SIZE);
	while (larges[NR_LARGE - 1].nr_resets < MIDDLE && now < 5 * NAP_NS)
		run_for(&s, TICK_NS);
	printf("# %u pages before\n", nr_resets_before());
	check_int(larges[NR_LARGE - 1].nr_resets, MIDDLE);
	check(nr_resets_before() < NR_LARGE * PAGES / 2);
	napsim_stop(&s);
}

int main(void)
{
	test_filled();
	test_little();
	test_least();
	return tap_done();
}
