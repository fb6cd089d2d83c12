/*
 * Blocks that are not guarded (now). One that would cost half of what ten
 * seconds have room for never is. One that could not be is tried again, each
 * time after twice as long up to 32 s: to try may cost as much as to arm.
 */
#include "t/unit/napsim.h"

#define TOO_LARGE (16ull << 30)
#define NAP_NS	  (1000 * MS)

/* By size: a page, which is armed, and two, which fail. */
static unsigned nr_armed, nr_too_large, nr_failed;

static int arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		uint64_t size = r[i].end - r[i].start;
		nr_armed += size == TPAGE_SIZE;
		nr_too_large += size > NAPSIM_SIZE;
		nr_failed += size == NAPSIM_SIZE;
		r[i].nr_reset = size == TPAGE_SIZE ? 1 : UINT32_MAX;
	}
	return 0;
}

/* At once, at most; of the blocks that are only 64 MiB large. */
#define PART (64ull << 20)
static unsigned nr_parts, most_parts;

static int arm_parts(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
	nr_parts += (unsigned)n;
	most_parts = n > most_parts ? (unsigned)n : most_parts;
	return 0;
}

static const struct access_ops part_ops = NAPSIM_GUARD(arm_parts);

static void test_parts(void)
{
	struct napsim s;
	napsim_start(&s, &part_ops, PPB / 10, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < 64; i++)
		napsim_allocate(&s, NAPSIM_BLOCK + i * PART, PART);
	napsim_run_until(&s, now + 4 * NSEC_PER_SEC);
	check_int(nr_parts, 64);
	check_int(most_parts, 2);
	napsim_stop(&s);
}

static const struct access_ops ops = NAPSIM_GUARD(arm);

int main(void)
{
	struct napsim s;
	napsim_start(&s, &ops, PPB / 10, NAP_NS, napsim_keep_coverage);
	uint64_t start_ns = now;
	napsim_allocate(&s, NAPSIM_BLOCK, TPAGE_SIZE);
	napsim_allocate(&s, NAPSIM_BLOCK + TOO_LARGE, TOO_LARGE);
	napsim_allocate(&s, NAPSIM_BLOCK + 4 * TOO_LARGE, NAPSIM_SIZE);
	/* After 0, 1, 3, 7, 15, 31, 63, 95 s. */
	napsim_run_until(&s, start_ns + 100 * NSEC_PER_SEC);
	check_int(nr_armed, 1);
	check_int(nr_too_large, 0);
	check_int(nr_failed, 8);
	nap_proc_destroy(s.np, now, true);
	nap_emit_coverage(s.n);
	check_int(cover[COVER_WATCHED].nr_objects, 1);
	check_int(cover[COVER_SHARED].nr_objects, 2);
	nap_destroy(s.n);
	control_destroy(s.c);
	ledger_destroy(s.l);
	test_parts();
	return tap_done();
}
