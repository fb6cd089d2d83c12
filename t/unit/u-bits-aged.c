/*
 * Pages whose accessed bit somebody else took away: said where DAMON is at
 * work, and of no page where nobody is.
 */
#include "supervisor/probe/ptread.h"

#define PAGES 4096
#include "t/unit/bits.h"

/* Pages of @r[0..n) whose mark somebody else took away. */
static uint32_t nr_aged(struct page_range *r, size_t n)
{
	uint32_t nr = 0;
	a->ops->collect(a, r, n);
	for (size_t i = 0; i < n; i++)
		nr += r[i].nr_aged;
	return nr;
}

/* Few, so that DAMON hardly comes by while they are looked at. */
#define FEW_PAGES 64

/* Untouched, touched by the program, reset again: nobody else was there. One
 * perfect trial is asked for here, too. */
static bool try_not_aged(struct page_range *few)
{
	few->want_aged = true;
	if (!settle(few, 1) || nr_aged(few, 1))
		return false;
	puppet_do(&pup, act_load, 0, 2);
	if (nr_aged(few, 1) || few->nr_touched != FEW_PAGES / 2)
		return false;
	puppet_do(&pup, act_store, 0, 1);
	if (nr_aged(few, 1) || few->nr_touched != FEW_PAGES)
		return false;
	a->ops->arm(a, few, 1);
	return !nr_aged(few, 1);
}

/* Arm some of @r[0..PAGES) with an aged page among them until none is. */
static bool arm_away(struct page_range *r)
{
	size_t first = 0;
	while (first < PAGES - FEW_PAGES && !r[first].nr_aged)
		first++;
	for (size_t i = first; i < first + FEW_PAGES; i++)
		r[i].was_aged = true;
	for (int k = 0; k < TRIALS; k++) {
		a->ops->arm(a, r + first, FEW_PAGES);
		if (!nr_aged(r + first, FEW_PAGES))
			return true;
	}
	return false;
}

/*
 * Nothing but DAMON or idle page tracking makes a page look like that. Where
 * DAMON runs we need not wait long: it is seen, only if asked for, and arming
 * page by page takes all of it away, though no bit is set there.
 */
static void test_aged(void)
{
	static struct page_range r[PAGES];
	struct page_range all = range_at(mem, PAGES);
	struct ptread *pt = NULL;
	bool is_known = !ptread_get(&pt, NULL) && ptread_sees_aged(pt);
	ptread_put(pt);
	if (!is_known) {
		tap_skip("this kernel keeps no young flag");
		return;
	}
	bool good = false;
	for (size_t at = 0; at < PAGES && !good; at += FEW_PAGES) {
		struct page_range few = range_at(mem + at * PAGE, FEW_PAGES);
		good = try_not_aged(&few);
	}
	check_msg(good, "nobody else's doing: no page is aged");

	/* Page by page: of a range with touched pages not all are counted. */
	uint32_t nr = 0;
	set_pages(r, PAGES, mem, 1);
	for (size_t i = 0; i < PAGES; i++)
		r[i].want_aged = true;
	puppet_do(&pup, act_load, 0, 1);
	for (int k = 0; k < 100 && !nr; k++) {
		usleep(50000);
		nr = nr_aged(r, PAGES);
	}
	if (!nr) {
		tap_skip("no DAMON at work here");
		return;
	}
	printf("# %u of %u aged\n", nr, PAGES);
	all.want_aged = false;
	check_int(nr_aged(&all, 1), 0);
	check(all.nr_touched < PAGES);
	check(arm_away(r));
}

int main(void)
{
	start_with_pages();
	struct tproc proc = {pup.pid};
	if (bits_open(&proc))
		test_aged();
	puppet_end(&pup);
	return tap_done();
}
