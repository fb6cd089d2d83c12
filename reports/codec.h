/*
 * codec.h - the coding of records inside one record chunk. Every chunk starts
 * from a fresh state, so a lost chunk costs no other one. FORMAT.md,
 * "Records", is normative.
 */
#ifndef SMCO_CODEC_H
#define SMCO_CODEC_H

#include "reports/bytes.h"
#include "reports/schema.h"

#define CODEC_MAX_PAYLOAD (1u << 20) /* bytes of one record's payload */

/* What the next record is coded against; zero-initialise per chunk. */
struct codec {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t tid;
	uint32_t param[EV_NR];			  /* [0]: unknown events */
	uint64_t field[EV_NR][SCHEMA_MAX_FIELDS]; /* last value of each */
};

/* Append @r to @out. @r->payload_len <= CODEC_MAX_PAYLOAD. */
void codec_encode(struct codec *s, const struct record *r, struct bbuf *out);

/*
 * Decode one record at @c. Its payload, if any, is put into @payload (which is
 * emptied first) and is aligned for every event structure. SMCO_OK,
 * SMCO_FORMAT if the bytes are no record (the cursor is then anywhere in it),
 * SMCO_NOMEM.
 */
int codec_decode(struct codec *s, struct cursor *c, struct bbuf *payload,
		 struct record *ret);

/* Size of event @event's structure, 0 if the event is not known here. */
size_t codec_payload_size(uint32_t event);

#endif
