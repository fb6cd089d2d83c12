/* --sites: where the blocks were allocated. */
#include <stdlib.h>
#include <string.h>

#include "reports/model.h"
#include "reports/section.h"

enum site_column {
	SITE_BYTE_SECONDS,
	SITE_UNUSED,
	SITE_NAPS,
	SITE_BLOCKS,
	SITE_LONGEST,
	SITE_LONGEST_ERROR,
	SITE_NEVER,
	SITE_ALLOCATIONS,
	SITE_BYTES,
	SITE_LIVE,
	SITE_LIVE_BYTES,
	SITE_WATCHED,
	SITE_STACK,
	SITE_COLUMNS
};

static const struct column site_columns[SITE_COLUMNS] = {
	[SITE_BYTE_SECONDS] = {"byte_seconds", KIND_BYTE_SECONDS, 12,
			       "of its naps"},
	[SITE_UNUSED] = {"unused", KIND_BYTES, 8, "unused at the end"},
	[SITE_NAPS] = {"naps", KIND_COUNT, 6, "how many"},
	[SITE_BLOCKS] = {"blocks", KIND_COUNT, 0, "different ones with naps"},
	[SITE_LONGEST] = {"longest", KIND_TIME, 9, "its longest nap"},
	[SITE_LONGEST_ERROR] = {"longest_error", KIND_TIME, 0,
				"that is within +- this"},
	[SITE_NEVER] = {"never_accessed", KIND_COUNT, 0,
			"naps of blocks not accessed since allocated"},
	[SITE_ALLOCATIONS] = {"allocations", KIND_COUNT, 11, "of the run"},
	[SITE_BYTES] = {"bytes", KIND_BYTES, 0, "allocated in all"},
	[SITE_LIVE] = {"live", KIND_COUNT, 0, "blocks at the end"},
	[SITE_LIVE_BYTES] = {"live_bytes", KIND_BYTES, 0, "at the end"},
	[SITE_WATCHED] = {"watched", KIND_COUNT, 0, "blocks"},
	[SITE_STACK] = {"site", KIND_TEXT, 40, "allocation stack"},
};

static void site_get(const void *ctx, const void *item, size_t column,
		     struct value *ret)
{
	const struct section_source *src = ctx;
	const struct model_site *m = item;
	switch ((enum site_column)column) {
	case SITE_BYTE_SECONDS:
		return value_number(ret, m->sum.byte_seconds);
	case SITE_UNUSED:
		return value_number(ret, m->sum.unused_bytes);
	case SITE_NAPS:
		return value_number(ret, m->sum.nr);
	case SITE_BLOCKS:
		return value_number(ret, m->sum.nr_objects);
	case SITE_LONGEST:
		return value_number(ret, m->sum.longest_ns);
	case SITE_LONGEST_ERROR:
		return value_number(ret, m->sum.longest_error_ns);
	case SITE_NEVER:
		return value_number(ret, m->sum.nr_never_accessed);
	case SITE_ALLOCATIONS:
		return value_number(ret, m->totals.nr_allocs);
	case SITE_BYTES:
		return value_number(ret, m->totals.bytes);
	case SITE_LIVE:
		return value_number(ret, m->totals.nr_live);
	case SITE_LIVE_BYTES:
		return value_number(ret, m->totals.live_bytes);
	case SITE_WATCHED:
		return value_number(ret, m->totals.nr_watched);
	case SITE_STACK:
		if (model_stack_text(src->s, m->stack->id))
			value_text(ret, model_stack_text(src->s, m->stack->id));
		return;
	case SITE_COLUMNS:
		return;
	}
}

static int site_each(const struct section_source *src, section_visit *visit,
		     void *ctx, struct smco_err *err)
{
	(void)err;
	return section_visit_array(src->sites->site, src->sites->nr,
				   sizeof(*src->sites->site), visit, ctx);
}

const struct section site_section = {
	.name = "sites",
	.about = "where the blocks were allocated",
	.column = site_columns,
	.nr_columns = SITE_COLUMNS,
	.monitor = "nap",
	.sort = "byte_seconds",
	.get = site_get,
	.each = site_each,
};

struct site_order {
	struct section_source src;
	size_t column;
	bool reverse;
};

static int compare_sites(const void *va, const void *vb, void *ctx)
{
	const struct site_order *o = ctx;
	const struct model_site *a = va, *b = vb;
	enum kind kind = site_columns[o->column].kind;
	struct value x = {0}, y = {0};
	if (!a->sum.nr != !b->sum.nr)
		return a->sum.nr ? -1 : 1;
	site_get(&o->src, a, o->column, &x);
	site_get(&o->src, b, o->column, &y);
	int c = value_compare(&x, &y, kind);
	if (x.known && y.known && (kind != KIND_TEXT) != o->reverse)
		c = -c;
	return c ? c
		 : (a->stack->id > b->stack->id) -
			       (a->stack->id < b->stack->id);
}

void sites_sort(const struct summary *s, struct model_sites *sites,
		const char *key)
{
	bool reverse = *key == '-';
	key += reverse;
	struct site_order order = {
		.src = {.s = s},
		.column = column_find(site_columns, SITE_COLUMNS, key,
				      strlen(key)),
		.reverse = reverse,
	};
	if (sites->nr && order.column < SITE_COLUMNS)
		qsort_r(sites->site, sites->nr, sizeof(*sites->site),
			compare_sites, &order);
}
