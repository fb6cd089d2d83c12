/* The summary's part about samples: where the time goes. */
#include <inttypes.h>
#include <string.h>

#include "reports/names.h"
#include "reports/text.h"
#include "reports/units.h"

#define SELF_COL  11
#define TOTAL_COL 20
#define NAME_COL  29

static uint64_t sum_of(const struct summary *s, const char *key)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->nr_files; i++)
		sum += model_reader_u64(s->file[i].reader, key, 0);
	return sum;
}

/* When none were taken, or few. */
static void pauses(const struct view *v)
{
	uint64_t paused = sum_of(v->s, "samples.paused_ns");
	uint64_t sparse = sum_of(v->s, "samples.sparse_ns");
	char text[UNITS_MAX];
	if (paused)
		text_paragraph(v, "", INK_NONE,
			       "none for %s, to stay below the target",
			       units_duration(paused, text));
	if (sparse)
		text_paragraph(v, "", INK_NONE,
			       "in a quarter of the time for %s, each counted "
			       "four times, to stay below the target",
			       units_duration(sparse, text));
}

/* How they were taken, and what was not seen. */
static void head(const struct view *v)
{
	const struct model_samples *m = &v->s->samples;
	const char *event = trace_meta(v->s->reader, "samples.event");
	uint64_t wanted = model_meta_u64(v->s, "samples.wanted_hz", 0);
	uint64_t hz = model_meta_u64(v->s, "samples.hz", wanted);
	uint64_t lost = sum_of(v->s, "samples.lost");
	char nr[UNITS_MAX], text[UNITS_MAX];
	text_paragraph(v, "samples", INK_NONE,
		       "%s of %.60s at %" PRIu64 " Hz, %s lost "
		       "(smco-report --samples, --flamegraph)",
		       units_count(m->nr, nr), event ? event : "?", hz,
		       lost ? units_count(lost, text) : "none");
	if (hz < wanted)
		text_paragraph(
			v, "", INK_NONE, "not %" PRIu64 " Hz: one costs %s",
			wanted,
			units_duration(
				model_meta_u64(v->s, "samples.cost_ns", 0),
				text));
	pauses(v);
	if (m->nr_cut)
		text_paragraph(v, "", INK_DIM,
			       "%s of the stacks are not known to their end",
			       units_percent((int64_t)((double)m->nr_cut /
						       (double)m->nr * 1e9),
					     text));
}

static void function(const struct view *v, const struct sample_function *f)
{
	const struct model_samples *m = &v->s->samples;
	char text[UNITS_MAX], name[NAMES_MAX];
	struct line l;
	line_begin(&l, &v->page, 0, "", INK_NONE, SELF_COL);
	line_add(&l, INK_BOLD,
		 units_percent(sample_share_ppb(m, f->self), text));
	line_pad(&l, TOTAL_COL);
	line_add(&l, INK_NONE,
		 units_percent(sample_share_ppb(m, f->total), text));
	line_pad(&l, NAME_COL);
	line_add(&l, INK_NAME, sample_function_name(f->frame, name));
	if (*f->frame->function && *f->frame->module) {
		const char *base = names_file(f->frame->module);
		line_addf(&l, INK_DIM, *base == '[' ? "  %s" : "  [%s]", base);
	}
	line_end(&l);
}

void text_samples(const struct view *v)
{
	const struct model_samples *m = &v->s->samples;
	size_t max = v->style->max_sites, nr = 0;
	struct line l;
	if (!model_has_monitor(v->s, "samples"))
		return;
	const char *failed = trace_meta(v->s->reader, "samples.failed");
	if (m->nr) {
		head(v);
	} else {
		text_paragraph(v, "samples", INK_WARN, "none");
		pauses(v);
	}
	if (failed)
		text_paragraph(v, "", INK_WARN, "not sampled: %s", failed);
	if (!m->nr)
		return;
	text_begin(v, &l, "");
	line_add(&l, INK_DIM, "self");
	line_pad(&l, TOTAL_COL);
	line_add(&l, INK_DIM, "total");
	line_end(&l);
	/* Those that only called others are in the table. */
	while (nr < m->nr_functions && m->function[nr].nr_self)
		nr++;
	for (size_t i = 0; i < nr && (!max || i < max); i++)
		function(v, &m->function[i]);
	if (max && nr > max)
		text_paragraph(v, "", INK_DIM, "%s %zu more (--top)", v->dots,
			       nr - max);
}
