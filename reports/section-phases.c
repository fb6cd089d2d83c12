/* --phases: how often each was entered, how long it lasted, and what happened
 * in it. */
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
	PHASE_THREADS,
	PHASE_SAMPLES,
	PHASE_NAPS,
	PHASE_UNUSED,
	PHASE_COLUMNS
};

static const struct column phase_columns[PHASE_COLUMNS] = {
	[PHASE_NAME] = {"phase", KIND_TEXT, 24, "as --phase has it"},
	[PHASE_COUNT] = {"count", KIND_COUNT, 11, "times it was entered"},
	[PHASE_TOTAL] = {"total", KIND_TIME, 10,
			 "all together, from those that were timed"},
	[PHASE_MEAN] = {"mean", KIND_TIME, 10, "of those that were timed"},
	[PHASE_LONGEST] = {"longest", KIND_TIME, 10, "of those"},
	[PHASE_TIMED] = {"timed", KIND_COUNT, 0, "how many were timed"},
	[PHASE_THREADS] = {"threads", KIND_COUNT, 0, "that were seen in it"},
	[PHASE_SAMPLES] = {"samples", KIND_COUNT, 8, "taken in it"},
	[PHASE_NAPS] = {"naps", KIND_COUNT, 6,
			"that began in it, in any thread"},
	[PHASE_UNUSED] = {"unused", KIND_BYTE_SECONDS, 10,
			  "byte seconds of these"},
};

static struct phase_sums all_files(const struct summary *s, size_t phase)
{
	struct phase_sums all = {0};
	for (size_t i = 0; i < s->nr_files; i++) {
		const struct phase_sums *of = phase_sums(s, phase, i);
		all.nr_threads += of->nr_threads;
		all.samples += of->samples;
		all.naps += of->naps;
		all.byte_seconds += of->byte_seconds;
	}
	return all;
}

static void phase_get(const void *ctx, const void *item, size_t column,
		      struct value *ret)
{
	const struct section_source *src = ctx;
	const struct summary *s = src->s;
	const struct model_phase *p = item;
	struct phase_sums sums = all_files(s, (size_t)(p - s->phases.phase));
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
	case PHASE_THREADS:
		return value_number(ret, sums.nr_threads);
	case PHASE_SAMPLES:
		if (s->samples.nr)
			value_number(ret, units_whole(sums.samples));
		return;
	case PHASE_NAPS:
		if (s->naps.nr)
			value_number(ret, units_whole(sums.naps));
		return;
	case PHASE_UNUSED:
		if (s->naps.nr)
			value_number(ret, sums.byte_seconds);
		return;
	case PHASE_COLUMNS:
		return;
	}
}

static int phase_each(const struct section_source *src, section_visit *visit,
		      void *ctx, struct smco_err *err)
{
	const struct model_phases *m = &src->s->phases;
	if (!m->nr)
		return phases_none(err);
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
