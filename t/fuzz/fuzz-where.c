/*
 * What a user types for a report: conditions and suppressions. The first byte
 * says which of them; a condition is also tried on a few values.
 */
#include <stdlib.h>
#include <string.h>

#include "reports/section.h"
#include "reports/suppress.h"

static void get(const void *ctx, const void *item, size_t column,
		struct value *ret)
{
	(void)ctx;
	(void)item;
	if (column % 5 == 4)
		return;
	if (nap_section.column[column].kind == KIND_TEXT)
		value_text(ret, "parse src/p.c:12 < main (deleted) [x] {");
	else
		value_number(ret, column * 1000000000.0L);
}

static void suppressions(const char *text, size_t len)
{
	struct trace_frame f = {
		.function = "aaaabaaa<x>",
		.file = "/src/a.c",
		.line = 1,
		.module = "/usr/lib/liba.so",
		.build_id = "",
	};
	struct suppress *s;
	if (suppress_parse("x", text, len, &s, NULL))
		return;
	suppress_matches(s, &f, 1);
	suppress_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct smco_err err = {0};
	struct where *w;
	if (!size)
		return 0;
	char *text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (*data & 1) {
		suppressions(text, size - 1);
	} else if (!where_parse(text, nap_section.column,
				nap_section.nr_columns, &w, &err)) {
		where_matches(w, get, NULL, NULL);
		where_free(w);
	} else if (!*err.msg) {
		abort();
	}
	free(text);
	return 0;
}
