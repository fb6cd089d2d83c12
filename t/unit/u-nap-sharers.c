/*
 * Two blocks that share a page, watched by accessed bits: arming one of them
 * clears the bit of that page, perhaps just after an access to the other, which
 * must be seen all the same. Here that other is only ever accessed there, and
 * only in such a moment.
 */
#include "t/unit/napsim.h"

#define LOWER	   0x100010ull
#define SIZE	   8192ull
#define UPPER	   (LOWER + SIZE + 16)
#define FIRST	   (LOWER & ~(TPAGE_SIZE - 1))
#define PAGES	   5
#define SHARED	   2
#define MAX_ACCESS 4000

static struct {
	unsigned hot;  /* page that is touched all the time */
	taddr_t other; /* address of the block that is not */
	bool young[PAGES];
	bool is_aged; /* the hot page, which is not touched yet */
	uint64_t access_ns[MAX_ACCESS]; /* to the other */
	unsigned nr_access, nr_false;
} sim;

static unsigned page_of(taddr_t addr)
{
	return (unsigned)((addr - FIRST) / TPAGE_SIZE);
}

/* The page is about to be armed with the hot block: an access to the other. */
static void access_other(void)
{
	sim.young[SHARED] = true;
	if (sim.nr_access < MAX_ACCESS)
		sim.access_ns[sim.nr_access++] = now;
}

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		unsigned first = page_of(r[i].start), end = page_of(r[i].end);
		bool is_hot = first <= sim.hot && sim.hot < end;
		/* The first look before arming asks for this, too. */
		if (r[i].want_aged && !sim.is_aged && is_hot &&
		    first <= SHARED && SHARED < end)
			access_other();
		r[i].nr_present = end - first;
		r[i].nr_touched = 0;
		r[i].nr_aged = r[i].want_aged && sim.is_aged && is_hot;
		r[i].first_touched = 0;
		for (unsigned k = first; k < end; k++) {
			r[i].nr_touched += sim.young[k];
			if (sim.young[k] && !r[i].first_touched)
				r[i].first_touched = FIRST + k * TPAGE_SIZE;
		}
	}
	return 0;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	fake_collect(a, r, n); /* arm says so, too */
	for (size_t i = 0; i < n; i++) {
		for (unsigned k = page_of(r[i].start); k < page_of(r[i].end);
		     k++)
			sim.young[k] = false;
		r[i].nr_reset = r[i].nr_stuck = r[i].nr_waiting = 0;
	}
	return 0;
}

static const struct access_ops fake_ops = NAPSIM_POLLED(fake_arm, fake_collect);

/* A nap with an access in it did not happen. */
static void judge(void *ctx, const struct record *r)
{
	const struct ev_nap *nap = (const void *)r->payload;
	bool is_false = false;
	(void)ctx;
	if (r->event != EV_NAP || nap->addr != sim.other)
		return;
	uint64_t lo = nap->start_ns + nap->error_ns;
	uint64_t hi = nap->start_ns + nap->length_ns - nap->error_ns;
	for (unsigned i = 0; i < sim.nr_access; i++)
		is_false |= sim.access_ns[i] > lo && sim.access_ns[i] < hi;
	sim.nr_false += is_false;
}

static void run(unsigned hot, taddr_t other)
{
	struct napsim s;
	sim.hot = hot;
	sim.other = other;
	sim.nr_access = sim.nr_false = 0;
	napsim_start(&s, &fake_ops, PPB, 500 * MS, judge);
	napsim_allocate(&s, LOWER, SIZE);
	napsim_allocate(&s, UPPER, SIZE);
	/* Where such a mark was in the way it is looked for from then on. */
	sim.is_aged = true;
	napsim_run_until(&s, now + NSEC_PER_SEC);
	sim.is_aged = false;
	for (uint64_t end = now + 30 * NSEC_PER_SEC; now < end;) {
		sim.young[hot] = true;
		napsim_run_until(&s, now + 10 * MS);
	}
	check(sim.nr_access >= 5);
	check_int(sim.nr_false, 0);
	napsim_stop(&s);
}

int main(void)
{
	run(0, UPPER);
	run(PAGES - 1, LOWER);
	return tap_done();
}
