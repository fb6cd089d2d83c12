/*
 * dictionary.h - what schema and meta chunks of every trace have in common, as
 * a raw dictionary for zstd, so that short traces stay short. It belongs to
 * formats 5 and later and never changes; FORMAT.md has it, too.
 */
#ifndef SMCO_DICTIONARY_H
#define SMCO_DICTIONARY_H

#include <stddef.h>

extern const char dictionary_start[], dictionary_end[];

static inline size_t dictionary_size(void)
{
	return (size_t)(dictionary_end - dictionary_start);
}

#endif
