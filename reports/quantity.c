#include "reports/quantity.h"

#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit time_units[] = {
	{"", NSEC_PER_SEC},
	{"s", NSEC_PER_SEC},
	{"ms", NSEC_PER_MSEC},
	{"us", NSEC_PER_USEC},
	{"ns", 1},
	{"m", 60 * NSEC_PER_SEC},
	{"min", 60 * NSEC_PER_SEC},
	{"h", 3600 * NSEC_PER_SEC},
};

static const struct unit size_units[] = {
	{"", 1},
	{"b", 1},
	{"k", 1ULL << 10},
	{"kb", 1ULL << 10},
	{"kib", 1ULL << 10},
	{"m", 1ULL << 20},
	{"mb", 1ULL << 20},
	{"mib", 1ULL << 20},
	{"g", 1ULL << 30},
	{"gb", 1ULL << 30},
	{"gib", 1ULL << 30},
	{"t", 1ULL << 40},
	{"tb", 1ULL << 40},
	{"tib", 1ULL << 40},
};

static const struct unit percent_units[] = {
	{"", 10000000},
	{"%", 10000000},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(const char *a, const char *b, bool fold_case)
{
	for (; *a && *b; a++, b++)
		if (fold_case ? to_lower(*a) != *b : *a != *b)
			return false;
	return !*a && !*b;
}

/* Digits beyond these are cut off: 10^-15 of the largest unit is nothing. */
#define FRACTION_DIGITS 15

/*
 * Number and unit to the product, at most @max. False if @text is not a
 * number with one of the units; *too_big_ret if it is, but exceeds @max.
 */
static bool parse(const char *text, const struct unit *units, size_t nr_units,
		  bool fold_case, uint64_t max, uint64_t *ret,
		  bool *too_big_ret)
{
	unsigned __int128 whole = 0, frac = 0, scale = 1;
	const char *p = text;
	bool any = false;

	*too_big_ret = false;
	for (; is_digit(*p); p++, any = true)
		if (whole <= UINT64_MAX)
			whole = whole * 10 + (unsigned)(*p - '0');
	if (*p == '.') {
		int kept = 0;
		for (p++; is_digit(*p); p++, any = true) {
			if (kept++ >= FRACTION_DIGITS)
				continue;
			frac = frac * 10 + (unsigned)(*p - '0');
			scale *= 10;
		}
	}
	if (!any)
		return false;
	for (size_t i = 0; i < nr_units; i++) {
		if (!same_word(p, units[i].name, fold_case))
			continue;
		/* whole < 2^68, factor < 2^42: no overflow in 128 bits. */
		unsigned __int128 v = whole * units[i].factor;
		v += frac * units[i].factor / scale;
		*too_big_ret = v > max;
		*ret = (uint64_t)v;
		return true;
	}
	return false;
}

const char *quantity_quote(const char *text, char *buf, size_t size)
{
	size_t n = 0;
	for (; text[n] && n + 1 < size; n++)
		buf[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	buf[n] = '\0';
	if (text[n] && size > 3)
		memcpy(buf + size - 4, "...", 4);
	return buf;
}

int quantity_percent(const char *text, unsigned max_percent, int64_t *ret,
		     struct smco_err *err)
{
	char quote[48];
	uint64_t ppb;
	bool too_big;
	if (!parse(text, percent_units, ARRAY_SIZE(percent_units), false,
		   max_percent * 10000000ULL, &ppb, &too_big))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s' is not a percentage",
				 quantity_quote(text, quote, sizeof(quote)));
	if (too_big)
		return smco_fail(err, SMCO_FORMAT, 0, "%s is more than %u %%",
				 quantity_quote(text, quote, sizeof(quote)),
				 max_percent);
	*ret = (int64_t)ppb;
	return 0;
}

int quantity_time(const char *text, uint64_t *ret, struct smco_err *err)
{
	char quote[48];
	uint64_t ns;
	bool too_big;
	if (!parse(text, time_units, ARRAY_SIZE(time_units), false,
		   366ULL * 24 * 3600 * NSEC_PER_SEC, &ns, &too_big))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s' is not a time (like 60, 1.5s, 2m, "
				 "500ms)",
				 quantity_quote(text, quote, sizeof(quote)));
	if (too_big)
		return smco_fail(err, SMCO_FORMAT, 0, "%s is more than a year",
				 quantity_quote(text, quote, sizeof(quote)));
	*ret = ns;
	return 0;
}

int quantity_size(const char *text, uint64_t *ret, struct smco_err *err)
{
	char quote[48];
	uint64_t bytes;
	bool too_big;
	if (!parse(text, size_units, ARRAY_SIZE(size_units), true, 1ULL << 47,
		   &bytes, &too_big))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s' is not a size (like 8192, 64K, 1.5M, "
				 "2G)",
				 quantity_quote(text, quote, sizeof(quote)));
	if (too_big)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s is more than an address space",
				 quantity_quote(text, quote, sizeof(quote)));
	*ret = bytes;
	return 0;
}
