/* --phase-ranges: the values that variables had in each phase. */
#include "reports/model.h"
#include "reports/names.h"
#include "reports/section.h"

enum phase_range_column {
	PR_PHASE,
	PR_VARIABLE,
	PR_SMALLEST,
	PR_LARGEST,
	PR_SURE_SMALLEST,
	PR_SURE_LARGEST,
	PR_TYPE,
	PR_PLACE,
	PR_MODULE,
	PR_COLUMNS
};

static const struct column columns[PR_COLUMNS] = {
	[PR_PHASE] = {"phase", KIND_TEXT, 20, "as --phase has it"},
	[PR_VARIABLE] = {"variable", KIND_TEXT, 28,
			 "function::name, or namespace::name"},
	[PR_SMALLEST] = {"smallest", KIND_COUNT, 11,
			 "the smallest value that was or may have been in it"},
	[PR_LARGEST] = {"largest", KIND_COUNT, 11, "the largest"},
	[PR_SURE_SMALLEST] = {"sure_smallest", KIND_COUNT, 13,
			      "of those that surely were in it"},
	[PR_SURE_LARGEST] = {"sure_largest", KIND_COUNT, 12, "the largest"},
	[PR_TYPE] = {"type", KIND_TEXT, 14, "its type"},
	[PR_PLACE] = {"declared", KIND_TEXT, 20, "file and line"},
	[PR_MODULE] = {"module", KIND_TEXT, 0, "the file it is in"},
};

static void get(const void *ctx, const void *item, size_t column,
		struct value *ret)
{
	const struct section_source *src = ctx;
	const struct model_phase_range *r = item;
	switch ((enum phase_range_column)column) {
	case PR_PHASE:
		return value_text(ret, src->s->phases.phase[r->phase].name);
	case PR_VARIABLE:
		return value_text(ret, r->decl->function);
	case PR_SMALLEST:
		return value_number(ret, phase_range_number(r, r->smallest));
	case PR_LARGEST:
		return value_number(ret, phase_range_number(r, r->largest));
	case PR_SURE_SMALLEST:
		if (r->has_sure)
			value_number(ret,
				     phase_range_number(r, r->sure_smallest));
		return;
	case PR_SURE_LARGEST:
		if (r->has_sure)
			value_number(ret,
				     phase_range_number(r, r->sure_largest));
		return;
	case PR_TYPE:
		if (*r->type)
			value_text(ret, r->type);
		return;
	case PR_PLACE:
		return value_text(ret, names_place(r->decl, ret->buf));
	case PR_MODULE:
		if (*r->decl->module)
			value_text(ret, r->decl->module);
		return;
	case PR_COLUMNS:
		return;
	}
}

static int each(const struct section_source *src, section_visit *visit,
		void *ctx, struct smco_err *err)
{
	const struct model_phase_ranges *m = &src->s->phase_ranges;
	if (!src->s->phases.nr)
		return phases_none(err);
	if (!src->s->ranges.nr)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no ranges in the trace: they are recorded by "
				 "smco-trace -m range");
	return section_visit_array(m->range, m->nr, sizeof(*m->range), visit,
				   ctx);
}

const struct section phase_range_section = {
	.name = "phase-ranges",
	.about = "the values that variables had in each phase",
	.column = columns,
	.nr_columns = PR_COLUMNS,
	.get = get,
	.each = each,
};
