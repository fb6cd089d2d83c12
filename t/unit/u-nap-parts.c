/*
 * A large block is guarded in parts of 64 MiB, one after the other while
 * nobody touches it. What is opened is the part that is met, what stands is
 * not armed again, and what it would cost to open all that stands is reserved:
 * none that could cost half of what any ten seconds have room for is guarded.
 */
#include "t/unit/napsim.h"

#define PART   (64ull << 20)
#define NR     8
#define SIZE   (NR * PART + 3 * TPAGE_SIZE) /* the last is larger */
#define NAP_NS (1000 * MS)
#define HIT_NS (7 * MS)

static bool stands[NR];
static unsigned nr_armed[NR], nr_calls, nr_dropped;
static unsigned fails = NR; /* that part */
static uint64_t most;	    /* bytes that were armed at once */

static unsigned part_of(const struct page_range *r)
{
	return (unsigned)((r->start - NAPSIM_BLOCK) / PART);
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	uint64_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned k = part_of(&r[i]);
		bytes += r[i].end - r[i].start;
		nr_armed[k]++;
		check_msg(!stands[k], "not armed twice");
		stands[k] = k != fails;
		r[i].nr_reset = k != fails
					? (uint32_t)((r[i].end - r[i].start) /
						     TPAGE_SIZE)
					: UINT32_MAX;
	}
	nr_calls++;
	most = bytes > most ? bytes : most;
	return 0;
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		if (!stands[part_of(&r[i])])
			r[i].nr_reset = UINT32_MAX;
	return 0;
}

static void drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a;
	nr_dropped += start == NAPSIM_BLOCK && end == NAPSIM_BLOCK + SIZE;
}

static struct access_ops ops = NAPSIM_PARTS(arm, collect);

static uint64_t reserved_ns(const struct napsim *s)
{
	struct ledger_totals t;
	ledger_get(s->l, &t);
	return t.reserved_ns;
}

/* As if a mechanism told of it: the guard of that part is gone. */
static void touch(struct napsim *s, void *user, unsigned k)
{
	taddr_t start = NAPSIM_BLOCK + k * PART;
	const struct access_hit hit = {
		.range = {.start = start,
			  .end = k < NR - 1 ? start + PART
					    : NAPSIM_BLOCK + SIZE,
			  .user = user},
		.time_ns = now,
		.is_write = true,
		.addr = start,
		.cost_ns = HIT_NS,
	};
	check_msg(stands[k], "part %u is guarded", k);
	stands[k] = false;
	nap_guard_hit(s->np, &hit, 0, true);
}

static void *block_of(struct napsim *s)
{
	plant_t id = 0; /* the only one */
	return control_user(s->c, id);
}

static void begin_to(struct napsim *s, uint64_t size,
		     void (*emit)(void *ctx, const struct record *r))
{
	for (unsigned i = 0; i < NR; i++)
		stands[i] = false, nr_armed[i] = 0;
	nr_naps = nr_calls = 0;
	fails = NR;
	ops.drop = drop;
	napsim_start(s, &ops, PPB / 10, NAP_NS, emit);
	napsim_run_until(s, now + 10 * NSEC_PER_SEC); /* room */
	napsim_allocate(s, NAPSIM_BLOCK, size);
}

static void begin(struct napsim *s, uint64_t size)
{
	begin_to(s, size, napsim_emit);
}

static unsigned nr_standing(void)
{
	unsigned nr = 0;
	for (unsigned i = 0; i < NR; i++)
		nr += stands[i];
	return nr;
}

static void free_it(struct napsim *s)
{
	nr_dropped = 0;
	nap_heap_event(s->np, &(struct heap_event){.kind = HEAP_FREE,
						   .time_ns = now,
						   .addr = NAPSIM_BLOCK});
}

static void test_quiet(void)
{
	struct napsim s;
	begin(&s, SIZE);
	napsim_run_until(&s, now + 3 * NSEC_PER_SEC);
	check_int(nr_standing(), NR);
	check_int(nr_calls, NR); /* one by one */
	check_int(most, PART + 3 * TPAGE_SIZE);
	check_int(nr_naps, 1);
	/* 16384 pages, eight times, and three. */
	uint64_t all_ns = reserved_ns(&s);
	check_msg(all_ns > 8 * 16384 * 100ull && all_ns < 8 * 16384 * 400ull,
		  "reserved: %llu", (unsigned long long)all_ns);
	/* Quiet for long: a sixteenth counts. */
	napsim_run_until(&s, now + 12 * NSEC_PER_SEC);
	check_int(reserved_ns(&s), 0);
	/* A touch ends the nap, and only that part is to be armed again. */
	touch(&s, block_of(&s), 5);
	check_int(last.flags & NAP_ONGOING, 0);
	check_int(nr_standing(), NR - 1);
	napsim_run_until(&s, now + 3 * NSEC_PER_SEC);
	check_int(nr_standing(), NR);
	check_int(nr_armed[5], 2);
	check_int(nr_calls, NR + 1);
	check_int(reserved_ns(&s), all_ns);
	free_it(&s);
	check_int(nr_dropped, 1);
	check_int(reserved_ns(&s), 0);
	napsim_stop(&s);
}

/* Parts that stand are opened while it has no turn, which is told, too. */
static void test_touched(void)
{
	struct napsim s;
	begin(&s, SIZE);
	while (nr_standing() < 4)
		napsim_run_until(&s, now + 10 * MS);
	uint64_t four_ns = reserved_ns(&s);
	touch(&s, block_of(&s), 3);
	check_int(reserved_ns(&s), four_ns / 4 * 3);
	uint64_t due_ns = control_next_due_ns(s.c);
	now += 5 * MS;
	touch(&s, block_of(&s), 0);
	check(control_next_due_ns(s.c) > due_ns + 4 * MS);
	touch(&s, block_of(&s), 1);
	touch(&s, block_of(&s), 2);
	check_int(reserved_ns(&s), 0);
	check_int(nr_naps, 0);
	struct ledger_totals t;
	ledger_get(s.l, &t);
	check_int(t.spent_ns, 4 * HIT_NS);
	/* It waits for its turn; freed now, nothing of it stands. */
	free_it(&s);
	check_int(nr_dropped, 0);
	napsim_stop(&s);
}

/* A part that must not be guarded: those before it stay, and are asked for
 * nothing more when it is tried again. */
static void test_fails(void)
{
	struct napsim s;
	begin(&s, SIZE);
	fails = 4;
	napsim_run_until(&s, now + 20 * NSEC_PER_SEC);
	check_int(nr_standing(), 4);
	check_int(nr_armed[3], 1);
	check_int(nr_armed[5], 0);
	/* After 1, 2, 4, 8 s. */
	check_int(nr_armed[4], 5);
	check_int(nr_naps, 0);
	/* Of those that stand one is met. */
	touch(&s, block_of(&s), 2);
	check_int(nr_standing(), 3);
	fails = NR;
	napsim_run_until(&s, now + 40 * NSEC_PER_SEC);
	check_int(nr_standing(), NR);
	check_int(nr_naps, 1);
	napsim_stop(&s);
}

/* Freed while it has no turn, but parts of it stand. */
static void test_freed(void)
{
	struct napsim s;
	begin(&s, SIZE);
	while (nr_standing() < 4)
		napsim_run_until(&s, now + 10 * MS);
	touch(&s, block_of(&s), 3);
	free_it(&s);
	check_int(nr_dropped, 1);
	check_int(reserved_ns(&s), 0);
	napsim_stop(&s);
}

/* What was said of it in the end, if it failed that many times, at first or at
 * last, and had its guards and was met in between. */
static void check_told(bool at_first, unsigned nr_failures,
		       enum coverage_why want)
{
	struct napsim s;
	for (unsigned i = 0; i < COVER_NR; i++)
		cover[i] = (struct ev_coverage){0};
	begin_to(&s, SIZE, napsim_keep_coverage);
	fails = at_first ? 0 : NR;
	while (at_first && nr_armed[0] < nr_failures)
		napsim_run_until(&s, now + 10 * MS);
	fails = NR;
	while (nr_standing() < 2)
		napsim_run_until(&s, now + 10 * MS);
	touch(&s, block_of(&s), 0);
	unsigned before = nr_armed[0];
	fails = 0;
	while (!at_first && nr_armed[0] < before + nr_failures)
		napsim_run_until(&s, now + 10 * MS);
	nap_proc_destroy(s.np, now, true);
	nap_emit_coverage(s.n);
	check_int(cover[want].nr_objects, 1);
	nap_destroy(s.n);
	control_destroy(s.c);
	ledger_destroy(s.l);
}

static void test_told(void)
{
	check_told(true, 1, COVER_WATCHED);
	check_told(false, 1, COVER_WATCHED); /* as it ended, perhaps */
	check_told(false, 2, COVER_SHARED);
}

/* 16 GiB would cost more than a second, of one that ten seconds have. */
static void test_too_large(void)
{
	struct napsim s;
	begin(&s, 256 * PART);
	napsim_run_until(&s, now + 3 * NSEC_PER_SEC);
	check_int(nr_calls, 0);
	check_int(reserved_ns(&s), 0);
	napsim_stop(&s);
}

/* Small ones: as many as there is room for if all of them were touched. */
#define NR_SMALL 20000
static unsigned nr_small;

static int arm_small(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = 1;
	nr_small += (unsigned)n;
	return 0;
}

static const struct access_ops small_ops = NAPSIM_GUARD(arm_small);

static void test_small(void)
{
	struct napsim s;
	napsim_cost_ns = 100 * NSEC_PER_USEC;
	napsim_start(&s, &small_ops, PPB / 10, NAP_NS, napsim_emit);
	for (unsigned i = 0; i < NR_SMALL; i++)
		napsim_allocate(&s, NAPSIM_BLOCK + i * TPAGE_SIZE, TPAGE_SIZE);
	napsim_run_until(&s, now + 9 * NSEC_PER_SEC);
	check_msg(nr_small > 5000 && nr_small < 10000, "%u armed", nr_small);
	check_msg(reserved_ns(&s) < NSEC_PER_SEC, "a tenth of ten seconds");
	/* What has been quiet for long makes room for others. */
	napsim_run_until(&s, now + 30 * NSEC_PER_SEC);
	check_int(nr_small, NR_SMALL);
	napsim_stop(&s);
}

int main(void)
{
	test_quiet();
	test_touched();
	test_fails();
	test_freed();
	test_told();
	test_too_large();
	test_small();
	return tap_done();
}
