/* Sections: their rows selected, sorted, cut. */
#include "reports/section.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/model.h"
#include "reports/section-printer.h"
#include "reports/shortage.h"

static int compare_items(struct printer *p, const struct row *a,
			 const struct row *b)
{
	enum kind kind = p->section->column[p->sort_column].kind;
	struct value x, y;
	printer_get(p, a->item, p->sort_column, &x);
	printer_get(p, b->item, p->sort_column, &y);
	int c = value_compare(&x, &y, kind);
	/* Numbers: largest first. What is not known comes last either way. */
	if (x.known && y.known && (kind != KIND_TEXT) != p->reverse)
		c = -c;
	return c ? c : (a->nr > b->nr) - (a->nr < b->nr);
}

static int compare_rows(const void *va, const void *vb, void *ctx)
{
	return compare_items(ctx, va, vb);
}

static int compare_spilled(const void *va, const void *vb, void *ctx)
{
	const struct spilled *a = va, *b = vb;
	const struct row x = {a->item, a->nr}, y = {b->item, b->nr};
	return compare_items(ctx, &x, &y);
}

static void drop_rows(struct printer *p, size_t from)
{
	for (size_t i = from; i < p->nr && p->section->item_bytes; i++)
		free((void *)p->row[i].item);
	if (p->nr > from)
		p->nr = from;
}

static void sort_rows(struct printer *p)
{
	if (p->nr)
		qsort_r(p->row, p->nr, sizeof(*p->row), compare_rows, p);
	if (p->o->top)
		drop_rows(p, p->o->top);
}

static void copy_item(const struct section *section, void *to, const void *item)
{
	memset(to, 0, section->item_bytes);
	if (section->copy)
		section->copy(to, item);
	else
		memcpy(to, item, section->item_bytes);
}

static int keep_row(struct printer *p, const void *item)
{
	if (p->spills) {
		p->spilled->nr = p->nr_seen;
		copy_item(p->section, p->spilled->item, item);
		return spill_add(&p->spill, p->spilled);
	}
	void *copy = NULL;
	if (p->section->item_bytes) {
		copy = malloc(p->section->item_bytes);
		if (!copy)
			return SMCO_NOMEM;
		copy_item(p->section, copy, item);
		item = copy;
	}
	if (!ARRAY_ROOM(p->row, p->nr, p->cap)) {
		free(copy);
		return SMCO_NOMEM;
	}
	p->row[p->nr++] = (struct row){item, p->nr_seen};
	/* The first N of any number need room for a few N. */
	if (p->o->top && p->nr / 4 > p->o->top + 256)
		sort_rows(p);
	return SMCO_OK;
}

#define SPILL_BYTES (16u << 20)
#define FEW_ROWS    10000 /* may be copied one by one */

static int begin_sorting(struct printer *p)
{
	size_t bytes = sizeof(struct spilled) + p->section->item_bytes;
	p->spills = p->sorts && p->section->item_bytes &&
		    (!p->o->top || p->o->top > FEW_ROWS);
	if (!p->spills)
		return SMCO_OK;
	p->spilled = malloc(bytes);
	spill_init(&p->spill, bytes,
		   p->o->sort_bytes ? p->o->sort_bytes : SPILL_BYTES,
		   compare_spilled, p);
	return p->spilled ? SMCO_OK : SMCO_NOMEM;
}

static int print_spilled(struct printer *p)
{
	uint64_t most = p->o->top ? p->o->top : UINT64_MAX;
	int rc = spill_sort(&p->spill);
	while (!rc && p->nr_shown < most &&
	       (rc = spill_next(&p->spill, p->spilled)) == 1)
		rc = printer_row(p, p->spilled->item);
	return rc;
}

/* What was kept, in order. */
static int print_sorted(struct printer *p)
{
	int rc = SMCO_OK;
	if (p->spills)
		return print_spilled(p);
	sort_rows(p);
	for (size_t i = 0; i < p->nr && !rc; i++)
		rc = printer_row(p, p->row[i].item);
	return rc;
}

static int visit(void *ctx, const void *item)
{
	struct printer *p = ctx;
	if (p->o->where &&
	    !where_matches(p->o->where, p->section->get, p->src, item))
		return SMCO_OK;
	p->nr_seen++;
	if (p->sorts)
		return keep_row(p, item);
	if (p->o->top && p->nr_shown >= p->o->top)
		return SMCO_OK;
	return printer_row(p, item);
}

static bool any_has_monitor(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_files; i++)
		if (model_file_has_monitor(s->file[i].reader, name))
			return true;
	return false;
}

int section_print(const struct section *section,
		  const struct section_source *src,
		  const struct section_options *o, const struct page *page,
		  struct smco_err *err)
{
	const char *sort = o->sort ? o->sort : section->sort;
	if (section->monitor && !any_has_monitor(src->s, section->monitor))
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no %s in the trace: they are recorded by "
				 "smco-trace -m %s",
				 section->name, section->monitor);
	struct printer p = {
		.section = section,
		.src = src,
		.o = o,
		.page = page,
		.out = page->out,
		.sorts = sort != NULL,
	};
	printer_lay_out(&p.layout, section, page->width);
	if (sort) {
		p.reverse = *sort == '-';
		sort += p.reverse;
		p.sort_column =
			column_find(section->column, section->nr_columns, sort,
				    strlen(sort));
	}
	int rc = begin_sorting(&p);
	if (!rc)
		rc = section->each(src, visit, &p, err);
	if (!rc) {
		printer_begin(&p);
		if (p.sorts)
			rc = print_sorted(&p);
		if (rc == SMCO_SYS)
			smco_fail(err, rc, 0, "cannot read a temporary file");
	}
	drop_rows(&p, 0);
	free(p.row);
	spill_deinit(&p.spill);
	free(p.spilled);
	if (!rc && shortage_any())
		rc = SMCO_NOMEM;
	if (!rc)
		printer_end(&p);
	if (ferror(p.out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write");
	if (rc && rc != SMCO_NOMEM)
		return rc; /* each() has said why */
	if (rc)
		return smco_fail(err, rc, 0, "out of memory for --%s",
				 section->name);
	return SMCO_OK;
}
