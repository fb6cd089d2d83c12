/*
 * Files and processes that share one ledger: who is beyond his share while much
 * is owed, what goes out when a copy wakes, and when it does.
 */
#include "supervisor/monitor/range-private.h"
#include "t/unit/range-sim.h"

#define TARGET	 20000000
#define NR_FILES 8

/* What each costs is little, also of what one file alone may owe: all together
 * it is half of the target more than that. */
static void test_deep(void)
{
	struct sim s[NR_FILES];
	size_t nr_in = 0;
	owed_ns = 10 * (int64_t)NSEC_PER_SEC;
	for (size_t i = 0; i < NR_FILES; i++) {
		sim_init_of(&s[i], i ? s : NULL, CONTROL_CASCADE, TARGET);
		for (size_t k = 0; k < NR; k++)
			s[i].rate_ppb[k] = 100000;
	}
	for (int round = 0; round < 100; round++) {
		uint64_t now_ns = s->now_ns + 20 * NSEC_PER_MSEC;
		ledger_advance(s->ledger, now_ns, 20 * NSEC_PER_MSEC);
		for (size_t i = 0; i < NR_FILES; i++)
			sim_step_at(&s[i], now_ns, 20 * NSEC_PER_MSEC);
	}
	for (size_t i = 0; i < NR_FILES; i++)
		for (size_t k = 0; k < NR; k++)
			nr_in += is_in(&s[i], k);
	check_range((double)nr_in * 100000 / TARGET, 0, 0.5);
	for (size_t i = NR_FILES; i-- > 0;)
		sim_end(&s[i]);
	owed_ns = 0;
}

/* What the parent has out, or knows to be dear, goes out in the copy, and
 * nothing else does; it comes back there as there is room. */
static void test_follow(void)
{
	struct sim s, copy;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	sim_run(&s);
	while (is_in(&s, NR - 1))
		sim_step(&s);
	range_duty_put(&s.duty, NR - 3, true, s.now_ns);
	sim_init_of(&copy, &s, CONTROL_CASCADE, 100000000);
	copy.now_ns = s.now_ns;
	check(range_duty_follow(&copy.duty, &s.duty, s.now_ns));
	for (size_t i = 0; i < copy.duty.nr_changed; i++)
		range_duty_put(&copy.duty, copy.duty.changed[i], false,
			       s.now_ns);
	for (size_t i = 0; i < NR; i++)
		if (is_in(&copy, i) && !is_in(&s, i))
			check_msg(false, "%zu stays", i);
	check(!is_in(&copy, NR - 3));
	for (size_t i = 0; i < NR / 4; i++)
		check(is_in(&copy, i));
	check(!range_duty_follow(&copy.duty, &s.duty, s.now_ns));
	uint64_t before_ns[NR], end_ns = s.now_ns + RUN_NS;
	for (uint32_t i = 0; i < NR; i++)
		before_ns[i] = range_duty_watched_ns(&copy.duty, i, s.now_ns);
	while (copy.now_ns < end_ns) {
		uint64_t due_ns = range_duty_due_ns(&copy.duty);
		ledger_advance(s.ledger, due_ns, due_ns - copy.now_ns);
		sim_step_at(&copy, due_ns, due_ns - copy.now_ns);
	}
	for (uint32_t i = 0; i < NR; i++)
		if (range_duty_watched_ns(&copy.duty, i, end_ns) ==
		    before_ns[i])
			check_msg(false, "%u never came back", i);
	sim_end(&copy);
	sim_end(&s);
}

/* Looks come together: each may have its own a little before it has to. */
static void test_early(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 100000000);
	sim_step(&s);
	uint64_t last_ns = s.now_ns, due_ns = range_duty_due_ns(&s.duty);
	uint64_t early_ns = range_duty_early_ns(&s.duty);
	check(early_ns > last_ns + (due_ns - last_ns) / 2);
	check(early_ns < due_ns);
	sim_end(&s);
}

/* What one may take to look is as much less as there are others, of its process
 * or of all that cost something. */
static void test_sharing(void)
{
	struct range_monitor m = {0};
	const struct range_part alone = {.nr_sharing = 1},
				of_many = {.nr_sharing = 9};
	check_int(range_part_sharing(&m, &alone), 1);
	check_int(range_part_sharing(&m, &of_many), 9);
	m.cheap.nr_active = 36;
	check_int(range_part_sharing(&m, &alone), 36);
	check_int(range_part_sharing(&m, &of_many), 36);
}

/* Where looking takes most of what is owed, many files are looked at less often
 * than a few. */
static void test_slower(void)
{
	struct range_cheap cheap = {0};
	struct range_duty d;
	uint64_t now_ns = NSEC_PER_SEC;
	check_int(
		range_duty_init(&d, &cheap, CONTROL_CASCADE, TARGET, 1, now_ns),
		0);
	struct range_duty_state s = {
		.now_ns = now_ns + 10 * NSEC_PER_SEC,
		.run_ns = NSEC_PER_MSEC,
		.room_ns = -(int64_t)NSEC_PER_SEC,
		.look_ns = 400 * NSEC_PER_USEC,
		.taken_ppk = TAKEN_ALL,
		.nr_threads = 1,
	};
	range_duty_step(&d, NULL, 0, &s);
	cheap.nr_active = 1;
	check_int(range_duty_due_ns(&d) - s.now_ns, 20 * NSEC_PER_MSEC);
	cheap.nr_active = 36;
	check_int(range_duty_due_ns(&d) - s.now_ns, 90 * NSEC_PER_MSEC);
	cheap.nr_active = 360;
	check_int(range_duty_due_ns(&d) - s.now_ns, 100 * NSEC_PER_MSEC);
	/* Nothing is owed. */
	s.room_ns = NSEC_PER_SEC;
	s.now_ns += NSEC_PER_SEC;
	range_duty_step(&d, NULL, 0, &s);
	cheap.nr_active = 360;
	check_int(range_duty_due_ns(&d) - s.now_ns, 20 * NSEC_PER_MSEC);
	cheap.nr_active = 0;
	range_duty_deinit(&d);
}

/* It takes one stop and memory for all files of a process to wake: so what it
 * costs to let it sleep is that of all of them. */
static void test_stray(void)
{
	struct range_monitor m = {0};
	struct range_proc parent = {0}, copy = {.wake_ns = UINT64_MAX};
	struct range_part file[2] = {0}, asleep[2] = {0};
	struct range_part *files[2] = {&file[0], &file[1]};
	parent.part = files;
	parent.nr = 2;
	for (size_t i = 0; i < 2; i++) {
		file[i].owner = &parent;
		asleep[i].owner = &copy;
		asleep[i].next = i ? &asleep[0] : NULL;
		range_sleep(&asleep[i], &file[i]);
	}
	m.parts = &asleep[1];
	const uint64_t most_ps = NSEC_PER_MSEC * 1000;
	range_stray(&m, &file[0], most_ps / 3);
	range_stray(&m, &file[1], most_ps / 3);
	check(copy.wake_ns == UINT64_MAX);
	range_stray(&m, &file[0], most_ps / 2);
	check_int(copy.wake_ns, 0);
	/* Others that come have theirs. */
	copy.wake_ns = UINT64_MAX;
	range_stray(&m, &file[1], most_ps / 2);
	check(copy.wake_ns == UINT64_MAX);
	/* What those cost that are no more says nothing about the next. */
	for (size_t i = 0; i < 2; i++)
		range_sleep_end(&m, &asleep[i]);
	range_stray(&m, &file[0], most_ps);
	for (size_t i = 0; i < 2; i++)
		range_sleep(&asleep[i], &file[i]);
	range_stray(&m, &file[1], most_ps / 2);
	check(copy.wake_ns == UINT64_MAX);
}

int main(void)
{
	test_deep();
	test_follow();
	test_early();
	test_sharing();
	test_slower();
	test_stray();
	return tap_done();
}
