/*
 * pair.h - two halves of one work at the same time.
 */
#ifndef SMCO_PAIR_H
#define SMCO_PAIR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Calls @other of @a and @mine of @b and returns when both are done: in two
 * threads if @two, there are two CPUs and a thread is to be had, otherwise one
 * after the other.
 */
void pair_run(bool two, void *(*other)(void *), void *a, void *(*mine)(void *),
	      void *b);

/* Of fewer things a thread would take longer to begin than it helps; for tests,
 * too. */
extern size_t pair_from;

/* The half @which (0, 1) of @nr things: from *from_ret, before *to_ret. */
static inline void pair_half(size_t nr, unsigned which, size_t *from_ret,
			     size_t *to_ret)
{
	*from_ret = which ? nr / 2 : 0;
	*to_ret = which ? nr : nr / 2;
}

#endif
