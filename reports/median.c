#include "reports/median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

int64_t median_i64(int64_t *value, size_t nr)
{
	qsort(value, nr, sizeof(*value), by_value);
	return nr ? value[nr / 2] : 0;
}
