/* --phases: how often each was entered, and how long it lasted. */
#include "reports/model.h"
#include "reports/section.h"
#include "reports/units.h"

enum phase_column {
	PHASE_NAME,
	PHASE_COUNT,
	PHASE_TOTAL,
	PHASE_MEAN,
	PHASE_LONGEST,
	PHASE_TIMED,
	PHASE_COLUMNS
};

static const struct column phase_columns[PHASE_COLUMNS] = {
	[PHASE_NAME] = {"phase", KIND_TEXT, 30, "as --phase has it"},
	[PHASE_COUNT] = {"count", KIND_COUNT, 12, "times it was entered"},
	[PHASE_TOTAL] = {"total", KIND_TIME, 10,
			 "all together, from those that were timed"},
	[PHASE_MEAN] = {"mean", KIND_TIME, 10, "of those that were timed"},
	[PHASE_LONGEST] = {"longest", KIND_TIME, 10, "of those"},
	[PHASE_TIMED] = {"timed", KIND_COUNT, 12, "how many were timed"},
};

static void phase_get(const void *ctx, const void *item, size_t column,
		      struct value *ret)
{
	const struct model_phase *p = item;
	(void)ctx;
	bool timed = p->sum.nr_seen != 0;
	switch ((enum phase_column)column) {
	case PHASE_NAME:
		return value_text(ret, p->name);
	case PHASE_COUNT:
		return value_number(ret, p->sum.count);
	case PHASE_TOTAL:
		if (timed)
			value_number(ret, phase_total_ns(p));
		return;
	case PHASE_MEAN:
		if (timed)
			value_number(ret, units_whole(phase_mean_ns(p)));
		return;
	case PHASE_LONGEST:
		if (timed)
			value_number(ret, p->sum.longest_ns);
		return;
	case PHASE_TIMED:
		return value_number(ret, p->sum.nr_seen);
	case PHASE_COLUMNS:
		return;
	}
}

static int phase_each(const struct section_source *src, section_visit *visit,
		      void *ctx, struct smco_err *err)
{
	const struct model_phases *m = &src->s->phases;
	if (!m->nr)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no phases in the trace: they are recorded by "
				 "smco-trace --phase NAME");
	for (size_t i = 0; i < m->nr; i++) {
		int rc = visit(ctx, &m->phase[i]);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

const struct section phase_section = {
	.name = "phases",
	.about = "how often phases were entered, and how long",
	.column = phase_columns,
	.nr_columns = PHASE_COLUMNS,
	.get = phase_get,
	.each = phase_each,
};
