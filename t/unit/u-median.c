/*
 * What is in the middle of measured times: whatever a few of them were.
 */
#include "reports/median.h"
#include "t/unit/tap.h"

int main(void)
{
	int64_t none[1] = {7};
	check_int(median_i64(none, 0), 0);
	check_int(median_i64(none, 1), 7);
	/* Two were interrupted, one seems to have taken less than nothing. */
	int64_t ns[7] = {INT64_MAX, 12, -3, 11, 5000000, 10, 13};
	check_int(median_i64(ns, 7), 12);
	int64_t even[4] = {4, 1, 3, 2};
	check_int(median_i64(even, 4), 3);
	int64_t less[3] = {INT64_MIN, -1, INT64_MIN};
	check_int(median_i64(less, 3), INT64_MIN);
	return tap_done();
}
