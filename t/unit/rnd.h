/* rnd.h - the same pseudo-random numbers in every run. */
#ifndef RND_H
#define RND_H

#include <stdint.h>

/* xorshift64; *seed is not 0. */
static inline uint64_t rnd_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif
