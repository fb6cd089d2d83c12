#include "reports/asleep.h"

#include <stdlib.h>
#include <string.h>

int asleep_init(struct asleep *a, uint64_t duration_ns, size_t max_buckets)
{
	*a = (struct asleep){.bucket_ns = duration_ns / max_buckets + 1};
	a->nr = (size_t)(duration_ns / a->bucket_ns) + 1;
	/* One more: a step after the last bucket. */
	a->part = calloc(a->nr + 1, sizeof(*a->part));
	a->step = calloc(a->nr + 1, sizeof(*a->step));
	if (a->part && a->step)
		return SMCO_OK;
	asleep_deinit(a);
	return SMCO_NOMEM;
}

void asleep_deinit(struct asleep *a)
{
	free(a->part);
	free(a->step);
	*a = (struct asleep){0};
}

void asleep_clear(struct asleep *a)
{
	memset(a->part, 0, (a->nr + 1) * sizeof(*a->part));
	memset(a->step, 0, (a->nr + 1) * sizeof(*a->step));
}

void asleep_add(struct asleep *a, uint64_t start_ns, uint64_t length_ns,
		uint64_t bytes)
{
	uint64_t limit = a->nr * a->bucket_ns, end = start_ns + length_ns;
	double size = (double)bytes;
	if (end < start_ns || end > limit)
		end = limit;
	if (start_ns >= end)
		return;
	size_t first = (size_t)(start_ns / a->bucket_ns);
	size_t last = (size_t)(end / a->bucket_ns);
	if (first == last) {
		a->part[first] += size * (double)(end - start_ns);
		return;
	}
	a->part[first] +=
		size * (double)((first + 1) * a->bucket_ns - start_ns);
	a->part[last] += size * (double)(end - last * a->bucket_ns);
	a->step[first + 1] += size;
	a->step[last] -= size;
}

void asleep_read(const struct asleep *a, double *ret)
{
	double whole = 0;
	for (size_t i = 0; i < a->nr; i++) {
		whole += a->step[i];
		ret[i] = whole + a->part[i] / (double)a->bucket_ns;
	}
}
