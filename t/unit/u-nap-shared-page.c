/*
 * Two blocks that share a page: the hit on the guard of the second, whose
 * pages begin with the tail of the first, is the second's. A hit that nobody
 * took would leave it without a guard, and seemingly quiet for ever.
 */
#include "t/unit/napsim.h"

#define LOWER 0x100010ull
#define SIZE  8192ull
#define UPPER (LOWER + SIZE + 16)
#define PAGES 3

static struct page_range guarded; /* the upper block's */

/* As the real ones: of two that overlap, one is guarded. */
static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		bool is_upper = r[i].start > LOWER;
		r[i].nr_reset = is_upper ? PAGES : UINT32_MAX;
		if (is_upper)
			guarded = r[i];
	}
	return 0;
}

static const struct access_ops fake_ops = NAPSIM_GUARD(fake_arm);

static void hit(struct napsim *s)
{
	const struct access_hit h = {
		.range = guarded,
		.time_ns = now,
		.is_write = true,
		.syscall_nr = -1,
		.addr = UPPER,
	};
	nap_guard_hit(s->np, &h, 0, true);
}

int main(void)
{
	struct napsim sim, *s = &sim;
	napsim_start(s, &fake_ops, PPB, 500 * MS, napsim_emit);
	napsim_allocate(s, LOWER, SIZE);
	napsim_allocate(s, UPPER, SIZE);

	/* Used before the guard has stood long enough. */
	napsim_run_until(s, now + 300 * MS);
	check(guarded.user != NULL);
	check_int(guarded.start, UPPER & ~(TPAGE_SIZE - 1));
	check_int(nr_naps, 0);
	uint64_t used_ns = now;
	hit(s);
	napsim_run_until(s, used_ns + 400 * MS);
	check_int(nr_naps, 0);

	/* What is quiet is a nap from there on, and the next use ends it. */
	napsim_run_until(s, used_ns + 5000 * MS);
	check_int(nr_naps, 1);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns >= used_ns);
	hit(s);
	check_int(nr_naps, 2);
	check_int(last.flags & NAP_ONGOING, 0);
	check_int(last.flags & NAP_ENDED_WRITE, NAP_ENDED_WRITE);

	/* Nothing is told of a block that is gone. */
	const struct heap_event ev = {
		.kind = HEAP_FREE, .time_ns = now, .addr = UPPER};
	nap_heap_event(s->np, &ev);
	hit(s);
	check_int(nr_naps, 2);

	napsim_stop(s);
	return tap_done();
}
