/*
 * asleep.h - how many bytes lay unused, over time: naps added up into buckets
 * of equal length. Adding one is O(1), whatever its length.
 */
#ifndef SMCO_ASLEEP_H
#define SMCO_ASLEEP_H

#include "reports/base.h"

struct asleep {
	uint64_t bucket_ns;
	size_t nr; /* buckets, from time 0 on */
	/* private: */
	double *part; /* owned; byte ns of buckets that are covered partly */
	double *step; /* owned; bytes that begin to cover whole buckets */
};

/* For [0, @duration_ns), in at most @max_buckets (at least 1). SMCO_NOMEM. */
int asleep_init(struct asleep *a, uint64_t duration_ns, size_t max_buckets);
void asleep_deinit(struct asleep *a);
/* Forget what was added. */
void asleep_clear(struct asleep *a);
/* @bytes over [@start_ns, @start_ns + @length_ns), as far as that is within. */
void asleep_add(struct asleep *a, uint64_t start_ns, uint64_t length_ns,
		uint64_t bytes);
/* Mean bytes in each bucket as @ret[nr]. */
void asleep_read(const struct asleep *a, double *ret);

#endif
