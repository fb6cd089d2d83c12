/*
 * welch.h - do two samples of a number differ? Student's t in Welch's form,
 * which does not take both to scatter alike. Pure arithmetic.
 */
#ifndef SMCO_WELCH_H
#define SMCO_WELCH_H

#include "reports/base.h"

struct sample {
	double mean;
	double sd; /* standard deviation of the population; 0 for one value */
	size_t nr;
};

/* @nr finite values, at least one. */
struct sample sample_of(const double *v, size_t nr);

struct welch {
	double change;	  /* mean of b - mean of a */
	double low, high; /* 95 % interval of the change */
	double p; /* chance of such a change, or more, if there is none */
};

/*
 * Compare @a and @b. With a single value on one side its scatter is taken to
 * be that of the other (Student's t); with one on both there is nothing to
 * judge by: false, and only *ret's change is set. Samples without any scatter
 * differ for certain (p = 0) or not at all (p = 1).
 */
bool welch_compare(const struct sample *a, const struct sample *b,
		   struct welch *ret);

/*
 * Of @a values on one side and @b on the other: the chance that all of one are
 * above all of the other, whichever, if in truth any order is as likely (the
 * exact test by permutation): 2 / C(a + b, a). 1 v 1: 1; 3 v 3: 0.1; 5 v 5:
 * 0.008.
 */
double apart_by_chance(size_t a, size_t b);

/* P(|T| > @t) for @df > 0 degrees of freedom. */
double student_two_sided(double t, double df);
/* The t that |T| exceeds with probability @p in (0, 1). */
double student_critical(double p, double df);

#endif
