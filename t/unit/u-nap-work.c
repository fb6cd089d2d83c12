/*
 * How much is looked at for a nap: whether somebody else took the marks of
 * accesses away takes ten times as long to find out as whether there are any.
 * So of a large block it is asked twice for each nap, soon after it has become
 * quiet and where the nap would begin, and of all that become naps at the same
 * time in one go. What is not touched is armed in one go, too,
 * however much it is.
 */
#include "t/unit/napsim.h"

#define NAP_NS	    (1000 * MS)
#define NR_SMALL    40
#define LARGE_PAGES 4096
#define NR_PAGES    (NR_SMALL * NAPSIM_NR_PAGES + LARGE_PAGES)
#define LARGE	    0x40000000ull

static bool is_busy;
static bool is_young[NR_PAGES];
static uint64_t nr_asked, nr_asked_large, nr_asking;
static unsigned nr_armed_large; /* ranges of more than a page */

static size_t index_of(taddr_t page)
{
	if (page >= LARGE)
		return NR_SMALL * NAPSIM_NR_PAGES + (page - LARGE) / TPAGE_SIZE;
	return (page - NAPSIM_BLOCK) / TPAGE_SIZE;
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	bool asks = false;
	(void)a;
	for (size_t i = 0; i < n; i++) {
		uint32_t pages =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		r[i].nr_present = pages;
		r[i].nr_touched = r[i].nr_aged = 0;
		for (taddr_t p = r[i].start; p < r[i].end; p += TPAGE_SIZE)
			r[i].nr_touched += is_young[index_of(p)];
		r[i].first_touched = r[i].nr_touched ? r[i].start : 0;
		asks |= r[i].want_aged;
		nr_asked += r[i].want_aged ? pages : 0;
		if (r[i].start >= LARGE && pages > 64 && r[i].want_aged)
			nr_asked_large += pages;
	}
	nr_asking += asks;
	return 0;
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	collect(a, r, n); /* arm says so, too */
	for (size_t i = 0; i < n; i++) {
		for (taddr_t p = r[i].start; p < r[i].end; p += TPAGE_SIZE)
			is_young[index_of(p)] = is_busy;
		r[i].nr_reset = 0;
		nr_armed_large += r[i].start >= LARGE &&
				  r[i].end - r[i].start > TPAGE_SIZE;
	}
	return 0;
}

static const struct access_ops ops = NAPSIM_POLLED(arm, collect);

int main(void)
{
	struct napsim s;
	napsim_start(&s, &ops, INT64_MAX, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < NR_SMALL; i++)
		napsim_allocate(&s, NAPSIM_BLOCK + i * NAPSIM_SIZE,
				NAPSIM_SIZE);
	napsim_allocate(&s, LARGE, LARGE_PAGES * TPAGE_SIZE);
	for (size_t i = 0; i < NR_PAGES; i++)
		is_young[i] = true;
	is_busy = true;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_naps, 0);
	check_int(nr_asked_large, 0);

	is_busy = false;
	napsim_run_until(&s, now + NAP_NS / 2);
	check_int(nr_asked_large, LARGE_PAGES);
	nr_asked = nr_asking = 0;
	napsim_run_until(&s, now + NAP_NS);
	check_int(nr_naps, NR_SMALL + 1);
	check_int(nr_asked, NR_PAGES);
	check_int(nr_asked_large, 2 * LARGE_PAGES);
	check_range((double)nr_asking, 1, 8);

	nr_naps = nr_armed_large = 0;
	is_young[NR_PAGES - 5] = true;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_naps, 2); /* one ended, one goes on */
	check_int(nr_armed_large, 1);
	napsim_stop(&s);
	return tap_done();
}
