/*
 * Who has taken the program's CPU goes on on another one, but not again and
 * again, and may use all of them afterwards as before.
 */
#include <sched.h>
#include <time.h>

#include "supervisor/tracee/tracee.h"
#include "t/unit/tap.h"

#define TRIES  20 /* others may move us meanwhile */
#define NAP_NS (20 * NSEC_PER_MSEC)

/* Of a tracer of its own: one that has stepped aside waits longer and longer.
 */
static bool goes_once(const cpu_set_t *all)
{
	struct tracer *tr;
	cpu_set_t now;
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return false;
	int was = sched_getcpu();
	tracer_step_aside(tr);
	int is = sched_getcpu();
	tracer_step_aside(tr);
	bool once = is != was && sched_getcpu() == is;
	sched_getaffinity(0, sizeof(now), &now);
	check(CPU_EQUAL(&now, all));
	tracer_destroy(tr);
	return once;
}

int main(void)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct smco_err err = {0};
	struct tracer *tr;
	cpu_set_t all, now, one;
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2) {
		tap_skip("there is no other CPU");
		return tap_done();
	}
	bool once = false;
	for (int i = 0; i < TRIES && !once; i++) {
		once = goes_once(&all);
		nanosleep(&nap, NULL);
	}
	check(once);

	/* With one that it may use, there is no aside. */
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	if (check_int(sched_setaffinity(0, sizeof(one), &one), 0) &&
	    check_int(tracer_create(&tr, NULL, &err), 0)) {
		tracer_step_aside(tr);
		sched_getaffinity(0, sizeof(now), &now);
		check(CPU_EQUAL(&now, &one));
		tracer_destroy(tr);
	}
	return tap_done();
}
