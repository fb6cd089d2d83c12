/*
 * samples-late.h - samples whose stacks will be known a little later: copies of
 * their records, the oldest first. Pure.
 */
#ifndef SMCO_SAMPLES_LATE_H
#define SMCO_SAMPLES_LATE_H

#include "pmu/ring.h"

/* What a large program has until its unwind table is made; 2 MiB. */
#define SAMPLES_LATE_MOST 64

struct late_sample {
	struct ring_record record; /* what it points to is its own */
	uint64_t weight;
	uint64_t since_ns;
	void *bytes;
};

struct late_samples {
	struct late_sample sample[SAMPLES_LATE_MOST];
	size_t nr;
};

/* A copy of @r, as far as stacks need it. False: there is no room. */
bool late_samples_add(struct late_samples *l, const struct ring_record *r,
		      uint64_t weight, uint64_t now_ns);
/* Those that @fn takes go. In order. */
void late_samples_each(struct late_samples *l,
		       bool (*fn)(void *ctx, const struct late_sample *s),
		       void *ctx);
void late_samples_deinit(struct late_samples *l);

#endif
