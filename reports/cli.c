#include "reports/cli.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *tool_name = "smco";

void cli_begin(const char *tool)
{
	tool_name = tool;
}

static void say(const char *fmt, va_list ap, const char *end)
	__attribute__((format(printf, 1, 0)));
static void say(const char *fmt, va_list ap, const char *end)
{
	fprintf(stderr, "%s: ", tool_name);
	vfprintf(stderr, fmt, ap);
	fputs(end, stderr);
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

_Noreturn void cli_bad_option(int c, char **argv)
{
	if (c == ':')
		cli_usage("%s wants a value", argv[optind - 1]);
	if (optopt && optopt < 256)
		cli_usage("unknown option -%c", optopt);
	cli_usage("unknown option %s", argv[optind - 1]);
}

_Noreturn void cli_finish(int failed)
{
	if (fflush(stdout) || ferror(stdout)) {
		cli_complain("cannot write: %s", strerror(errno));
		exit(failed);
	}
	exit(0);
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

enum cli_color cli_color(const char *text)
{
	if (!strcmp(text, "auto"))
		return COLOR_AUTO;
	if (!strcmp(text, "always"))
		return COLOR_ALWAYS;
	if (!strcmp(text, "never"))
		return COLOR_NEVER;
	cli_usage("--color wants auto, always or never, not \"%s\"", text);
}

unsigned cli_terminal_width(void)
{
	struct winsize ws;
	const char *columns = getenv("COLUMNS");
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_col)
		return ws.ws_col;
	int n = columns ? atoi(columns) : 0;
	return n > 0 ? (unsigned)n : 80;
}

bool cli_want_color(enum cli_color color, bool is_tty)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return is_tty && !(no_color && *no_color) &&
	       !(term && !strcmp(term, "dumb"));
}

bool cli_is_ascii(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}
