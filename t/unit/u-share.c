/*
 * What a program loses of its own time by waiting for us: all of it where it
 * has the CPUs for itself, a third where it is one of three that want them.
 */
#include "supervisor/control/share.h"
#include "t/unit/tap.h"

#define MS   NSEC_PER_MSEC
#define LONG 4000 /* steps of 1 ms: all that was before is forgotten */
#define LOST (30 * MS)

/* In each of @nr ms, of 1000: what it ran, waited, and strangers ran; told
 * every @leap-th time. */
static void go(struct share *s, int nr, int leap, uint64_t run, int64_t wait,
	       uint64_t strange)
{
	for (int i = 1; i <= nr; i++) {
		bool told = i % leap == 0;
		uint64_t us = told ? (uint64_t)leap * NSEC_PER_USEC : 0;
		share_learn(s, MS, run * NSEC_PER_USEC, wait * (int64_t)us,
			    strange * us);
	}
}

static bool is_about(uint64_t ns, uint64_t expected)
{
	printf("# %llu of about %llu ns\n", (unsigned long long)ns,
	       (unsigned long long)expected);
	return ns >= expected && ns <= expected + expected / 10;
}

int main(void)
{
	struct share s = {0};
	/* Nothing is known yet. */
	check_int((long)share_of(&s, LOST), (long)LOST);
	/* One thread: alone; beside others on the other CPU; third in a queue
	 * of three, told evenly and in leaps. */
	go(&s, LONG, 1, 1000, 0, 0);
	check_int((long)share_of(&s, LOST), (long)LOST);
	go(&s, LONG, 1, 1000, 0, 1000);
	check_int((long)share_of(&s, LOST), (long)LOST);
	go(&s, LONG, 1, 333, 667, 1667);
	check(is_about(share_of(&s, LOST), LOST / 3));
	go(&s, LONG, 10, 333, 667, 1667);
	check(is_about(share_of(&s, LOST), LOST / 3));
	/* The strangers are gone. */
	go(&s, LONG, 1, 1000, 0, 0);
	check(share_of(&s, LOST) >= LOST - LOST / 100);

	/* Many threads on two CPUs wait for each other. */
	s = (struct share){0};
	go(&s, LONG, 1, 2000, 62000, 0);
	check_int((long)share_of(&s, LOST), (long)LOST);
	/* Strangers have a quarter of what there is. */
	go(&s, LONG, 1, 1500, 62000, 500);
	check(is_about(share_of(&s, LOST), LOST / 4 * 3));

	/* Who runs seldom is not judged by a few milliseconds; nor by what
	 * strangers did while it slept. */
	s = (struct share){0};
	go(&s, LONG, 1, 0, 0, 2000);
	check_int((long)share_of(&s, LOST), (long)LOST);
	go(&s, 2, 1, 333, 667, 1667);
	check(share_of(&s, LOST) >= LOST / 10 * 9);

	/* Too much was told of waits, and is taken back. */
	s = (struct share){0};
	go(&s, 10, 1, 500, 500, 1000);
	go(&s, 10, 1, 1000, -1000, 1000);
	check_int((long)share_of(&s, LOST), (long)LOST);

	/* Nothing wraps round. */
	for (int i = 0; i < 3; i++)
		share_learn(&s, 1, UINT64_MAX, INT64_MAX, UINT64_MAX);
	check(share_of(&s, UINT64_MAX) > 0);
	check(share_of(&s, LOST) <= LOST);
	share_learn(&s, UINT64_MAX, 0, INT64_MIN, 0);
	check(share_of(&s, UINT64_MAX) == UINT64_MAX);
	return tap_done();
}
