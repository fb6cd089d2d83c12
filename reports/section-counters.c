/* --counters: what was counted, of each file in all and of each thread. */
#include <stdlib.h>
#include <string.h>

#include "reports/model.h"
#include "reports/section.h"
#include "reports/units.h"

enum counter_column {
	COUNTER_FILE,
	COUNTER_PROCESS,
	COUNTER_THREAD,
	COUNTER_EVENT,
	COUNTER_ROLE,
	COUNTER_LEVEL,
	COUNTER_COUNT,
	COUNTER_SCALED,
	COUNTER_COUNTED,
	COUNTER_RATE,
	COUNTER_UNIT,
	COUNTER_SCALE,
	COUNTER_START,
	COUNTER_END,
	COUNTER_COLUMNS
};

static const struct column counter_columns[COUNTER_COLUMNS] = {
	[COUNTER_FILE] = {"file", KIND_COUNT, 0, "which FILE, from 0"},
	[COUNTER_PROCESS] = {"process", KIND_COUNT, 0, "none: all together"},
	[COUNTER_THREAD] = {"thread", KIND_COUNT, 8, "none: all together"},
	[COUNTER_EVENT] = {"event", KIND_TEXT, 20, "as it was asked for"},
	[COUNTER_ROLE] = {"role", KIND_TEXT, 0, "what kind it is"},
	[COUNTER_LEVEL] = {"level", KIND_TEXT, 0, "user or kernel only"},
	[COUNTER_COUNT] = {"count", KIND_COUNT, 0, "as the kernel counted"},
	[COUNTER_SCALED] = {"scaled", KIND_COUNT, 14,
			    "had it counted all the time"},
	[COUNTER_COUNTED] = {"counted", KIND_SHARE, 8,
			     "share of the time it counted"},
	[COUNTER_RATE] = {"rate", KIND_TEXT, 22, "what follows from it"},
	[COUNTER_UNIT] = {"unit", KIND_TEXT, 0, "of count times scale"},
	[COUNTER_SCALE] = {"scale", KIND_FACTOR, 0, "1 as a rule"},
	[COUNTER_START] = {"start", KIND_TIME, 0, "first counted"},
	[COUNTER_END] = {"end", KIND_TIME, 0, "last read"},
};

struct row {
	const struct model_file *f;
	size_t file;
	const struct counts_thread *thread; /* NULL: all together */
	size_t event;
};

static const struct counts_sum *sums_of(const struct row *r)
{
	return r->thread ? r->thread->sum : r->f->counts->total;
}

static void get_rate(const struct row *r, struct value *ret)
{
	double v = 0;
	uint64_t time_ns = r->thread ? r->thread->end_ns - r->thread->start_ns
				     : r->f->counted_ns;
	enum counts_rate rate =
		counts_derive(r->f->counts, sums_of(r), r->event, time_ns, &v);
	if (rate == RATE_NONE)
		return;
	_Static_assert(sizeof(ret->buf) >= UNITS_MAX, "room for it");
	value_text(ret, counts_rate_text(rate, v, ret->buf));
}

static void text_or_none(struct value *ret, const char *text)
{
	if (*text)
		value_text(ret, text);
}

static void counter_get(const void *ctx, const void *item, size_t column,
			struct value *ret)
{
	const struct row *r = item;
	const struct counts_event *e = &r->f->counts->event[r->event];
	const struct counts_sum *s = &sums_of(r)[r->event];
	(void)ctx;
	switch ((enum counter_column)column) {
	case COUNTER_FILE:
		return value_number(ret, r->file);
	case COUNTER_PROCESS:
		if (r->thread && r->thread->tid)
			value_number(ret, r->thread->pid);
		return;
	case COUNTER_THREAD:
		if (r->thread)
			value_number(ret, r->thread->tid);
		return;
	case COUNTER_EVENT:
		return value_text(ret, e->name);
	case COUNTER_ROLE:
		return value_text(ret, counts_role_name(e->role));
	case COUNTER_LEVEL:
		return text_or_none(ret, e->level);
	case COUNTER_COUNT:
		return value_number(ret, s->raw);
	case COUNTER_SCALED:
		ret->shown = counts_value_text(e, s->scaled, ret->buf);
		return value_number(ret, s->scaled);
	case COUNTER_COUNTED:
		if (s->enabled_ns)
			value_number(ret,
				     1e9L * (s->enabled_ns - s->missed_ns) /
					     s->enabled_ns);
		return;
	case COUNTER_RATE:
		return get_rate(r, ret);
	case COUNTER_UNIT:
		return text_or_none(ret, e->unit);
	case COUNTER_SCALE:
		return value_number(ret, e->scale);
	case COUNTER_START:
		return value_number(ret, r->thread ? r->thread->start_ns
						   : r->f->counts->start_ns);
	case COUNTER_END:
		return value_number(ret, r->thread ? r->thread->end_ns
						   : r->f->duration_ns);
	case COUNTER_COLUMNS:
		return;
	}
}

/* Of each event, for one thread or all together. */
static int each_event(struct row *row, section_visit *visit, void *ctx)
{
	const struct counts *c = row->f->counts;
	for (row->event = 0; row->event < c->nr_events; row->event++) {
		int rc = visit(ctx, row);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

static int counter_each(const struct section_source *src, section_visit *visit,
			void *ctx, struct smco_err *err)
{
	(void)err;
	for (size_t i = 0; i < src->s->nr_files; i++) {
		struct row row = {.f = &src->s->file[i], .file = i};
		const struct counts *c = row.f->counts;
		int rc = c ? each_event(&row, visit, ctx) : SMCO_OK;
		for (size_t t = 0; c && t < c->nr_threads && !rc; t++) {
			row.thread = &c->thread[t];
			rc = each_event(&row, visit, ctx);
		}
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

const struct section counter_section = {
	.name = "counters",
	.about = "what was counted, by thread",
	.column = counter_columns,
	.nr_columns = COUNTER_COLUMNS,
	.monitor = "counters",
	.get = counter_get,
	.each = counter_each,
	.item_bytes = sizeof(struct row),
};
