/*
 * feed.h - records made of a fuzzer's bytes: mostly events that are known, with
 * payloads of their size and small numbers, now and then anything.
 */
#ifndef FEED_H
#define FEED_H

#include <string.h>

#include "reports/schema.h"

#define FEED_PAYLOAD 256 /* bytes that a record can have */

struct feed { /* zeros when they end */
	const uint8_t *data;
	size_t left;
};

static inline uint64_t feed(struct feed *f, size_t n)
{
	uint64_t v = 0;
	if (n > f->left)
		n = f->left;
	memcpy(&v, f->data, n);
	f->data += n;
	f->left -= n;
	return v;
}

/* The record after @r, which is all zero before the first; its payload is in
 * @payload. */
static inline void feed_record(struct feed *f, struct record *r,
			       uint8_t payload[FEED_PAYLOAD])
{
	uint8_t what = (uint8_t)feed(f, 1);
	size_t wide = what & 1 ? 8 : 1;
	r->event = (uint32_t)feed(f, what & 2 ? 4 : 1) % (what & 4 ? ~0u : 13);
	r->time_ns += what & 8 ? feed(f, 8) : feed(f, 2);
	if (what & 16) {
		r->cpu = (uint32_t)feed(f, 4);
		r->tid = (uint32_t)feed(f, 4);
	}
	r->param += (uint32_t)feed(f, what & 32 ? 4 : 1);
	const struct schema_event *e = schema_event(r->event);
	r->payload_len = e ? (uint32_t)e->size : 0;
	if (what & 64)
		r->payload_len = (uint32_t)feed(f, 1);
	memset(payload, 0, FEED_PAYLOAD);
	if (e && r->payload_len == e->size) /* a field each */
		for (size_t i = 0; i < e->nr_fields; i++)
			schema_store(&e->field[i], feed(f, wide), payload);
	else
		for (size_t i = 0; i < r->payload_len; i++)
			payload[i] = (uint8_t)feed(f, 1);
	r->payload = payload;
}

#endif
