/*
 * Somebody else cleared the mark of an access (DAMON): what was accessed does
 * not count as quiet, is armed again, and its entries are flushed by setting
 * the guard anew. What happened before it was armed does not count. Where it
 * is not known when the mark was taken, it may have been long before that.
 * What is pinned leaves no marks: nothing is said of it until it is no more.
 */
#include "t/unit/napsim.h"

static bool is_young, is_aged, is_pinned, is_guarded;
static unsigned nr_armed, nr_guard_set, nr_guard_twice;
static uint64_t guard_side_ns, guard_price_ns;

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_present = NAPSIM_NR_PAGES;
		r[i].nr_touched = is_young;
		r[i].first_touched = is_young ? NAPSIM_BLOCK : 0;
		r[i].nr_aged = r[i].want_aged && is_aged;
		if (r[i].want_aged) /* arm leaves it alone */
			r[i].nr_pinned = is_pinned;
	}
	return 0;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	fake_collect(a, r, n); /* arm says so, too */
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

static int guard_arm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r;
	nr_guard_set += (unsigned)n;
	guard_side_ns += n * guard_price_ns;
	nr_guard_twice += is_guarded;
	is_guarded = true;
	return 0;
}

static uint64_t guard_side(const struct access *a)
{
	(void)a;
	return guard_side_ns;
}

static int guard_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r, (void)n;
	is_guarded = false;
	return 0;
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
	.side_cost_ns = guard_side,
};

/* Runs until the block was armed more often than @was. */
static bool run_until_armed(struct napsim *s, unsigned was)
{
	for (int i = 0; i < 1000 && nr_armed == was; i++)
		napsim_run_until(s, now + 10 * MS);
	return nr_armed > was;
}

/* An access is seen, and the block armed 3 s after it. */
static void arm_late(struct napsim *s)
{
	unsigned was = nr_armed;
	nap_hold_back(s->np, true);
	is_young = true;
	napsim_run_until(s, now + 3000 * MS);
	check_int(nr_armed, was);
	is_young = false;
	nap_hold_back(s->np, false);
	check(run_until_armed(s, was));
}

static void test_since_when(void)
{
	struct napsim sim, *s = &sim;
	napsim_start(s, &bits_ops, PPB, 500 * MS, napsim_emit);
	napsim_allocate(s, NAPSIM_BLOCK, NAPSIM_SIZE);
	check(run_until_armed(s, 0));
	napsim_run_until(s, now + 700 * MS);
	check_int(nr_naps, 1);

	/* That one was asked for when it was armed takes longer than all else,
	 * so it was not. It is when the block has been quiet for a while, and
	 * no nap is lost by it. */
	uint64_t known_ns = now + 100 * MS;
	arm_late(s);
	is_aged = true;
	napsim_run_until(s, now + 700 * MS);
	check_int(nr_naps, 3);
	napsim_run_until(s, now + 800 * MS);
	check_int(nr_naps, 3);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns - last.error_ns <= known_ns);

	/* Once there was one it is. */
	known_ns = now + 100 * MS;
	arm_late(s);
	is_aged = true;
	napsim_run_until(s, now + 1500 * MS);
	check_int(nr_naps, 5);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns - last.error_ns >= known_ns + 2500 * MS);
	napsim_stop(s);
	nr_armed = nr_naps = nr_guard_set = 0;
	is_aged = false;
}

static void emit_both(void *ctx, const struct record *r)
{
	napsim_emit(ctx, r);
	napsim_keep_coverage(ctx, r);
}

/* Watched for a while, and then it is not pinned any more for @after_ns. */
static void test_pinned(uint64_t after_ns, enum coverage_why why)
{
	struct napsim sim, *s = &sim;
	napsim_start(s, &bits_ops, PPB, 500 * MS, emit_both);
	napsim_allocate(s, NAPSIM_BLOCK, NAPSIM_SIZE);
	is_pinned = true;
	napsim_run_until(s, now + 5000 * MS);
	check_int(nr_naps, 0);

	is_pinned = false;
	uint64_t since_ns = now;
	napsim_run_until(s, now + after_ns);
	check_int(nr_naps, after_ns ? 1 : 0);
	if (after_ns) {
		check(last.flags & NAP_ONGOING);
		check(last.start_ns + last.error_ns >= since_ns);
	}
	nap_proc_destroy(s->np, now, true);
	memset(cover, 0, sizeof(cover));
	nap_emit_coverage(s->n);
	for (size_t i = 0; i < COVER_NO_STACK; i++)
		check_int(cover[i].nr_objects, i == (size_t)why);
	check_int(cover[COVER_SHARED].nr_objects, why == COVER_SHARED);
	nap_destroy(s->n);
	control_destroy(s->c);
	ledger_destroy(s->l);
	nr_armed = nr_naps = nr_guard_set = 0;
}

int main(void)
{
	test_since_when();
	test_pinned(0, COVER_SHARED);
	test_pinned(3000 * MS, COVER_WATCHED);
	struct napsim sim, *s = &sim;
	struct access g = {.ops = &guard_ops};
	napsim_start(s, &bits_ops, PPB, 500 * MS, napsim_emit);
	nap_set_guard(s->np, &g);
	napsim_allocate(s, NAPSIM_BLOCK, NAPSIM_SIZE);

	/* Before it was armed: no obstacle. */
	is_aged = true;
	check(run_until_armed(s, 0));
	napsim_run_until(s, now + 700 * MS);
	check_int(nr_armed, 1);
	check_int(nr_naps, 1);
	check(last.flags & NAP_ONGOING);
	check(is_guarded);

	/* An access ends it; the next quiet spell has one that nobody sees. */
	is_young = true;
	napsim_run_until(s, now + 20 * MS);
	check_int(nr_naps, 2);
	check(!(last.flags & NAP_ONGOING));
	is_young = true; /* still busy when it is armed */
	check(run_until_armed(s, nr_armed));
	unsigned was_armed = nr_armed;
	napsim_run_until(s, now + 300 * MS);
	check_int(nr_armed, was_armed);
	check_int(nr_guard_set, 2);
	is_aged = true;
	uint64_t unseen_ns = now;
	napsim_run_until(s, now + 240 * MS);
	check_int(nr_naps, 2);
	check(is_guarded);
	check_int(nr_guard_set, 3);
	check_int(nr_guard_twice, 0);
	check(run_until_armed(s, was_armed));
	check(!is_aged);

	/* Quiet from then on: a nap that does not reach back to it. */
	napsim_run_until(s, now + 700 * MS);
	check_int(nr_naps, 3);
	check(last.flags & NAP_ONGOING);
	check(last.start_ns >= unseen_ns);
	check_int(last.flags & NAP_NEVER_ACCESSED, 0);

	/* One that turns out to be dear is the last for a while. */
	guard_price_ns = NSEC_PER_SEC;
	for (int i = 0; i < 3; i++) {
		was_armed = nr_armed;
		is_young = true;
		napsim_run_until(s, now + 20 * MS);
		check(run_until_armed(s, was_armed));
		napsim_run_until(s, now + 700 * MS);
		check_int(nr_naps, 5 + 2 * i);
		check_int(nr_guard_set, 4);
	}
	napsim_stop(s);
	return tap_done();
}
