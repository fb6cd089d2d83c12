/*
 * section-printer.h - a section being printed: its rows as text, CSV or JSON
 * (section-format.c), in an order (section-print.c). Private to those.
 */
#ifndef SMCO_SECTION_PRINTER_H
#define SMCO_SECTION_PRINTER_H

#include "reports/section.h"
#include "reports/spill.h"

struct row {
	const void *item;
	uint64_t nr; /* as walked: what is equal stays in that order */
};

#define MOST_SHOWN 16 /* columns that a text table has */

/* Where a table's columns are: a row takes as many lines as it needs. */
struct layout {
	size_t nr;
	struct {
		size_t column;	/* of the section */
		unsigned line;	/* of the row, from 0 */
		unsigned at;	/* its first column there */
		unsigned width; /* that it has to have */
	} cell[MOST_SHOWN];
};

struct printer {
	const struct section *section;
	const struct section_source *src;
	const struct section_options *o;
	const struct page *page;
	struct layout layout; /* as text */
	FILE *out;
	size_t sort_column;
	bool sorts, reverse, begun;
	struct row *row; /* kept for sorting: all, or the first of them */
	size_t nr, cap;
	struct spill
		spill; /* of struct spilled: all, where those do not stay */
	bool spills;
	struct spilled *spilled; /* owned; the one that goes in or comes out */
	uint64_t nr_seen, nr_shown;
};

/* An item that does not stay. */
struct spilled {
	uint64_t nr; /* as of struct row */
	uint64_t item[];
};

/* What column @column of @item has. */
void printer_get(const struct printer *p, const void *item, size_t column,
		 struct value *ret);
/* Where text of @width columns has those of @section. */
void printer_lay_out(struct layout *t, const struct section *section,
		     unsigned width);
/* What comes before the rows, once. */
void printer_begin(struct printer *p);
/* A row, and what comes before the first one. SMCO_NOMEM, SMCO_SYS. */
int printer_row(struct printer *p, const void *item);
/* What comes behind them. */
void printer_end(struct printer *p);

#endif
