#include "reports/cli.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reports/line.h"
#include "reports/shortage.h"

#define SAY_MAX 1024

static const char *tool_name = "smco";

void cli_begin(const char *tool)
{
	shortage_watch_jansson();
	tool_name = tool;
}

/* One line, which steers no terminal, whatever a file is called or a trace
 * says. Never longer. */
static void clean(char *text)
{
	char *to = text;
	bool ok;
	for (size_t n; (n = line_char(text, &ok)) != 0; text += n) {
		if (ok)
			memmove(to, text, n);
		else
			*to = '?';
		to += ok ? n : 1;
	}
	*to = '\0';
}

static void say(const char *fmt, va_list ap, const char *end)
	__attribute__((format(printf, 1, 0)));
static void say(const char *fmt, va_list ap, const char *end)
{
	char text[SAY_MAX];
	vsnprintf(text, sizeof(text), fmt, ap);
	clean(text);
	fprintf(stderr, "%s: %s%s", tool_name, text, end);
}

void cli_complain(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap, "\n");
	va_end(ap);
}

_Noreturn void cli_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap, " (see --help)\n");
	va_end(ap);
	exit(CLI_USAGE);
}

/* Exit with 0, or with @failed if what was printed did not arrive. */
static _Noreturn void finish(int failed)
{
	if (fflush(stdout) || ferror(stdout)) {
		cli_complain("cannot write: %s", strerror(errno));
		exit(failed);
	}
	exit(0);
}

_Noreturn void cli_common_option(int c, char **argv, const char *help,
				 int failed)
{
	if (c == 'h') {
		fputs(help, stdout);
		finish(failed);
	}
	if (c == 'V') {
		printf("%s %s\n", tool_name, SMCO_VERSION);
		finish(failed);
	}
	if (c == ':')
		cli_usage("%s wants a value", argv[optind - 1]);
	if (optopt && optopt < 256)
		cli_usage("unknown option -%c", optopt);
	cli_usage("unknown option %s", argv[optind - 1]);
}

void cli_keep_traces(const char *to, const char *const *path, size_t nr)
{
	struct stat a, b;
	if (!to || stat(to, &a) || !S_ISREG(a.st_mode))
		return;
	for (size_t i = 0; i < nr; i++)
		if (!stat(path[i], &b) && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			cli_usage("-o %s would replace a trace that is read",
				  to);
}

unsigned cli_number(const char *option, const char *text)
{
	char *end;
	errno = 0;
	unsigned long v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v >= UINT_MAX)
		cli_usage("--%s wants a number, not \"%s\"", option, text);
	return (unsigned)v;
}

static enum cli_color parse_color(const char *text)
{
	if (!strcmp(text, "auto"))
		return COLOR_AUTO;
	if (!strcmp(text, "always"))
		return COLOR_ALWAYS;
	if (!strcmp(text, "never"))
		return COLOR_NEVER;
	cli_usage("--color wants auto, always or never, not \"%s\"", text);
}

static unsigned terminal_width(void)
{
	struct winsize ws;
	const char *columns = getenv("COLUMNS");
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_col)
		return ws.ws_col;
	int n = columns ? atoi(columns) : 0;
	return n > 0 ? (unsigned)n : 80;
}

static bool want_color(enum cli_color color, bool is_tty)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return is_tty && !(no_color && *no_color) &&
	       !(term && !strcmp(term, "dumb"));
}

bool cli_output_option(int c, struct cli_output *o)
{
	switch (c) {
	case CLI_OPT_COLOR:
		o->color = parse_color(optarg);
		return true;
	case CLI_OPT_NO_PAGER:
		o->no_pager = true;
		return true;
	case CLI_OPT_WIDTH:
		o->width = cli_number("width", optarg);
		return true;
	default:
		return false;
	}
}

struct page cli_output_begin(struct cli_output *o, bool for_people)
{
	bool is_tty = isatty(STDOUT_FILENO);
	struct page page = {
		.out = stdout,
		.width = o->width == UINT_MAX ? terminal_width() : o->width,
		.color = for_people && want_color(o->color, is_tty),
		.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
	};
	if (is_tty && for_people && !o->no_pager)
		pager_start(&o->pager);
	return page;
}

int cli_output_end(struct cli_output *o, int rc, struct smco_err *err)
{
	if (!rc)
		rc = shortage_check(err);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = smco_fail(err, SMCO_SYS, errno, "cannot write");
	/* The reader has seen enough. */
	if (rc == SMCO_SYS && o->pager.pid && err->sys_errno == EPIPE)
		rc = 0;
	pager_wait(&o->pager);
	return rc;
}
