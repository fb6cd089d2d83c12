/*
 * What a turn costs. To arm is dear in itself, on the program's CPU, and as
 * dear for a block of which one page was touched as for one with twelve: so
 * much is done in one go as there is room for, what it took counts at once, and
 * those with more pages do not wait longer by as much. What a second witness
 * costs keeps no block from its turn.
 */
#include "t/unit/napsim.h"

#define NR	   1000
#define PAGES	   16
#define SIZE	   (PAGES * TPAGE_SIZE)
#define NAP_NS	   (1000 * MS)
#define CALL_NS	   (100 * NSEC_PER_USEC)
#define HIT_NS	   (2 * MS)
#define MANY_PAGES 12

static uint32_t nr_young[NR]; /* pages, the first ones */
static unsigned nr_armed[NR];
static unsigned first_hot;  /* from that one on: touched again at once */
static unsigned many_pages; /* of every other block then */
static unsigned nr_calls, most_ranges;
static uint64_t call_ns, range_ns; /* cost of a call, and of each range */
static uint64_t spent_ns;
static struct page_range guarded;

static uint32_t pages_of(unsigned i)
{
	return i % 2 ? many_pages : 1;
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		uint64_t page = (r[i].start - NAPSIM_BLOCK) / TPAGE_SIZE;
		r[i].nr_present = PAGES;
		r[i].nr_touched = nr_young[page / PAGES];
		r[i].first_touched = r[i].nr_touched ? r[i].start : 0;
		r[i].nr_aged = 0;
	}
	return 0;
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	collect(a, r, n);
	for (size_t k = 0; k < n; k++) {
		uint64_t i = (r[k].start - NAPSIM_BLOCK) / SIZE;
		r[k].nr_reset = nr_young[i];
		nr_young[i] = i < first_hot ? 0 : pages_of((unsigned)i);
		nr_armed[i]++;
	}
	nr_calls++;
	most_ranges = n > most_ranges ? (unsigned)n : most_ranges;
	spent_ns += call_ns + n * range_ns;
	return 0;
}

static uint64_t wait_cost(const struct access *a)
{
	(void)a;
	return spent_ns;
}

static const struct access_ops ops = {
	.name = "fake",
	.sees = ACCESS_READS | ACCESS_WRITES | ACCESS_KERNEL,
	.arm = arm,
	.disarm = fake_disarm,
	.collect = collect,
	.drop = fake_drop,
	.touch_cost_ns = fake_cost,
	.wait_cost_ns = wait_cost,
};

static int guard_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = 0;
		if (!guarded.user)
			guarded = r[i];
	}
	return 0;
}

static uint64_t no_cost(const struct access *a)
{
	(void)a;
	return 0;
}

static const struct access_ops guard_ops = {
	.name = "fake guard",
	.sees = ACCESS_WRITES,
	.is_guard = true,
	.arm = guard_arm,
	.disarm = fake_disarm,
	.drop = fake_drop,
	.touch_cost_ns = fake_cost,
	.side_cost_ns = no_cost,
};

static void start(struct napsim *s)
{
	napsim_start(s, &ops, PPB / 100, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < NR; i++) {
		nr_young[i] = 1;
		nr_armed[i] = 0;
		napsim_allocate(s, NAPSIM_BLOCK + i * SIZE, SIZE);
	}
	nr_calls = most_ranges = nr_naps = 0;
	spent_ns = 0;
}

/* One tick, 10 ms after the last one; what it cost is charged then. Returns
 * how much more that was than it had room for. */
static int64_t tick(struct napsim *s)
{
	static uint64_t before;
	ledger_charge(s->l, LEDGER_CPU, NAP_MONITOR,
		      spent_ns > before ? spent_ns - before : 0);
	before = spent_ns;
	ledger_advance(s->l, now, 10 * MS);
	control_tick(s->c, now, 10 * MS);
	int64_t room = ledger_room_ns(s->l);
	while (nap_tick(s->n, now))
		;
	now += 10 * MS;
	return (int64_t)(spent_ns - before) - (room > 0 ? room : 0);
}

/* All blocks at once, one page of each: a call is dearer than they are. */
static void test_calls(void)
{
	struct napsim s;
	int64_t worst_ns = INT64_MIN;
	call_ns = CALL_NS;
	range_ns = 0;
	many_pages = 1;
	first_hot = 0;
	start(&s);
	for (unsigned i = 0; i < 300; i++) {
		int64_t more_ns = tick(&s);
		worst_ns = more_ns > worst_ns ? more_ns : worst_ns;
	}
	check_range((double)worst_ns, -(double)NSEC_PER_SEC, CALL_NS);
	check(nr_calls > 0);
	/* What stands reset already was reserved then. */
	check_range(most_ranges, 100, NR);
	napsim_stop(&s);
}

/* One page of this block, twelve of the next one. */
static void test_pages(void)
{
	struct napsim s;
	unsigned few = 0, many = 0;
	call_ns = 0;
	range_ns = 10 * NSEC_PER_USEC;
	many_pages = MANY_PAGES;
	first_hot = 0;
	start(&s);
	for (unsigned i = 0; i < 2000; i++)
		tick(&s);
	for (unsigned i = 0; i < NR; i += 2) {
		few += nr_armed[i];
		many += nr_armed[i + 1];
	}
	printf("# %u turns of blocks with one page, %u with %u\n", few, many,
	       MANY_PAGES);
	check_range((double)few / many, 1, 2);
	napsim_stop(&s);
}

/* It is written to at the end of its nap, which a guard sees, and rests again.
 * Others use up what may be spent. */
static void test_witness(void)
{
	struct napsim s;
	struct access g = {.ops = &guard_ops};
	call_ns = 0;
	range_ns = 10 * NSEC_PER_USEC;
	first_hot = NR / 2;
	many_pages = 1;
	start(&s);
	nap_set_guard(s.np, &g);
	for (uint64_t until_ns = now + 3 * NAP_NS; now < until_ns;)
		tick(&s);
	check_int(nr_naps, NR / 2);
	check(guarded.user);
	uint64_t i = (guarded.start - NAPSIM_BLOCK) / SIZE;
	struct access_hit hit = {
		.range = guarded,
		.time_ns = now,
		.cost_ns = HIT_NS,
		.is_write = true,
	};
	nap_guard_hit(s.np, &hit, 0, false);
	check(last.flags & NAP_ENDED_WRITE);
	unsigned was = nr_naps, was_armed = nr_armed[i];
	nr_young[i] = 1;
	for (uint64_t until_ns = now + 3 * NAP_NS / 2; now < until_ns;)
		tick(&s);
	check_int(nr_armed[i], was_armed + 1);
	check_int(nr_naps, was + 1);
	napsim_stop(&s);
}

int main(void)
{
	test_calls();
	test_pages();
	test_witness();
	return tap_done();
}
