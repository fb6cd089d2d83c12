/*
 * cli.h - what the mains of smco-report and smco-diff share: complaints,
 * option values, what the terminal is like. The only file beside the mains
 * that prints to standard error and exits; nothing but a main calls it.
 */
#ifndef SMCO_CLI_H
#define SMCO_CLI_H

#include "reports/base.h"

enum cli_status { CLI_FAILED = 1, CLI_USAGE = 2 };

enum cli_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* First of all: the tool's name, in front of every message. Kept. */
void cli_begin(const char *tool);
/* One line on standard error. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Complain about how the tool was called, and exit with CLI_USAGE. */
_Noreturn void cli_usage(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
/* Which option getopt_long stumbled over; @c is what it returned (':' or '?',
 * with "opterr = 0" and a ':' in front of the short options). */
_Noreturn void cli_bad_option(int c, char **argv);
/* Exit with 0, or with @failed and a complaint if standard output could not be
 * written. */
_Noreturn void cli_finish(int failed);

/* Value of --@option; cli_usage if it is none. */
unsigned cli_number(const char *option, const char *text);
enum cli_color cli_color(const char *text);

/* Columns of the terminal, of $COLUMNS, or 80. */
unsigned cli_terminal_width(void);
/* NO_COLOR and TERM=dumb count unless @color says what is wanted. */
bool cli_want_color(enum cli_color color, bool is_tty);
/* Outside UTF-8; setlocale must have been called. */
bool cli_is_ascii(void);

#endif
