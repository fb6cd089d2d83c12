/* --samples: the functions that threads were seen in. */
#include "reports/model.h"
#include "reports/names.h"
#include "reports/section.h"

enum sample_column {
	SAMPLE_SELF,
	SAMPLE_TOTAL,
	SAMPLE_FUNCTION,
	SAMPLE_MODULE,
	SAMPLE_NR_SELF,
	SAMPLE_NR_TOTAL,
	SAMPLE_FILE,
	SAMPLE_IS_KERNEL,
	SAMPLE_COLUMNS
};

static const struct column sample_columns[SAMPLE_COLUMNS] = {
	[SAMPLE_SELF] = {"self", KIND_SHARE, 8, "share of samples in itself"},
	[SAMPLE_TOTAL] = {"total", KIND_SHARE, 8,
			  "share in it or in what it called"},
	[SAMPLE_FUNCTION] = {"function", KIND_TEXT, 36,
			     "its name; [module] for all without one"},
	[SAMPLE_MODULE] = {"module", KIND_TEXT, 24, "the file it is in"},
	[SAMPLE_NR_SELF] = {"samples", KIND_COUNT, 0, "samples in itself"},
	[SAMPLE_NR_TOTAL] = {"all_samples", KIND_COUNT, 0,
			     "samples in it or in what it called"},
	[SAMPLE_FILE] = {"file", KIND_TEXT, 0, "its source file"},
	[SAMPLE_IS_KERNEL] = {"kernel", KIND_FLAG, 0, "it is the kernel's"},
};

static void sample_get(const void *ctx, const void *item, size_t column,
		       struct value *ret)
{
	const struct section_source *src = ctx;
	const struct model_samples *m = &src->s->samples;
	const struct sample_function *f = item;
	switch ((enum sample_column)column) {
	case SAMPLE_SELF:
		return value_number(ret, sample_share_ppb(m, f->self));
	case SAMPLE_TOTAL:
		return value_number(ret, sample_share_ppb(m, f->total));
	case SAMPLE_FUNCTION:
		return value_text(ret,
				  sample_function_name(f->frame, ret->buf));
	case SAMPLE_MODULE:
		if (*f->frame->module)
			value_text(ret, f->frame->module);
		ret->shown = names_file(f->frame->module);
		return;
	case SAMPLE_NR_SELF:
		return value_number(ret, f->nr_self);
	case SAMPLE_NR_TOTAL:
		return value_number(ret, f->nr_total);
	case SAMPLE_FILE:
		if (*f->frame->file)
			value_text(ret, f->frame->file);
		return;
	case SAMPLE_IS_KERNEL:
		return value_number(ret, sample_is_kernel(f->frame));
	case SAMPLE_COLUMNS:
		return;
	}
}

static int sample_each(const struct section_source *src, section_visit *visit,
		       void *ctx, struct smco_err *err)
{
	const struct model_samples *m = &src->s->samples;
	if (!m->nr && !samples_were_taken(src->s))
		return samples_none(src->s, err);
	for (size_t i = 0; i < m->nr_functions; i++) {
		int rc = visit(ctx, &m->function[i]);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

const struct section sample_section = {
	.name = "samples",
	.about = "the functions that ran, by samples",
	.column = sample_columns,
	.nr_columns = SAMPLE_COLUMNS,
	.get = sample_get,
	.each = sample_each,
};
