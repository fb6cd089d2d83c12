/* smco-report - show what traces say. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/cli.h"
#include "reports/ctf.h"
#include "reports/exitcode.h"
#include "reports/folded.h"
#include "reports/html.h"
#include "reports/mark.h"
#include "reports/model.h"
#include "reports/newest.h"
#include "reports/output.h"
#include "reports/perfetto.h"
#include "reports/quantity.h"
#include "reports/records.h"
#include "reports/section.h"
#include "reports/shortage.h"
#include "reports/suppress.h"

enum long_option {
	OPT_JSON = 256,
	OPT_CSV,
	OPT_JUWEL,
	OPT_HTML,
	OPT_PERFETTO,
	OPT_CTF,
	OPT_TOP,
	OPT_SORT,
	OPT_WHERE,
	OPT_PROCESS,
	OPT_THREAD,
	OPT_FROM,
	OPT_TO,
	OPT_SUPPRESSIONS,
	OPT_FRAMES,
	OPT_FLAMEGRAPH,
	OPT_SECTION, /* and the number of the section */
};

struct options {
	bool json, csv, juwel, flamegraph, html, perfetto;
	bool of_naps;	  /* the flame graph */
	const char *ctf;  /* directory, or NULL */
	const char *path; /* of -o, or NULL */
	struct cli_output output;
	bool has_top;
	unsigned top, frames;
	const struct section *section;
	const char *where, *sort, *suppressions;
	struct select select;
	char **file;
	size_t nr_files;
};

static const char help[] =
	"usage: smco-report [options] [FILE...]\n"
	"Show what smco-trace has recorded. FILEs are traces, taken together;\n"
	"by default the newest *.trace in this directory, \"-\" is standard\n"
	"input.\n"
	"\n"
	"What, instead of the summary:\n"
	"      --sites            where the blocks were allocated\n"
	"      --naps             every nap\n"
	"      --ranges           the values that variables had\n"
	"      --samples          the functions that ran, by samples\n"
	"      --phases           how often phases were entered, how long\n"
	"      --phase-counters   what was counted in each\n"
	"      --phase-ranges     the values that variables had in each\n"
	"      --flamegraph[=naps]\n"
	"                         stacks of samples, folded, for "
	"flamegraph.pl;\n"
	"                         of naps: allocation stacks by byte seconds\n"
	"      --overhead         what watching cost, over time\n"
	"      --counters         what was counted, in all and by thread\n"
	"      --events           every record\n"
	"      --juwel            every record, plain: EventID, Timestamp,\n"
	"                         ProcessorID, ThreadID, Parameter, payload\n"
	"Which:\n"
	"      --where COND       as 'size > 1M && site ~ \"parse\"'; see the\n"
	"                         manual\n"
	"      --process PID      of this process\n"
	"      --thread TID       of this thread (--events, --juwel, "
	"--counters,\n"
	"                         --samples, --flamegraph)\n"
	"      --from TIME, --to TIME\n"
	"                         of this part of the session (as 1.5s, 2m)\n"
	"      --suppressions FILE\n"
	"                         leave out naps of the allocation stacks "
	"that\n"
	"                         FILE names, in LeakSanitizer's format\n"
	"      --sort COLUMN      largest first; -COLUMN: smallest first\n"
	"      --top N            at most N, 0 = all (10 in the summary)\n"
	"How:\n"
	"      --html             as a page for a browser: strips over time, "
	"tables\n"
	"      --perfetto         as JSON for ui.perfetto.dev\n"
	"      --ctf DIR          as a CTF 1.8 trace, for babeltrace2\n"
	"  -o, --output FILE      to FILE\n"
	"      --frames N         at most N frames a stack, 0 = all (8); "
	"sites\n"
	"                         that look the same so far are one\n"
	"      --json             as JSON; without a table's name everything\n"
	"      --csv              as CSV; without a table's name --sites\n"
	"      --color WHEN       auto, always or never\n"
	"      --width N          columns, 0 = no limit (the terminal's, or "
	"80)\n"
	"      --no-pager         do not use $PAGER on a terminal\n"
	"  -h, --help             this text\n"
	"  -V, --version          version\n"
	"\n"
	"Exit status: 0 shown, 1 failed, 2 bad usage, 3 not a trace, 4 needs "
	"a\n"
	"newer smco-report, 5 empty, 6 another architecture, 7 a directory,\n"
	"8 no permission, 9 no such file; 10 shown, but the trace has no end,\n"
	"11 shown, but the trace is damaged. See smco-report(1).\n";

static struct output to;    /* -o */
static const char *ctf_dir; /* that was made, or NULL */

static _Noreturn void die(const struct smco_err *err)
{
	output_abandon(&to);
	if (ctf_dir)
		ctf_abandon(ctf_dir);
	cli_complain("%s", err->msg);
	exit(exitcode_of(err));
}

static uint64_t parse_time(const char *option, const char *text)
{
	struct smco_err err = {0};
	uint64_t ns;
	if (quantity_time(text, &ns, &err))
		cli_usage("--%s: %s", option, err.msg);
	return ns;
}

static void set_section(struct options *o, const struct section *section)
{
	if (o->section && o->section != section)
		cli_usage("one table at a time, not --%s and --%s",
			  o->section->name, section->name);
	o->section = section;
}

/* True if @c was one of the options that say what is looked at. */
static bool parse_selection(int c, struct options *o)
{
	switch (c) {
	case OPT_WHERE:
		o->where = optarg;
		return true;
	case OPT_SORT:
		o->sort = optarg;
		return true;
	case OPT_SUPPRESSIONS:
		o->suppressions = optarg;
		return true;
	case OPT_PROCESS:
		o->select.has_process = true;
		o->select.process = cli_number("process", optarg);
		return true;
	case OPT_THREAD:
		o->select.has_thread = true;
		o->select.thread = cli_number("thread", optarg);
		return true;
	case OPT_FROM:
		o->select.from_ns = parse_time("from", optarg);
		return true;
	case OPT_TO:
		o->select.to_ns = parse_time("to", optarg);
		if (!o->select.to_ns)
			cli_usage("--to 0 leaves nothing");
		return true;
	case OPT_TOP:
		o->top = cli_number("top", optarg);
		o->has_top = true;
		return true;
	}
	if (c < OPT_SECTION)
		return false;
	set_section(o, section_at((size_t)(c - OPT_SECTION)));
	return true;
}

/* True if @c was one of the options that say how it is shown. */
static bool parse_style(int c, struct options *o)
{
	switch (c) {
	case OPT_JSON:
		o->json = true;
		return true;
	case OPT_CSV:
		o->csv = true;
		return true;
	case OPT_JUWEL:
		o->juwel = true;
		return true;
	case OPT_FLAMEGRAPH:
		o->flamegraph = true;
		o->of_naps = optarg && !strcmp(optarg, "naps");
		if (optarg && !o->of_naps && strcmp(optarg, "samples"))
			cli_usage("--flamegraph is of samples or naps, not of "
				  "\"%s\"",
				  optarg);
		return true;
	case OPT_HTML:
		o->html = true;
		return true;
	case OPT_PERFETTO:
		o->perfetto = true;
		return true;
	case OPT_CTF:
		o->ctf = optarg;
		return true;
	case OPT_FRAMES:
		o->frames = cli_number("frames", optarg);
		return true;
	default:
		return cli_output_option(c, &o->output);
	}
}

/* Are records shown as they are, without the summary's model? */
static bool streams(const struct options *o)
{
	return o->juwel || o->ctf || (o->section && o->section->streams);
}

/* The forms that have everything, for a program of their own. */
static void check_exports(const struct options *o)
{
	const char *name = o->html	 ? "html"
			   : o->perfetto ? "perfetto"
			   : o->ctf	 ? "ctf"
					 : NULL;
	if (!name)
		return;
	if (o->json || o->csv || o->juwel || o->flamegraph ||
	    o->html + o->perfetto + (o->ctf != NULL) > 1)
		cli_usage("--%s has a form of its own: with no other", name);
	if (o->section || o->sort || o->has_top)
		cli_usage("--%s has everything, in its own order: without %s",
			  name,
			  o->section ? "a table's name"
			  : o->sort  ? "--sort"
				     : "--top");
	if (o->ctf && (o->path || o->where || o->suppressions))
		cli_usage("--ctf writes records into its directory: without "
			  "-o, --where and --suppressions");
	if (o->html && !o->path && isatty(STDOUT_FILENO))
		cli_usage("--html needs a file: -o FILE");
}

/* What does not go together. */
static void check(struct options *o)
{
	check_exports(o);
	const struct select *s = &o->select;
	if (o->csv && !o->section)
		o->section = &site_section;
	if (o->json + o->csv + o->juwel > 1)
		cli_usage("one of --json, --csv and --juwel, not more");
	if (o->flamegraph && (o->section || o->json || o->csv || o->juwel))
		cli_usage("--flamegraph has a form of its own: no table, "
			  "--json, --csv or --juwel with it");
	if (o->of_naps && s->has_thread)
		cli_usage("--thread is about samples, not about naps");
	if (o->flamegraph &&
	    ((o->where && !o->of_naps) || o->sort || o->has_top))
		cli_usage("--where, --sort and --top need a table, not "
			  "--flamegraph");
	if (o->juwel && o->section)
		cli_usage("--juwel prints all records, not --%s",
			  o->section->name);
	if (o->juwel && (o->where || o->sort || o->has_top))
		cli_usage(
			"--where, --sort and --top need a table: --events has "
			"what --juwel has");
	bool records = streams(o);
	bool threads = o->flamegraph || o->perfetto ||
		       o->section == &counter_section ||
		       o->section == &phase_counter_section ||
		       o->section == &sample_section;
	if (s->has_thread && !records && !threads)
		cli_usage("--thread is about records: use --events, --juwel, "
			  "--counters, --samples or --flamegraph");
	if (o->suppressions && records)
		cli_usage("--suppressions are about naps, not about records");
	if (s->to_ns && s->to_ns <= s->from_ns)
		cli_usage("--to must be after --from");
	bool of_ranges = o->section == &range_section ||
			 o->section == &phase_range_section;
	if (of_ranges && (s->from_ns || s->to_ns))
		cli_usage("--%s are those of the whole session",
			  o->section->name);
}

static void fill_options(struct option *longs)
{
	static const struct option fixed[] = {
		{"json", no_argument, NULL, OPT_JSON},
		{"csv", no_argument, NULL, OPT_CSV},
		{"juwel", no_argument, NULL, OPT_JUWEL},
		{"flamegraph", optional_argument, NULL, OPT_FLAMEGRAPH},
		{"html", no_argument, NULL, OPT_HTML},
		{"perfetto", no_argument, NULL, OPT_PERFETTO},
		{"ctf", required_argument, NULL, OPT_CTF},
		{"output", required_argument, NULL, 'o'},
		{"top", required_argument, NULL, OPT_TOP},
		{"sort", required_argument, NULL, OPT_SORT},
		{"where", required_argument, NULL, OPT_WHERE},
		{"process", required_argument, NULL, OPT_PROCESS},
		{"thread", required_argument, NULL, OPT_THREAD},
		{"from", required_argument, NULL, OPT_FROM},
		{"to", required_argument, NULL, OPT_TO},
		{"suppressions", required_argument, NULL, OPT_SUPPRESSIONS},
		{"frames", required_argument, NULL, OPT_FRAMES},
		CLI_OPTIONS,
	};
	const struct section *section;
	size_t nr = 0;
	memcpy(longs, fixed, sizeof(fixed));
	nr += ARRAY_SIZE(fixed);
	for (size_t i = 0; (section = section_at(i)) != NULL; i++)
		longs[nr++] = (struct option){section->name, no_argument, NULL,
					      OPT_SECTION + (int)i};
	longs[nr] = (struct option){0};
}

static void parse(int argc, char **argv, struct options *o)
{
	struct option longs[64];
	int c;
	fill_options(longs);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hVo:", longs, NULL)) != -1) {
		if (c >= OPT_JSON &&
		    (parse_style(c, o) || parse_selection(c, o)))
			continue;
		if (c == 'o')
			o->path = strcmp(optarg, "-") ? optarg : NULL;
		else
			cli_common_option(c, argv, help, CLI_FAILED);
	}
	check(o);
	if (o->html)
		o->select.nr_buckets = HTML_BUCKETS;
	o->select.phase_sums = o->html || (o->json && !o->section) ||
			       o->section == &phase_section ||
			       o->section == &phase_counter_section;
	o->select.only_sums = !o->select.phase_sums && !o->perfetto &&
			      o->section != &nap_section;
	o->file = argv + optind;
	o->nr_files = (size_t)(argc - optind);
	if ((o->perfetto || o->ctf) && o->nr_files > 1)
		cli_usage("--perfetto and --ctf: one trace at a time");
}

/* ------------------------------------------------------------- the traces ---
 */

struct traces {
	struct summary_input *input; /* owned */
	size_t nr;
	char newest[PATH_MAX];
};

/* All or none: nothing is printed of some of the traces that were asked for. */
static void open_traces(struct traces *t, struct options *o)
{
	struct smco_err err = {0};
	static char *newest;
	if (!o->nr_files) {
		if (newest_trace(".", t->newest, sizeof(t->newest), &err))
			die(&err);
		newest = t->newest;
		o->file = &newest;
		o->nr_files = 1;
	}
	t->input = calloc(o->nr_files, sizeof(*t->input));
	if (!t->input) {
		cli_complain("out of memory");
		exit(CLI_FAILED);
	}
	for (; t->nr < o->nr_files; t->nr++) {
		struct summary_input *in = &t->input[t->nr];
		const char *file = o->file[t->nr];
		bool is_stdin = !strcmp(file, "-");
		if (trace_reader_open(is_stdin ? "/dev/stdin" : file,
				      &in->reader, &err))
			die(&err);
		in->name = is_stdin ? "standard input" : file;
		if (!trace_is_empty(in->reader))
			continue;
		smco_fail(&err, SMCO_EMPTY, 0, "%s: holds nothing", in->name);
		die(&err);
	}
}

/* Lines about what is missing in the traces; the worst status of them. */
static int judge(const struct traces *t)
{
	char line[400];
	int worst = 0;
	for (size_t i = 0; i < t->nr; i++) {
		int status =
			exitcode_of_trace(t->input[i].reader, t->input[i].name,
					  line, sizeof(line));
		if (status)
			cli_complain("%s", line);
		if (status > worst)
			worst = status;
	}
	return worst;
}

static void close_traces(struct traces *t)
{
	for (size_t i = 0; i < t->nr; i++)
		trace_reader_close(t->input[i].reader);
	free(t->input);
}

/* --------------------------------------------------------------- showing ---
 */

/* Is it read line by line, so that where it ends says nothing? */
static bool is_lines(const struct options *o)
{
	return o->csv || o->juwel || o->flamegraph || (o->section && !o->json);
}

/* What is printed of traces that are not whole, or of what did not fit into
 * memory, must not look as if that were all. Elsewhere it is in the text, or
 * the document is not closed. */
static void mark_parts(const struct section_source *src,
		       const struct options *o, const struct page *page, int rc,
		       const struct smco_err *err)
{
	const char *tool =
		o->csv || o->juwel || o->flamegraph ? "smco-report" : NULL;
	char text[400];
	if (rc == SMCO_NOMEM && !o->json && !o->html && !o->perfetto && !o->ctf)
		mark_put(page, tool, err->msg);
	for (size_t i = 0; i < src->nr_inputs && !rc && is_lines(o); i++)
		if (exitcode_of_trace(src->input[i].reader, src->input[i].name,
				      text, sizeof(text)))
			mark_put(page, tool, text);
}

static int show_section(const struct section_source *src,
			const struct options *o, const struct where *where,
			const struct page *page, struct smco_err *err)
{
	struct section_source with = *src;
	struct model_sites sites = {0};
	struct section_options so = {
		.format = o->csv    ? SECTION_CSV
			  : o->json ? SECTION_JSON
				    : SECTION_TEXT,
		.where = where,
		.sort = o->sort,
		.top = o->has_top ? o->top : 0,
	};
	if (src->s && model_sites(src->s, o->frames, &sites))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	with.sites = &sites;
	int rc = section_print(o->section, &with, &so, page, err);
	model_sites_free(&sites);
	return rc;
}

static int show(const struct section_source *src, struct options *o,
		const struct where *where, struct smco_err *err)
{
	bool for_people = !o->json && !o->csv && !o->juwel && !o->flamegraph &&
			  !o->html && !o->perfetto && !o->path;
	bool one = src->nr_inputs == 1 && strcmp(o->file[0], "-");
	struct page page = cli_output_begin(&o->output, for_people);
	if (o->path)
		page.out = to.file;
	struct summary_style style = {
		.color = page.color,
		.width = page.width,
		.max_sites = o->top,
		.max_frames = o->frames,
		.sort = o->sort,
		.ascii = page.ascii,
	};
	int rc = 0;
	if (o->ctf)
		rc = ctf_write(src->input, src->select, o->ctf, err);
	else if (o->juwel)
		rc = records_print_juwel(src->input, src->nr_inputs,
					 src->select, page.out, err);
	else if (o->of_naps)
		rc = folded_print_naps(src->s, page.out, err);
	else if (o->flamegraph)
		rc = folded_print_samples(src->s, page.out, err);
	else if (o->section)
		rc = show_section(src, o, where, &page, err);
	else if (o->json)
		rc = summary_print_json(src->s, page.out, err);
	else if (o->perfetto)
		rc = perfetto_print(src->s, page.out, err);
	else if (o->html)
		rc = html_print(src->s, page.out, err);
	else
		summary_print(src->s, page.out, one ? o->file[0] : NULL,
			      &style);
	if (!rc)
		rc = shortage_check(err);
	mark_parts(src, o, &page, rc, err);
	if (o->path && !rc)
		rc = output_commit(&to, err);
	return cli_output_end(&o->output, rc, err);
}

static void prepare(struct options *o, struct where **where,
		    struct suppress **suppress)
{
	const struct section *s = o->section ? o->section : &nap_section;
	struct smco_err err = {0};
	if (o->where &&
	    where_parse(o->where, s->column, s->nr_columns, where, &err))
		cli_usage("--where: %s", err.msg);
	if (o->sort &&
	    section_check_sort(o->section ? s : &site_section, o->sort, &err))
		cli_usage("--sort: %s", err.msg);
	if (!o->section)
		o->select.nap_where = *where;
	if (!o->suppressions)
		return;
	if (suppress_load(o->suppressions, suppress, &err)) {
		cli_complain("%s", err.msg);
		exit(err.code == SMCO_FORMAT ? CLI_USAGE : exitcode_of(&err));
	}
	o->select.suppress = *suppress;
}

/* What cannot be written is found out first. */
static void begin_output(const struct options *o)
{
	struct smco_err err = {0};
	cli_keep_traces(o->path, (const char *const *)o->file, o->nr_files);
	if ((o->path && output_open(&to, o->path, &err)) ||
	    (o->ctf && ctf_begin(o->ctf, &err))) {
		cli_complain("%s", err.msg);
		exit(CLI_FAILED);
	}
	ctf_dir = o->ctf;
}

int main(int argc, char **argv)
{
	struct options o = {
		.output = CLI_OUTPUT_DEFAULT,
		.top = 10,
		.frames = 8,
	};
	struct smco_err err = {0};
	struct traces traces = {0};
	struct summary *summary = NULL;
	struct where *where = NULL;
	struct suppress *suppress = NULL;

	cli_begin("smco-report");
	setlocale(LC_CTYPE, "");
	parse(argc, argv, &o);
	prepare(&o, &where, &suppress);
	begin_output(&o);
	open_traces(&traces, &o);
	struct section_source src = {
		.input = traces.input,
		.nr_inputs = traces.nr,
		.select = &o.select,
	};
	if (!streams(&o) && (summary_load_files(traces.input, traces.nr,
						&o.select, &summary, &err) ||
			     shortage_check(&err)))
		die(&err);
	src.s = summary;
	int rc = show(&src, &o, where, &err);
	summary_free(summary);
	where_free(where);
	suppress_free(suppress);
	if (rc)
		die(&err);
	int status = judge(&traces);
	close_traces(&traces);
	return status;
}
