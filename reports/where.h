/*
 * where.h - the conditions of --where:
 *
 *	size > 1M && (site ~ "parse" || !never_accessed) && length >= 2.5s
 *
 *	or   = and { "||" and }
 *	and  = not { "&&" not }
 *	not  = "!" not | "(" or ")" | FIELD [ OP operand ]
 *	OP   = "==" "!=" "<" "<=" ">" ">=" "~" "!~"
 *	operand = FIELD | NUMBER[UNIT] | "text" | 'text' | true | false
 *
 * FIELD is a column's name; alone it must be a flag. Both sides must be of one
 * kind: sizes take K, M, G, T (powers of 1024, as the options do), times need a
 * unit (ns, us, ms, s, m, h), shares take %, numbers may be hexadecimal. ~ is a
 * POSIX extended regular expression, found anywhere in a text. In texts \" \'
 * and \\ stand for the second character, every other \ for itself. A
 * comparison with a value that is not known is false.
 *
 * Any text may be given: length, depth and regular expressions are limited so
 * that neither parsing nor matching can take long or much memory.
 */
#ifndef SMCO_WHERE_H
#define SMCO_WHERE_H

#include "reports/column.h"

#define WHERE_MAX_LENGTH 4096
#define WHERE_MAX_DEPTH	 64
#define WHERE_MAX_NODES	 256

struct where;

/*
 * Parse @text over @columns, which must stay. SMCO_FORMAT: the message says
 * what is wrong and at which column (from 1); SMCO_NOMEM.
 */
int where_parse(const char *text, const struct column *columns, size_t nr,
		struct where **ret, struct smco_err *err);
void where_free(struct where *w); /* NULL is fine */

/* Gives column @column of @item as *ret, which was zeroed. */
typedef void value_fn(const void *ctx, const void *item, size_t column,
		      struct value *ret);

bool where_matches(const struct where *w, value_fn *get, const void *ctx,
		   const void *item);

#endif
