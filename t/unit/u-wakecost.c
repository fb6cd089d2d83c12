/* What it costs a program that we take its CPU for a moment. */
#include "supervisor/probe/wakecost.h"
#include "t/unit/tap.h"

int main(void)
{
	const uint64_t us = NSEC_PER_USEC;
	check_int((long)wakecost_of(100 * 12 * us, 100), (long)(12 * us));
	/* Never free, nor what others did meanwhile. */
	check_int((long)wakecost_of(0, 100), (long)us);
	check_int((long)wakecost_of(NSEC_PER_SEC, 100), (long)(40 * us));
	check(wakecost_of(0, 0) > us);
	/* The longer it was away, the more it costs beside the waiting. */
	check_int((long)wakecost_displaced(0, 7, 20 * us), 140 * us);
	check_int((long)wakecost_displaced(1000 * us, 10, 20 * us), 1300 * us);
	check_int((long)wakecost_displaced(1000 * us, 4, 20 * us), 1330 * us);
	check_int((long)wakecost_displaced(4000 * us, 2, 20 * us), 5440 * us);
	check_int((long)wakecost_displaced(1000 * us, 0, 20 * us), 1000 * us);
	uint64_t ns = wakecost_measure();
	printf("# %ju ns\n", (uintmax_t)ns);
	check(ns >= us);
	check(ns <= 40 * us);
	return tap_done();
}
