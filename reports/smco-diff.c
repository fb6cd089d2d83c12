/* smco-diff - what changed between runs of a program. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/accuracy.h"
#include "reports/cli.h"
#include "reports/diff-print.h"
#include "reports/exitcode.h"
#include "reports/mark.h"
#include "reports/output.h"
#include "reports/shortage.h"

enum status { STATUS_CROSSED = 1, STATUS_FAILED = 2 };

enum long_option {
	OPT_ACCURACY = 256,
	OPT_BASE,
	OPT_NEW,
	OPT_ALL,
	OPT_FAIL_ON,
	OPT_FORCE,
	OPT_FRAMES,
	OPT_HTML,
	OPT_JSON,
	OPT_MIN_CHANGE,
	OPT_TOP,
};

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_HTML };

struct options {
	enum format format;
	bool force, all, accuracy;
	const char *no_accuracy; /* an option that does not go with it */
	struct cli_output output;
	const char *to; /* -o; NULL = standard output */
	unsigned top, frames;
	double least_change;	       /* < 0 = the default */
	const char **path[DIFF_SIDES]; /* owned */
	size_t nr_paths[DIFF_SIDES];
	struct diff_rules rules;
};

static struct output file; /* -o */

static const char help[] =
	"usage: smco-diff [options] BASE NEW\n"
	"       smco-diff [options] --base FILE... --new FILE...\n"
	"       smco-diff [options] --accuracy RUN REFERENCE\n"
	"Show what changed between traces of two runs of a program, or "
	"between\n"
	"repeated runs of two versions: where memory lies unused that did "
	"not,\n"
	"and what went away. \"-\" is standard input.\n"
	"\n"
	"      --base FILE...     traces of the version to compare with\n"
	"      --new FILE...      traces of the version in question\n"
	"      --all              also what did not change, or by chance\n"
	"      --min-change PCT   less is no change (5; one run a side: 10)\n"
	"      --fail-on RULE     exit status 1 if crossed; several times;\n"
	"                         'nap.bytes_seconds > +10%', 'sites.new > "
	"0'\n"
	"      --force            also different programs, or traces without "
	"end\n"
	"      --accuracy         how much of the ranges of variables RUN has "
	"found,\n"
	"                         by REFERENCE, which had no limit\n"
	"      --json             everything, as one JSON document\n"
	"      --html             one page, side by side\n"
	"  -o, --output FILE      to FILE\n"
	"      --top N            at most N changes, 0 = all (20)\n"
	"      --frames N         at most N frames a stack, 0 = all (8)\n"
	"      --color WHEN       auto, always or never\n"
	"      --width N          columns, 0 = no limit (the terminal's, or "
	"80)\n"
	"      --no-pager         do not use $PAGER on a terminal\n"
	"  -h, --help             this text\n"
	"  -V, --version          version\n"
	"\n"
	"Exit status: 0 compared, 1 a rule of --fail-on is crossed, 2 the "
	"traces\n"
	"could not be compared, or bad usage, 11 compared, but a trace is "
	"damaged.\n"
	"See smco-diff(1).\n";

static _Noreturn void die(const struct smco_err *err)
{
	output_abandon(&file);
	cli_complain("%s", err->msg);
	exit(STATUS_FAILED);
}

static void add_path(struct options *o, int side, const char *path)
{
	const char **grown = reallocarray(o->path[side], o->nr_paths[side] + 1,
					  sizeof(*grown));
	if (!grown)
		cli_usage("too many traces");
	o->path[side] = grown;
	o->path[side][o->nr_paths[side]++] = path;
}

static double parse_percent(const char *option, const char *text)
{
	char *end;
	double v = strtod(text, &end);
	end += *end == '%';
	if (*text < '0' || *text > '9' || *end || !(v <= 1e6))
		cli_usage("--%s wants a percentage, not \"%s\"", option, text);
	return v / 100;
}

/* True if @c was one of the options that say how it is shown. */
static bool parse_style(int c, struct options *o)
{
	switch (c) {
	case OPT_ALL:
		o->all = true;
		return true;
	case OPT_FRAMES:
		o->frames = cli_number("frames", optarg);
		return true;
	case OPT_HTML:
	case OPT_JSON:
		o->format = c == OPT_HTML ? FORMAT_HTML : FORMAT_JSON;
		return true;
	case OPT_TOP:
		o->top = cli_number("top", optarg);
		return true;
	case 'o':
		o->to = strcmp(optarg, "-") ? optarg : NULL;
		return true;
	default:
		return cli_output_option(c, &o->output);
	}
}

/* What is about changes has no meaning for --accuracy. */
static bool goes_with_accuracy(int c)
{
	switch (c) {
	case OPT_ALL:
	case OPT_BASE:
	case OPT_FAIL_ON:
	case OPT_FRAMES:
	case OPT_HTML:
	case OPT_MIN_CHANGE:
	case OPT_NEW:
	case OPT_TOP:
		return false;
	default:
		return true;
	}
}

/* Traces: in front of --base and --new they go by their order. */
static void sort_plain(struct options *o, const char **plain, size_t nr)
{
	if (o->nr_paths[DIFF_BASE] || o->nr_paths[DIFF_NEW]) {
		if (nr)
			cli_usage("\"%s\" is neither behind --base nor behind "
				  "--new",
				  plain[0]);
		for (int i = 0; i < DIFF_SIDES; i++)
			if (!o->nr_paths[i])
				cli_usage("%s wants at least one trace",
					  i == DIFF_BASE ? "--base" : "--new");
		return;
	}
	if (nr != 2)
		cli_usage(nr > 2 ? "two traces; more with --base and --new"
				 : "two traces are needed");
	add_path(o, DIFF_BASE, plain[0]);
	add_path(o, DIFF_NEW, plain[1]);
}

static void check_stdin(const struct options *o)
{
	size_t nr = 0;
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < o->nr_paths[i]; k++)
			nr += !strcmp(o->path[i][k], "-");
	if (nr && o->accuracy)
		cli_usage("--accuracy reads files, not standard input");
	if (nr > 1)
		cli_usage("standard input can be read once");
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"accuracy", no_argument, NULL, OPT_ACCURACY},
		{"base", required_argument, NULL, OPT_BASE},
		{"new", required_argument, NULL, OPT_NEW},
		{"output", required_argument, NULL, 'o'},
		{"all", no_argument, NULL, OPT_ALL},
		{"fail-on", required_argument, NULL, OPT_FAIL_ON},
		{"force", no_argument, NULL, OPT_FORCE},
		{"frames", required_argument, NULL, OPT_FRAMES},
		{"html", no_argument, NULL, OPT_HTML},
		{"json", no_argument, NULL, OPT_JSON},
		{"min-change", required_argument, NULL, OPT_MIN_CHANGE},
		{"top", required_argument, NULL, OPT_TOP},
		CLI_OPTIONS,
		{0},
	};
	struct smco_err err = {0};
	const char **plain = calloc((size_t)argc + 1, sizeof(*plain));
	size_t nr_plain = 0;
	int c, at, side = -1;
	if (!plain)
		cli_usage("too many traces");
	opterr = 0;
	/* "-" in front: files come in order, as 1, so that --base takes all
	 * that follow. */
	while ((c = getopt_long(argc, argv, "-:hVo:", longs, &at)) != -1) {
		if (!goes_with_accuracy(c))
			o->no_accuracy = longs[at].name;
		if (parse_style(c, o))
			continue;
		switch (c) {
		case 1:
			if (side < 0)
				plain[nr_plain++] = optarg;
			else
				add_path(o, side, optarg);
			break;
		case OPT_BASE:
		case OPT_NEW:
			side = c == OPT_BASE ? DIFF_BASE : DIFF_NEW;
			add_path(o, side, optarg);
			break;
		case OPT_FAIL_ON:
			if (diff_rules_add(&o->rules, optarg, &err))
				cli_usage("--fail-on %s", err.msg);
			break;
		case OPT_ACCURACY:
			o->accuracy = true;
			break;
		case OPT_FORCE:
			o->force = true;
			break;
		case OPT_MIN_CHANGE:
			o->least_change = parse_percent("min-change", optarg);
			break;
		default:
			cli_common_option(c, argv, help, STATUS_FAILED);
		}
	}
	for (; optind < argc; optind++) { /* behind "--" */
		if (side < 0)
			plain[nr_plain++] = argv[optind];
		else
			add_path(o, side, argv[optind]);
	}
	sort_plain(o, plain, nr_plain);
	free(plain);
	check_stdin(o);
	for (int i = 0; i < DIFF_SIDES; i++)
		cli_keep_traces(o->to, o->path[i], o->nr_paths[i]);
	if (o->accuracy && o->no_accuracy)
		cli_usage("--accuracy and --%s do not go together",
			  o->no_accuracy);
}

static void load(struct diff *d, const struct options *o)
{
	struct smco_err err = {0};
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < o->nr_paths[i]; k++)
			if (diff_add_run(d, i, o->path[i][k], &err))
				die(&err);
	if (shortage_check(&err) || (!o->force && diff_check(d, &err)))
		die(&err);
}

/* Said also where the output goes to a file. Whether there was any. */
static bool complain_of_damage(const struct diff *d)
{
	bool any = false;
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++) {
			const struct diff_run *run = &d->side[i].run[k];
			if (!run->nr_damaged)
				continue;
			any = true;
			cli_complain(
				"%s is damaged: %llu part%s skipped, "
				"%llu record%s lost; the rest was compared",
				run->path, (unsigned long long)run->nr_damaged,
				run->nr_damaged == 1 ? "" : "s",
				(unsigned long long)run->nr_lost,
				run->nr_lost == 1 ? "" : "s");
		}
	return any;
}

static struct page begin_page(struct options *o)
{
	struct page page = cli_output_begin(&o->output,
					    o->format == FORMAT_TEXT && !o->to);
	if (o->to)
		page.out = file.file;
	return page;
}

static int end_page(struct options *o, int rc, struct smco_err *err)
{
	if (!rc)
		rc = shortage_check(err);
	if (!rc && o->to)
		rc = output_commit(&file, err);
	return cli_output_end(&o->output, rc, err);
}

static int show(const struct diff *d, struct options *o, struct smco_err *err)
{
	struct diff_style style = {
		.page = begin_page(o),
		.max_changes = o->top,
		.max_frames = o->frames,
		.all = o->all,
	};
	int rc = 0;
	if (o->format == FORMAT_JSON)
		rc = diff_print_json(d, &o->rules, style.page.out, err);
	else if (o->format == FORMAT_HTML)
		diff_print_html(d, &o->rules, &style);
	else
		diff_print_text(d, &o->rules, &style);
	if (!rc)
		rc = shortage_check(err);
	if (rc && o->format == FORMAT_TEXT)
		mark_put(&style.page, NULL, err->msg);
	return end_page(o, rc, err);
}

static struct summary *load_ranges(const char *path)
{
	struct trace_reader *reader;
	struct summary *s;
	struct smco_err err = {0};
	if (trace_reader_open(path, &reader, &err) ||
	    summary_load(reader, &s, &err))
		die(&err);
	trace_reader_close(reader); /* the summary keeps it */
	if (model_has_monitor(s, "range"))
		return s;
	smco_fail(&err, SMCO_NOTFOUND, 0,
		  "%.200s: no ranges in the trace: they are recorded by "
		  "smco-trace -m range",
		  path);
	die(&err);
}

/* Without any there is nothing to measure by. */
static void require_variables(const struct summary *s, const char *path)
{
	const char *why = trace_meta(s->reader, "range.missing");
	struct smco_err err = {0};
	if (s->ranges.nr)
		return;
	smco_fail(&err, SMCO_NOTFOUND, 0,
		  "%.200s: no ranges in the trace%s%.500s", path,
		  why ? ": " : "", why ? why : "");
	die(&err);
}

/* In front of it stands that the traces can be compared. */
static void show_accuracy(struct options *o)
{
	struct smco_err err = {0};
	struct accuracy_traces traces = {
		.run_path = o->path[DIFF_BASE][0],
		.reference_path = o->path[DIFF_NEW][0],
	};
	struct summary *run = load_ranges(traces.run_path);
	struct summary *reference = load_ranges(traces.reference_path);
	struct accuracy a;
	traces.run = run;
	traces.reference = reference;
	require_variables(reference, traces.reference_path);
	if (accuracy_measure(&run->ranges, &reference->ranges, &a, &err))
		die(&err);
	struct page page = begin_page(o);
	int rc = 0;
	if (o->format == FORMAT_JSON)
		rc = accuracy_print_json(&a, &traces, page.out, &err);
	else
		accuracy_print_text(&a, &traces, &page);
	if (end_page(o, rc, &err))
		die(&err);
	accuracy_free(&a);
	summary_free(run);
	summary_free(reference);
}

static bool show_changes(struct diff *d, struct options *o)
{
	struct smco_err err = {0};
	struct diff_config config = {.least_change = o->least_change};
	bool single =
		d->side[DIFF_BASE].nr_runs + d->side[DIFF_NEW].nr_runs == 2;
	if (config.least_change < 0)
		config.least_change = single ? 0.1 : 0.05;
	if (diff_rules_check(&o->rules, d, &err) ||
	    diff_compare(d, &config, &err))
		die(&err);
	bool crossed = diff_rules_apply(&o->rules, d);
	if (show(d, o, &err))
		die(&err);
	return crossed;
}

int main(int argc, char **argv)
{
	struct options o = {
		.output = CLI_OUTPUT_DEFAULT,
		.top = 20,
		.frames = 8,
		.least_change = -1,
	};
	struct diff d = {0};
	struct smco_err err = {0};

	cli_begin("smco-diff");
	setlocale(LC_CTYPE, "");
	parse(argc, argv, &o);
	if (o.to && output_open(&file, o.to, &err)) /* before all else */
		die(&err);
	load(&d, &o);
	bool crossed = false;
	if (o.accuracy)
		show_accuracy(&o);
	else
		crossed = show_changes(&d, &o);
	bool damaged = complain_of_damage(&d);
	for (int i = 0; i < DIFF_SIDES; i++)
		free(o.path[i]);
	diff_rules_free(&o.rules);
	diff_deinit(&d);
	/* A rule says little of what is not all there, crossed or not. */
	if (damaged)
		return EXITCODE_DAMAGED;
	return crossed ? STATUS_CROSSED : 0;
}
