/*
 * range-length.h - how long common instructions are, by tables: some ten times
 * as fast as asking the decoder, which all code of a file would wait for. Pure;
 * the bytes are hostile input.
 */
#ifndef SMCO_RANGE_LENGTH_H
#define SMCO_RANGE_LENGTH_H

#include "reports/base.h"

/* So many bytes have to be there, whatever the instruction needs. */
#define RANGE_LENGTH_BYTES 16

struct range_length {
	unsigned bytes;	 /* 0: the decoder is to be asked */
	bool is_branch;	 /* @distance from its end on, also of a call */
	bool is_lea;	 /* of an address @distance from its end on */
	bool has_number; /* of 32 or 64 bits, that could be an address */
	int32_t distance;
};

/* What is said is what the decoder says; it never says that there is none. */
struct range_length range_length_of(const uint8_t *bytes);

#endif
