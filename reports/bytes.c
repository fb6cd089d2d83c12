#include "reports/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "reports/shortage.h"

void bbuf_free(struct bbuf *b)
{
	free(b->data);
	*b = (struct bbuf){0};
}

void bbuf_reset(struct bbuf *b)
{
	b->len = 0;
	b->failed = false;
}

uint8_t *bbuf_reserve(struct bbuf *b, size_t n)
{
	if (b->failed)
		return NULL;
	if (b->cap - b->len >= n && b->data)
		return b->data + b->len;
	if (n > SIZE_MAX / 4 - b->len) {
		b->failed = true;
		return NULL;
	}
	size_t cap = b->cap ? b->cap * 2 : 256;
	while (cap < b->len + n)
		cap *= 2;
	uint8_t *data = realloc(b->data, cap);
	if (!data) {
		shortage_tell();
		b->failed = true;
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	return b->data + b->len;
}

void bbuf_put(struct bbuf *b, const void *data, size_t n)
{
	if (!n)
		return;
	uint8_t *to = bbuf_reserve(b, n);
	if (!to)
		return;
	memcpy(to, data, n);
	b->len += n;
}

void bbuf_varint(struct bbuf *b, uint64_t v)
{
	uint8_t *to = bbuf_reserve(b, 10);
	if (!to)
		return;
	size_t n = 0;
	while (v >= 0x80) {
		to[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (uint8_t)v;
	b->len += n;
}

bool cursor_long_varint(struct cursor *c, uint64_t *ret)
{
	uint64_t v = 0;
	for (size_t i = 0; i < 10; i++) {
		if (c->pos + i >= c->len)
			return false;
		uint8_t byte = c->base[c->pos + i];
		if (i == 9 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			c->pos += i + 1;
			*ret = v;
			return true;
		}
	}
	return false;
}

bool cursor_varint32(struct cursor *c, uint32_t *ret)
{
	struct cursor ahead = *c;
	uint64_t v;
	if (!cursor_varint(&ahead, &v) || v > UINT32_MAX)
		return false;
	*c = ahead;
	*ret = (uint32_t)v;
	return true;
}

bool cursor_bytes(struct cursor *c, uint64_t n, const uint8_t **ret)
{
	if (n > c->len - c->pos)
		return false;
	*ret = c->base + c->pos;
	c->pos += n;
	return true;
}
