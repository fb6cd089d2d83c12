/*
 * Intervals that a hardware event ends, as the kernel writes them down on a
 * machine that has such events: rings made here.
 */
#include "pmu/counter-private.h"
#include "t/unit/tap.h"

#define RING_BYTES 4096
#define NR	   3 /* of a group, with the event that ends intervals */

static uint8_t data[RING_BYTES];
static uint64_t head;

static void p64(uint64_t v)
{
	memcpy(data + head % RING_BYTES, &v, 8);
	head += 8;
}

static void begin(uint32_t type, size_t words)
{
	p64((uint64_t)(8 + 8 * words) << 48 | type);
}

/* As PERF_SAMPLE_IDENTIFIER, _TIME and _READ of a group have it: what ends the
 * interval first, then the two that are counted. */
static void sample(uint64_t id, uint64_t time, uint64_t enabled,
		   uint64_t running, uint64_t cycles, uint64_t instructions,
		   uint64_t misses)
{
	begin(PERF_RECORD_SAMPLE, 5 + NR);
	p64(id);
	p64(time);
	p64(NR);
	p64(enabled);
	p64(running);
	p64(cycles);
	p64(instructions);
	p64(misses);
}

static const struct counter_plan plan = {
	.group = {{.nr = NR, .has_every = true}, {.nr = NR, .has_every = true}},
	.nr_groups = 2,
};

static void with_ring(struct counter_thread *t, uint64_t tail)
{
	const struct counter_every cycles = {.nr = 1000000};
	const struct pmu_event ev = counter_every_event(&cycles);
	const struct ring_format format = ring_format_of(&ev.attr);
	check_int(ev.attr.sample_period, 1000000);
	check_int(ring_open_recorded(&t->ring, &format, data, RING_BYTES, head,
				     tail, NULL),
		  0);
}

static void check_next(struct counter_thread *t, size_t group, uint64_t at_ns,
		       uint64_t enabled, uint64_t running,
		       uint64_t instructions, uint64_t misses, uint64_t cycles)
{
	struct counter_sum sum;
	uint64_t at = 0;
	size_t g = 99;
	if (!check(counter_thread_next(t, &g, &sum, &at)))
		return;
	check_int(g, group);
	check_int(at, at_ns);
	check_int(sum.enabled_ns, enabled);
	check_int(sum.running_ns, running);
	check_int(sum.value[0], instructions);
	check_int(sum.value[1], misses);
	check_int(sum.value[2], cycles);
}

/* The kernel tells of the last one first. */
#define ALL_OPEN .nr = NR, .nr_all = NR, .place = {2, 0, 1}

/* Two groups that take turns, in one ring that wraps at @start. */
static void test_groups(uint64_t start)
{
	struct open_group open[2] = {
		{.group = 0, ALL_OPEN, .has_every = true, .id = 7},
		{.group = 1, ALL_OPEN, .has_every = true, .id = 8},
	};
	struct counter_thread t = {.plan = &plan, .open = open, .nr = 2};
	struct counter_sum sum;
	uint64_t at;
	size_t g;
	head = start;
	sample(7, 100, 50, 50, 1000003, 700, 5);
	begin(PERF_RECORD_THROTTLE, 3);
	p64(110);
	p64(7);
	p64(7);
	sample(8, 120, 90, 40, 1000000, 900, 1);
	sample(9, 125, 9, 9, 9, 9, 9); /* nobody's */
	/* Two intervals that there was no room for. */
	begin(PERF_RECORD_LOST, 3);
	p64(7);
	p64(2);
	p64(7);
	sample(7, 130, 200, 150, 4000001, 2700, 25);
	with_ring(&t, start);
	check_next(&t, 0, 100, 50, 50, 700, 5, 1000003);
	check_next(&t, 1, 120, 90, 40, 900, 1, 1000000);
	check_next(&t, 0, 130, 150, 100, 2000, 20, 2999998);
	check(!counter_thread_next(&t, &g, &sum, &at));
	check_int(t.ring.nr_lost, 2);
	check_int(t.ring.nr_throttled, 1);
	/* What is read then is what came after the last of them. */
	check(counter_note(&open[0], 210, 155,
			   (const uint64_t[]){2750, 26, 4100001}, &sum));
	check_int(open[0].last.value[0], 2750);
	/* What was written down before, and is taken later, is in it. */
	sum = (struct counter_sum){0};
	check(!counter_note(&open[0], 205, 152,
			    (const uint64_t[]){2730, 25, 4100000}, &sum));
	check_int(sum.enabled_ns, 0);
	check_int(sum.value[0], 0);
	check(counter_note(&open[0], 220, 155,
			   (const uint64_t[]){2749, 27, 4100001}, &sum));
	check_int(sum.value[0], 0); /* known before it was counted */
	check_int(sum.value[1], 1);
	check_int(sum.enabled_ns, 10);
	ring_close(&t.ring);
}

/* What came before and was taken otherwise is not told again. */
static void test_taken_between(void)
{
	struct open_group open = {ALL_OPEN, .has_every = true, .id = 7,
				  .unseen_ns = 30};
	struct counter_thread t = {.plan = &plan, .open = &open, .nr = 1};
	struct counter_sum sum = {0};
	head = 0;
	check(counter_note(&open, 40, 40, (const uint64_t[]){300, 2, 500000},
			   &sum));
	check_int(sum.enabled_ns, 70); /* a pause, too */
	check_int(sum.running_ns, 40);
	sample(7, 100, 50, 50, 1000000, 700, 5);
	with_ring(&t, 0);
	check_next(&t, 0, 100, 10, 10, 400, 3, 500000);
	ring_close(&t.ring);
}

/* A record of another number of events is not ours, and no harm. */
static void test_damaged(void)
{
	struct open_group open = {.nr = 2, .has_every = true, .id = 7};
	struct counter_thread t = {.plan = &plan, .open = &open, .nr = 1};
	struct counter_sum sum;
	uint64_t at;
	size_t g;
	head = 0;
	sample(7, 100, 50, 50, 1, 2, 3);
	begin(PERF_RECORD_SAMPLE, 2); /* cut */
	p64(7);
	p64(101);
	with_ring(&t, 0);
	check(!counter_thread_next(&t, &g, &sum, &at));
	check_int(open.last.enabled_ns, 0);
	check(t.ring.nr_damaged > 0);
	ring_close(&t.ring);
}

static void test_order(void)
{
	const struct open_group plain = {.nr = 3},
				every = {.nr = 3, .has_every = true};
	for (size_t i = 0; i < 3; i++) {
		check_int(counter_place(&plain, i, 3), i);
		check_int(counter_place(&every, i, 3), (i + 2) % 3);
	}
}

int main(void)
{
	test_order();
	for (uint64_t start = RING_BYTES - 400; start < RING_BYTES; start += 8)
		test_groups(start);
	test_taken_between();
	test_damaged();
	return tap_done();
}
