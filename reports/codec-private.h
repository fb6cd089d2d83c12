/*
 * codec-private.h - what coding a record and decoding it have in common: the
 * bits of the first byte, and slots. Between codec.c and codec-decode.c only.
 */
#ifndef SMCO_CODEC_PRIVATE_H
#define SMCO_CODEC_PRIVATE_H

#include <string.h>

#include "reports/codec.h"
#include "reports/field.h"

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

#endif
