#include "reports/html-head.h"

#include <string.h>
#include <time.h>

#include "reports/command.h"
#include "reports/markup.h"
#include "reports/model.h"
#include "reports/units.h"

static void put_bold(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<b%s%s%s>", class ? " class=\"" : "", class ? class : "",
		class ? "\"" : "");
	markup_text(out, text);
	fputs("</b>", out);
}

static void put_overhead(const struct model_file *f, FILE *out)
{
	uint64_t target = model_reader_u64(f->reader, "target_ppb", UINT64_MAX);
	bool is_limited = target < INT64_MAX;
	char text[UNITS_MAX];
	int64_t ppb = f->has_ledger ? model_overhead_ppb(&f->ledger,
							 f->ledger.spent_ns)
				    : -1;
	if (ppb < 0)
		return;
	fputs(" · overhead ", out);
	put_bold(out, is_limited && ppb > (int64_t)target ? "bad" : NULL,
		 units_percent(ppb, text));
	if (is_limited)
		fprintf(out, " of at most %s",
			units_percent((int64_t)target, text));
	else
		fputs(", no limit", out);
}

static void put_unused(const struct summary *s, uint32_t file, FILE *out)
{
	double byte_seconds = 0;
	uint64_t nr = 0;
	char text[UNITS_MAX];
	for (size_t i = 0; i < s->nr_stacks; i++) {
		if (s->stack[i].file != file)
			continue;
		byte_seconds += s->stack[i].sum.byte_seconds;
		nr += s->stack[i].sum.nr;
	}
	if (!nr)
		return;
	fputs(" · ", out);
	put_bold(out, NULL, units_byte_seconds(byte_seconds, false, text));
	fputs(" unused in ", out);
	put_bold(out, NULL, units_count(nr, text));
	fputs(nr == 1 ? " nap" : " naps", out);
}

static void put_when(struct trace_reader *r, FILE *out)
{
	time_t start = (time_t)(trace_start_real_ns(r) / NSEC_PER_SEC);
	const char *host = trace_meta(r, "hostname");
	struct tm tm;
	char text[64];
	if (!gmtime_r(&start, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		return;
	fprintf(out, " · %s", text);
	if (host && *host) {
		fputs(" on ", out);
		markup_text(out, host);
	}
}

static bool put_run(const struct summary *s, uint32_t file, FILE *out)
{
	const struct model_file *f = &s->file[file];
	const char *slash = f->name ? strrchr(f->name, '/') : NULL;
	_cleanup_free_ char *command = command_shown(f->reader);
	const char *shown = command ? command : "(command unknown)";
	char text[UNITS_MAX];
	if (!command && trace_meta(f->reader, "command"))
		return false;
	fputs("<div class=\"run\">", out);
	if (s->nr_files > 1)
		fprintf(out, "<i class=\"swatch %c\"></i>", file ? 'b' : 'a');
	fputs("<code title=\"", out);
	markup_text(out, shown);
	fputs("\">", out);
	if (s->nr_files > 1 && f->name) {
		markup_text(out, slash ? slash + 1 : f->name);
		fputs(": ", out);
	}
	markup_text(out, shown);
	fputs("</code><span class=\"facts\">ran ", out);
	put_bold(out, NULL, units_duration(f->duration_ns, text));
	put_overhead(f, out);
	put_unused(s, file, out);
	put_when(f->reader, out);
	fputs("</span></div>\n", out);
	return true;
}

int html_head_print(const struct summary *s, FILE *out)
{
	for (size_t i = 0; i < s->nr_files; i++)
		if (!put_run(s, (uint32_t)i, out))
			return SMCO_NOMEM;
	return SMCO_OK;
}
