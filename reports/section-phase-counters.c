/* --phase-counters: what was counted in each phase. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/model.h"
#include "reports/section.h"
#include "reports/units.h"

enum phase_counter_column {
	PC_PHASE,
	PC_EVENT,
	PC_COUNT,
	PC_SHARE,
	PC_PER_SECOND,
	PC_EACH,
	PC_FILE,
	PC_COLUMNS
};

static const struct column columns[PC_COLUMNS] = {
	[PC_PHASE] = {"phase", KIND_TEXT, 16, "as --phase has it"},
	[PC_EVENT] = {"event", KIND_TEXT, 16, "as it was asked for"},
	[PC_COUNT] = {"count", KIND_COUNT, 12, "in it, by share of the time"},
	[PC_SHARE] = {"share", KIND_SHARE, 7, "of all that was counted"},
	[PC_PER_SECOND] = {"per_second", KIND_COUNT, 10,
			   "for each second in it"},
	[PC_EACH] = {"each", KIND_TEXT, 9, "for each time it was entered"},
	[PC_FILE] = {"file", KIND_COUNT, 0, "which FILE, from 0"},
};

struct row {
	size_t phase, file, event;
};

static void get(const void *ctx, const void *item, size_t column,
		struct value *ret)
{
	const struct section_source *src = ctx;
	const struct model_phases *m = &src->s->phases;
	const struct row *r = item;
	const struct counts *c = src->s->file[r->file].counts;
	const struct phase_sums *sums = phase_sums(src->s, r->phase, r->file);
	const struct counts_event *e = &c->event[r->event];
	double all = c->total[r->event].scaled, in = sums->counts[r->event];
	double rate;
	switch ((enum phase_counter_column)column) {
	case PC_PHASE:
		return value_text(ret, m->phase[r->phase].name);
	case PC_EVENT:
		return value_text(ret, c->event[r->event].name);
	case PC_COUNT:
		ret->shown = counts_value_text(e, in, ret->buf);
		return value_number(ret, units_whole(in));
	case PC_SHARE:
		if (all > 0)
			value_number(ret, units_whole(in / all * 1e9));
		return;
	case PC_PER_SECOND:
		if (sums->counted_ns[r->event] <= 0)
			return;
		rate = in * 1e9 / sums->counted_ns[r->event];
		ret->shown = counts_value_text(e, rate, ret->buf);
		return value_number(ret, units_whole(rate));
	case PC_EACH:
		if (!sums->total.count)
			return;
		rate = in / (double)sums->total.count;
		snprintf(ret->buf, UNITS_MAX, "%.4g", rate);
		if (!strcmp(e->unit, "ns"))
			ret->shown = counts_value_text(e, rate,
						       ret->buf + UNITS_MAX);
		return value_text(ret, ret->buf);
	case PC_FILE:
		return value_number(ret, r->file);
	case PC_COLUMNS:
		return;
	}
}

static int each(const struct section_source *src, section_visit *visit,
		void *ctx, struct smco_err *err)
{
	const struct summary *s = src->s;
	struct row r;
	bool any = false;
	if (!s->phases.nr)
		return phases_none(err);
	for (r.phase = 0; r.phase < s->phases.nr; r.phase++)
		for (r.file = 0; r.file < s->nr_files; r.file++) {
			const struct counts *c = s->file[r.file].counts;
			for (r.event = 0; c && r.event < c->nr_events;
			     r.event++) {
				int rc = visit(ctx, &r);
				if (rc)
					return rc;
				any = true;
			}
		}
	return any ? SMCO_OK
		   : smco_fail(err, SMCO_NOTFOUND, 0,
			       "no counters in the trace: they are recorded by "
			       "smco-trace -m counters or -e EVENT");
}

const struct section phase_counter_section = {
	.name = "phase-counters",
	.about = "what was counted in each phase",
	.column = columns,
	.nr_columns = PC_COLUMNS,
	.get = get,
	.each = each,
	.item_bytes = sizeof(struct row),
};
