/*
 * spill.h - puts items in order, however many they are: what does not fit into
 * the memory allowed goes to an unnamed temporary file in sorted runs, which
 * are merged when read. Where no such file can be written it all stays in
 * memory. Items are plain bytes of one size.
 */
#ifndef SMCO_SPILL_H
#define SMCO_SPILL_H

#include "reports/outfile.h"

struct spill_run;

struct spill {
	/* private: */
	int (*compare)(const void *, const void *, void *);
	void *ctx;
	size_t item_bytes;
	size_t max_items; /* in memory */
	bool must_stay;	  /* no temporary file to be had */
	uint8_t *item;	  /* owned; what is in memory */
	size_t nr, cap, next;
	struct outfile file;   /* open if nr_runs */
	struct spill_run *run; /* owned */
	uint32_t *heap;	       /* owned; runs, that with the least item first */
	uint8_t *window;       /* owned; what is read of the runs */
	size_t nr_runs, cap_runs, nr_heap, window_items;
};

/* @compare as qsort_r's; what is equal comes in no particular order. About
 * @max_bytes are kept in memory, and a quarter of that more while reading.
 * spill_deinit afterwards. */
void spill_init(struct spill *s, size_t item_bytes, size_t max_bytes,
		int (*compare)(const void *, const void *, void *ctx),
		void *ctx);
/* A zeroed one is fine. */
void spill_deinit(struct spill *s);

/* Copies @item. SMCO_NOMEM: it is not in. Not after spill_sort. */
int spill_add(struct spill *s, const void *item);
/* Once, after the last item. SMCO_NOMEM, or SMCO_SYS: the file cannot be read;
 * only spill_deinit then. */
int spill_sort(struct spill *s);
/* The next item in order is copied to @item: 1; 0 after the last one; SMCO_SYS
 * as above. */
int spill_next(struct spill *s, void *item);

#endif
