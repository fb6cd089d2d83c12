#include "reports/mark.h"

void mark_put(const struct page *page, const char *tool, const char *text)
{
	const struct page unlimited = {.out = page->out};
	struct line l;
	line_begin(&l, tool ? &unlimited : page, 0, "", INK_NONE, 0);
	if (tool) {
		line_addf(&l, INK_NONE, "# %s: ", tool);
		line_add(&l, INK_NONE, text);
	} else {
		line_words(&l, INK_WARN, text);
	}
	line_end(&l);
}
