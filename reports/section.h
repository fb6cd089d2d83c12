/*
 * section.h - the tables that smco-report shows by name: smco-report --naps and
 * the like. A section is columns, a function that gives the value of one, and
 * one that walks the items. Everything else, --where, --sort, --top, text, CSV
 * and JSON, is section-print.c's and the same for all. To add one: write
 * section-NAME.c, put it into sections[] in section.c, document its columns in
 * smco-report.1.
 */
#ifndef SMCO_SECTION_H
#define SMCO_SECTION_H

#include "reports/line.h"
#include "reports/summary.h"
#include "reports/where.h"

struct model_sites; /* model.h */

struct section_source {
	const struct summary *s; /* NULL for a section that streams */
	const struct summary_input *input;
	size_t nr_inputs;
	const struct select *select;
	const struct model_sites *sites; /* where the section is about sites */
};

/* Called for each item; negative ends the walk, which returns it. */
typedef int section_visit(void *ctx, const void *item);
/* The walk over @nr items of @size bytes at @first. */
int section_visit_array(const void *first, size_t nr, size_t size,
			section_visit *visit, void *ctx);

struct section {
	const char *name;  /* "naps" */
	const char *about; /* for --help */
	const struct column *column;
	size_t nr_columns;
	/* Reads records itself, so that there may be more of them than fit
	 * into memory; items are valid during the visit only. */
	bool streams;
	const char *sort; /* column to sort by unless told; NULL: as walked */
	const char *monitor;  /* that a trace needs for it; NULL: none */
	const char *why_none; /* key of why there may be none; NULL: none */
	value_fn *get;	      /* ctx is the struct section_source */
	int (*each)(const struct section_source *src, section_visit *visit,
		    void *ctx, struct smco_err *err);
	/* Only where items do not stay, as in those that stream: bytes of one,
	 * which may be copied; it has to be aligned as 8 bytes are. */
	size_t item_bytes;
	/* Make *@copy, which is all zero, of @item; NULL: byte by byte. */
	void (*copy)(void *copy, const void *item);
};

const struct section *section_find(const char *name); /* NULL: none */
/* All of them, for (i = 0; (s = section_at(i)) != NULL; i++). */
const struct section *section_at(size_t i);

extern const struct section nap_section, site_section, overhead_section,
	event_section, counter_section, range_section, sample_section,
	phase_section, phase_counter_section, phase_range_section;

/* "parse src/p.c:12 < main src/main.c:3": for regular expressions and CSV.
 * SMCO_NOMEM leaves *b failed. */
void section_stack(struct bbuf *b, const struct trace_frame *f, size_t nr);

enum section_format { SECTION_TEXT, SECTION_CSV, SECTION_JSON };

struct section_options {
	enum section_format format;
	const struct where *where; /* over the section's columns; or NULL */
	const char *sort;	   /* column, "-" before it reverses; or NULL */
	size_t top;		   /* 0 = all */
	/* Memory for sorting items that do not stay, what is more goes to a
	 * temporary file; 0 = as it comes. */
	size_t sort_bytes;
};

/*
 * Print @section. Numbers sort largest first, texts alphabetically. Texts from
 * the trace are cleaned. SMCO_NOMEM, SMCO_SYS (cannot write), SMCO_NOTFOUND:
 * none of the traces was made with the monitor, and nothing is printed.
 */
int section_print(const struct section *section,
		  const struct section_source *src,
		  const struct section_options *o, const struct page *page,
		  struct smco_err *err);

/* Order @sites by a column of site_section, "-" before it reverses; those
 * without naps come last. */
void sites_sort(const struct summary *s, struct model_sites *sites,
		const char *key);

/* Is @key, with or without "-", a column of @section? SMCO_FORMAT if not. */
int section_check_sort(const struct section *section, const char *key,
		       struct smco_err *err);

#endif
