/*
 * bytes.h - a growable byte buffer to encode into, and a bounds-checked cursor
 * to decode from. Integers are LEB128 varints (7 bits a byte, low first);
 * signed ones are zigzag-coded first.
 */
#ifndef SMCO_BYTES_H
#define SMCO_BYTES_H

#include "reports/base.h"

/*
 * Zero-initialise, bbuf_free at the end. When memory runs out @failed stays
 * set and further puts do nothing, so that callers check once.
 */
struct bbuf {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	bool failed;
};

void bbuf_free(struct bbuf *b);
/* Empty it, keep the memory, forget a failure. */
void bbuf_reset(struct bbuf *b);
/* Room for @n more bytes at the end: pointer to it, NULL if out of memory. */
uint8_t *bbuf_reserve(struct bbuf *b, size_t n);
void bbuf_put(struct bbuf *b, const void *data, size_t n);
void bbuf_varint(struct bbuf *b, uint64_t v);

/* Positions run over [0, len). A failed read does not move the cursor. */
struct cursor {
	const uint8_t *base;
	size_t len;
	size_t pos;
};

/* private: */
bool cursor_long_varint(struct cursor *c, uint64_t *ret);
/* True and *ret, or false: end of data, or more than 64 bits. */
static inline bool cursor_varint(struct cursor *c, uint64_t *ret)
{
	if (c->pos < c->len && c->base[c->pos] < 0x80) {
		*ret = c->base[c->pos++];
		return true;
	}
	if (c->len - c->pos >= 2 && c->base[c->pos + 1] < 0x80) {
		*ret = (c->base[c->pos] & 0x7fu) | (uint64_t)c->base[c->pos + 1]
							   << 7;
		c->pos += 2;
		return true;
	}
	return cursor_long_varint(c, ret);
}
/* The same for a value that must fit in 32 bits. */
bool cursor_varint32(struct cursor *c, uint32_t *ret);
/* @n bytes in place; *ret points into the cursor's data. */
bool cursor_bytes(struct cursor *c, uint64_t n, const uint8_t **ret);
static inline bool cursor_at_end(const struct cursor *c)
{
	return c->pos >= c->len;
}

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}
static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)((v >> 1) ^ (v & 1 ? UINT64_MAX : 0));
}

#endif
