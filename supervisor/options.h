/*
 * options.h - smco-trace's command line, parsed and checked. Nothing is
 * printed, opened or started here. Errors are SMCO_FORMAT for bad usage (the
 * message is the one line to show) and SMCO_NOMEM.
 *
 * Not handled: whether pids and command exist (the tracer finds out), NO_COLOR
 * (see options_use_color), and the output file (output.h).
 */
#ifndef SMCO_OPTIONS_H
#define SMCO_OPTIONS_H

#include <sys/types.h>

#include "reports/base.h"
#include "supervisor/monitor/range-select.h"

/*
 * Exit statuses of smco-trace itself, as env(1), timeout(1) and nohup(1) have
 * them. Otherwise the command's own status, or its death by the same signal.
 */
enum options_exit {
	EXIT_SMCO_FAILED = 125, /* bad usage, or smco-trace itself failed */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

#define OPTIONS_MAX_PERCENT 1000
#define OPTIONS_MAX_PIDS    1024
/* Below this a nap says nothing: the mechanisms look in windows of 10 ms. */
#define OPTIONS_MIN_NAP_NS (10 * NSEC_PER_MSEC)
/* Whole pages are watched, so a block must be one at least. */
#define OPTIONS_MIN_INTERVAL_NS NSEC_PER_MSEC
#define OPTIONS_MIN_SIZE	TPAGE_SIZE
#define OPTIONS_MAX_PHASES	32
#define OPTIONS_MAX_SAMPLE_HZ	20000

enum options_action {
	ACTION_TRACE,
	ACTION_HELP,
	ACTION_VERSION,
	ACTION_LIST_EVENTS,
};
enum options_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum options_mechanism {
	MECHANISM_AUTO, /* the best that works here */
	MECHANISM_BITS,
	MECHANISM_PAGESCAN,
	MECHANISM_UFFD,
	MECHANISM_MPROTECT,
};
enum options_controller {
	CONTROLLER_CASCADE,
	CONTROLLER_ADHOC,
	CONTROLLER_GLOBAL,
};
enum options_monitors {
	MONITOR_NAP = 1 << 0,
	MONITOR_COUNTERS = 1 << 1,
	MONITOR_RANGE = 1 << 2,
	MONITOR_SAMPLES = 1 << 3, /* --sample */
	MONITOR_PHASES = 1 << 4,  /* --phase */
};

struct options {
	enum options_action action; /* if not ACTION_TRACE, the rest is void */
	const char *glob;     /* ACTION_LIST_EVENTS: NULL = all; in argv */
	bool is_unlimited;    /* --target=unlimited */
	int64_t target_ppb;   /* of 1; INT64_MAX if is_unlimited */
	pid_t *pids;	      /* to attach to; each once; owned */
	size_t nr_pids;	      /* 0 = start the command */
	char **command;	      /* into argv, NULL-terminated; NULL = attach */
	const char *output;   /* with %p and %n; into argv or static */
	uint64_t duration_ns; /* 0 = until the program ends */
	uint64_t nap_ns;      /* threshold */
	uint64_t min_size_bytes;
	unsigned monitors; /* enum options_monitors */
	char *events;	   /* of the counters, all lists; NULL = default set */
	uint64_t interval_ns;	 /* between readings of the counters */
	uint64_t every_nr;	 /* or so many events of a thread; 0 = not */
	const char *every_event; /* which; into argv */
	uint64_t sample_hz;	 /* of MONITOR_SAMPLES */
	const char *phase[OPTIONS_MAX_PHASES]; /* into argv */
	size_t nr_phases;
	bool if_available;	    /* events that are not here are left out */
	struct range_select select; /* variables; into argv */
	enum options_mechanism mechanism;
	enum options_controller controller;
	enum options_color color;
	bool follow;
	bool kill_on_exit;
	bool no_cache; /* --no-cache */
	bool ptrace_watch;
	bool quiet;
	unsigned verbose; /* number of -v */
};

/*
 * Parse @argv as main() got it; the command starts at the first argument that
 * is no option, or after "--". Keeps pointers into @argv, does not change it.
 * On success options_deinit() is the caller's duty; on failure *ret is void
 * and owns nothing. Not thread-safe (getopt_long).
 */
int options_parse(int argc, char **argv, struct options *ret,
		  struct smco_err *err);
void options_deinit(struct options *o);

/* @no_color: getenv("NO_COLOR"). An explicit --color wins over it. */
bool options_use_color(const struct options *o, const char *no_color,
		       bool is_tty);

/* "auto", "bits", ...; as typed on the command line. */
const char *options_mechanism_name(enum options_mechanism m);
const char *options_controller_name(enum options_controller c);

/* "nap,counters"; @monitors is a set of enum options_monitors. Returns @buf. */
const char *options_monitor_names(unsigned monitors, char *buf, size_t size);

/* The text of --help, whole lines. */
const char *options_help(void);

#endif
