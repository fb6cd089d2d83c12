/*
 * schema.h - what the payloads of the events known here are made of: one table
 * from which the codec codes them, the trace describes them to readers that do
 * not know them, and reports show them. A new event needs its structure in
 * record.h, its fields here and in FORMAT.md, and nothing in the codec.
 */
#ifndef SMCO_SCHEMA_H
#define SMCO_SCHEMA_H

#include <string.h>

#include "reports/record.h"

#define SCHEMA_MAX_FIELDS 32   /* of one event */
#define SCHEMA_MAX_SIZE	  1024 /* bytes of a structure */

enum coding {
	CODE_PLAIN,	/* the value */
	CODE_DELTA,	/* zigzag of the difference to the last of this event */
	CODE_FROM_TIME, /* zigzag of record time - value */
	CODE_OR_NONE,	/* zigzag of value + 1: -1 costs nothing */
	CODE_FROM_PARAM, /* zigzag of value - the record's parameter */
	CODE_UNTIL_TIME, /* zigzag of record time - field a - value */
	CODE_BETWEEN,	 /* zigzag of field a - field b - value */
	/* As plain; where chunks are modelled zigzag of value - what it would
	 * be if it had to field a the ratio that it had in the last record of
	 * the same parameter and thread. */
	CODE_RATE,
	/* As delta; where chunks are modelled a record of a new parameter
	 * goes by that of the next lower or higher one. */
	CODE_NEIGHBOUR,
	CODE_NR,
};

struct schema_field {
	const char *name;
	uint16_t offset; /* in the structure */
	uint8_t width;	 /* bytes: 4 or 8 */
	bool is_signed;
	enum coding coding;
	uint8_t a, b; /* fields before this one, where the coding has them */
	/* Values are multiples of it, all or most; modelled chunks store how
	 * many. At least 1. */
	uint32_t unit;
};

struct schema_event {
	const char *name;  /* "nap" */
	const char *param; /* what the record's parameter is */
	size_t size;	   /* of the structure */
	const struct schema_field *field;
	size_t nr_fields;
	/* As a field's, of the records' time. 0: of format 4, which has no
	 * units, and where parameters are modelled otherwise. */
	uint32_t time_unit;
};

/* NULL if the event is not known here. */
const struct schema_event *schema_event(uint32_t event);

/* The value of @f in @payload, sign-extended to 64 bits if it is signed. */
static inline uint64_t schema_load(const struct schema_field *f,
				   const void *payload)
{
	const uint8_t *p = (const uint8_t *)payload + f->offset;
	if (f->width == 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		return v;
	}
	uint32_t v;
	memcpy(&v, p, 4);
	return f->is_signed ? (uint64_t)(int64_t)(int32_t)v : v;
}

static inline void schema_store(const struct schema_field *f, uint64_t value,
				void *payload)
{
	uint8_t *p = (uint8_t *)payload + f->offset;
	uint32_t v32 = (uint32_t)value;
	if (f->width == 8)
		memcpy(p, &value, 8);
	else
		memcpy(p, &v32, 4);
}

#endif
