#include "supervisor/options-private.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/quantity.h"

#define DEFAULT_INTERVAL_NS (100 * NSEC_PER_MSEC)
/* Where counts are divided among phases. */
#define PHASE_INTERVAL_NS (10 * NSEC_PER_MSEC)
/* Not in step with anything. */
#define DEFAULT_SAMPLE_HZ 999

struct word {
	const char *name;
	int value;
};

static const struct word mechanisms[] = {
	{"auto", MECHANISM_AUTO},	  {"bits", MECHANISM_BITS},
	{"pagescan", MECHANISM_PAGESCAN}, {"uffd", MECHANISM_UFFD},
	{"mprotect", MECHANISM_MPROTECT}, {NULL, 0},
};
static const struct word controllers[] = {
	{"cascade", CONTROLLER_CASCADE},
	{"adhoc", CONTROLLER_ADHOC},
	{"global", CONTROLLER_GLOBAL},
	{NULL, 0},
};
static const struct word colors[] = {
	{"auto", COLOR_AUTO},
	{"always", COLOR_ALWAYS},
	{"never", COLOR_NEVER},
	{NULL, 0},
};
static const struct word monitors[] = {
	{"nap", MONITOR_NAP},
	{"counters", MONITOR_COUNTERS},
	{"range", MONITOR_RANGE},
	{"samples", MONITOR_SAMPLES},
	{NULL, 0},
};

enum { /* long options without a letter */
       OPT_NAP = 256,
       OPT_MIN_SIZE,
       OPT_MECHANISM,
       OPT_CONTROLLER,
       OPT_NO_FOLLOW,
       OPT_KILL_ON_EXIT,
       OPT_COLOR,
       OPT_LIST_EVENTS,
       OPT_INTERVAL,
       OPT_IF_AVAILABLE,
       OPT_SAMPLE,
       OPT_PHASE,
       OPT_VAR,
       OPT_FUNCTION,
       OPT_FILE,
       OPT_LIBRARY,
       OPT_ELEMENTS,
       OPT_WATCH,
       OPT_PTRACE_WATCH,
       OPT_NO_CACHE,
};

static const char short_options[] = "+:t:p:o:d:m:e:fqvVh";
static const struct option long_options[] = {
	{"target", required_argument, NULL, 't'},
	{"pid", required_argument, NULL, 'p'},
	{"output", required_argument, NULL, 'o'},
	{"duration", required_argument, NULL, 'd'},
	{"monitor", required_argument, NULL, 'm'},
	{"event", required_argument, NULL, 'e'},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"sample", required_argument, NULL, OPT_SAMPLE},
	{"phase", required_argument, NULL, OPT_PHASE},
	{"if-available", no_argument, NULL, OPT_IF_AVAILABLE},
	{"follow", no_argument, NULL, 'f'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{"nap", required_argument, NULL, OPT_NAP},
	{"var", required_argument, NULL, OPT_VAR},
	{"function", required_argument, NULL, OPT_FUNCTION},
	{"file", required_argument, NULL, OPT_FILE},
	{"library", required_argument, NULL, OPT_LIBRARY},
	{"elements", required_argument, NULL, OPT_ELEMENTS},
	{"watch", required_argument, NULL, OPT_WATCH},
	{"ptrace-watch", no_argument, NULL, OPT_PTRACE_WATCH},
	{"min-size", required_argument, NULL, OPT_MIN_SIZE},
	{"mechanism", required_argument, NULL, OPT_MECHANISM},
	{"controller", required_argument, NULL, OPT_CONTROLLER},
	{"no-follow", no_argument, NULL, OPT_NO_FOLLOW},
	{"no-cache", no_argument, NULL, OPT_NO_CACHE},
	{"kill-on-exit", no_argument, NULL, OPT_KILL_ON_EXIT},
	{"color", required_argument, NULL, OPT_COLOR},
	{"list-events", no_argument, NULL, OPT_LIST_EVENTS},
	{NULL, 0, NULL, 0},
};

static const char *word_name(const struct word *words, int value)
{
	for (; words->name; words++)
		if (words->value == value)
			return words->name;
	return "?";
}

static int find_word(const struct word *words, const char *text, size_t len,
		     const char *option, int *ret, struct smco_err *err)
{
	char known[160] = "", copy[48], quote[48];
	size_t used = 0;
	for (const struct word *w = words; w->name; w++) {
		size_t n = strlen(w->name);
		if (n == len && !memcmp(w->name, text, len)) {
			*ret = w->value;
			return 0;
		}
		if (used + n + 3 > sizeof(known))
			continue;
		if (used) {
			memcpy(known + used, ", ", 2);
			used += 2;
		}
		memcpy(known + used, w->name, n + 1);
		used += n;
	}
	if (len >= sizeof(copy))
		len = sizeof(copy) - 1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return smco_fail(err, SMCO_FORMAT, 0, "%s: unknown '%s'; known: %s",
			 option, quantity_quote(copy, quote, sizeof(quote)),
			 known);
}

static int parse_monitors(const char *text, unsigned *ret, struct smco_err *err)
{
	unsigned set = 0;
	const char *p = text;
	for (;;) {
		size_t len = strcspn(p, ",");
		int value;
		int rc = find_word(monitors, p, len, "--monitor", &value, err);
		if (rc)
			return rc;
		set |= (unsigned)value;
		p += len;
		if (!*p)
			break;
		p++;
	}
	*ret = set;
	return 0;
}

static int parse_events(const char *text, struct options *o,
			struct smco_err *err)
{
	if (!*text)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--event: the list is empty");
	size_t len = o->events ? strlen(o->events) : 0;
	size_t size = len + strlen(text) + 2;
	char *all = realloc(o->events, size);
	if (!all)
		return smco_fail(err, SMCO_NOMEM, errno, "--event");
	snprintf(all + len, size - len, "%s%s", len ? "," : "", text);
	o->events = all;
	return 0;
}

/* Why getopt_long did not take the long option @arg. */
static int bad_long_option(const char *arg, bool needs_value,
			   struct smco_err *err)
{
	char copy[48], quote[48];
	size_t len = strcspn(arg, "="), nr_matches = 0;
	const struct option *match = NULL;

	for (const struct option *o = long_options; o->name; o++) {
		if (strncmp(o->name, arg + 2, len - 2))
			continue;
		match = o;
		nr_matches++;
		if (strlen(o->name) == len - 2) {
			nr_matches = 1;
			break;
		}
	}
	if (len >= sizeof(copy))
		len = sizeof(copy) - 1;
	memcpy(copy, arg, len);
	copy[len] = '\0';
	quantity_quote(copy, quote, sizeof(quote));
	if (needs_value)
		return smco_fail(err, SMCO_FORMAT, 0, "%s needs an argument",
				 quote);
	if (nr_matches > 1)
		return smco_fail(err, SMCO_FORMAT, 0, "option %s is ambiguous",
				 quote);
	if (match)
		return smco_fail(err, SMCO_FORMAT, 0, "--%s takes no value",
				 match->name);
	return smco_fail(err, SMCO_FORMAT, 0, "unknown option %s", quote);
}

/* getopt_long returned @c, '?' or ':', on argv[last]. */
static int bad_option(int c, char **argv, int last, struct smco_err *err)
{
	if (!strncmp(argv[last], "--", 2))
		return bad_long_option(argv[last], c == ':', err);
	char letter[2] = {(char)optopt, '\0'}, quote[2];
	quantity_quote(letter, quote, sizeof(quote));
	if (c == ':')
		return smco_fail(err, SMCO_FORMAT, 0, "-%s needs an argument",
				 quote);
	return smco_fail(err, SMCO_FORMAT, 0, "unknown option -%s", quote);
}

static int take_option(int c, struct options *o, struct smco_err *err)
{
	int value = 0, rc;
	switch (c) {
	case 't':
		return options_target(optarg, o, err);
	case 'p':
		return options_pids(optarg, o, err);
	case 'o':
		return options_output(optarg, o, err);
	case 'd':
		return options_time(optarg, "--duration", 1, "more than 0",
				    &o->duration_ns, err);
	case 'm':
		return parse_monitors(optarg, &o->monitors, err);
	case 'e':
		return parse_events(optarg, o, err);
	case OPT_INTERVAL:
		return options_interval(optarg, o, err);
	case OPT_IF_AVAILABLE:
		o->if_available = true;
		return 0;
	case OPT_SAMPLE:
		return options_sample(optarg, o, err);
	case OPT_PHASE:
		return options_phase(optarg, o, err);
	case OPT_VAR:
		return options_glob(optarg, "--var", &o->select.vars, err);
	case OPT_FUNCTION:
		return options_glob(optarg, "--function", &o->select.functions,
				    err);
	case OPT_FILE:
		return options_glob(optarg, "--file", &o->select.files, err);
	case OPT_ELEMENTS:
		return options_glob(optarg, "--elements", &o->select.elements,
				    err);
	case OPT_LIBRARY:
		return options_glob(optarg, "--library", &o->select.libraries,
				    err);
	case OPT_WATCH:
		return options_glob(optarg, "--watch", &o->select.paths, err);
	case OPT_PTRACE_WATCH:
		o->ptrace_watch = true;
		return 0;
	case OPT_NO_CACHE:
		o->no_cache = true;
		return 0;
	case OPT_NAP:
		return options_time(optarg, "--nap", OPTIONS_MIN_NAP_NS,
				    "at least 10ms", &o->nap_ns, err);
	case OPT_MIN_SIZE:
		return options_min_size(optarg, o, err);
	case OPT_MECHANISM:
		rc = find_word(mechanisms, optarg, strlen(optarg),
			       "--mechanism", &value, err);
		o->mechanism = (enum options_mechanism)value;
		return rc;
	case OPT_CONTROLLER:
		rc = find_word(controllers, optarg, strlen(optarg),
			       "--controller", &value, err);
		o->controller = (enum options_controller)value;
		return rc;
	case OPT_COLOR:
		rc = find_word(colors, optarg, strlen(optarg), "--color",
			       &value, err);
		o->color = (enum options_color)value;
		return rc;
	case 'f':
		o->follow = true;
		return 0;
	case OPT_NO_FOLLOW:
		o->follow = false;
		return 0;
	case OPT_KILL_ON_EXIT:
		o->kill_on_exit = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose++;
		return 0;
	case 'V':
		o->action = ACTION_VERSION;
		return 0;
	case OPT_LIST_EVENTS:
		o->action = ACTION_LIST_EVENTS;
		return 0;
	default: /* 'h' */
		o->action = ACTION_HELP;
		return 0;
	}
}

static bool all_digits(char **argv)
{
	for (; *argv; argv++)
		if (!**argv || (*argv)[strspn(*argv, "0123456789,")])
			return false;
	return true;
}

/* What no single option can tell. */
static int check_whole(const struct options *o, struct smco_err *err)
{
	if (o->command && o->nr_pids && all_digits(o->command))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "several process ids must be one argument: "
				 "-p \"$(pgrep NAME)\"");
	if (o->command && o->nr_pids)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "either a command or -p, not both");
	if (!o->command && !o->nr_pids)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "nothing to watch: give a command, or a "
				 "process with -p");
	if (o->kill_on_exit && o->nr_pids)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--kill-on-exit is for commands started by "
				 "smco-trace, not for -p");
	if (!(o->monitors & MONITOR_COUNTERS) &&
	    (o->events || (o->interval_ns && !o->nr_phases) || o->every_nr ||
	     (o->if_available && !o->nr_phases &&
	      !(o->monitors & MONITOR_RANGE))))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s is for counters: add them to -m",
				 o->events ? "--event"
				 : o->interval_ns || o->every_nr
					 ? "--interval"
					 : "--if-available");
	if (o->monitors & MONITOR_COUNTERS && !o->target_ppb)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "counting costs something: --target must be "
				 "more than 0");
	if (o->monitors & MONITOR_SAMPLES && !o->target_ppb)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "sampling costs something: --target must be "
				 "more than 0");
	if (o->nr_phases && !o->target_ppb)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "phases cost something: --target must be more "
				 "than 0");
	if (!(o->monitors & MONITOR_RANGE) &&
	    (range_select_any(&o->select) || o->select.libraries.nr ||
	     o->select.elements.nr || o->select.paths.nr || o->ptrace_watch))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s is for ranges: add range to -m",
				 o->select.vars.nr	  ? "--var"
				 : o->select.functions.nr ? "--function"
				 : o->select.files.nr	  ? "--file"
				 : o->select.libraries.nr ? "--library"
				 : o->select.elements.nr  ? "--elements"
				 : o->select.paths.nr	  ? "--watch"
							  : "--ptrace-watch");
	if (o->quiet && o->verbose)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "either --quiet or --verbose, not both");
	return 0;
}

static int take_pattern(int nr, char **args, struct options *o,
			struct smco_err *err)
{
	if (nr > 1)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--list-events takes one pattern; quote it");
	o->glob = args[0];
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret,
		  struct smco_err *err)
{
	struct options o = {
		.target_ppb = 100000000,
		.output = "smco.trace",
		.nap_ns = NSEC_PER_SEC,
		.min_size_bytes = 2 * TPAGE_SIZE,
		.follow = true,
	};
	int c, rc = 0, last = 1;

	opterr = 0;
	optind = 0; /* glibc: start afresh, also after an aborted parse */
	while (!rc && o.action == ACTION_TRACE) {
		last = optind ? optind : 1;
		c = getopt_long(argc, argv, short_options, long_options, NULL);
		if (c == -1)
			break;
		rc = c == '?' || c == ':' ? bad_option(c, argv, last, err)
					  : take_option(c, &o, err);
	}
	if (!rc && o.action == ACTION_TRACE) {
		if (optind < argc)
			o.command = argv + optind;
		/* -e, --sample, --phase alone: just that */
		if (!o.monitors && o.events)
			o.monitors = MONITOR_COUNTERS;
		if (!o.monitors && !o.sample_hz && !o.nr_phases)
			o.monitors = MONITOR_NAP;
		if (o.nr_phases)
			o.monitors |= MONITOR_PHASES;
		if (o.sample_hz)
			o.monitors |= MONITOR_SAMPLES;
		else if (o.monitors & MONITOR_SAMPLES)
			o.sample_hz = DEFAULT_SAMPLE_HZ;
		rc = check_whole(&o, err);
		if (!o.interval_ns)
			o.interval_ns =
				o.nr_phases && o.monitors & MONITOR_COUNTERS
					? PHASE_INTERVAL_NS
					: DEFAULT_INTERVAL_NS;
	}
	if (!rc && o.action == ACTION_LIST_EVENTS && optind < argc)
		rc = take_pattern(argc - optind, argv + optind, &o, err);
	if (rc) {
		options_deinit(&o);
		return rc;
	}
	*ret = o;
	return 0;
}

void options_deinit(struct options *o)
{
	free(o->pids);
	o->pids = NULL;
	o->nr_pids = 0;
	free(o->events);
	o->events = NULL;
}

bool options_use_color(const struct options *o, const char *no_color,
		       bool is_tty)
{
	if (o->color != COLOR_AUTO)
		return o->color == COLOR_ALWAYS;
	return is_tty && !(no_color && *no_color);
}

const char *options_mechanism_name(enum options_mechanism m)
{
	return word_name(mechanisms, (int)m);
}

const char *options_controller_name(enum options_controller c)
{
	return word_name(controllers, (int)c);
}

const char *options_monitor_names(unsigned set, char *buf, size_t size)
{
	size_t len = 0;
	buf[0] = '\0';
	for (const struct word *w = monitors; w->name; w++)
		if (set & (unsigned)w->value && len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%s",
						len ? "," : "", w->name);
	/* It is not asked for by this name: --phase says which. */
	if (set & MONITOR_PHASES && len < size)
		snprintf(buf + len, size - len, "%sphases", len ? "," : "");
	return buf;
}
