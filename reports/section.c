#include "reports/section.h"

#include <string.h>

#include "reports/names.h"

static const struct section *const sections[] = {
	&site_section,	      &nap_section,	 &range_section,
	&sample_section,      &phase_section,	 &phase_counter_section,
	&phase_range_section, &overhead_section, &event_section,
	&counter_section,
};

const struct section *section_at(size_t i)
{
	return i < ARRAY_SIZE(sections) ? sections[i] : NULL;
}

int section_visit_array(const void *first, size_t nr, size_t size,
			section_visit *visit, void *ctx)
{
	for (size_t i = 0; i < nr; i++) {
		int rc = visit(ctx, (const char *)first + i * size);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

const struct section *section_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strcmp(sections[i]->name, name))
			return sections[i];
	return NULL;
}

void section_stack(struct bbuf *b, const struct trace_frame *f, size_t nr)
{
	char text[NAMES_MAX];
	nr = names_worth_showing(f, nr);
	for (size_t i = 0; i < nr; i++) {
		if (i)
			bbuf_put(b, " < ", 3);
		/* Whole names: what one searches for must not be cut. */
		if (*f[i].function)
			bbuf_put(b, f[i].function, strlen(f[i].function));
		else
			bbuf_put(
				b, text,
				strlen(names_function(&f[i], NAMES_MAX, text)));
		names_place(&f[i], text);
		bbuf_put(b, " ", *text ? 1 : 0);
		bbuf_put(b, text, strlen(text));
	}
	bbuf_put(b, "", 1);
}

int section_check_sort(const struct section *section, const char *key,
		       struct smco_err *err)
{
	char names[220];
	const char *name = key + (*key == '-');
	if (column_find(section->column, section->nr_columns, name,
			strlen(name)) < section->nr_columns)
		return SMCO_OK;
	return smco_fail(err, SMCO_FORMAT, 0, "--%s has no column %.40s (%s)",
			 section->name, name,
			 column_names(section->column, section->nr_columns,
				      names, sizeof(names)));
}
