#include "reports/chunk-head.h"

#include <string.h>

#include <zlib.h>

#include "reports/disk.h"

#define MAGIC_SIZE 2 /* the first bytes of CHUNK_MAGIC */
#define SUM_SIZE   2

static bool is_old(const uint8_t *bytes, size_t len)
{
	const uint32_t magic = CHUNK_MAGIC;
	return len >= sizeof(magic) && !memcmp(bytes, &magic, sizeof(magic));
}

static uint16_t sum_of(const uint8_t *bytes, size_t len)
{
	return (uint16_t)crc32_z(0, bytes, len);
}

void chunk_head_write(struct bbuf *to, const struct chunk_head *h)
{
	size_t at = to->len;
	uint8_t kind = (uint8_t)(h->type | h->flags << 4);
	bbuf_put(to, CHUNK_MARKER, MAGIC_SIZE);
	bbuf_put(to, &kind, 1);
	bbuf_varint(to, h->seq);
	bbuf_varint(to, h->nr_items);
	bbuf_varint(to, h->stored_size);
	if (h->flags & CHUNK_ZSTD)
		bbuf_varint(to, h->raw_size);
	if (h->flags & CHUNK_MODELLED)
		bbuf_varint(to, h->back);
	bbuf_put(to, &h->payload_crc, sizeof(h->payload_crc));
	if (to->failed)
		return;
	uint16_t sum = sum_of(to->data + at, to->len - at);
	bbuf_put(to, &sum, sizeof(sum));
}

static bool parse_old(const uint8_t *bytes, size_t len, struct chunk_head *ret)
{
	struct disk_chunk d;
	if (len < sizeof(d))
		return false;
	memcpy(&d, bytes, sizeof(d));
	*ret = (struct chunk_head){
		.size = sizeof(d),
		.type = d.type,
		.flags = d.flags,
		.back = d.back,
		.seq = d.seq,
		.nr_items = d.nr_items,
		.stored_size = d.stored_size,
		.raw_size = d.raw_size,
		.payload_crc = d.payload_crc,
	};
	return true;
}

bool chunk_head_parse(const uint8_t *bytes, size_t len, struct chunk_head *ret)
{
	struct cursor c = {bytes, len, 0};
	const uint8_t *start, *crc, *sum;
	uint32_t back = 0;
	if (is_old(bytes, len))
		return parse_old(bytes, len, ret);
	if (!cursor_bytes(&c, MAGIC_SIZE + 1, &start) ||
	    memcmp(start, CHUNK_MARKER, MAGIC_SIZE) != 0)
		return false;
	struct chunk_head h = {.type = start[MAGIC_SIZE] & 15,
			       .flags = start[MAGIC_SIZE] >> 4};
	if (!cursor_varint32(&c, &h.seq) || !cursor_varint32(&c, &h.nr_items) ||
	    !cursor_varint32(&c, &h.stored_size))
		return false;
	h.raw_size = h.stored_size;
	if ((h.flags & CHUNK_ZSTD && !cursor_varint32(&c, &h.raw_size)) ||
	    (h.flags & CHUNK_MODELLED && !cursor_varint32(&c, &back)) ||
	    back > UINT16_MAX ||
	    !cursor_bytes(&c, sizeof(h.payload_crc), &crc) ||
	    !cursor_bytes(&c, SUM_SIZE, &sum))
		return false;
	h.back = (uint16_t)back;
	h.size = (uint32_t)c.pos;
	memcpy(&h.payload_crc, crc, sizeof(h.payload_crc));
	*ret = h;
	return true;
}

bool chunk_head_read(const uint8_t *bytes, size_t len, struct chunk_head *ret)
{
	struct chunk_head h;
	uint32_t want = 0;
	if (!chunk_head_parse(bytes, len, &h))
		return false;
	size_t sum = is_old(bytes, len) ? sizeof(want) : SUM_SIZE;
	memcpy(&want, bytes + h.size - sum, sum);
	uint32_t crc = (uint32_t)crc32_z(0, bytes, h.size - sum);
	if (want != (sum == SUM_SIZE ? (uint16_t)crc : crc))
		return false;
	*ret = h;
	return true;
}

void chunk_head_sign(uint8_t *bytes, const struct chunk_head *h)
{
	size_t sum = is_old(bytes, h->size) ? sizeof(uint32_t) : SUM_SIZE;
	uint8_t *at = bytes + h->size - sum;
	uint32_t crc = (uint32_t)crc32_z(0, bytes + h->size, h->stored_size);
	memcpy(at - sizeof(crc), &crc, sizeof(crc));
	crc = (uint32_t)crc32_z(0, bytes, h->size - sum);
	memcpy(at, &crc, sum);
}
