/*
 * When windows are looked after, and when all of them have a turn at once: on a
 * simulated program, as often as it may cost, and sooner where something new
 * came.
 */
#include "t/unit/range-sim.h"

static bool is_old; /* every window was passed before, long ago */

/* Until the next step, if all have cost @ppb together for some time, of a
 * program that is past its first second (u-range-duty has that). */
static uint64_t step_ns(int64_t target, uint64_t ppb)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, target);
	s.duty.born_ns -= NSEC_PER_SEC;
	s.duty.new_ns -= NSEC_PER_SEC;
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = ppb / NR;
	for (size_t i = 0; is_old && i < NR; i++)
		s.duty.window[i].was_passed = true;
	if (is_old)
		s.duty.new_ns = s.duty.born_ns;
	sim_step(&s);
	uint64_t old_ns = s.now_ns + NSEC_PER_SEC / 2;
	while (!ppb && s.now_ns < old_ns)
		sim_step(&s);
	uint64_t ns = range_duty_due_ns(&s.duty) - s.now_ns;
	sim_end(&s);
	return ns;
}

/* The more what is in costs, the sooner it is looked at again; looks cost, too.
 */
static void test_steps(void)
{
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	check_range((double)step_ns(20000000, 10000000), 12e6, 13e6);
	/* Nor do looks cost more than what is looked at. */
	check_range((double)step_ns(20000000, 30000000), 1.9e6, 2.1e6);
	check_int(step_ns(1000000, 100000), 20 * NSEC_PER_MSEC);
	check_int(step_ns(100000000, 0), 20 * NSEC_PER_MSEC);
	check_range((double)step_ns(100000000, 10000000), 2.6e6, 2.7e6);
	check_range((double)step_ns(100000000, 500000000), 5.0 * STOP_NS,
		    7.0 * STOP_NS);
	check_range((double)step_ns(100000000, 1000000000), 2.0 * STOP_NS,
		    4.0 * STOP_NS);
	/* Of a large program a look costs more: never more than its part. */
	look_ns = 185 * NSEC_PER_USEC;
	check_range((double)step_ns(100000000, 10000000), 9.4e6, 9.5e6);
	check_int(step_ns(100000000, 1000000000), 430 * NSEC_PER_USEC);
	look_ns = 0;
}

/* What it takes to wake up is the program's, too, where it waits for us; and
 * what is owed is not paid back while looks take a quarter of the target. */
static void test_dear(void)
{
	wake_ns = 60 * NSEC_PER_USEC;
	check_int(step_ns(100000000, 10000000), 2640 * NSEC_PER_USEC);
	wake_ns = 120 * NSEC_PER_USEC;
	check_int(step_ns(100000000, 10000000), 5280 * NSEC_PER_USEC);
	check_range((double)step_ns(20000000, 30000000), 3.9e6, 4.1e6);
	/* Never so seldom that what begins to run is not noticed. */
	wake_ns = 6 * NSEC_PER_MSEC;
	check_int(step_ns(20000000, 30000000), 20 * NSEC_PER_MSEC);
	wake_ns = 0;
	owed_ns = 100 * NSEC_PER_MSEC;
	/* At first it is not looks that cost most. */
	check_int(step_ns(100000000, 10000000), 2640 * NSEC_PER_USEC);
	is_old = true;
	check_int(step_ns(100000000, 10000000), 10560 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 10000000), 20 * NSEC_PER_MSEC);
	/* That is not so where they are nearly free. */
	wake_ns = 120 * NSEC_PER_USEC;
	taken_ppk = TAKEN_ALL / 8;
	check_range((double)step_ns(20000000, 10000000), 3.0e6, 3.1e6);
	taken_ppk = 0;
	check_int(step_ns(20000000, 10000000), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 30000000), NSEC_PER_MSEC);
	taken_ppk = TAKEN_ALL;
	wake_ns = 0;
	owed_ns = 0;
	is_old = false;
}

/* What costs the program nothing is done more often, as long as it runs. */
static void test_free(void)
{
	taken_ppk = 0;
	check_int(step_ns(20000000, 10000000), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 0), 1500 * NSEC_PER_USEC);
	check_int(step_ns(20000000, 30000000), NSEC_PER_MSEC);
	look_ns = 370 * NSEC_PER_USEC;
	check_int(step_ns(20000000, 10000000), 10 * NSEC_PER_MSEC);
	look_ns = 0;
	is_asleep = true;
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	is_asleep = false;
	taken_ppk = TAKEN_ALL / 4;
	check_range((double)step_ns(20000000, 10000000), 3e6, 3.2e6);
	check_int(step_ns(20000000, 0), 20 * NSEC_PER_MSEC);
	taken_ppk = TAKEN_ALL;
}

/* The looks in the next @run_ns of a program none of whose windows is passed,
 * where looking is not free. */
static unsigned looks(struct sim *s, uint64_t run_ns)
{
	uint64_t end_ns = s->now_ns + run_ns;
	unsigned before = s->nr_steps;
	while (s->now_ns < end_ns)
		sim_step(s);
	return s->nr_steps - before;
}

/* At first, and when something came that had not come before, it is looked
 * after as often as looking may cost; not when nothing new came for long. */
static void test_young(void)
{
	struct sim s;
	taken_ppk = TAKEN_ALL / 4;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) > 40);
	looks(&s, 50 * NSEC_PER_MSEC);
	check(looks(&s, 200 * NSEC_PER_MSEC) < 20);
	s.rate_ppb[0] = 1000;
	looks(&s, 50 * NSEC_PER_MSEC);
	s.rate_ppb[0] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) > 40);
	/* It was passed before. */
	looks(&s, NSEC_PER_SEC);
	s.rate_ppb[0] = 1000;
	looks(&s, 50 * NSEC_PER_MSEC);
	s.rate_ppb[0] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) < 20);
	is_asleep = true;
	sim_end(&s);
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	check(looks(&s, 150 * NSEC_PER_MSEC) < 20);
	is_asleep = false;
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
}

/* Those that are due and wait for room are not looked after meanwhile. */
static void test_waiting(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 10000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 40000000 : 0;
	sim_run(&s);
	check(watched(&s, 0) > 0);
	printf("# %u steps\n", s.nr_steps);
	check_range(s.nr_steps, 100, 5000);
	sim_end(&s);
}

/* Until none of the hot has a turn of its own. */
static void wait_for_rest(struct sim *s)
{
	while (control_nr_armed(s->duty.control) > 20)
		sim_step(s);
}

/* How many of the hot come in within @ns after window 0 told something new,
 * when the last 10 s have room for @room_ns. */
static unsigned came(struct sim *s, uint64_t ns, int64_t room_ns)
{
	unsigned nr = 0;
	bool came_in[NR] = {false};
	wait_for_rest(s);
	int64_t has_ns = ledger_window_room_ns(s->ledger);
	check(has_ns > room_ns);
	ledger_charge(s->ledger, LEDGER_OTHER, 2, (uint64_t)(has_ns - room_ns));
	uint64_t end_ns = s->now_ns + ns;
	s->news[0] = true;
	while (s->now_ns < end_ns) {
		sim_step(s);
		for (size_t i = 0; i < NR; i++)
			came_in[i] |= is_in(s, i);
	}
	for (size_t i = 20; i < NR; i++)
		nr += came_in[i];
	return nr;
}

/* The same within 20 ms, whatever is owed by the mean. */
static unsigned glanced(struct sim *s)
{
	wait_for_rest(s);
	return came(s, 20 * NSEC_PER_MSEC,
		    ledger_window_room_ns(s->ledger) -
			    20 * (int64_t)NSEC_PER_MSEC);
}

/* When something new comes where all is seen, the rest has a turn; not the
 * very hot, three times in a row and then not at once, and nobody without news.
 */
static void test_glance(void)
{
	struct sim s;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	s.rate_ppb[NR - 1] = 300000000;
	sim_run(&s);
	wait_for_rest(&s); /* which is no part of a glance */
	uint64_t spent_ns = s.spent_ns;
	check_int(glanced(&s), NR - 21);
	check_range((double)(s.spent_ns - spent_ns), 0, 1e6);
	check_int(glanced(&s), NR - 21);
	check_int(glanced(&s), NR - 21);
	check_int(glanced(&s), 0);
	sim_run(&s);
	check_int(glanced(&s), NR - 21);
	sim_end(&s);
	/* Looked after often meanwhile, where that is free. */
	taken_ppk = 0;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	sim_run(&s);
	for (size_t i = 20; i < NR; i++)
		s.rate_ppb[i] = 0;
	unsigned before = s.nr_steps;
	check_int(glanced(&s), NR - 20);
	check_range(s.nr_steps - before, 30, 60);
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
	/* One switch is for all. */
	sim_init(&s, CONTROL_GLOBAL, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
	sim_run(&s);
	check_int(glanced(&s), 0);
	sim_end(&s);
}

/* Where there is no room for it yet, it comes when there is, if that is soon;
 * and all together cannot cost more than the time there is until the next look.
 */
static void test_glance_room(void)
{
	struct sim s;
	taken_ppk = 0;
	for (unsigned late = 0; late < 2; late++) {
		sim_init(&s, CONTROL_CASCADE, 20000000);
		for (size_t i = 0; i < NR; i++)
			s.rate_ppb[i] = i < 20 ? 100000 : 10000000;
		sim_run(&s);
		check_int(
			came(&s, 200 * NSEC_PER_MSEC, late ? -500000 : 500000),
			late ? 0 : NR - 20);
		sim_end(&s);
	}
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = i < 20 ? 100000 : 100000000;
	sim_run(&s);
	check_int(came(&s, 20 * NSEC_PER_MSEC, 3000000), NR - 20);
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
}

/* The kernel tells of a process' time only at its ticks: it runs all the same.
 */
static void test_told_late(void)
{
	struct sim s;
	unsigned before, nr = 0;
	taken_ppk = 0;
	sim_init(&s, CONTROL_CASCADE, 20000000);
	for (size_t i = 0; i < NR; i++)
		s.rate_ppb[i] = 0;
	looks(&s, NSEC_PER_SEC);
	before = s.nr_steps;
	uint64_t end_ns = s.now_ns + 100 * NSEC_PER_MSEC;
	while (s.now_ns < end_ns) {
		is_asleep = nr++ % 5;
		sim_step(&s);
	}
	check(s.nr_steps - before > 55);
	is_asleep = false;
	taken_ppk = TAKEN_ALL;
	sim_end(&s);
}

int main(void)
{
	test_steps();
	test_free();
	test_dear();
	test_young();
	test_waiting();
	test_told_late();
	test_glance();
	test_glance_room();
	return tap_done();
}
