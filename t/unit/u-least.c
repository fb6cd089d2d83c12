/*
 * A count that is at least another: whatever steps either comes in, the sum is
 * the larger of the two; what was long ago does not count for ever.
 */
#include "supervisor/control/least.h"
#include "t/unit/tap.h"

#define MS   ((int64_t)NSEC_PER_MSEC)
#define MOST (200 * MS)

/* @nr steps of @least_ns; every @leap-th has @got_ns of all @leap at once. */
static uint64_t sum(struct least *l, int nr, int leap, int64_t got_ns,
		    int64_t least_ns)
{
	uint64_t all = 0;
	for (int i = 1; i <= nr; i++)
		all += least_add(l, i % leap ? 0 : (uint64_t)(got_ns * leap),
				 least_ns, MOST, MOST);
	return all;
}

int main(void)
{
	struct least l = {0};
	/* Both the same, told evenly or in leaps, either of them. */
	check_int((long)sum(&l, 800, 8, MS, MS), 800 * MS);
	check_int((long)sum(&l, 800, 1, MS, MS), 800 * MS);
	l = (struct least){0};
	uint64_t all = 0;
	for (int i = 1; i <= 800; i++)
		all += least_add(&l, (uint64_t)MS, i % 8 ? 0 : 8 * MS, MOST,
				 MOST);
	check_int((long)all, 800 * MS);
	/* Less was got: the least. More: that, of several threads. */
	l = (struct least){0};
	check_int((long)sum(&l, 800, 8, MS / 2, MS), 800 * MS);
	l = (struct least){0};
	check_int((long)sum(&l, 800, 8, 4 * MS, MS), 3200 * MS);
	/* It slept, then several ran: what was granted before is made up for,
	 * but not all that ever was. */
	l = (struct least){0};
	check_int((long)sum(&l, 1000, 1, 0, MS), 1000 * MS);
	check_int((long)sum(&l, 1000, 1, 2 * MS, MS), 2000 * MS - MOST);
	/* And the other way round. */
	check_int((long)sum(&l, 1000, 1, 0, MS), 1000 * MS - MOST);
	/* Too much was asked for before: it is taken back, never below 0. */
	l = (struct least){0};
	all = least_add(&l, 0, 100 * MS, MOST, MOST);
	check_int((long)all, 100 * MS);
	all = least_add(&l, 0, -60 * MS, MOST, MOST);
	check_int((long)all, 0);
	all += sum(&l, 100, 1, 0, MS);
	check_int((long)all, 40 * MS);
	return tap_done();
}
