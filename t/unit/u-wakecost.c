/* What it costs a program that we take its CPU for a moment. */
#include "supervisor/probe/wakecost.h"
#include "t/unit/tap.h"

int main(void)
{
	const uint64_t us = NSEC_PER_USEC;
	const uint64_t most = 40 * us;
	check_int((long)wakecost_of(100 * 12 * us, 100, most), (long)(12 * us));
	/* Never free, nor what others did meanwhile. */
	check_int((long)wakecost_of(0, 100, most), (long)us);
	check_int((long)wakecost_of(NSEC_PER_SEC, 100, most), (long)most);
	check(wakecost_of(0, 0, most) > us);
	/* The longer it was away, the more it costs beside the waiting, up to a
	 * point. */
	const struct wakecost one = {20 * us, 60 * us};
	check_int((long)wakecost_displaced(0, 7, &one), 140 * us);
	check_int((long)wakecost_displaced(1000 * us, 10, &one), 1400 * us);
	check_int((long)wakecost_displaced(1000 * us, 4, &one), 1280 * us);
	check_int((long)wakecost_displaced(4000 * us, 2, &one), 4160 * us);
	check_int((long)wakecost_displaced(1000 * us, 0, &one), 1000 * us);
	const struct wakecost same = {20 * us, 0};
	check_int((long)wakecost_displaced(4000 * us, 2, &same), 4040 * us);
	struct wakecost now;
	printf("# %s\n", wakecost_measure(&now) ? "measured" : "the usual");
	printf("# %ju ns, %ju more\n", (uintmax_t)now.wake_ns,
	       (uintmax_t)now.cold_ns);
	check(now.wake_ns >= us);
	check(now.wake_ns <= 60 * us);
	check(now.cold_ns <= 200 * us);
	return tap_done();
}
