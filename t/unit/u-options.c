/*
 * The command line: what every good one means, and the line that every bad
 * one gets. Each row stands for one command line, split at spaces.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/options.h"
#include "reports/quantity.h"
#include "t/unit/tap.h"

#define MAX_ARGS 24

/* Split a copy of @line at single spaces; '_' alone is an empty argument. */
static int split(const char *line, char *buf, size_t size, char **argv)
{
	static char name[] = "smco-trace", empty[] = "";
	int argc = 0;
	argv[argc++] = name;
	snprintf(buf, size, "%s", line);
	for (char *p = buf, *save = NULL; argc < MAX_ARGS - 1; p = NULL) {
		char *arg = strtok_r(p, " ", &save);
		if (!arg)
			break;
		argv[argc++] = strcmp(arg, "_") ? arg : empty;
	}
	argv[argc] = NULL;
	return argc;
}

static int parse(const char *line, struct options *ret, struct smco_err *err)
{
	static char buf[512];
	static char *argv[MAX_ARGS];
	int argc = split(line, buf, sizeof(buf), argv);
	return options_parse(argc, argv, ret, err);
}

static void test_defaults(void)
{
	struct options o;
	check_int(parse("cmd", &o, NULL), 0);
	check_int(o.action, ACTION_TRACE);
	check_int(o.target_ppb, 100000000);
	check(!o.is_unlimited);
	check_str(o.output, "smco.trace");
	check_int(o.duration_ns, 0);
	check_int(o.nap_ns, 1000000000);
	check_int(o.min_size_bytes, 8192);
	check_int(o.monitors, MONITOR_NAP);
	check_int(o.mechanism, MECHANISM_AUTO);
	check_int(o.controller, CONTROLLER_CASCADE);
	check_int(o.color, COLOR_AUTO);
	check(o.follow);
	check(!o.kill_on_exit);
	check(!o.quiet);
	check_int(o.verbose, 0);
	check_int(o.nr_pids, 0);
	check_str(o.command[0], "cmd");
	check(!o.command[1]);
	options_deinit(&o);
}

/* One number out of the options, by name, for the tables. */
static intmax_t field(const struct options *o, const char *name)
{
	const struct {
		const char *name;
		intmax_t value;
	} fields[] = {
		{"target", o->target_ppb},
		{"unlimited", o->is_unlimited},
		{"nr_pids", (intmax_t)o->nr_pids},
		{"pid0", o->nr_pids > 0 ? o->pids[0] : -1},
		{"pid1", o->nr_pids > 1 ? o->pids[1] : -1},
		{"pid2", o->nr_pids > 2 ? o->pids[2] : -1},
		{"duration", (intmax_t)o->duration_ns},
		{"nap", (intmax_t)o->nap_ns},
		{"min", (intmax_t)o->min_size_bytes},
		{"monitors", o->monitors},
		{"sample", (intmax_t)o->sample_hz},
		{"phases", (intmax_t)o->nr_phases},
		{"interval_ns", (int64_t)o->interval_ns},
		{"if_available", o->if_available},
		{"mechanism", o->mechanism},
		{"controller", o->controller},
		{"color", o->color},
		{"follow", o->follow},
		{"kill", o->kill_on_exit},
		{"no_cache", o->no_cache},
		{"ptrace_watch", o->ptrace_watch},
		{"quiet", o->quiet},
		{"verbose", o->verbose},
		{"action", o->action},
	};
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].name, name))
			return fields[i].value;
	return INTMAX_MIN;
}

static const struct {
	const char *line, *field;
	intmax_t want;
} good[] = {
	{"-t 0 c", "target", 0},
	{"-t 1000 c", "target", 10000000000},
	{"-t2.5 c", "target", 25000000},
	{"--target=0.01 c", "target", 100000},
	{"--target 5% c", "target", 50000000},
	{"-t .5 c", "target", 5000000},
	{"-t 7. c", "target", 70000000},
	{"-t 1 -t 2 c", "target", 20000000},
	{"-t unlimited c", "unlimited", 1},
	{"-t unlimited c", "target", INT64_MAX},
	{"-t unlimited -t 3 c", "unlimited", 0},
	{"--tar 3 c", "target", 30000000},
	{"-p 4711", "pid0", 4711},
	{"-p 4711", "nr_pids", 1},
	{"-p 11,12,13", "pid2", 13},
	{"-p 11 -p 12", "pid1", 12},
	{"-p 11 --pid=12,11 -p 12", "nr_pids", 2},
	{"-p 0012", "pid0", 12},
	{"-p 2147483647", "pid0", INT_MAX},
	{"-p ,11,,12,", "nr_pids", 2},
	{"-d 60 c", "duration", 60000000000},
	{"-d 1.5s c", "duration", 1500000000},
	{"--duration 2m c", "duration", 120000000000},
	{"-d 500ms c", "duration", 500000000},
	{"-d 1h c", "duration", 3600000000000},
	{"-d 1ns c", "duration", 1},
	{"-d 3min c", "duration", 180000000000},
	{"-d 0.25 c", "duration", 250000000},
	{"--nap 10ms c", "nap", 10000000},
	{"--nap=2 c", "nap", 2000000000},
	{"--nap 250000us c", "nap", 250000000},
	{"--min-size 4096 c", "min", 4096},
	{"--min-size 64K c", "min", 65536},
	{"--min-size 64k c", "min", 65536},
	{"--min-size=64KiB c", "min", 65536},
	{"--min-size 1.5M c", "min", 1572864},
	{"--min-size 2GB c", "min", 2147483648},
	{"--min-size 8192b c", "min", 8192},
	{"-m nap c", "monitors", MONITOR_NAP},
	{"--monitor=nap,nap c", "monitors", MONITOR_NAP},
	{"-m counters c", "monitors", MONITOR_COUNTERS},
	{"-m counters,nap c", "monitors", MONITOR_COUNTERS | MONITOR_NAP},
	{"-e cs c", "monitors", MONITOR_COUNTERS},
	{"--sample 99 c", "monitors", MONITOR_SAMPLES},
	{"--sample 20000 c", "sample", 20000},
	{"-m nap --sample 1 c", "monitors", MONITOR_NAP | MONITOR_SAMPLES},
	{"-e cs --sample 1 c", "monitors", MONITOR_COUNTERS | MONITOR_SAMPLES},
	{"-m samples c", "sample", 999},
	{"--phase sdt:a:b c", "monitors", MONITOR_PHASES},
	{"-m nap --phase sdt:a:b c", "monitors", MONITOR_NAP | MONITOR_PHASES},
	{"--phase sdt:a:b --phase sdt:a:c --phase sdt:a:b c", "phases", 2},
	{"-m counters,samples c", "monitors",
	 MONITOR_COUNTERS | MONITOR_SAMPLES},
	{"-e cs -m nap,counters c", "monitors", MONITOR_COUNTERS | MONITOR_NAP},
	{"-m counters c", "interval_ns", 100000000},
	{"--phase f c", "interval_ns", 100000000},
	{"-m nap --phase f c", "interval_ns", 100000000},
	{"-m counters --phase f c", "interval_ns", 10000000},
	{"-e cs --phase f c", "interval_ns", 10000000},
	{"-e cs --phase f --interval 1s c", "interval_ns", 1000000000},
	{"-m counters --interval 1ms c", "interval_ns", 1000000},
	{"-e cs --if-available c", "if_available", 1},
	{"--mechanism=auto c", "mechanism", MECHANISM_AUTO},
	{"--mechanism=bits c", "mechanism", MECHANISM_BITS},
	{"--mechanism pagescan c", "mechanism", MECHANISM_PAGESCAN},
	{"--mechanism uffd c", "mechanism", MECHANISM_UFFD},
	{"--mechanism mprotect c", "mechanism", MECHANISM_MPROTECT},
	{"--controller=cascade c", "controller", CONTROLLER_CASCADE},
	{"--controller adhoc c", "controller", CONTROLLER_ADHOC},
	{"--controller global c", "controller", CONTROLLER_GLOBAL},
	{"--no-follow c", "follow", 0},
	{"c", "no_cache", 0},
	{"--no-cache c", "no_cache", 1},
	{"-m range c", "ptrace_watch", 0},
	{"-m range --ptrace-watch c", "ptrace_watch", 1},
	{"--no-follow -f c", "follow", 1},
	{"-f --no-follow c", "follow", 0},
	{"--kill-on-exit c", "kill", 1},
	{"-q c", "quiet", 1},
	{"--quiet -p 12", "quiet", 1},
	{"-vv c", "verbose", 2},
	{"-v --verbose c", "verbose", 2},
	{"--color=always c", "color", COLOR_ALWAYS},
	{"--color never c", "color", COLOR_NEVER},
	{"--color auto c", "color", COLOR_AUTO},
	{"-h", "action", ACTION_HELP},
	{"--help", "action", ACTION_HELP},
	{"-p 12 -h --nonsense", "action", ACTION_HELP},
	{"-V", "action", ACTION_VERSION},
	{"-qV", "action", ACTION_VERSION},
	/* An argument of the command is none of ours. */
	{"c -t abc --quiet", "quiet", 0},
	{"-- -q", "quiet", 0},
};

static void test_good(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct options o;
		struct smco_err err = {.msg = ""};
		int rc = parse(good[i].line, &o, &err);
		intmax_t got = rc ? INTMAX_MIN : field(&o, good[i].field);
		if (!check_msg(got == good[i].want, "'%s': %s is %jd",
			       good[i].line, good[i].field, good[i].want))
			printf("# got %jd, error '%s'\n", got, err.msg);
		if (!rc)
			options_deinit(&o);
	}
}

static const struct {
	const char *line, *message;
} bad[] = {
	{"", "nothing to watch: give a command, or a process with -p"},
	{"--", "nothing to watch: give a command, or a process with -p"},
	{"-q", "nothing to watch: give a command, or a process with -p"},
	{"-x c", "unknown option -x"},
	{"-qx c", "unknown option -x"},
	{"--nonsense c", "unknown option --nonsense"},
	{"--nonsense=3 c", "unknown option --nonsense"},
	{"--=3 c", "option -- is ambiguous"},
	{"--mo 3 -p 1",
	 "--monitor: unknown '3'; known: nap, counters, range, samples"},
	{"--m 3 c", "option --m is ambiguous"},
	{"--quiet=1 c", "--quiet takes no value"},
	{"--qui=1 c", "--quiet takes no value"},
	{"-t", "-t needs an argument"},
	{"-qt", "-t needs an argument"},
	{"--target", "--target needs an argument"},
	{"--nap", "--nap needs an argument"},
	{"-t -5 c", "--target: '-5' is not a percentage from 0 to 1000 or "
		    "\"unlimited\""},
	{"-t abc c", "--target: 'abc' is not a percentage from 0 to 1000 or "
		     "\"unlimited\""},
	{"-t _ c",
	 "--target: '' is not a percentage from 0 to 1000 or \"unlimited\""},
	{"-t 1000.1 c",
	 "--target: '1000.1' is not a percentage from 0 to 1000 or "
	 "\"unlimited\""},
	{"-t 1e2 c", "--target: '1e2' is not a percentage from 0 to 1000 or "
		     "\"unlimited\""},
	{"-t 0x10 c", "--target: '0x10' is not a percentage from 0 to 1000 or "
		      "\"unlimited\""},
	{"-t nan c", "--target: 'nan' is not a percentage from 0 to 1000 or "
		     "\"unlimited\""},
	{"-t inf c", "--target: 'inf' is not a percentage from 0 to 1000 or "
		     "\"unlimited\""},
	{"-t . c", "--target: '.' is not a percentage from 0 to 1000 or "
		   "\"unlimited\""},
	{"-t 10s c", "--target: '10s' is not a percentage from 0 to 1000 or "
		     "\"unlimited\""},
	{"-t 99999999999999999999999999 c",
	 "--target: '99999999999999999999999999' is not a percentage from 0 "
	 "to 1000 or \"unlimited\""},
	{"-p 12 c", "either a command or -p, not both"},
	{"-p 12 13",
	 "several process ids must be one argument: -p \"$(pgrep NAME)\""},
	{"-p abc", "--pid: 'abc' is not a process id"},
	{"-p 0", "--pid: '0' is not a process id"},
	{"-p -1", "--pid: '-1' is not a process id"},
	{"-p 12x", "--pid: '12x' is not a process id"},
	{"-p 2147483648", "--pid: '2147483648' is not a process id"},
	{"-p 99999999999999999999999999",
	 "--pid: '99999999999999999999999' is not a process id"},
	{"-p _", "--pid: no process id given (was the process found?)"},
	{"-p ,", "--pid: no process id given (was the process found?)"},
	{"-p 12,0", "--pid: '0' is not a process id"},
	{"-o _ c", "--output: the file name is empty"},
	{"-o - c",
	 "--output: the trace is written to a file, not to standard output; "
	 "for a file of that name use ./-"},
	{"-o %q c",
	 "--output: '%q': % must be followed by p (pid), n (name) or %"},
	{"-o a% c",
	 "--output: 'a%': % must be followed by p (pid), n (name) or %"},
	{"-o a%% c%", NULL}, /* good: the command is c% */
	{"-d 0 c", "--duration: must be more than 0"},
	{"-d 0.0000000001 c", "--duration: must be more than 0"},
	{"-d -1 c",
	 "--duration: '-1' is not a time (like 60, 1.5s, 2m, 500ms)"},
	{"-d 5x c",
	 "--duration: '5x' is not a time (like 60, 1.5s, 2m, 500ms)"},
	{"-d s c", "--duration: 's' is not a time (like 60, 1.5s, 2m, 500ms)"},
	{"-d _ c", "--duration: '' is not a time (like 60, 1.5s, 2m, 500ms)"},
	{"-d 10000h c", "--duration: 10000h is more than a year"},
	{"--nap 0 c", "--nap: must be at least 10ms"},
	{"--nap 9ms c", "--nap: must be at least 10ms"},
	{"--nap x c", "--nap: 'x' is not a time (like 60, 1.5s, 2m, 500ms)"},
	{"--min-size 0 c",
	 "--min-size: must be at least 4K (whole pages are watched)"},
	{"--min-size 4095 c",
	 "--min-size: must be at least 4K (whole pages are watched)"},
	{"--min-size 8Q c",
	 "--min-size: '8Q' is not a size (like 8192, 64K, 1.5M, 2G)"},
	{"--min-size -8K c",
	 "--min-size: '-8K' is not a size (like 8192, 64K, 1.5M, 2G)"},
	{"--min-size 999T c", "--min-size: 999T is more than an address space"},
	{"-e cs -m nap c", "--event is for counters: add them to -m"},
	{"--sample 0 c", "--sample: '0' is not a number of samples a second, "
			 "from 1 to 20000"},
	{"--sample 20001 c", "--sample: '20001' is not a number of samples a "
			     "second, from 1 to 20000"},
	{"--sample 9Hz c", "--sample: '9Hz' is not a number of samples a "
			   "second, from 1 to 20000"},
	{"--sample -1 c",
	 "--sample: '-1' is not a number of samples a second, from 1 to 20000"},
	{"-t 0 --sample 9 c", "sampling costs something: --target must be more "
			      "than 0"},
	{"-t 0 -m samples c",
	 "sampling costs something: --target must be more than 0"},
	{"--phase sdt:a c",
	 "--phase: 'sdt:a' is neither the name of a function nor "
	 "sdt:PROVIDER:NAME"},
	{"-t 0 --phase sdt:a:b c",
	 "phases cost something: --target must be more than 0"},
	{"--interval 1s c", "--interval is for counters: add them to -m"},
	{"--if-available c", "--if-available is for counters: add them to -m"},
	{"-t 0 -e cs c", "counting costs something: --target must be more than "
			 "0"},
	{"-e cs --interval 0 c", "--interval: must be at least 1ms"},
	{"-e cs --interval 1us c", "--interval: must be at least 1ms"},
	{"-m range c", NULL},
	{"-m ranges c",
	 "--monitor: unknown 'ranges'; known: nap, counters, range, samples"},
	{"-m nap,range --var x* --var y --function f --file a.c c", NULL},
	{"--var x c", "--var is for ranges: add range to -m"},
	{"--function x c", "--function is for ranges: add range to -m"},
	{"-m nap --elements x c", "--elements is for ranges: add range to -m"},
	{"-m nap --library x c", "--library is for ranges: add range to -m"},
	{"-m nap --file x c", "--file is for ranges: add range to -m"},
	{"-m range --var _ c", "--var: the pattern is empty"},
	{"-m nap, c",
	 "--monitor: unknown ''; known: nap, counters, range, samples"},
	{"-m _ c",
	 "--monitor: unknown ''; known: nap, counters, range, samples"},
	{"--mechanism=magic c",
	 "--mechanism: unknown 'magic'; known: auto, bits, pagescan, uffd, "
	 "mprotect"},
	{"--mechanism=bit c",
	 "--mechanism: unknown 'bit'; known: auto, bits, pagescan, uffd, "
	 "mprotect"},
	{"--controller=pid c",
	 "--controller: unknown 'pid'; known: cascade, adhoc, global"},
	{"--color=red c", "--color: unknown 'red'; known: auto, always, never"},
	{"--kill-on-exit -p 12",
	 "--kill-on-exit is for commands started by smco-trace, not for -p"},
	{"-q -v c", "either --quiet or --verbose, not both"},
};

static void test_bad(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct options o;
		struct smco_err err = {.msg = "(no error)"};
		int rc = parse(bad[i].line, &o, &err);
		if (!rc)
			options_deinit(&o);
		if (!bad[i].message) {
			check_msg(!rc, "'%s' is good", bad[i].line);
			continue;
		}
		if (!check_msg(rc == SMCO_FORMAT && err.code == SMCO_FORMAT &&
				       !strcmp(err.msg, bad[i].message),
			       "'%s': %s", bad[i].line, bad[i].message))
			printf("# got %d '%s'\n", rc, err.msg);
	}
	check_int(parse("-x", &(struct options){0}, NULL), SMCO_FORMAT);
}

static void test_ranges(void)
{
	struct options o;
	char names[32];
	check_int(parse("-m range,nap --var x* --var y --file a.c c", &o, NULL),
		  0);
	check_int(o.monitors, MONITOR_NAP | MONITOR_RANGE);
	check_int(o.select.vars.nr, 2);
	check_str(o.select.vars.glob[1], "y");
	check_int(o.select.functions.nr, 0);
	check_str(o.select.files.glob[0], "a.c");
	check_str(options_monitor_names(o.monitors, names, sizeof(names)),
		  "nap,range");
	options_deinit(&o);
}

static void test_command(void)
{
	struct options o;
	check_int(parse("-q -- ls -l -q", &o, NULL), 0);
	check_str(o.command[0], "ls");
	check_str(o.command[1], "-l");
	check_str(o.command[2], "-q");
	check(!o.command[3]);
	options_deinit(&o);
	check_int(parse("ls -- -p 12", &o, NULL), 0);
	check_str(o.command[1], "--");
	check_int(o.nr_pids, 0);
	options_deinit(&o);
	check_int(parse("-o x.%n.%p.%% -p 12", &o, NULL), 0);
	check(!o.command);
	check_str(o.output, "x.%n.%p.%%");
	options_deinit(&o);
	check_int(parse("-e cs --event=page-faults,faults -e msr/tsc/ c", &o,
			NULL),
		  0);
	check_str(o.events, "cs,page-faults,faults,msr/tsc/");
	options_deinit(&o);
}

static void test_pids(void)
{
	char prog[] = "smco-trace", opt[] = "-p";
	char pgrep[] = "11\n12\n13\n", pidof[] = " 21 22\t23 ";
	char *argv[] = {prog, opt, pgrep, opt, pidof, NULL};
	struct options o;
	check_int(options_parse(5, argv, &o, NULL), 0);
	check_int(o.nr_pids, 6);
	for (size_t i = 0; i < o.nr_pids; i++)
		check_int(o.pids[i], (i < 3 ? 11 : 18) + (int)i);
	options_deinit(&o);
	check(!o.pids);

	char own[16], want[64];
	struct smco_err err;
	snprintf(own, sizeof(own), "%d", (int)getpid());
	snprintf(want, sizeof(want), "--pid: %s is smco-trace itself", own);
	char *self[] = {prog, opt, own, NULL};
	check_int(options_parse(3, self, &o, &err), SMCO_FORMAT);
	check_str(err.msg, want);

	/* Terminal escapes in bad input do not reach the terminal. */
	char evil[] = "1\033[2J";
	char *escape[] = {prog, opt, evil, NULL};
	check_int(options_parse(3, escape, &o, &err), SMCO_FORMAT);
	check_str(err.msg, "--pid: '1?[2J' is not a process id");

	static char many[8 * (OPTIONS_MAX_PIDS + 2)];
	size_t used = 0;
	for (int i = 0; i <= OPTIONS_MAX_PIDS; i++)
		used += (size_t)snprintf(many + used, sizeof(many) - used,
					 "%d,", 100000 + i);
	char *too_many[] = {prog, opt, many, NULL};
	check_int(options_parse(3, too_many, &o, &err), SMCO_FORMAT);
	check_str(err.msg, "--pid: more than 1024 processes");
}

static void test_color(void)
{
	struct options o = {.color = COLOR_AUTO};
	check(options_use_color(&o, NULL, true));
	check(options_use_color(&o, "", true));
	check(!options_use_color(&o, "1", true));
	check(!options_use_color(&o, NULL, false));
	o.color = COLOR_ALWAYS;
	check(options_use_color(&o, "1", false));
	o.color = COLOR_NEVER;
	check(!options_use_color(&o, NULL, true));
}

/* Every long option is in --help, and --help fits a terminal. */
static void test_help(void)
{
	static const char *const names[] = {
		"--target",
		"--pid",
		"--output",
		"--duration",
		"--monitor",
		"--follow",
		"--no-follow",
		"--no-cache",
		"--quiet",
		"--verbose",
		"--version",
		"--help",
		"--nap ",
		"--min-size",
		"--mechanism",
		"--controller",
		"--kill-on-exit",
		"--event",
		"--interval",
		"--phase",
		"--sample",
		"--if-available",
		"--list-events",
		"--color",
		"NO_COLOR",
		"125",
		"126",
		"127",
	};
	const char *help = options_help();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check_msg(strstr(help, names[i]), "help has %s", names[i]);
	size_t widest = 0;
	for (const char *p = help; *p;) {
		size_t n = strcspn(p, "\n");
		widest = n > widest ? n : widest;
		p += n + (p[n] == '\n');
	}
	check_range((double)widest, 40, 80);
	check_int(help[strlen(help) - 1], '\n');
}

static void test_quote(void)
{
	char buf[8];
	check_str(quantity_quote("abc", buf, sizeof(buf)), "abc");
	check_str(quantity_quote("abcdefg", buf, sizeof(buf)), "abcdefg");
	check_str(quantity_quote("abcdefgh", buf, sizeof(buf)), "abcd...");
	check_str(quantity_quote("a\n\033\xff", buf, sizeof(buf)), "a???");
}

int main(void)
{
	test_defaults();
	test_good();
	test_bad();
	test_ranges();
	test_command();
	test_pids();
	test_color();
	test_help();
	test_quote();
	return tap_done();
}
