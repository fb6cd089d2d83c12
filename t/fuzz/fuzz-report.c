/*
 * Every report of a mutated trace, or of that and the session it was made of
 * together. The first byte says which, and whether a thread decodes it, the
 * second what is asked for; the rest is the trace's.
 */
#include "t/fuzz/trace-mutate.h"

#include "reports/ctf.h"
#include "reports/folded.h"
#include "reports/perfetto.h"

enum report {
	REPORT_SUMMARY,
	REPORT_JSON,
	REPORT_PAGE,
	REPORT_PERFETTO,
	REPORT_FOLDED,
	REPORT_JUWEL,
	REPORT_CTF,
	REPORT_SECTION, /* this and all above: of a section */
	REPORT_NR = 16,
	REPORT_TWO = 16,  /* of two files; a bit above the others */
	REPORT_HERE = 32, /* no thread decodes; the next bit */
};

static void must(int rc)
{
	if (rc == SMCO_NOMEM || rc == SMCO_SYS)
		abort();
}

/* The CTF trace has files of its own, which nobody looks at here. */
static void print_ctf(const struct summary_input *input,
		      const struct select *select)
{
	static char dir[64];
	if (!*dir)
		snprintf(dir, sizeof(dir), "/dev/shm/fuzz-report-%d",
			 (int)getpid());
	must(ctf_begin(dir, NULL));
	must(ctf_write(input, select, dir, NULL));
	ctf_abandon(dir);
}

static void print_section(const struct summary *s,
			  const struct summary_input *input, size_t nr_inputs,
			  const struct select *select, unsigned which,
			  unsigned how, FILE *f)
{
	struct page page = {.out = f, .width = 80};
	struct model_sites sites = {0};
	unsigned nr = 0;
	while (section_at(nr))
		nr++;
	const struct section *section = section_at(which % nr);
	size_t column = how / 4 % section->nr_columns;
	struct section_options o = {
		.format = (enum section_format)(how % 3),
		.sort = how & 4 ? section->column[column].name : NULL,
		.top = how & 8 ? 5 : 0};
	struct section_source src = {s, input, nr_inputs, select, &sites};
	must(model_sites(s, 3, &sites));
	must(section_print(section, &src, &o, &page, NULL));
	model_sites_free(&sites);
}

static void print(unsigned which, unsigned how, const uint8_t *file, size_t len,
		  FILE *f)
{
	struct summary_style style = {.width = how & 1 ? 80 : 0,
				      .max_frames = how >> 1 & 3};
	struct select select = {.has_thread = how & 16,
				.thread = 4712,
				.has_process = how & 32,
				.process = 4711,
				.from_ns = how & 64 ? SAMPLE_MS(300) : 0,
				.to_ns = how & 128 ? SAMPLE_MS(20000) : 0};
	struct summary_input input[2] = {{.name = "x"}, {.name = "y"}};
	size_t nr = which & REPORT_TWO ? 2 : 1;
	bool here = which & REPORT_HERE;
	struct summary *s;
	which %= REPORT_NR;
	select.only_sums = which == REPORT_SUMMARY || which == REPORT_FOLDED;
	select.phase_sums = !select.only_sums;
	select.nap_bytes = how & 4 ? 1000 : 0;
	select.ahead_bytes = here ? 0 : 1;
	if (trace_reader_open_mem(file, len, &input[0].reader, NULL))
		return;
	if (nr == 2)
		must(trace_reader_open_mem(sample.data, sample.size,
					   &input[1].reader, NULL));
	if (which == REPORT_JUWEL) {
		must(records_print_juwel(input, nr, &select, f, NULL));
	} else if (which == REPORT_CTF) {
		print_ctf(input, &select);
	} else {
		must(summary_load_files(input, nr, &select, &s, NULL));
		for (size_t i = 0; i < nr; i++)
			trace_rewind(input[i].reader);
		if (which == REPORT_SUMMARY)
			summary_print(s, f, "x.trace", &style);
		else if (which == REPORT_JSON)
			must(summary_print_json(s, f, NULL));
		else if (which == REPORT_PAGE)
			must(html_print(s, f, NULL));
		else if (which == REPORT_PERFETTO)
			must(perfetto_print(s, f, NULL));
		else if (which == REPORT_FOLDED)
			must(how & 1 ? folded_print_naps(s, f, NULL)
				     : folded_print_samples(s, f, NULL));
		else
			print_section(s, input, nr, &select,
				      which - REPORT_SECTION, how, f);
		summary_free(s);
	}
	for (size_t i = 0; i < nr; i++)
		trace_reader_close(input[i].reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t text_size = 0, len;
	if (size < 2)
		return 0;
	uint8_t *file = mutate(data + 2, size - 2, &len);
	if (!file)
		return 0;
	unsigned which = data[0] % (2 * REPORT_HERE);
	FILE *f = open_memstream(&text, &text_size);
	print(which, data[1], file, len, f);
	fclose(f);
	/* Nothing that steers a terminal. */
	for (size_t i = 0; i < text_size; i++)
		if (text[i] != '\n' && text[i] != '\r' && !(text[i] & 0x80) &&
		    text[i] < ' ')
			abort();
	if (which % REPORT_NR == REPORT_PAGE && text_size &&
	    !page_is_whole(text))
		abort();
	free(text);
	free(file);
	return 0;
}
