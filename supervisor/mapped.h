/*
 * mapped.h - code that a process has mapped since its mappings were read, as
 * the kernel tells it beside samples. One that lives for a moment is gone, and
 * its mappings with it, before its samples are read.
 */
#ifndef SMCO_MAPPED_H
#define SMCO_MAPPED_H

#include "pmu/ring.h"
#include "symbols/symbols.h"

struct mapped {			 /* zeroed: nothing */
	struct sym_mapping *map; /* in order of time; paths are ours */
	size_t nr, cap;
};

/* @r: PERF_RECORD_MMAP2. Where there are very many the oldest are forgotten. */
void mapped_note(struct mapped *m, const struct ring_record *r);
/* Tell @space, and forget it all. False if there was nothing. */
bool mapped_tell(struct mapped *m, struct sym_space *space);
/* The mappings were read. */
void mapped_forget(struct mapped *m);
void mapped_deinit(struct mapped *m);

#endif
