/*
 * trace-random.h - random records of every kind for the trace tests: extremes
 * as often as ordinary values, known events with odd payloads, unknown events.
 */
#ifndef TRACE_RANDOM_H
#define TRACE_RANDOM_H

#include <stdlib.h>
#include <string.h>

#include "reports/schema.h"
#include "reports/trace.h"

static uint64_t random_state = 1;

static inline uint64_t random_u64(void)
{
	random_state += 0x9e3779b97f4a7c15ULL;
	uint64_t z = random_state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline uint64_t random_below(uint64_t n)
{
	return random_u64() % n;
}

/* Any number of bits, and the edges. */
static inline uint64_t random_value(void)
{
	switch (random_below(8)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return 1ULL << random_below(64);
	case 3:
		return (1ULL << random_below(64)) - 1;
	default:
		return random_u64() >> random_below(64);
	}
}

/* @payload: room for 600 bytes that live as long as the record. */
static inline void random_record(struct record *r, uint8_t *payload)
{
	static uint64_t time;
	time = random_below(20) ? time + random_below(1000000) : random_value();
	r->event = (uint32_t)random_below(EV_NR + 3);
	if (!random_below(30))
		r->event = (uint32_t)random_value();
	r->time_ns = time;
	r->cpu = random_below(4) ? (uint32_t)random_below(4) : UINT32_MAX;
	r->tid = random_below(4) ? (uint32_t)random_below(1 << 22)
				 : (uint32_t)random_value();
	r->param = (uint32_t)random_value();
	const struct schema_event *known = schema_event(r->event);
	r->payload_len = known ? (uint32_t)known->size : 0;
	if (!r->payload_len || !random_below(10))
		r->payload_len = (uint32_t)random_below(600);
	for (size_t i = 0; i < r->payload_len; i += 8) {
		uint64_t v = random_value();
		size_t left = r->payload_len - i;
		memcpy(payload + i, &v, left < 8 ? left : 8);
	}
	r->payload = r->payload_len ? payload : NULL;
}

/* Put @r, waiting where a tracer would drop. */
static inline int put_surely(struct trace_writer *w, const struct record *r)
{
	int rc;
	while ((rc = trace_put(w, r)) == SMCO_BUSY)
		trace_sync(w, NULL);
	return rc;
}

static inline bool same_record(const struct record *a, const struct record *b)
{
	return a->event == b->event && a->time_ns == b->time_ns &&
	       a->cpu == b->cpu && a->tid == b->tid && a->param == b->param &&
	       a->payload_len == b->payload_len &&
	       (!a->payload_len ||
		!memcmp(a->payload, b->payload, a->payload_len));
}

#endif
