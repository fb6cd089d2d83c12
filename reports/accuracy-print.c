/* The table of --accuracy, for people and for programs. */
#include "reports/accuracy.h"

#include <math.h>

#include "reports/command.h"
#include "reports/json-values.h"
#include "reports/ranges-json.h"
#include "reports/units.h"

#define SCHEMA_VERSION 1
#define LABEL_COL      11
#define LONGEST	       "10 000 000 to 99 999 999" /* that is seen in practice */

static uint64_t target_of(const struct summary *s)
{
	uint64_t ppb = model_meta_u64(s, "target_ppb", UINT64_MAX);
	return ppb < INT64_MAX ? ppb : UINT64_MAX;
}

static void trace(const struct page *page, const char *label,
		  const struct summary *s, const char *path)
{
	_cleanup_free_ char *command = command_shown(s->reader);
	int64_t ppb = model_overhead_ppb(&s->overhead, s->overhead.spent_ns);
	char number[UNITS_MAX];
	struct line l;
	line_begin(&l, page, 0, label, INK_BOLD, LABEL_COL);
	line_words(&l, INK_NONE,
		   command && *command ? command
				       : "(command not in the trace)");
	if (s->has_overhead && ppb >= 0) {
		line_add(&l, INK_NONE, ",");
		line_words(&l, INK_NONE, "overhead");
		line_words(&l, INK_NONE, units_percent(ppb, number));
	}
	if (target_of(s) == UINT64_MAX) {
		line_add(&l, INK_NONE, ",");
		line_words(&l, INK_NONE, "no limit");
	} else {
		line_words(&l, INK_NONE, "of at most");
		line_words(&l, INK_NONE,
			   units_percent((int64_t)target_of(s), number));
	}
	line_add(&l, INK_NONE, ":");
	line_item(&l, INK_DIM, " ", path);
	line_end(&l);
}

static void note(const struct page *page, const char **label, uint64_t nr,
		 const char *what)
{
	char number[UNITS_MAX];
	struct line l;
	if (!nr)
		return;
	line_begin(&l, page, 0, *label, INK_BOLD, LABEL_COL);
	line_words(&l, INK_WARN, units_count(nr, number));
	line_words(&l, INK_WARN, nr == 1 ? "variable" : "variables");
	line_words(&l, INK_WARN, what);
	line_end(&l);
	*label = "";
}

/* What of @s is not there. */
static void note_missing(const struct page *page, const char **label,
			 const char *which, const struct summary *s)
{
	char nr[UNITS_MAX], text[3 * UNITS_MAX + 80];
	uint64_t damaged = model_nr_damaged(s);
	if (damaged)
		snprintf(text, sizeof(text),
			 "the %s is damaged: %s part%s skipped", which,
			 units_count(damaged, nr), damaged == 1 ? "" : "s");
	else if (trace_is_truncated(s->reader))
		snprintf(text, sizeof(text),
			 "the %s has no end: what came later is missing",
			 which);
	else
		return;
	struct line l;
	line_begin(&l, page, 0, *label, INK_BOLD, LABEL_COL);
	line_words(&l, INK_WARN, text);
	line_end(&l);
	*label = "";
}

static void notes(const struct page *page, const struct accuracy *a,
		  const struct accuracy_traces *t)
{
	const char *label = "note";
	note_missing(page, &label, "run", t->run);
	note_missing(page, &label, "reference", t->reference);
	if (target_of(t->reference) != UINT64_MAX) {
		struct line l;
		line_begin(&l, page, 0, label, INK_BOLD, LABEL_COL);
		line_words(&l, INK_WARN,
			   "the reference was limited, too, and may have "
			   "missed values (-t unlimited)");
		line_end(&l);
		label = "";
	}
	note(page, &label, a->nr_partly,
	     "watched less than 99 % of the time in the reference");
	note(page, &label, a->nr_outside,
	     "had values in the run that the reference has not: of another "
	     "input, or by chance");
	note(page, &label, a->nr_polled,
	     "left out: the reference has not seen them assigned, nobody "
	     "knows how often they change");
}

static void cell(struct line *l, unsigned end, enum ink ink, const char *text)
{
	unsigned columns = line_columns(text);
	line_pad(l, end > columns ? end - columns : 0);
	line_add(l, ink, text);
}

static const char *share(double v, char buf[UNITS_MAX])
{
	if (isnan(v))
		return "-";
	return units_percent((int64_t)(v * 1e9 + 0.5), buf);
}

static void row(const struct page *page, const char *label,
		const struct accuracy_group *g, const struct accuracy_group *up)
{
	static const unsigned first = sizeof(LONGEST);
	char number[UNITS_MAX];
	struct line l;
	line_begin(&l, page, 0, "", INK_NONE, 0);
	line_add(&l, INK_NONE, label);
	cell(&l, first + 10, INK_NONE, units_count(g->nr, number));
	cell(&l, first + 18, INK_NONE, units_count(g->nr_found, number));
	cell(&l, first + 28, INK_BOLD, share(g->accuracy, number));
	if (up)
		cell(&l, first + 40, INK_NONE, share(up->accuracy, number));
	line_end(&l);
}

static void heading(const struct page *page)
{
	static const unsigned first = sizeof(LONGEST);
	struct line l;
	line_begin(&l, page, 0, "", INK_NONE, 0);
	line_add(&l, INK_DIM, "assigned, times");
	cell(&l, first + 10, INK_DIM, "variables");
	cell(&l, first + 18, INK_DIM, "found");
	cell(&l, first + 28, INK_DIM, "accuracy");
	cell(&l, first + 40, INK_DIM, "up to here");
	line_end(&l);
}

static uint64_t first_of(unsigned decade)
{
	uint64_t first = 1;
	while (decade--)
		first *= 10;
	return first;
}

static uint64_t last_of(unsigned decade)
{
	return decade + 1 < ACCURACY_DECADES ? first_of(decade + 1) - 1
					     : UINT64_MAX;
}

void accuracy_print_text(const struct accuracy *a,
			 const struct accuracy_traces *t,
			 const struct page *page)
{
	char label[2 * UNITS_MAX + 8], lo[UNITS_MAX], hi[UNITS_MAX];
	trace(page, "run", t->run, t->run_path);
	trace(page, "reference", t->reference, t->reference_path);
	notes(page, a, t);
	fputc('\n', page->out);
	heading(page);
	for (unsigned k = 0; k < a->nr_decades; k++) {
		snprintf(label, sizeof(label), "%s to %s",
			 units_count(first_of(k), lo),
			 units_count(last_of(k), hi));
		row(page, label, &a->decade[k], &a->up_to[k]);
	}
	row(page, "all", &a->up_to[ACCURACY_DECADES - 1], NULL);
}

/* ----------------------------------------------------------------- JSON --- */

static json_t *trace_json(const struct summary *s, const char *path)
{
	const char *command = trace_meta(s->reader, "command");
	int64_t ppb = model_overhead_ppb(&s->overhead, s->overhead.spent_ns);
	uint64_t target = target_of(s);
	return JSON_OBJECT_OF(
		{"file", json_of_text(path)},
		{"command", command ? json_of_text(command) : json_null()},
		{"argv", json_of_command(s->reader)},
		{"target_ppb",
		 target == UINT64_MAX ? json_null() : json_of_u64(target)},
		{"overhead_ppb",
		 s->has_overhead && ppb >= 0 ? json_integer(ppb) : json_null()},
		{"truncated", json_boolean(trace_is_truncated(s->reader))},
		{"damaged_chunks", json_of_u64(model_nr_damaged(s))},
		{"lost_records", json_of_u64(trace_nr_lost(s->reader))});
}

static json_t *group_json(unsigned decade, const struct accuracy_group *g,
			  const struct accuracy_group *up)
{
	return JSON_OBJECT_OF({"from", json_of_u64(first_of(decade))},
			      {"to", json_of_u64(last_of(decade))},
			      {"variables", json_of_u64(g->nr)},
			      {"found", json_of_u64(g->nr_found)},
			      {"accuracy", json_of_double(g->accuracy)},
			      {"cumulative", json_of_double(up->accuracy)});
}

static json_t *range_json(const struct model_range *r)
{
	if (!r)
		return json_null();
	return JSON_OBJECT_OF({"smallest", range_bound_json(r, r->smallest)},
			      {"largest", range_bound_json(r, r->largest)});
}

static json_t *variable_json(const struct accuracy_variable *v)
{
	const struct model_range *r = v->reference;
	return JSON_OBJECT_OF({"variable", json_of_text(r->decl->function)},
			      {"type", json_of_text(r->type)},
			      {"file", json_of_text(r->decl->file)},
			      {"line", json_integer(r->decl->line)},
			      {"updates", json_of_u64(r->hits)},
			      {"accuracy", json_real(v->accuracy)},
			      {"outside", json_boolean(v->is_outside)},
			      {"run", range_json(v->run)},
			      {"reference", range_json(r)});
}

int accuracy_print_json(const struct accuracy *a,
			const struct accuracy_traces *t, FILE *out,
			struct smco_err *err)
{
	const struct accuracy_group *all = &a->up_to[ACCURACY_DECADES - 1];
	json_t *decades = json_array(), *variables = json_array();
	for (unsigned k = 0; k < a->nr_decades; k++)
		decades = json_append(
			decades, group_json(k, &a->decade[k], &a->up_to[k]));
	for (size_t i = 0; i < a->nr; i++)
		variables =
			json_append(variables, variable_json(&a->variable[i]));
	json_t *doc = JSON_OBJECT_OF(
		{"schema", json_integer(SCHEMA_VERSION)},
		{"generator", json_string("smco-diff " SMCO_VERSION)},
		{"run", trace_json(t->run, t->run_path)},
		{"reference", trace_json(t->reference, t->reference_path)},
		{"variables", json_of_u64(all->nr)},
		{"found", json_of_u64(all->nr_found)},
		{"accuracy", json_of_double(all->accuracy)},
		{"outside", json_of_u64(a->nr_outside)},
		{"polled", json_of_u64(a->nr_polled)},
		{"partly_watched", json_of_u64(a->nr_partly)},
		{"decades", decades}, {"ranges", variables});
	return json_print(doc, out, err);
}
