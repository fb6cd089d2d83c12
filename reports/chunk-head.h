/*
 * chunk-head.h - what stands before the payload of a chunk: of few bytes, as
 * formats 5 and 6 have it and the writer writes it, or of 32 (disk.h), as
 * formats 3 and 4 do. FORMAT.md, "Chunk", is normative.
 */
#ifndef SMCO_CHUNK_HEAD_H
#define SMCO_CHUNK_HEAD_H

#include "reports/bytes.h"

#define CHUNK_HEAD_MAX 32 /* bytes */

struct chunk_head {
	uint32_t size;	   /* bytes of itself */
	uint8_t type;	   /* enum chunk_type */
	uint8_t flags;	   /* enum chunk_flags */
	uint16_t back;	   /* modelled: seq - back is the one that it continues;
			    * 0: none */
	uint32_t seq;	   /* 0, 1, 2...: missing ones are noticed */
	uint32_t nr_items; /* records, strings, frames, stacks, pairs */
	uint32_t stored_size; /* bytes that follow */
	uint32_t raw_size;    /* bytes after decompression */
	uint32_t payload_crc; /* CRC-32 of the bytes that follow */
};

/* Append it; h->size is not looked at. Flags need 4 bits, the type as well. */
void chunk_head_write(struct bbuf *to, const struct chunk_head *h);
/* The one that @bytes begin with, of which there are @len, CHUNK_HEAD_MAX or
 * all to the end of the file. False if none with a right sum does. */
bool chunk_head_read(const uint8_t *bytes, size_t len, struct chunk_head *ret);
/* The same, whatever its sum is: for tests that put a right one on. */
bool chunk_head_parse(const uint8_t *bytes, size_t len, struct chunk_head *ret);
/* Put right sums on the chunk at @bytes, which is @h with its payload. */
void chunk_head_sign(uint8_t *bytes, const struct chunk_head *h);

#endif
