/*
 * blocks.h - files read as a whole, a block at a time, with the checksums of
 * their bytes: by two threads if it is much and there is a CPU for each.
 */
#ifndef SMCO_BLOCKS_H
#define SMCO_BLOCKS_H

#include "reports/base.h"

struct block_file {
	int fd; /* the caller's; its position stays */
	uint64_t from;
	size_t len;
	uint8_t *into; /* for all of it, whole pages around it; NULL: read only
			*/
	uint64_t sum;  /* set: store_blocks_sum of it */
};

/* False: one of them cannot be read, or is shorter, or memory is out. */
bool blocks_read(struct block_file *files, size_t nr);

/* From so many bytes on it is two; tests make it small. */
extern uint64_t blocks_two_from_bytes;

#endif
