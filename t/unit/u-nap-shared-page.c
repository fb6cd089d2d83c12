/*
 * Two blocks that share a page: the hit on the guard of the second, whose
 * pages begin with the tail of the first, is the second's. A hit that nobody
 * took would leave it without a guard, and seemingly quiet for ever.
 */
#include "supervisor/monitor/nap.h"
#include "tap.h"

#define MS    NSEC_PER_MSEC
#define LOWER 0x100010ull
#define SIZE  8192ull
#define UPPER (LOWER + SIZE + 16)
#define PAGES 3

static uint64_t now = NSEC_PER_SEC;
static struct page_range guarded; /* the upper block's */
static unsigned nr_naps;
static struct ev_nap last;

static uint64_t virtual_clock(void)
{
	return now;
}

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

static int fake_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r, (void)n;
	return 0;
}

static void fake_drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a, (void)start, (void)end;
}

static uint64_t fake_cost(const struct access *a)
{
	(void)a;
	return 1000;
}

static const struct access_ops fake_ops = {
	.name = "fake guard",
	.sees = ACCESS_READS | ACCESS_WRITES,
	.is_guard = true,
	.arm = fake_arm,
	.disarm = fake_disarm,
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

static void allocate(struct nap_proc *np, taddr_t addr)
{
	const struct heap_event ev = {
		.kind = HEAP_ALLOC,
		.time_ns = now,
		.addr = addr,
		.size = SIZE,
	};
	nap_heap_event(np, &ev);
}

static void hit(struct nap_proc *np)
{
	const struct access_hit h = {
		.range = guarded,
		.time_ns = now,
		.is_write = true,
		.syscall_nr = -1,
		.addr = UPPER,
	};
	nap_guard_hit(np, &h, 0, true);
}

int main(void)
{
	struct ledger *l = ledger_create(PPB);
	struct control_params cp = {.kind = CONTROL_CASCADE,
				    .target_overhead_ppb = PPB};
	struct control *c = control_create(&cp, now);
	const struct nap_params p = {
		.nap_ns = 500 * MS,
		.min_size = 4096,
		.target_overhead_ppb = PPB,
		.emit = emit,
		.clock = virtual_clock,
	};
	struct nap *n = nap_create(&p, l, c);
	struct access a = {.ops = &fake_ops};
	struct nap_proc *np = nap_proc_create(n, 1, &a);
	allocate(np, LOWER);
	allocate(np, UPPER);

	/* Used before the guard has stood long enough. */
	run_until(n, l, now + 300 * MS);
	check(guarded.user != NULL);
	check_int(guarded.start, UPPER & ~(TPAGE_SIZE - 1));
	check_int(nr_naps, 0);
	uint64_t used_ns = now;
	hit(np);
	run_until(n, l, used_ns + 400 * MS);
	check_int(nr_naps, 0);

	/* What is quiet is a nap from there on, and the next use ends it. */
	run_until(n, l, used_ns + 5000 * MS);
	check_int(nr_naps, 1);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns >= used_ns);
	hit(np);
	check_int(nr_naps, 2);
	check_int(last.flags & NAP_ONGOING, 0);
	check_int(last.flags & NAP_ENDED_WRITE, NAP_ENDED_WRITE);

	/* Nothing is told of a block that is gone. */
	const struct heap_event ev = {
		.kind = HEAP_FREE, .time_ns = now, .addr = UPPER};
	nap_heap_event(np, &ev);
	hit(np);
	check_int(nr_naps, 2);

	nap_proc_destroy(np, now, true);
	nap_destroy(n);
	control_destroy(c);
	ledger_destroy(l);
	return tap_done();
}
