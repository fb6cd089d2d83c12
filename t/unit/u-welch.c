/* Student's t against printed tables, Welch's test worked out
 * by integrating the density numerically. */
#include "t/unit/tap.h"

#include <math.h>

#include "reports/welch.h"

#define SAMPLE(...)                                                            \
	sample_of((const double[]){__VA_ARGS__},                               \
		  ARRAY_SIZE(((const double[]){__VA_ARGS__})))

static void tables(void)
{
	check_range(student_critical(0.05, 1), 12.7061, 12.7063);
	check_range(student_critical(0.05, 2), 4.30264, 4.30266);
	check_range(student_critical(0.05, 4), 2.77644, 2.77646);
	check_range(student_critical(0.01, 10), 3.16926, 3.16928);
	check_range(student_critical(0.05, 1e6), 1.95995, 1.95998);
	check_range(student_two_sided(0, 3), 1, 1);
	check_range(student_two_sided(-12.7062, 1), 0.0499, 0.0501);
	/* Far out, where 1 - (something near 1) would be 0. */
	check_range(student_two_sided(1000, 4), 5.9e-12, 6.1e-12);
}

static void welch(void)
{
	/* t = 4.35194, df = 5.85091; Simpson's rule gives p = 0.0051043 and
	 * 2.46211 as critical value. */
	struct sample a = SAMPLE(12, 11, 13, 12, 14);
	struct sample b = SAMPLE(15, 18, 16, 21, 17);
	struct welch w;
	check_range(a.mean, 12.4, 12.4);
	check_range(a.sd, 1.14017, 1.14019);
	check(welch_compare(&a, &b, &w));
	check_range(w.change, 4.99999, 5.00001);
	check_range(w.low, 2.17125, 2.17126);
	check_range(w.high, 7.82874, 7.82875);
	check_range(w.p, 0.005104, 0.005105);
	struct welch back;
	check(welch_compare(&b, &a, &back));
	check_range(back.low + w.high, -1e-9, 1e-9);
	check_range(back.p - w.p, -1e-12, 1e-12);
}

static void few(void)
{
	struct sample one = SAMPLE(7), other = SAMPLE(9);
	struct sample three = SAMPLE(1, 2, 3);
	struct welch w;
	check(!welch_compare(&one, &other, &w));
	check_range(w.change, 2, 2);
	check(isnan(w.low) && isnan(w.p));
	/* Student: se = 1 * sqrt(1/3 + 1), df 2, critical 4.3027 */
	check(welch_compare(&three, &one, &w));
	check_range(w.high - w.low, 2 * 4.968, 2 * 4.969);
}

static void without_scatter(void)
{
	struct sample a = SAMPLE(5, 5), b = SAMPLE(6, 6),
		      big = SAMPLE(1e300, 1e300);
	struct welch w;
	check(welch_compare(&a, &a, &w));
	check_range(w.p, 1, 1);
	check(welch_compare(&a, &b, &w));
	check_range(w.p, 0, 0);
	check_range(w.low, 1, 1);
	check(welch_compare(&a, &big, &w) && w.p == 0);
	struct sample zero = SAMPLE(0, 0);
	check(welch_compare(&zero, &zero, &w) && w.p == 1);
}

static void apart(void)
{
	check_range(apart_by_chance(1, 1), 1, 1);
	check_range(apart_by_chance(3, 3), 0.1, 0.1);
	check_range(apart_by_chance(5, 5) * 252, 1.99999, 2.00001);
	check_range(apart_by_chance(8, 2) * 45, 1.99999, 2.00001);
	check_range(apart_by_chance(2, 8) * 45, 1.99999, 2.00001);
	check_range(apart_by_chance(5000, 5000), 0, 1e-300);
	check_range(apart_by_chance(0, 3), 1, 1);
}

int main(void)
{
	tables();
	welch();
	few();
	without_scatter();
	apart();
	return tap_done();
}
