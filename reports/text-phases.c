/* The summary's part about phases. */
#include <string.h>

#include "reports/text.h"
#include "reports/units.h"

static void phase(const struct view *v, const struct model_phase *p,
		  const char *label)
{
	char count[UNITS_MAX], all[UNITS_MAX], mean[UNITS_MAX],
		longest[UNITS_MAX], share[UNITS_MAX];
	const struct ev_phase_total *t = &p->sum;
	struct line l;
	text_begin(v, &l, label);
	line_add(&l, INK_NAME, p->name);
	line_add(&l, INK_NONE, ":");
	line_words(&l, INK_NONE, units_count(t->count, count));
	line_words(&l, INK_NONE, t->count == 1 ? "time" : "times");
	if (t->nr_seen) {
		bool some = t->nr_seen < t->count;
		uint64_t total_ns = phase_total_ns(p);
		/* Those that were timed need not be like the others. */
		double each_ns = some ? (double)total_ns / (double)t->count
				      : phase_mean_ns(p);
		line_item(&l, INK_NONE, ", ", some ? "about" : "together");
		line_words(&l, INK_NONE, units_duration(total_ns, all));
		line_item(&l, INK_NONE, ", ", "each");
		line_words(&l, INK_NONE,
			   units_duration(units_whole(each_ns), mean));
		line_item(&l, INK_NONE, ", ", "the longest");
		line_words(&l, INK_NONE,
			   units_duration(t->longest_ns, longest));
		if (some) {
			double part = (double)t->nr_seen / (double)t->count;
			line_item(&l, INK_DIM, ", ", "timed");
			line_words(&l, INK_DIM,
				   units_percent((int64_t)(part * 1e9), share));
		}
	} else if (t->count) {
		line_item(&l, INK_DIM, ", ", "never timed");
	}
	line_end(&l);
}

void text_phases(const struct view *v)
{
	const struct model_phases *m = &v->s->phases;
	const char *failed = trace_meta(v->s->reader, "phases.failed");
	const char *late = trace_meta(v->s->reader, "phases.late");
	const char *missing = trace_meta(v->s->reader, "phases.missing");
	const char *unknown = trace_meta(v->s->reader, "phases.unknown");
	const char *ended = trace_meta(v->s->reader, "phases.ended");
	const char *beside = trace_meta(v->s->reader, "phases.beside");
	if (!model_has_monitor(v->s, "phases"))
		return;
	for (size_t i = 0; i < m->nr; i++)
		phase(v, &m->phase[i], i ? "" : "phases");
	if (!m->nr)
		text_paragraph(v, "phases", INK_WARN, "none");
	if (missing)
		text_paragraph(v, "", INK_WARN,
			       "in none of the program's libraries: %s",
			       missing);
	if (late)
		text_paragraph(v, "", INK_DIM, "loaded later: %s", late);
	if (ended)
		text_paragraph(v, "", INK_WARN, "no longer counted in %s",
			       ended);
	if (unknown)
		text_paragraph(v, "", INK_WARN, "not timed: %s", unknown);
	if (beside)
		text_paragraph(v, "", INK_DIM, "counted, not timed: %s",
			       beside);
	if (failed)
		text_paragraph(v, "", INK_WARN, "not seen in %s", failed);
}
