/*
 * Somebody else cleared the mark of an access (DAMON): what was accessed does
 * not count as quiet, is armed again, and its entries are flushed by setting
 * the guard anew. What happened before it was armed does not count.
 */
#include "supervisor/monitor/nap.h"
#include "tap.h"

#define MS    NSEC_PER_MSEC
#define BLOCK 0x100000ull

static uint64_t now = NSEC_PER_SEC;
static bool is_young, is_aged, is_guarded;
static unsigned nr_armed, nr_guard_set, nr_guard_twice, nr_naps;
static struct ev_nap last;

static uint64_t virtual_clock(void)
{
	return now;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		/* As the bits do: who is not young is left alone. */
		if (is_young || r[i].was_aged)
			is_aged = false;
		r[i].nr_reset = is_young;
		is_young = false;
		nr_armed++;
	}
	return 0;
}

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_present = 2;
		r[i].nr_touched = is_young;
		r[i].first_touched = is_young ? BLOCK : 0;
		r[i].nr_aged = r[i].want_aged && is_aged;
	}
	return 0;
}

static int guard_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r;
	nr_guard_set += (unsigned)n;
	nr_guard_twice += is_guarded;
	is_guarded = true;
	return 0;
}

static int guard_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r, (void)n;
	is_guarded = false;
	return 0;
}

static void fake_drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a, (void)start, (void)end;
}

static uint64_t fake_cost(const struct access *a)
{
	(void)a;
	return 400;
}

static const struct access_ops bits_ops = {
	.name = "fake bits",
	.sees = ACCESS_READS | ACCESS_WRITES | ACCESS_KERNEL,
	.arm = fake_arm,
	.collect = fake_collect,
	.drop = fake_drop,
	.touch_cost_ns = fake_cost,
};

static const struct access_ops guard_ops = {
	.name = "fake guard",
	.sees = ACCESS_WRITES,
	.is_guard = true,
	.arm = guard_arm,
	.disarm = guard_disarm,
	.drop = fake_drop,
	.touch_cost_ns = fake_cost,
};

static void emit(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event != EV_NAP)
		return;
	last = *(const struct ev_nap *)r->payload;
	nr_naps++;
}

static void run_until(struct nap *n, struct ledger *l, uint64_t until_ns)
{
	for (; now < until_ns; now += 10 * MS) {
		ledger_advance(l, now, 10 * MS);
		nap_tick(n, now);
	}
}

/* Runs until the block was armed more often than @was. */
static bool run_until_armed(struct nap *n, struct ledger *l, unsigned was)
{
	for (int i = 0; i < 1000 && nr_armed == was; i++)
		run_until(n, l, now + 10 * MS);
	return nr_armed > was;
}

int main(void)
{
	struct ledger *l = ledger_create(PPB);
	struct control_params cp = {.kind = CONTROL_CASCADE,
				    .target_overhead_ppb = PPB};
	struct control *c = control_create(&cp, now);
	const struct nap_params params = {
		.nap_ns = 500 * MS,
		.min_size = 4096,
		.target_overhead_ppb = PPB,
		.emit = emit,
		.clock = virtual_clock,
	};
	struct nap *n = nap_create(&params, l, c);
	struct access a = {.ops = &bits_ops}, g = {.ops = &guard_ops};
	struct nap_proc *np = nap_proc_create(n, 1, &a);
	const struct heap_event ev = {
		.kind = HEAP_ALLOC,
		.time_ns = now,
		.addr = BLOCK,
		.size = 8192,
	};
	nap_set_guard(np, &g);
	nap_heap_event(np, &ev);

	/* Before it was armed: no obstacle. */
	is_aged = true;
	check(run_until_armed(n, l, 0));
	run_until(n, l, now + 700 * MS);
	check_int(nr_armed, 1);
	check_int(nr_naps, 1);
	check(last.flags & NAP_ONGOING);
	check(is_guarded);

	/* An access ends it; the next quiet spell has one that nobody sees. */
	is_young = true;
	run_until(n, l, now + 20 * MS);
	check_int(nr_naps, 2);
	check(!(last.flags & NAP_ONGOING));
	is_young = true; /* still busy when it is armed */
	check(run_until_armed(n, l, nr_armed));
	unsigned was_armed = nr_armed;
	run_until(n, l, now + 300 * MS);
	check_int(nr_armed, was_armed);
	check_int(nr_guard_set, 2);
	is_aged = true;
	uint64_t unseen_ns = now;
	run_until(n, l, now + 240 * MS);
	check_int(nr_naps, 2);
	check(is_guarded);
	check_int(nr_guard_set, 3);
	check_int(nr_guard_twice, 0);
	check(run_until_armed(n, l, was_armed));
	check(!is_aged);

	/* Quiet from then on: a nap that does not reach back to it. */
	run_until(n, l, now + 700 * MS);
	check_int(nr_naps, 3);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns >= unseen_ns);
	check_int(last.flags & NAP_NEVER_ACCESSED, 0);

	nap_proc_destroy(np, now, true);
	nap_destroy(n);
	control_destroy(c);
	ledger_destroy(l);
	return tap_done();
}
