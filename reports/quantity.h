/*
 * quantity.h - numbers as people type them: percentages, times, sizes. Exact
 * decimal arithmetic, independent of the locale; no hexadecimal, exponents,
 * signs, "inf" or "nan". What does not fit or is not wholly a number is an
 * error; digits beyond the resolution of the result are cut off.
 *
 * All return 0, or SMCO_FORMAT with a message that quotes the text and says
 * what is expected; *ret is untouched then.
 */
#ifndef SMCO_QUANTITY_H
#define SMCO_QUANTITY_H

#include "reports/base.h"

/* "10", "2.5", "10%": to ppb (10 % = 100 000 000). At most @max_percent. */
int quantity_percent(const char *text, unsigned max_percent, int64_t *ret,
		     struct smco_err *err);

/* "60", "1.5s", "2m", "500ms", "1h", also us and ns: to nanoseconds. A bare
 * number is seconds. At most a year. */
int quantity_time(const char *text, uint64_t *ret, struct smco_err *err);

/* "8192", "8K", "1.5M", "2G", also KiB and KB, either case, all powers of
 * 1024: to bytes. At most 2^47, the size of an address space. */
int quantity_size(const char *text, uint64_t *ret, struct smco_err *err);

/*
 * The text to quote in a message: printable ASCII as it is, everything else
 * as "?", cut to fit with "..." at the end. Returns @buf.
 */
const char *quantity_quote(const char *text, char *buf, size_t size);

#endif
