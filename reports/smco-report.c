/* smco-report - show what a trace says. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/cli.h"
#include "reports/newest.h"
#include "reports/pager.h"
#include "reports/summary.h"

enum long_option {
	OPT_JSON = 256,
	OPT_COLOR,
	OPT_NO_PAGER,
	OPT_TOP,
	OPT_FRAMES,
	OPT_WIDTH,
};

struct options {
	bool json;
	bool pager;
	enum cli_color color;
	unsigned top, frames;
	unsigned width; /* UINT_MAX = as the terminal */
	const char *file;
};

static const char help[] =
	"usage: smco-report [options] [FILE]\n"
	"Show what smco-trace has recorded. FILE is a trace; by default the\n"
	"newest *.trace in this directory, \"-\" is standard input.\n"
	"\n"
	"      --top N            at most N allocation sites, 0 = all (10)\n"
	"      --frames N         at most N frames a stack, 0 = all (8); "
	"sites\n"
	"                         that look the same so far are one\n"
	"      --json             everything, as one JSON document\n"
	"      --color WHEN       auto, always or never\n"
	"      --width N          columns, 0 = no limit (the terminal's, or "
	"80)\n"
	"      --no-pager         do not use $PAGER on a terminal\n"
	"  -h, --help             this text\n"
	"  -V, --version          version\n"
	"\n"
	"Exit status: 0 shown, 1 the trace could not be read or the output "
	"not\n"
	"written, 2 bad usage. See smco-report(1).\n";

static _Noreturn void die(const struct smco_err *err)
{
	cli_complain("%s", err->msg);
	exit(CLI_FAILED);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, OPT_JSON},
		{"color", required_argument, NULL, OPT_COLOR},
		{"colour", required_argument, NULL, OPT_COLOR},
		{"no-pager", no_argument, NULL, OPT_NO_PAGER},
		{"top", required_argument, NULL, OPT_TOP},
		{"frames", required_argument, NULL, OPT_FRAMES},
		{"width", required_argument, NULL, OPT_WIDTH},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	int c;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hV", longs, NULL)) != -1) {
		switch (c) {
		case OPT_JSON:
			o->json = true;
			break;
		case OPT_COLOR:
			o->color = cli_color(optarg);
			break;
		case OPT_NO_PAGER:
			o->pager = false;
			break;
		case OPT_TOP:
			o->top = cli_number("top", optarg);
			break;
		case OPT_FRAMES:
			o->frames = cli_number("frames", optarg);
			break;
		case OPT_WIDTH:
			o->width = cli_number("width", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			cli_finish(CLI_FAILED);
		case 'V':
			puts("smco-report " SMCO_VERSION);
			cli_finish(CLI_FAILED);
		default:
			cli_bad_option(c, argv);
		}
	}
	if (argc - optind > 1)
		cli_usage("one trace at a time, not also \"%s\"",
			  argv[optind + 1]);
	o->file = argv[optind];
}

static int show(const struct summary *s, const char *path,
		const struct options *o, struct smco_err *err)
{
	bool is_tty = isatty(STDOUT_FILENO);
	struct summary_style style = {
		.color = cli_want_color(o->color, is_tty),
		.width = o->width == UINT_MAX ? cli_terminal_width() : o->width,
		.max_sites = o->top,
		.max_frames = o->frames,
		.ascii = cli_is_ascii(),
	};
	struct pager pager = {0};
	if (is_tty && o->pager && !o->json)
		pager_start(&pager);
	int rc = 0;
	if (o->json)
		rc = summary_print_json(s, stdout, err);
	else
		summary_print(s, stdout, path, &style);
	if (!rc && (fflush(stdout) || ferror(stdout)) &&
	    !(pager.pid && errno == EPIPE)) /* the reader has seen enough */
		rc = smco_fail(err, SMCO_SYS, errno, "cannot write");
	pager_wait(&pager);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {
		.pager = true,
		.top = 10,
		.frames = 8,
		.width = UINT_MAX,
	};
	struct smco_err err = {0};
	struct trace_reader *reader;
	struct summary *summary;
	char newest[PATH_MAX];

	cli_begin("smco-report");
	setlocale(LC_CTYPE, "");
	parse(argc, argv, &o);
	if (!o.file) {
		if (newest_trace(".", newest, sizeof(newest), &err))
			die(&err);
		o.file = newest;
	}
	bool is_stdin = !strcmp(o.file, "-");
	if (trace_reader_open(is_stdin ? "/dev/stdin" : o.file, &reader, &err))
		die(&err);
	if (summary_load(reader, &summary, &err))
		die(&err);
	trace_reader_close(reader);
	int rc = show(summary, is_stdin ? NULL : o.file, &o, &err);
	summary_free(summary);
	if (rc)
		die(&err);
	return 0;
}
