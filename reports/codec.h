/*
 * codec.h - the coding of records inside one record chunk: what did not change
 * or can be foretold is left out, the rest goes into columns of like bytes,
 * which compress better than rows. Every chunk starts from a fresh state, so a
 * lost chunk costs no other one. FORMAT.md, "Records", is normative.
 */
#ifndef SMCO_CODEC_H
#define SMCO_CODEC_H

#include "reports/bytes.h"
#include "reports/schema.h"

#define CODEC_MAX_PAYLOAD (1u << 20)  /* bytes of one record's payload */
#define CODEC_MAX_RECORDS (32u << 10) /* in a chunk */
#define CODEC_SLOTS	  16
#define CODEC_FOLLOWERS	  256

enum codec_column {
	COLUMN_HEAD,	/* one byte a record */
	COLUMN_TIME0,	/* first bytes of the varints of time differences */
	COLUMN_TIME1,	/* second bytes */
	COLUMN_TIME2,	/* all others */
	COLUMN_VALUE,	/* what changed: event, cpu, thread, parameter */
	COLUMN_PAYLOAD, /* */
	COLUMN_NR,
};

/* What the next record of an event is coded against. */
struct codec_slot {
	uint32_t event;
	const struct schema_event *schema; /* NULL: payloads are raw */
	uint32_t param, stride;
	/* Of a parameter, by its hash; the last one is never looked at. */
	uint32_t follower[CODEC_FOLLOWERS + 1];
	uint64_t field[SCHEMA_MAX_FIELDS];
};

struct codec {
	uint64_t time_ns;
	uint32_t cpu, tid;
	uint32_t nr_slots;    /* in use, beside [0], that of all other events */
	uint8_t slot_of[256]; /* encoder: guess by the event's low bits */
	struct codec_slot slot[CODEC_SLOTS];
};

/* ---- writing ---- */

#define CODEC_STAGED 256

/* A record without a payload that waits to be coded: many in a row are coded
 * faster, and who writes them has less to do for each. */
struct codec_staged {
	uint32_t event, cpu, tid, param;
	uint64_t time_ns;
};

struct codec_writer {
	struct codec state;
	/* private: */
	uint8_t *at[COLUMN_NR]; /* where the next byte of a column goes */
	uint8_t *start[COLUMN_NR];
	uint32_t room; /* more records that there is room for */
	uint8_t *mem;
	struct bbuf payload; /* COLUMN_PAYLOAD */
	/* of the records in it */
	uint32_t nr;
	uint64_t first_ns, earliest_ns, latest_ns;
	uint64_t threads; /* codec_thread_bit of each */
	uint32_t nr_staged;
	struct codec_staged staged[CODEC_STAGED];
};

int codec_writer_init(struct codec_writer *w);
void codec_writer_free(struct codec_writer *w);
/* Is there room for one more record, however large? If not: finish. */
static inline bool codec_has_room(const struct codec_writer *w)
{
	return w->room;
}
/* private: */
void codec_begin_chunk(struct codec_writer *w, const struct record *r);
void codec_encode_staged(struct codec_writer *w);
bool codec_encode_now(struct codec_writer *w, const struct record *r);

/* Append @r. @r->payload_len <= CODEC_MAX_PAYLOAD; there must be room. False
 * when out of memory: the chunk is then lost. */
static inline bool codec_encode(struct codec_writer *w, const struct record *r)
{
	if (__builtin_expect(r->event < EV_NR || r->payload_len, 0))
		return codec_encode_now(w, r);
	if (__builtin_expect(!w->nr++, 0))
		codec_begin_chunk(w, r);
	w->room--;
	w->staged[w->nr_staged++] = (struct codec_staged){
		r->event, r->cpu, r->tid, r->param, r->time_ns};
	if (__builtin_expect(w->nr_staged == CODEC_STAGED, 0))
		codec_encode_staged(w);
	return true;
}

/* The chunk's payload to the end of @out; then start afresh. */
void codec_finish(struct codec_writer *w, uint64_t nr_dropped,
		  struct bbuf *out);

/* A chunk's threads are a set of 64 bits: thread @tid may be in it if this
 * bit is. */
static inline uint64_t codec_thread_bit(uint32_t tid)
{
	return 1ULL << ((tid * 2654435761u) >> 26);
}

/* ---- reading ---- */

struct schema_table; /* of the file, see schema-file.h */

/* The last payload of a slot: most fields of the next one are the same. */
struct codec_image {
	uint64_t computed; /* fields that depend on more than the last one */
	uint64_t plain;	   /* fields that are 0 if nothing else is said */
	uint64_t not_zero; /* of those, the ones that are not 0 now */
	uint32_t size;	   /* of the payload, as who reads it knows it */
	_Alignas(16) uint8_t bytes[SCHEMA_MAX_SIZE];
};

struct codec_reader {
	struct codec state;
	struct cursor column[COLUMN_NR];
	const struct schema_table *schema;
	uint64_t nr_dropped; /* records that were lost before the first one */
	struct codec_image image[CODEC_SLOTS]; /* [0] is not used */
	struct bbuf payload;		       /* of slot 0, and raw ones */
};

/* Zero-initialise once, codec_reader_free at the end. @c is the payload of a
 * chunk of @nr records and must stay while they are read. SMCO_FORMAT. */
int codec_reader_begin(struct codec_reader *r, struct cursor c, uint32_t nr,
		       const struct schema_table *schema);
void codec_reader_free(struct codec_reader *r);
/*
 * The next record. Its payload, if any, is valid until the next call and
 * aligned for every event structure. SMCO_OK, SMCO_FORMAT if there is none,
 * SMCO_NOMEM.
 */
int codec_decode(struct codec_reader *r, struct record *ret);

#endif
