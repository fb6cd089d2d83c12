/*
 * field.h - what parameters and fields of payloads are expected to be, in
 * columns and in modelled chunks: the codings of schema.h. FORMAT.md, "Schema",
 * is normative.
 */
#ifndef SMCO_FIELD_H
#define SMCO_FIELD_H

#include "reports/bytes.h"
#include "reports/schema.h"

/* Where the follower of a parameter is kept, of 256 places. */
static inline unsigned hash_param(uint32_t param)
{
	return (param * 2654435761u) >> 24;
}

/* zigzag in the field's width, so that 32-bit fields wrap at 32 bits. */
static inline uint64_t fold(const struct schema_field *f, uint64_t difference)
{
	return f->width == 8 ? zigzag((int64_t)difference)
			     : zigzag((int32_t)(uint32_t)difference);
}

/* What field @f of a record at @time_ns with parameter @param is expected to
 * be, to the sign that its coding has. @fields: those of the record that come
 * before; @last: what it was in the last one. */
static inline uint64_t expected(const struct schema_field *f,
				const uint64_t *fields, uint64_t last,
				uint64_t time_ns, uint32_t param)
{
	switch (f->coding) {
	case CODE_DELTA:
	case CODE_NEIGHBOUR:
		return last;
	case CODE_FROM_TIME:
		return time_ns;
	case CODE_OR_NONE:
		return UINT64_MAX;
	case CODE_FROM_PARAM:
		return param;
	case CODE_UNTIL_TIME:
		return time_ns - fields[f->a];
	case CODE_BETWEEN:
		return fields[f->a] - fields[f->b];
	case CODE_PLAIN:
	case CODE_RATE:
	case CODE_NR:
		break;
	}
	return 0;
}

/* Does a column have the value itself? */
static inline bool is_plain(enum coding c)
{
	return c == CODE_PLAIN || c == CODE_RATE;
}

/* A payload as a reader is given it: fields that one of us does not know stand
 * at the end, so it has the size of our own structure if there is one. */
static inline uint32_t payload_size(uint32_t event,
				    const struct schema_event *of_file)
{
	const struct schema_event *own = schema_event(event);
	return (uint32_t)(own ? own->size : of_file->size);
}

/* Is the code that of expected - value rather than of value - expected? */
static inline bool is_down(enum coding c)
{
	return c == CODE_FROM_TIME || c == CODE_UNTIL_TIME || c == CODE_BETWEEN;
}

#endif
