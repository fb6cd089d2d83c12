/*
 * column.h - what a thing of a trace (a nap, a site, a record) can be asked
 * for: columns with a name, a kind that says what the number means, and values.
 * The tables, --where, --sort, CSV and JSON all go by these.
 */
#ifndef SMCO_COLUMN_H
#define SMCO_COLUMN_H

#include "reports/base.h"

enum kind {
	KIND_COUNT,	   /* a number, also ids and pids */
	KIND_BYTES,	   /* */
	KIND_TIME,	   /* ns */
	KIND_SHARE,	   /* parts per billion of 1; may be negative */
	KIND_BYTE_SECONDS, /* */
	KIND_FACTOR,	   /* any number: fractions matter */
	KIND_ADDRESS,	   /* */
	KIND_FLAG,	   /* 0 or 1 */
	KIND_TEXT,	   /* not cleaned: hostile */
};

struct column {
	const char *name; /* "length"; a word of [a-z_] */
	enum kind kind;
	unsigned width;	   /* in a text table; 0 = not shown there */
	const char *about; /* a few words for the manual and --help */
};

/* The name that says its unit, for CSV and JSON: "length_ns". */
const char *column_key(const struct column *c, char buf[64]);

/*
 * One value. Numbers are long double, in which every 64-bit integer is exact.
 * @text and @shown are valid as long as what they were taken from, or point to
 * @buf.
 */
struct value {
	bool known; /* false: unknown or none */
	long double number;
	const char *text;  /* KIND_TEXT, never NULL then */
	const char *shown; /* in tables for people; NULL: by the kind */
	char buf[1024];
};

static inline void value_number(struct value *v, long double number)
{
	v->known = true;
	v->number = number;
}
static inline void value_text(struct value *v, const char *text)
{
	v->known = true;
	v->text = text;
}

/* Less, equal, greater: -1, 0, 1. Unknown ones come last. */
int value_compare(const struct value *a, const struct value *b, enum kind kind);

/* Index of the column @name (@len bytes), or @nr. */
size_t column_find(const struct column *c, size_t nr, const char *name,
		   size_t len);
/* "size, length, start", for messages. Cut to @size. */
const char *column_names(const struct column *c, size_t nr, char *buf,
			 size_t size);

#endif
