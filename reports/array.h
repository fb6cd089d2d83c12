/*
 * array.h - growing arrays: a pointer, how many are in use, how many fit.
 */
#ifndef SMCO_ARRAY_H
#define SMCO_ARRAY_H

#include <stdlib.h>

#include "reports/base.h"
#include "reports/shortage.h"

/* Room for one more item; false when out of memory, nothing changed then. */
#define ARRAY_ROOM(array, nr, cap)                                             \
	((nr) < (cap) ||                                                       \
	 array_grow((void **)&(array), &(cap), sizeof(*(array))))

static inline bool array_grow(void **array, size_t *cap, size_t item)
{
	/* Indices are kept in 32 bits; UINT32_MAX is none. */
	if (*cap > UINT32_MAX / 2)
		return false;
	size_t larger = *cap ? *cap * 2 : 64;
	void *p = reallocarray(*array, larger, item);
	if (!p) {
		shortage_tell();
		return false;
	}
	*array = p;
	*cap = larger;
	return true;
}

#endif
