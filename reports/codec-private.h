/*
 * codec-private.h - what coding a record and decoding it have in common: the
 * bits of the first byte, slots, and what a field is expected to be. Between
 * codec.c and codec-decode.c only.
 */
#ifndef SMCO_CODEC_PRIVATE_H
#define SMCO_CODEC_PRIVATE_H

#include <string.h>

#include "reports/codec.h"

/* First byte of a record. */
enum head_bits {
	HEAD_SLOT = 0x0f,    /* slot of the event; 0: the event follows */
	HEAD_WHO = 1 << 4,   /* cpu and thread follow */
	HEAD_PARAM = 3 << 5, /* enum param_mode */
	HEAD_MORE = 1 << 7,  /* a byte of enum more_bits follows */
	HEAD_PARAM_SHIFT = 5,
};

enum param_mode { /* of the event's last parameter */
		  PARAM_SAME,
		  PARAM_FOLLOWER, /* what followed it last time */
		  PARAM_STRIDE,	  /* the last step once more */
		  PARAM_OTHER,	  /* the difference follows */
};

enum more_bits {
	MORE_EARLIER = 1 << 0, /* time is before that of the last record */
	MORE_RAW = 1 << 1,     /* payload as it is: length, bytes */
	MORE_KNOWN = MORE_EARLIER | MORE_RAW,
};

/* What few records need is kept out of the way of the others. */
#define RARE __attribute__((noinline, cold))

static inline unsigned hash_param(uint32_t param)
{
	return (param * 2654435761u) >> 24;
}

/* ------------------------------------------------------- slots and fields ---
 */

static inline void start_slot(struct codec_slot *slot, uint32_t event,
			      const struct schema_event *schema)
{
	memset(slot, 0, sizeof(*slot));
	slot->event = event;
	slot->schema = schema;
}

/* Of an event that has none: the next one, or that of all others. */
RARE static struct codec_slot *new_slot(struct codec *s, uint32_t event,
					const struct schema_event *schema)
{
	uint32_t i = 0;
	if (s->nr_slots < CODEC_SLOTS - 1)
		i = ++s->nr_slots;
	if (i)
		start_slot(&s->slot[i], event, schema);
	s->slot[i].schema = schema;
	return &s->slot[i];
}

static inline void restart(struct codec *s, uint64_t time_ns)
{
	s->time_ns = time_ns;
	s->cpu = UINT32_MAX;
	s->tid = 0;
	s->nr_slots = 0;
	start_slot(&s->slot[0], 0, NULL);
}

/* zigzag in the field's width, so that 32-bit fields wrap at 32 bits. */
static inline uint64_t fold(const struct schema_field *f, uint64_t difference)
{
	return f->width == 8 ? zigzag((int64_t)difference)
			     : zigzag((int32_t)(uint32_t)difference);
}

/* What field @f of the record is expected to be, to the sign that its coding
 * has. */
static inline uint64_t expected(const struct codec *s,
				const struct codec_slot *slot,
				const struct schema_field *f, uint64_t last)
{
	switch (f->coding) {
	case CODE_DELTA:
		return last;
	case CODE_FROM_TIME:
		return s->time_ns;
	case CODE_OR_NONE:
		return UINT64_MAX;
	case CODE_FROM_PARAM:
		return slot->param;
	case CODE_UNTIL_TIME:
		return s->time_ns - slot->field[f->a];
	case CODE_BETWEEN:
		return slot->field[f->a] - slot->field[f->b];
	case CODE_PLAIN:
	case CODE_NR:
		break;
	}
	return 0;
}

/* Is the code that of expected - value rather than of value - expected? */
static inline bool is_down(enum coding c)
{
	return c == CODE_FROM_TIME || c == CODE_UNTIL_TIME || c == CODE_BETWEEN;
}

#endif
