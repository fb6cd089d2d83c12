/*
 * diff-pool.h - texts kept once, so that equal texts are equal pointers; and
 * names without what differs from build to build though the source does not.
 */
#ifndef SMCO_DIFF_POOL_H
#define SMCO_DIFF_POOL_H

#include "reports/hindex.h"

/* The empty text: the same pointer from everywhere. */
extern const char diff_pool_empty[];

/* Zero-initialise, diff_pool_free at the end. */
struct diff_pool {
	/* private: */
	char **text;
	size_t nr, cap;
	struct hindex index;
	bool failed; /* out of memory once: texts may be wrong */
};

void diff_pool_free(struct diff_pool *p);
/* The pool's copy of @s, valid as long as the pool; never NULL. Out of memory
 * is kept in p->failed, which the caller looks at once. */
const char *diff_pool_text(struct diff_pool *p, const char *s);
const char *diff_pool_textn(struct diff_pool *p, const char *s, size_t n);

/* A function without what compilers, linkers and demanglers append to it:
 * "parse.constprop.0", "parse [clone .cold]", "parse@@V_1" are "parse". */
const char *diff_pool_function(struct diff_pool *p, const char *function);
/* Of that, without template arguments and parameters: what is left if only a
 * type has changed. */
const char *diff_pool_stem(struct diff_pool *p, const char *function);
/* The last component of a path: build directories differ. */
const char *diff_pool_file(struct diff_pool *p, const char *path);
/* The same without the version: "libz.so" of "/lib/libz.so.1.2.13". */
const char *diff_pool_module(struct diff_pool *p, const char *path);

#endif
