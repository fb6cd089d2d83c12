/*
 * cli.h - what the mains of smco-report and smco-diff share: complaints,
 * option values, what the terminal is like. The only file beside the mains
 * that prints to standard error and exits; nothing but a main calls it.
 */
#ifndef SMCO_CLI_H
#define SMCO_CLI_H

#include <limits.h>

#include "reports/line.h"
#include "reports/pager.h"

enum cli_status { CLI_FAILED = 1, CLI_USAGE = 2 };

enum cli_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* First of all: the tool's name, in front of every message. Kept. */
void cli_begin(const char *tool);
/* One line on standard error. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Complain about how the tool was called, and exit with CLI_USAGE. */
_Noreturn void cli_usage(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
/*
 * What every tool does with an option that is none of its own, @c being what
 * getopt_long returned: 'h' prints @help, 'V' the version, and the tool exits
 * with 0, or with @failed if standard output could not be written; ':' and '?'
 * (with "opterr = 0" and a ':' in front of the short options) are cli_usage.
 */
_Noreturn void cli_common_option(int c, char **argv, const char *help,
				 int failed);

/* cli_usage if @to, the file of -o or NULL, would take the place of one of the
 * @nr traces @path, which are read. */
void cli_keep_traces(const char *to, const char *const *path, size_t nr);

/* Value of --@option; cli_usage if it is none. */
unsigned cli_number(const char *option, const char *text);

/*
 * Printing for people: the options that say how, and standard output behind a
 * pager, in colours, as wide as the terminal. Start from CLI_OUTPUT_DEFAULT.
 */
struct cli_output {
	enum cli_color color;
	bool no_pager;
	unsigned width; /* UINT_MAX = as the terminal */
	/* private: */
	struct pager pager;
};
#define CLI_OUTPUT_DEFAULT ((struct cli_output){.width = UINT_MAX})

/* For getopt_long, among the tool's own options (below 1000); with those of
 * cli_common_option. */
enum { CLI_OPT_COLOR = 1000, CLI_OPT_NO_PAGER, CLI_OPT_WIDTH };
#define CLI_OPTIONS                                                            \
	{"color", required_argument, NULL, CLI_OPT_COLOR},                     \
		{"colour", required_argument, NULL, CLI_OPT_COLOR},            \
		{"no-pager", no_argument, NULL, CLI_OPT_NO_PAGER},             \
		{"width", required_argument, NULL, CLI_OPT_WIDTH},             \
		{"help", no_argument, NULL, 'h'},                              \
	{                                                                      \
		"version", no_argument, NULL, 'V'                              \
	}
/* True if @c was one of them; cli_usage if its value is bad. */
bool cli_output_option(int c, struct cli_output *o);

/* Before anything is printed. What is not @for_people gets neither colours nor
 * a pager. setlocale must have been called: outside UTF-8 the page is ASCII.
 */
struct page cli_output_begin(struct cli_output *o, bool for_people);
/* After all, @rc being how printing went: flush, wait for the pager's end. A
 * pager that was left early is no error. Returns @rc, or SMCO_SYS if standard
 * output could not be written. */
int cli_output_end(struct cli_output *o, int rc, struct smco_err *err);

#endif
