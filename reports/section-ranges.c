/* --ranges: the values that every integer variable had. */
#include "reports/model.h"
#include "reports/names.h"
#include "reports/section.h"

enum range_column {
	RANGE_VARIABLE,
	RANGE_SMALLEST,
	RANGE_LARGEST,
	RANGE_TYPE,
	RANGE_HOW,
	RANGE_WATCHED,
	RANGE_FINDING,
	RANGE_PLACE,
	RANGE_HITS,
	RANGE_KIND,
	RANGE_BITS,
	RANGE_IS_SIGNED,
	RANGE_ELEMENTS,
	RANGE_PROCESSES,
	RANGE_UNWATCHED,
	RANGE_MODULE,
	RANGE_ARRAY,
	RANGE_ARRAY_PLACE,
	RANGE_SUBSCRIPT,
	RANGE_LEAST_SUBSCRIPT,
	RANGE_MOST_SUBSCRIPT,
	RANGE_COLUMNS
};

static const struct column range_columns[RANGE_COLUMNS] = {
	[RANGE_VARIABLE] = {"variable", KIND_TEXT, 28,
			    "function::name, or namespace::name"},
	[RANGE_SMALLEST] = {"smallest", KIND_COUNT, 11, "the smallest value"},
	[RANGE_LARGEST] = {"largest", KIND_COUNT, 11, "the largest"},
	[RANGE_TYPE] = {"type", KIND_TEXT, 14, "its type"},
	[RANGE_HOW] = {"how", KIND_TEXT, 10,
		       "watchpoint (every write), sensors (every assignment), "
		       "breakpoint (assignments without room for a sensor), "
		       "polled, both (sensors and polled), initial (not seen "
		       "assigned: what it had when the watch began)"},
	[RANGE_WATCHED] = {"watched", KIND_SHARE, 8,
			   "share of the time that assignments were seen"},
	[RANGE_FINDING] = {"finding", KIND_TEXT, 8,
			   "subscript, bool, enum, negative, wrapped, limit, "
			   "constant"},
	[RANGE_PLACE] = {"declared", KIND_TEXT, 20, "file and line"},
	[RANGE_HITS] = {"hits", KIND_COUNT, 0, "values looked at"},
	[RANGE_KIND] = {"class", KIND_TEXT, 0, "int, char, bool, enum"},
	[RANGE_BITS] = {"bits", KIND_COUNT, 0, "of its type"},
	[RANGE_IS_SIGNED] = {"signed", KIND_FLAG, 0, "its type is"},
	[RANGE_ELEMENTS] = {"elements", KIND_COUNT, 0, "of an array"},
	[RANGE_PROCESSES] = {"processes", KIND_COUNT, 0, "that had it"},
	[RANGE_UNWATCHED] = {"unwatched", KIND_TEXT, 0,
			     "why it cannot be watched"},
	[RANGE_MODULE] = {"module", KIND_TEXT, 0, "the file it is in"},
	[RANGE_ARRAY] = {"array", KIND_TEXT, 0,
			 "it was a subscript outside of this, with its length"},
	[RANGE_ARRAY_PLACE] = {"array_declared", KIND_TEXT, 0,
			       "file and line of the array"},
	[RANGE_SUBSCRIPT] = {"subscript", KIND_TEXT, 0,
			     "what was the subscript: i, i - 1"},
	[RANGE_LEAST_SUBSCRIPT] = {"least_subscript", KIND_COUNT, 0,
				   "the smallest that it was there"},
	[RANGE_MOST_SUBSCRIPT] = {"most_subscript", KIND_COUNT, 0,
				  "the largest"},
};

static const char *how_text(uint32_t flags)
{
	/* Nothing escapes it, so whoever else looks adds nothing. */
	if (flags & RANGE_WATCHPOINT)
		return "watchpoint";
	if (flags & RANGE_BREAKPOINT)
		return flags & RANGE_SENSED ? "sensors and breakpoint"
					    : "breakpoint";
	if (!(flags & RANGE_SENSED))
		return flags & RANGE_POLLED    ? "polled"
		       : flags & RANGE_INITIAL ? "initial"
					       : "";
	return flags & RANGE_POLLED ? "both" : "sensors";
}

static const char *class_text(uint32_t class_)
{
	static const char *const names[] = {
		[VARIABLE_INT] = "int",
		[VARIABLE_CHAR] = "char",
		[VARIABLE_BOOL] = "bool",
		[VARIABLE_ENUM] = "enum",
	};
	return class_ < ARRAY_SIZE(names) ? names[class_] : "?";
}

static void text_if_any(struct value *ret, const char *text)
{
	if (*text)
		value_text(ret, text);
}

static void get_subscript(const struct model_range *r, size_t column,
			  struct value *ret)
{
	const struct model_subscript *s = r->subscript;
	switch (column) {
	case RANGE_ARRAY:
		return value_text(ret, subscript_array_words(s, ret->buf));
	case RANGE_ARRAY_PLACE:
		return text_if_any(ret, names_place(s->array, ret->buf));
	case RANGE_SUBSCRIPT:
		return value_text(ret, subscript_words(r, ret->buf));
	case RANGE_LEAST_SUBSCRIPT:
		return value_number(ret, s->smallest);
	default:
		return value_number(ret, s->largest);
	}
}

static void range_get(const void *ctx, const void *item, size_t column,
		      struct value *ret)
{
	const struct model_range *r = item;
	(void)ctx;
	switch ((enum range_column)column) {
	case RANGE_VARIABLE:
		return value_text(ret, r->decl->function);
	case RANGE_SMALLEST:
		if (r->has_value)
			value_number(ret, range_number(r, r->smallest));
		return;
	case RANGE_LARGEST:
		if (r->has_value)
			value_number(ret, range_number(r, r->largest));
		return;
	case RANGE_TYPE:
		return text_if_any(ret, r->type);
	case RANGE_HOW:
		return text_if_any(ret, how_text(r->flags));
	case RANGE_WATCHED:
		if (range_watched_ppb(r) >= 0)
			value_number(ret, range_watched_ppb(r));
		return;
	case RANGE_FINDING:
		return text_if_any(ret, finding_name(r->finding));
	case RANGE_PLACE:
		return text_if_any(ret, names_place(r->decl, ret->buf));
	case RANGE_HITS:
		if (r->has_value)
			value_number(ret, r->hits);
		return;
	case RANGE_KIND:
		return value_text(ret, class_text(r->var.class_));
	case RANGE_BITS:
		return value_number(ret, r->var.bits);
	case RANGE_IS_SIGNED:
		return value_number(ret, !!(r->var.flags & VARIABLE_SIGNED));
	case RANGE_ELEMENTS:
		if (r->var.flags & VARIABLE_ARRAY && r->var.elements)
			value_number(ret, r->var.elements);
		return;
	case RANGE_PROCESSES:
		return value_number(ret, r->nr_processes);
	case RANGE_UNWATCHED:
		return text_if_any(ret, r->unwatched);
	case RANGE_MODULE:
		return text_if_any(ret, r->decl->module);
	case RANGE_ARRAY:
	case RANGE_ARRAY_PLACE:
	case RANGE_SUBSCRIPT:
	case RANGE_LEAST_SUBSCRIPT:
	case RANGE_MOST_SUBSCRIPT:
		return r->subscript ? get_subscript(r, column, ret) : (void)0;
	case RANGE_COLUMNS:
		return;
	}
}

static int range_each(const struct section_source *src, section_visit *visit,
		      void *ctx, struct smco_err *err)
{
	(void)err;
	return section_visit_array(src->s->ranges.range, src->s->ranges.nr,
				   sizeof(*src->s->ranges.range), visit, ctx);
}

const struct section range_section = {
	.name = "ranges",
	.about = "the values that variables had",
	.column = range_columns,
	.nr_columns = RANGE_COLUMNS,
	.monitor = "range",
	.why_none = "range.missing",
	.get = range_get,
	.each = range_each,
};
