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
	uint64_t ns = wakecost_measure();
	printf("# %ju ns\n", (uintmax_t)ns);
	check(ns >= us);
	check(ns <= 40 * us);
	return tap_done();
}
