#include "reports/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Three significant digits, no trailing zeros: 8.21, 12.4, 272, 5. */
static void three_digits(double v, char *buf)
{
	int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
	if (v >= 1e6) { /* forged, but it has to fit */
		snprintf(buf, UNITS_MAX, "%.2e", v);
		return;
	}
	snprintf(buf, UNITS_MAX, "%.*f", decimals, v);
	if (!decimals)
		return;
	char *end = buf + strlen(buf);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	*end = '\0';
}

static char *binary(double v, const char *suffix, char *buf)
{
	static const char *const prefix[] = {"",   "Ki", "Mi", "Gi",
					     "Ti", "Pi", "Ei", "Zi"};
	char number[UNITS_MAX];
	size_t i = 0;
	while (v >= 999.5 && i + 1 < ARRAY_SIZE(prefix)) {
		v /= 1024;
		i++;
	}
	three_digits(v, number);
	snprintf(buf, UNITS_MAX, "%.16s %sB%s", number, prefix[i], suffix);
	return buf;
}

char *units_bytes(uint64_t bytes, char *buf)
{
	return binary((double)bytes, "", buf);
}

char *units_byte_seconds(double byte_seconds, bool ascii, char *buf)
{
	return binary(byte_seconds, ascii ? "*s" : "\u00b7s", buf);
}

static char *two_units(uint64_t big, const char *big_unit, uint64_t small,
		       const char *small_unit, char *buf)
{
	if (small)
		snprintf(buf, UNITS_MAX, "%" PRIu64 " %s %" PRIu64 " %s", big,
			 big_unit, small, small_unit);
	else
		snprintf(buf, UNITS_MAX, "%" PRIu64 " %s", big, big_unit);
	return buf;
}

char *units_duration(uint64_t ns, char *buf)
{
	static const struct {
		double ns;
		const char *name;
	} unit[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
	uint64_t s = (ns + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
	if (ns > UINT64_MAX - NSEC_PER_SEC)
		s = ns / NSEC_PER_SEC;
	if (s >= 2 * 86400)
		return two_units(s / 86400, "d", s % 86400 / 3600, "h", buf);
	if (s >= 2 * 3600)
		return two_units(s / 3600, "h", s % 3600 / 60, "min", buf);
	if (s >= 2 * 60)
		return two_units(s / 60, "min", s % 60, "s", buf);
	size_t i = 0;
	while (i + 1 < ARRAY_SIZE(unit) && (double)ns / unit[i].ns >= 999.5)
		i++;
	char number[UNITS_MAX];
	three_digits((double)ns / unit[i].ns, number);
	snprintf(buf, UNITS_MAX, "%.16s %s", number, unit[i].name);
	return buf;
}

char *units_percent(int64_t ppb, char *buf)
{
	char number[UNITS_MAX];
	double v = (double)ppb / 1e7;
	three_digits(v < 0 ? -v : v, number);
	snprintf(buf, UNITS_MAX, "%s%.24s %%",
		 v < 0 && strcmp(number, "0") ? "-" : "", number);
	return buf;
}

char *units_count(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = buf;
	for (int i = 0; i < len; i++) {
		/* Four digits are read at a glance. */
		if (i && (len - i) % 3 == 0 && len > 4)
			*to++ = ' ';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}
