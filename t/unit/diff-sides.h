/*
 * diff-sides.h - for the tests of smco-diff: made-up sessions (diff-sample.h)
 * are added to the sides of one comparison and judged.
 */
#ifndef DIFF_SIDES_H
#define DIFF_SIDES_H

#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/diff.h"
#include "t/unit/diff-sample.h"
#include "t/unit/scratch.h"

static const char *path;
static struct diff d;

static inline void sides_begin(void)
{
	path = scratch_path("x.trace");
}

static inline void add(int side, const struct sample_session *s)
{
	struct smco_err err = {0};
	sample_session_write(path, s);
	if (diff_add_run(&d, side, path, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
}

static inline void compare(double least)
{
	struct diff_config config = {.least_change = least};
	check_int(diff_compare(&d, &config, NULL), 0);
}

/* The site whose innermost function is @name. */
static inline const struct diff_change *site(const char *name)
{
	static const struct diff_change none;
	for (size_t i = 0; i < d.nr_changes; i++)
		for (int k = 0; k < DIFF_SIDES; k++) {
			const struct diff_item *item = d.change[i].item[k];
			if (item && item->nr_frames &&
			    !strcmp(item->frames[0].function, name))
				return &d.change[i];
		}
	return &none;
}
#define VERDICT(name) diff_verdict_name(site(name)->verdict)

#define SITE(st, sz, n, ms, ...)                                               \
	{                                                                      \
		.stack = (st), .size = (sz), .naps = (n), .nap_ms = (ms),      \
		__VA_ARGS__                                                    \
	}
#define SESSION(...)                                                           \
	(&(struct sample_session){                                             \
		.site = (const struct sample_site[]){__VA_ARGS__},             \
		.nr = ARRAY_SIZE(                                              \
			((const struct sample_site[]){__VA_ARGS__}))})

#endif
