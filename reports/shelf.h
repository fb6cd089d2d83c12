/*
 * shelf.h - a long row of items that is written once and then read from any
 * place: what does not fit into the memory allowed goes to an unnamed
 * temporary file. Where no such file can be written it all stays in memory.
 * Items are plain bytes of one size.
 */
#ifndef SMCO_SHELF_H
#define SMCO_SHELF_H

#include "reports/outfile.h"

struct shelf {
	uint64_t nr; /* items */
	/* private: */
	size_t item_bytes;
	size_t max_items; /* in memory */
	bool must_stay;	  /* no temporary file to be had */
	uint8_t *item;	  /* owned; those behind the file's */
	size_t nr_here, cap;
	uint64_t nr_in_file;
	struct outfile file; /* open if nr_in_file */
};

/* About @max_bytes are kept in memory. shelf_deinit afterwards. */
void shelf_init(struct shelf *s, size_t item_bytes, size_t max_bytes);
/* A zeroed one is fine. */
void shelf_deinit(struct shelf *s);
/* Copies @item, which becomes number s->nr. SMCO_NOMEM: it is not in. */
int shelf_add(struct shelf *s, const void *item);

/* A reader of a shelf to which nothing is added meanwhile; any number of them.
 * Going forwards is cheapest. */
struct shelf_window {
	const struct shelf *shelf;
	bool failed; /* an item could not be had: SMCO_SYS or SMCO_NOMEM */
	/* private: */
	uint8_t *item; /* owned */
	uint64_t first;
	size_t nr;
};

/* Zero-initialise but for the shelf; shelf_window_close afterwards. */
void shelf_window_close(struct shelf_window *w);
/* Item @i < shelf->nr, valid until the next call. NULL: failed, with no more
 * memory or a file that cannot be read. */
const void *shelf_at(struct shelf_window *w, uint64_t i);

#endif
