/*
 * A program ends between two ticks: what had been quiet for long enough by then
 * is a nap all the same, what was touched or freed since, or is too short, is
 * none. The program stands meanwhile, so what would take long is left out.
 */
#include "t/unit/napsim.h"

#define NR_BLOCKS 4
#define LARGE	  8000 /* pages */
#define NR_LARGE  9
#define NAP_NS	  (500 * MS)

static bool touched[NR_BLOCKS + NR_LARGE];
static uint64_t nr_looked;

static unsigned index_of(taddr_t addr)
{
	return (unsigned)((addr - NAPSIM_BLOCK) / (2 * LARGE * TPAGE_SIZE));
}

static taddr_t block_at(unsigned i)
{
	return NAPSIM_BLOCK + i * 2ull * LARGE * TPAGE_SIZE;
}

static void see(struct page_range *r, size_t n, bool is_reset)
{
	for (size_t i = 0; i < n; i++) {
		unsigned k = index_of(r[i].start);
		r[i].nr_present =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		r[i].nr_touched = touched[k];
		r[i].first_touched = r[i].start;
		nr_looked += r[i].nr_present;
		touched[k] &= !is_reset;
	}
}

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	see(r, n, false);
	return 0;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	see(r, n, true);
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = r[i].nr_touched;
	return 0;
}

static const struct access_ops polled = NAPSIM_POLLED(fake_arm, fake_collect);
static const struct access_ops guarding = NAPSIM_GUARD(fake_arm);

static void release(struct napsim *s, unsigned i)
{
	const struct heap_event ev = {
		.kind = HEAP_FREE,
		.time_ns = now,
		.addr = block_at(i),
	};
	nap_heap_event(s->np, &ev);
}

/* Up to @before_ns before the first naps would be complete, with @nr blocks of
 * @pages each. */
static void start(struct napsim *s, const struct access_ops *ops, unsigned nr,
		  uint64_t pages, uint64_t before_ns)
{
	nr_naps = nr_ongoing = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(touched); i++)
		touched[i] = true;
	napsim_start(s, ops, PPB, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < nr; i++)
		napsim_allocate(s, block_at(i), pages * TPAGE_SIZE);
	struct nap_stats stats = {0};
	while (stats.nr_armed < nr) {
		napsim_run_until(s, now + 10 * MS);
		nap_get_stats(s->n, &stats);
	}
	napsim_run_until(s, now + 100 * MS);
	napsim_run_until(s, now + NAP_NS - 100 * MS - before_ns);
	check_int(nr_naps, 0);
}

static void test_small(void)
{
	struct napsim sim, *s = &sim;
	start(s, &polled, NR_BLOCKS, NAPSIM_NR_PAGES, 100 * MS);
	/* Too soon. */
	nr_looked = 0;
	nap_look_last(s->np, now);
	check_int((long)nr_looked, 0);
	check_int(nr_naps, 0);
	now += 200 * MS;
	touched[1] = true;
	release(s, 2);
	nap_look_last(s->np, now);
	check_int(nr_naps, NR_BLOCKS - 2);
	check_int(nr_ongoing, NR_BLOCKS - 2);
	check_int(last.flags & NAP_ONGOING, NAP_ONGOING);
	/* Once. */
	nap_look_last(s->np, now);
	check_int(nr_naps, NR_BLOCKS - 2);
	now += 10 * MS;
	napsim_stop(s);
	check_int(nr_naps, 2 * (NR_BLOCKS - 2));
	check_int(last.flags & NAP_AT_EXIT, NAP_AT_EXIT);
	check_range((double)last.length_ns, 1.0 * NAP_NS, 1.5 * NAP_NS);
}

static void test_large(void)
{
	struct napsim sim, *s = &sim;
	start(s, &polled, NR_LARGE, LARGE, 50 * MS);
	now += 200 * MS;
	nr_looked = 0;
	nap_look_last(s->np, now);
	check_int((long)nr_looked, 8 * LARGE);
	check_int(nr_naps, 8);
	napsim_stop(s);
}

/* What it meets it tells: nothing is looked at. */
static void test_guards(void)
{
	struct napsim sim, *s = &sim;
	start(s, &guarding, NR_BLOCKS, NAPSIM_NR_PAGES, 50 * MS);
	now += 200 * MS;
	nr_looked = 0;
	nap_look_last(s->np, now);
	check_int((long)nr_looked, 0);
	napsim_stop(s);
	/* Nor is there anything of what has no mechanism. */
	napsim_start(s, &polled, PPB, NAP_NS, napsim_emit);
	struct nap_proc *none = nap_proc_create(s->n, 2, NULL);
	nap_look_last(none, now);
	nap_proc_destroy(none, now, true);
	napsim_stop(s);
}

int main(void)
{
	test_small();
	test_large();
	test_guards();
	return tap_done();
}
