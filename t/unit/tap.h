/*
 * tap.h - the few lines a unit test needs to speak TAP. Each check prints one
 * line; a failed one says both values and where. End with `return tap_done();`.
 */
#ifndef TAP_H
#define TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_nr, tap_failed;

static inline bool tap_result(bool ok, const char *file, int line,
			      const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline bool tap_result(bool ok, const char *file, int line,
			      const char *fmt, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%sok %d - %s\n", ok ? "" : "not ", ++tap_nr, what);
	if (!ok) {
		tap_failed++;
		printf("# at %s:%d\n", file, line);
	}
	return ok;
}

static inline bool tap_int(intmax_t got, intmax_t want, const char *expr,
			   const char *file, int line)
{
	bool ok = tap_result(got == want, file, line, "%s is %jd", expr, want);
	if (!ok)
		printf("# got %jd (0x%jx), want %jd (0x%jx)\n", got,
		       (uintmax_t)got, want, (uintmax_t)want);
	return ok;
}

static inline bool tap_str(const char *got, const char *want, const char *expr,
			   const char *file, int line)
{
	bool same = got && want ? !strcmp(got, want) : got == want;
	bool ok = tap_result(same, file, line, "%s is \"%s\"", expr,
			     want ? want : "(null)");
	if (!ok)
		printf("# got \"%s\"\n", got ? got : "(null)");
	return ok;
}

static inline bool tap_range(double got, double lo, double hi, const char *expr,
			     const char *file, int line)
{
	bool ok = tap_result(got >= lo && got <= hi, file, line,
			     "%s within [%g, %g]", expr, lo, hi);
	if (!ok)
		printf("# got %g\n", got);
	return ok;
}

#define check(cond)	     tap_result((cond), __FILE__, __LINE__, "%s", #cond)
#define check_msg(cond, ...) tap_result((cond), __FILE__, __LINE__, __VA_ARGS__)
#define check_int(got, want)                                                   \
	tap_int((intmax_t)(got), (intmax_t)(want), #got, __FILE__, __LINE__)
#define check_str(got, want) tap_str((got), (want), #got, __FILE__, __LINE__)
#define check_range(got, lo, hi)                                               \
	tap_range((got), (lo), (hi), #got, __FILE__, __LINE__)
#define tap_skip(why) printf("ok %d # SKIP %s\n", ++tap_nr, (why))

static inline int tap_done(void)
{
	printf("1..%d\n", tap_nr);
	return tap_failed != 0;
}

#endif
