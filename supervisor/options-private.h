/*
 * options-private.h - how values of single options are read. Each fills what it
 * is given, untouched on failure: SMCO_FORMAT, whose message names option,
 * value and what would do, or SMCO_NOMEM.
 */
#ifndef SMCO_OPTIONS_PRIVATE_H
#define SMCO_OPTIONS_PRIVATE_H

#include "supervisor/options.h"

/* One more of @globs; @text stays the caller's. */
int options_glob(const char *text, const char *option,
		 struct range_globs *globs, struct smco_err *err);
int options_target(const char *text, struct options *o, struct smco_err *err);
/* More processes, each once. */
int options_pids(const char *text, struct options *o, struct smco_err *err);
int options_output(const char *text, struct options *o, struct smco_err *err);
/* At least @min_ns, which @min_text says. */
int options_time(const char *text, const char *option, uint64_t min_ns,
		 const char *min_text, uint64_t *ret, struct smco_err *err);
/* A time, or so many of an event: "10ms", "1M:cycles". */
int options_interval(const char *text, struct options *o, struct smco_err *err);
int options_sample(const char *text, struct options *o, struct smco_err *err);
/* One more of @o->phase. */
int options_phase(const char *text, struct options *o, struct smco_err *err);
int options_min_size(const char *text, struct options *o, struct smco_err *err);

#endif
