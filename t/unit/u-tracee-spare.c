/*
 * All CPUs are in use where every look sees that, for a while: not where one
 * does that comes while somebody is about to stop.
 */
#include "supervisor/tracee/spare.h"
#include "t/unit/tap.h"

#define NR_CPUS 2
#define BEGIN	(100 * NSEC_PER_SEC)
#define STEP	NSEC_PER_MSEC

int main(void)
{
	struct spare s = {0};
	uint64_t now = BEGIN;
	check(spare_is_there(&s, now));

	/* The first look may be such a one, and each second. */
	uint64_t nr_none = 0;
	for (int i = 0; i < 100; i++, now += STEP) {
		spare_look(&s, now, i % 2 ? 1 : 2, NR_CPUS);
		nr_none += !spare_is_there(&s, now);
	}
	check_int(nr_none, 0);

	/* Others need all of them. */
	uint64_t begin = now;
	while (spare_is_there(&s, now) && now - begin < NSEC_PER_SEC) {
		spare_look(&s, now, 3, NR_CPUS);
		now += STEP;
	}
	check_int((now - begin) / STEP, SPARE_NS / STEP - 1);
	/* And do so no more. */
	spare_look(&s, now, 1, NR_CPUS);
	check(spare_is_there(&s, now));

	/* One look long after the last is a first one. */
	now += NSEC_PER_SEC;
	spare_look(&s, now, 4, NR_CPUS);
	check(spare_is_there(&s, now));
	return tap_done();
}
