/*
 * units.h - numbers for people: three significant digits, the unit that fits.
 * Each returns @buf (at least UNITS_MAX bytes).
 */
#ifndef SMCO_UNITS_H
#define SMCO_UNITS_H

#include "reports/base.h"

#define UNITS_MAX 40

/* The nearest whole number of @v; 0 of less, UINT64_MAX of more than that has
 * room for, and of no number. */
static inline uint64_t units_whole(double v)
{
	if (v < 0.5)
		return 0;
	return v < 1.8e19 ? (uint64_t)(v + 0.5) : UINT64_MAX;
}

/* "812 B", "1.5 KiB", "272 MiB". */
char *units_bytes(uint64_t bytes, char *buf);
/* Bytes times seconds: "8.21 GiB·s"; @ascii writes "GiB*s". */
char *units_byte_seconds(double byte_seconds, bool ascii, char *buf);
/* "850 ns", "1.2 ms", "58.1 s", "12 min 5 s", "3 h 2 min", "2 d 3 h". */
char *units_duration(uint64_t ns, char *buf);
/* Parts per billion as "4.81 %". */
char *units_percent(int64_t ppb, char *buf);
/* 1234567 as "1 234 567", so that counts can be compared by eye. */
char *units_count(uint64_t n, char *buf);

#endif
