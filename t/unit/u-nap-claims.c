/*
 * Large blocks that are guarded in parts, beside each other and small ones: of
 * what may be reserved they have half at most, and those that have begun can
 * be completed. What follows is planned in a tick only, and who opens a part
 * without touching it does not give the block a turn.
 */
#include "t/unit/napsim.h"

#define PART   (64ull << 20)
#define PARTS  16u
#define LARGE  (PARTS * PART)
#define NR     4u
#define SMALL  (NAPSIM_BLOCK + NR * LARGE)
#define NR_ALL 20
#define NAP_NS (1000 * MS)

static bool stands[NR * PARTS];
static unsigned nr_parts, nr_small;

static bool is_small(const struct page_range *r)
{
	return r->start >= SMALL;
}

static unsigned part_of(const struct page_range *r)
{
	return (unsigned)((r->start - NAPSIM_BLOCK) / PART);
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		if (is_small(&r[i])) {
			nr_small++;
			continue;
		}
		nr_parts++;
		stands[part_of(&r[i])] = true;
	}
	return 0;
}

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		if (is_small(&r[i]) || !stands[part_of(&r[i])])
			r[i].nr_reset = UINT32_MAX;
	return 0;
}

static void drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a;
	for (; start < end && start < SMALL; start += PART)
		stands[(start - NAPSIM_BLOCK) / PART] = false;
}

static struct access_ops ops = NAPSIM_PARTS(arm, collect);

static void begin(struct napsim *s, int64_t target_ppb, unsigned nr)
{
	ops.drop = drop;
	for (unsigned i = 0; i < ARRAY_SIZE(stands); i++)
		stands[i] = false;
	nr_naps = nr_parts = nr_small = 0;
	napsim_start(s, &ops, target_ppb, NAP_NS, napsim_emit);
	napsim_run_until(s, now + 10 * NSEC_PER_SEC); /* room */
	for (unsigned i = 0; i < nr; i++)
		napsim_allocate(s, NAPSIM_BLOCK + i * LARGE, LARGE);
}

static uint64_t reserved_ns(const struct napsim *s)
{
	struct ledger_totals t;
	ledger_get(s->l, &t);
	return t.reserved_ns + t.settled_ns;
}

static void open_part(struct napsim *s, unsigned block, unsigned k, bool is_gap)
{
	taddr_t start = NAPSIM_BLOCK + block * LARGE + k * PART;
	const struct access_hit hit = {
		.range = {.start = start,
			  .end = start + PART,
			  .user = control_user(s->c, block)},
		.time_ns = now,
		.is_write = true,
		.is_gap = is_gap,
		.addr = start,
		.cost_ns = is_gap ? 0 : 30 * MS,
	};
	check_msg(stands[block * PARTS + k], "part %u stands", k);
	stands[block * PARTS + k] = false;
	nap_guard_hit(s->np, &hit, 0, true);
}

static void free_at(struct napsim *s, taddr_t addr)
{
	nap_heap_event(s->np, &(struct heap_event){.kind = HEAP_FREE,
						   .time_ns = now,
						   .addr = addr});
}

/* 1 % of ten seconds has room for 860 000 pages; four times 262 144 are more.
 * Each has its nap, and small ones do not wait for that. */
static void test_all_complete(void)
{
	struct napsim s;
	begin(&s, PPB / 100, NR);
	napsim_run_until(&s, now + 3 * NSEC_PER_SEC);
	for (unsigned i = 0; i < NR_ALL; i++)
		napsim_allocate(&s, SMALL + i * NAPSIM_SIZE, NAPSIM_SIZE);
	napsim_run_until(&s, now + NSEC_PER_SEC);
	check_int(nr_small, NR_ALL);
	napsim_run_until(&s, now + 100 * NSEC_PER_SEC);
	check_int(nr_naps, NR + NR_ALL);
	check_int(nr_parts, NR * PARTS);
	for (unsigned i = 0; i < NR; i++)
		free_at(&s, NAPSIM_BLOCK + i * LARGE);
	for (unsigned i = 0; i < NR_ALL; i++)
		free_at(&s, SMALL + i * NAPSIM_SIZE);
	check_int(reserved_ns(&s), 0);
	napsim_stop(&s);
}

/* A look between ticks plans nothing: the block may be gone by the next. */
static void test_look(void)
{
	struct napsim s;
	begin(&s, PPB / 10, 1);
	while (!stands[2])
		napsim_run_until(&s, now + 10 * MS);
	now += NSEC_PER_SEC;
	ledger_advance(s.l, now, NSEC_PER_SEC);
	nap_look(s.n, now);
	free_at(&s, NAPSIM_BLOCK);
	unsigned before = nr_parts;
	napsim_run_until(&s, now + 100 * MS);
	check_int(nr_parts, before);
	check_int(reserved_ns(&s), 0);
	napsim_stop(&s);
}

/* Each part that is met while the block waits makes it wait the longer. */
static void test_more(void)
{
	struct napsim s;
	begin(&s, PPB / 100, 1);
	while (!stands[4])
		napsim_run_until(&s, now + 10 * MS);
	uint64_t start_ns = now;
	open_part(&s, 0, 2, false);
	uint64_t once_ns = control_next_due_ns(s.c) - start_ns;
	check_msg(once_ns > 100 * MS, "it waits");
	now += 10 * MS;
	open_part(&s, 0, 3, false);
	uint64_t twice_ns = control_next_due_ns(s.c) - start_ns;
	check_msg(twice_ns > once_ns / 4 * 7, "%llu, then %llu",
		  (unsigned long long)once_ns, (unsigned long long)twice_ns);
	napsim_stop(&s);
}

/* Who waits after a touch goes on waiting when a part is opened that nobody
 * touched. */
static void test_gap(void)
{
	struct napsim s;
	begin(&s, PPB / 100, 1);
	while (!stands[4])
		napsim_run_until(&s, now + 10 * MS);
	open_part(&s, 0, 2, false);
	uint64_t due_ns = control_next_due_ns(s.c);
	check_msg(due_ns > now + 100 * MS, "it waits");
	now += 10 * MS;
	open_part(&s, 0, 1, true);
	check(control_next_due_ns(s.c) >= due_ns);
	napsim_stop(&s);
}

static void relax(struct access *a)
{
	(void)a;
}

/* What stands for spells is opened at the end of each in any case, and when
 * there is no room left. */
static void test_spells(void)
{
	struct napsim s;
	begin(&s, PPB / 10, 0);
	napsim_allocate(&s, SMALL, PART);
	napsim_run_until(&s, now + 100 * MS);
	check(reserved_ns(&s) > 16384 * 100);
	napsim_stop(&s);
	ops.relax = relax;
	begin(&s, PPB / 10, 0);
	napsim_allocate(&s, SMALL, PART);
	napsim_run_until(&s, now + 100 * MS);
	check_int(reserved_ns(&s), NAPSIM_COST_NS / 16 + 1);
	napsim_stop(&s);
	ops.relax = NULL;
}

int main(void)
{
	test_all_complete();
	test_look();
	test_gap();
	test_more();
	test_spells();
	return tap_done();
}
