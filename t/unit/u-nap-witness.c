/*
 * Second witnesses: what is reserved for them is given back, also where a hit
 * is said to cost something else by then.
 */
#include "t/unit/napsim.h"

#define NR     20
#define NAP_NS (1000 * MS)

static uint64_t guard_cost_ns;
static unsigned nr_guarded;

static int reset(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_present = NAPSIM_NR_PAGES;
		r[i].nr_touched = NAPSIM_NR_PAGES;
		r[i].nr_reset = NAPSIM_NR_PAGES;
	}
	return 0;
}

static int untouched(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		r[i].nr_present = NAPSIM_NR_PAGES;
	return 0;
}

static int guard(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = NAPSIM_NR_PAGES;
	nr_guarded += (unsigned)n;
	return 0;
}

static uint64_t cost(const struct access *a)
{
	(void)a;
	return guard_cost_ns;
}

static uint64_t none(const struct access *a)
{
	(void)a;
	return 0;
}

static const struct access_ops ops = NAPSIM_POLLED(reset, untouched);
static struct access_ops guard_ops = NAPSIM_GUARD(guard);

/* Guarded at one price, freed at another. */
static void test_price(uint64_t before_ns, uint64_t after_ns)
{
	struct napsim s;
	struct access g = {.ops = &guard_ops};
	struct ledger_totals t;
	guard_ops.touch_cost_ns = cost;
	guard_ops.side_cost_ns = none;
	guard_cost_ns = before_ns;
	nr_guarded = 0;
	napsim_start(&s, &ops, PPB / 10, NAP_NS, napsim_emit);
	nap_set_guard(s.np, &g);
	for (unsigned i = 0; i < NR; i++)
		napsim_allocate(&s, NAPSIM_BLOCK + i * NAPSIM_SIZE,
				NAPSIM_SIZE);
	napsim_run_until(&s, now + 3 * NSEC_PER_SEC);
	check_int(nr_guarded, NR);
	ledger_get(s.l, &t);
	check(t.reserved_ns >= NR * before_ns);
	guard_cost_ns = after_ns;
	for (unsigned i = 0; i < NR; i++)
		nap_heap_event(s.np,
			       &(struct heap_event){.kind = HEAP_FREE,
						    .time_ns = now,
						    .addr = NAPSIM_BLOCK +
							    i * NAPSIM_SIZE});
	ledger_get(s.l, &t);
	check_int(t.reserved_ns, 0);
	napsim_stop(&s);
}

int main(void)
{
	test_price(30 * NSEC_PER_USEC, 10 * NSEC_PER_USEC);
	test_price(10 * NSEC_PER_USEC, 30 * NSEC_PER_USEC);
	return tap_done();
}
