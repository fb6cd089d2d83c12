/*
 * The comparison of a mutated trace with the sample session, in either
 * direction (the first byte), and with itself; everything is printed. Unless
 * that byte says otherwise a thread decodes them.
 */
#include "reports/diff-print.h"
#include "t/fuzz/trace-mutate.h"

static void add(struct diff *d, int side, const uint8_t *data, size_t len)
{
	struct trace_reader *reader;
	if (trace_reader_open_mem(data, len, &reader, NULL))
		abort();
	diff_add_reader(d, side, reader, "x.trace", NULL);
	trace_reader_close(reader);
}

/* No byte that steers a terminal, and no tag but our own. */
static void print(const struct diff *d, const struct diff_rules *rules)
{
	struct smco_err err;
	char *text = NULL;
	size_t size = 0;
	struct diff_style style = {
		.page = {open_memstream(&text, &size), 60, false, false},
		.max_frames = 3,
		.all = true,
	};
	diff_check(d, &err);
	diff_print_text(d, rules, &style);
	diff_print_html(d, rules, &style);
	if (diff_print_json(d, rules, style.page.out, &err))
		abort();
	fclose(style.page.out);
	for (size_t i = 0; i < size; i++)
		if (text[i] != '\n' && !(text[i] & 0x80) && text[i] < ' ')
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct diff_config config = {.least_change = 0.05};
	struct diff_rules rules = {0};
	struct diff d = {0};
	struct smco_err err;
	size_t len;
	if (size < 2)
		return 0;
	uint8_t *file = mutate(data + 1, size - 1, &len);
	if (!file)
		return 0;
	int side = data[0] & 1;
	d.ahead_bytes = data[0] & 4 ? 0 : 1;
	add(&d, side, file, len);
	add(&d, !side, sample.data, sample.size);
	if (data[0] & 2) {
		add(&d, side, file, len);
		add(&d, side, file, len);
	}
	if (d.side[side].nr_runs) {
		if (diff_compare(&d, &config, NULL) ||
		    diff_rules_add(&rules, "site.nap.longest > +1%", NULL) ||
		    diff_rules_add(&rules, "counter.task-clock > 1s", NULL) ||
		    diff_rules_add(&rules, "mistakes.new > 0", NULL))
			abort();
		diff_rules_check(&rules, &d, &err);
		diff_rules_apply(&rules, &d);
		print(&d, &rules);
	}
	diff_rules_free(&rules);
	diff_deinit(&d);
	free(file);
	return 0;
}
