/*
 * A guard that had to go without a hit (a gap) ends what is known of a nap,
 * not the nap: reported as at least that long, and what is seen after the
 * guard stands again does not claim to know when the block was used last.
 */
#include "t/unit/napsim.h"

static void *user;
static unsigned nr_armed;

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = NAPSIM_NR_PAGES;
		user = r[i].user;
		nr_armed++;
	}
	return 0;
}

static const struct access_ops fake_ops = NAPSIM_GUARD(fake_arm);

static void hit(struct napsim *s, bool is_gap)
{
	const struct access_hit h = {
		.range = {.start = NAPSIM_BLOCK,
			  .end = NAPSIM_BLOCK + NAPSIM_SIZE,
			  .user = user},
		.time_ns = now,
		.is_gap = is_gap,
		.is_write = !is_gap,
		.syscall_nr = -1,
	};
	nap_guard_hit(s->np, &h, 0, true);
}

/*
 * A nap that lasts is written again and again, should nobody be left to write
 * its end, but ever more seldom: what is missing then is a sixteenth at most.
 */
static void test_long(struct napsim *s)
{
	uint64_t start = now, shown, worst = 0;
	napsim_run_until(s, start + 2000 * MS); /* armed and in a nap by now */
	nr_ongoing = 0;
	for (unsigned i = 0; i < 7200; i++) {
		napsim_run_until(s, now + 500 * MS);
		shown = last.length_ns;
		nap_emit_totals(s->n, now);
		if (last.length_ns == shown && now - start > 20000 * MS &&
		    (now - start - shown) * 1000 / (now - start) > worst)
			worst = (now - start - shown) * 1000 / (now - start);
	}
	check_range((double)(now - start), 3600e9, 3700e9);
	check_range(nr_ongoing, 50, 200);
	/* In thousandths; that it begins some 2 s late counts in the first
	 * moments, and a quiet block is looked at every fiftieth of its age. */
	check_range((double)worst, 1, 200);
}

int main(void)
{
	struct napsim sim, *s = &sim;
	napsim_start(s, &fake_ops, PPB, 500 * MS, napsim_emit);
	napsim_allocate(s, NAPSIM_BLOCK, NAPSIM_SIZE);
	napsim_run_until(s, 2000 * MS);
	check_int(nr_armed, 1);
	check(last.flags & NAP_ONGOING);
	hit(s, true);
	check_int(nr_naps - nr_ongoing, 1);
	check_int(last.flags & NAP_UNWATCHED, NAP_UNWATCHED);
	check_int(last.flags & (NAP_ENDED_READ | NAP_ENDED_WRITE), 0);
	check_range((double)last.length_ns, 900.0 * MS, 1000.0 * MS);

	napsim_run_until(s, 4000 * MS);
	check_int(nr_armed, 2);
	hit(s, false);
	check_int(nr_naps - nr_ongoing, 2);
	check_int(last.flags & NAP_UNWATCHED, 0);
	check_int(last.flags & NAP_ENDED_WRITE, NAP_ENDED_WRITE);
	/* It may have been unused since it was allocated. */
	check(last.error_ns >= 900 * MS);

	test_long(s);

	napsim_stop(s);
	return tap_done();
}
