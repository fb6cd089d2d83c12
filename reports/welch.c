#include "reports/welch.h"

#include <math.h>

#define INTERVAL_P 0.05

struct sample sample_of(const double *v, size_t nr)
{
	struct sample s = {.nr = nr};
	double squares = 0;
	for (size_t i = 0; i < nr; i++) /* running mean: no huge sums */
		s.mean += (v[i] - s.mean) / (double)(i + 1);
	for (size_t i = 0; i < nr; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	if (nr > 1)
		s.sd = sqrt(squares / (double)(nr - 1));
	return s;
}

/*
 * The continued fraction of the incomplete beta function I_x(a, b), by Lentz's
 * method; converges fast for x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double f = d;
	for (int m = 1; m <= 300; m++) {
		double k = m;
		double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
		double odd = -(a + k) * (a + b + k) * x /
			     ((a + 2 * k) * (a + 2 * k + 1));
		double term[2] = {even, odd}, step = 1;
		for (int i = 0; i < 2; i++) {
			d = 1 + term[i] * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + term[i] / c;
			if (fabs(c) < tiny)
				c = tiny;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return f;
}

static double incomplete_beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) +
			   b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_two_sided(double t, double df)
{
	return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double student_critical(double p, double df)
{
	double low = 0, high = 1;
	while (student_two_sided(high, df) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double mid = (low + high) / 2;
		if (student_two_sided(mid, df) > p)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* Standard error of the difference and its degrees of freedom. */
static void difference(const struct sample *a, const struct sample *b,
		       double *se_ret, double *df_ret)
{
	double na = (double)a->nr, nb = (double)b->nr;
	double va = a->sd * a->sd / na, vb = b->sd * b->sd / nb;
	if (a->nr > 1 && b->nr > 1) {
		double sum = va + vb;
		*se_ret = sqrt(sum);
		*df_ret = sum * sum / (va * va / (na - 1) + vb * vb / (nb - 1));
		return;
	}
	*df_ret = na + nb - 2;
	*se_ret = (a->nr > 1 ? a->sd : b->sd) * sqrt(1 / na + 1 / nb);
}

bool welch_compare(const struct sample *a, const struct sample *b,
		   struct welch *ret)
{
	double se, df;
	*ret = (struct welch){
		.change = b->mean - a->mean, .low = NAN, .high = NAN, .p = NAN};
	if (a->nr + b->nr < 3)
		return false;
	difference(a, b, &se, &df);
	/* Scatter that is lost in rounding is none. */
	if (se <= 1e-12 * (fabs(a->mean) + fabs(b->mean))) {
		ret->low = ret->high = ret->change;
		ret->p = fabs(ret->change) > se ? 0 : 1;
		return true;
	}
	double half = student_critical(INTERVAL_P, df) * se;
	ret->low = ret->change - half;
	ret->high = ret->change + half;
	ret->p = student_two_sided(ret->change / se, df);
	return true;
}

double apart_by_chance(size_t a, size_t b)
{
	double orders = 1;
	for (size_t i = 1; i <= a; i++)
		orders *= (double)(b + i) / (double)i;
	return fmin(2 / orders, 1);
}
