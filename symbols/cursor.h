/*
 * cursor.h - reading bytes that nobody vouches for. A cursor never passes its
 * end; the first read that would sets @bad, and from then on every read gives
 * 0. Internal to symbols/.
 */
#ifndef SYMBOLS_CURSOR_H
#define SYMBOLS_CURSOR_H

#include <string.h>

#include "reports/base.h"

struct cursor {
	const uint8_t *p;
	const uint8_t *end; /* exclusive */
	bool bad;
};

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline bool cursor_more(const struct cursor *c)
{
	return !c->bad && c->p < c->end;
}

/* @n bytes (at most 8), little-endian. */
static inline uint64_t cursor_uint(struct cursor *c, size_t n)
{
	uint64_t v = 0;
	if (c->bad || cursor_left(c) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static inline int64_t cursor_int(struct cursor *c, size_t n)
{
	unsigned shift = 64 - 8 * (unsigned)n;
	return (int64_t)(cursor_uint(c, n) << shift) >> shift;
}

/*
 * Seven bits a byte, the lowest first; *bits_ret: how many there were. Bits
 * beyond the 64th are dropped, as every reader of DWARF does.
 */
static inline uint64_t cursor_leb(struct cursor *c, unsigned *bits_ret)
{
	uint64_t v = 0;
	uint8_t b = 0x80;
	for (*bits_ret = 0; (b & 0x80) && !c->bad; *bits_ret += 7) {
		b = (uint8_t)cursor_uint(c, 1);
		if (*bits_ret < 64)
			v |= (uint64_t)(b & 0x7f) << *bits_ret;
	}
	return c->bad ? 0 : v;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
	unsigned bits;
	return cursor_leb(c, &bits);
}

static inline int64_t cursor_sleb(struct cursor *c)
{
	unsigned bits;
	uint64_t v = cursor_leb(c, &bits);
	if (!c->bad && bits < 64 && v >> (bits - 1) & 1)
		v |= ~0ULL << bits;
	return (int64_t)v;
}

/* The next @n bytes, as a cursor of their own. */
static inline struct cursor cursor_take(struct cursor *c, uint64_t n)
{
	struct cursor sub = {c->p, c->p, c->bad};
	if (c->bad || n > cursor_left(c)) {
		c->bad = sub.bad = true;
		return sub;
	}
	c->p += n;
	sub.end = c->p;
	return sub;
}

#endif
