#include "reports/text-frames.h"

#include "reports/names.h"

/* Names that are longer than this do not push away the others' places. */
#define ALIGNED_MOST 60

unsigned frames_name_columns(const struct page *page)
{
	return page->width ? page->width / 2 : 200;
}

void frames_print(const struct page *page, const struct frames_place *at,
		  const struct trace_frame *f, size_t nr,
		  const char *const *note)
{
	char name[NAMES_MAX], place[NAMES_MAX];
	unsigned widest = 0, limit = frames_name_columns(page);
	unsigned aligned = limit < ALIGNED_MOST ? limit : ALIGNED_MOST;
	struct line l;
	for (size_t i = 0; i < nr; i++) {
		names_function(&f[i], limit, name);
		unsigned n = line_columns(name);
		if (n > widest && n <= aligned)
			widest = n;
	}
	for (size_t i = 0; i < nr; i++) {
		line_begin(&l, page, at->indent, i ? "" : at->label, INK_DIM,
			   at->col);
		line_add(&l, INK_NAME, names_function(&f[i], limit, name));
		names_place(&f[i], place);
		if (*place) {
			/* A name that is too long pushes its place on. */
			line_pad(&l, at->col + widest);
			line_add(&l, INK_NONE, "  ");
			line_add(&l, INK_NONE, place);
			line_add(&l, INK_DIM, f[i].inlined ? " inlined" : "");
		}
		if (note && note[i])
			line_add(&l, INK_DIM, note[i]);
		line_end(&l);
	}
}
