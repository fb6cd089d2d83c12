/* Values of options that are numbers, names of files, patterns. */
#include "supervisor/options-private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/quantity.h"
#include "supervisor/monitor/phases.h"

/* Message room for "-t: " and an inner message. */
static int usage(struct smco_err *err, const char *option,
		 const struct smco_err *inner)
{
	return smco_fail(err, SMCO_FORMAT, 0, "%s: %.280s", option, inner->msg);
}

int options_glob(const char *text, const char *option,
		 struct range_globs *globs, struct smco_err *err)
{
	if (!*text)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s: the pattern is empty", option);
	if (globs->nr == RANGE_MAX_GLOBS)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s: more than %d patterns", option,
				 RANGE_MAX_GLOBS);
	globs->glob[globs->nr++] = text;
	return 0;
}

int options_target(const char *text, struct options *o, struct smco_err *err)
{
	struct smco_err inner;
	if (!strcmp(text, "unlimited")) {
		o->is_unlimited = true;
		o->target_ppb = INT64_MAX;
		return 0;
	}
	char quote[48];
	if (quantity_percent(text, OPTIONS_MAX_PERCENT, &o->target_ppb, &inner))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--target: '%s' is not a percentage from 0 "
				 "to %d or \"unlimited\"",
				 quantity_quote(text, quote, sizeof(quote)),
				 OPTIONS_MAX_PERCENT);
	o->is_unlimited = false;
	return 0;
}

static int add_pid(struct options *o, pid_t pid, struct smco_err *err)
{
	for (size_t i = 0; i < o->nr_pids; i++)
		if (o->pids[i] == pid)
			return 0;
	if (o->nr_pids == OPTIONS_MAX_PIDS)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--pid: more than %d processes",
				 OPTIONS_MAX_PIDS);
	pid_t *more = reallocarray(o->pids, o->nr_pids + 1, sizeof(*more));
	if (!more)
		return smco_fail(err, SMCO_NOMEM, errno, "--pid");
	o->pids = more;
	o->pids[o->nr_pids++] = pid;
	return 0;
}

int options_pids(const char *text, struct options *o, struct smco_err *err)
{
	static const char separators[] = ", \t\r\n";
	char copy[24], quote[24];
	const char *p = text + strspn(text, separators);
	if (!*p)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--pid: no process id given (was the "
				 "process found?)");
	while (*p) {
		size_t len = strcspn(p, separators), digits = 0;
		long pid = 0;
		while (digits < len && p[digits] >= '0' && p[digits] <= '9') {
			if (pid <= INT_MAX)
				pid = pid * 10 + (p[digits] - '0');
			digits++;
		}
		if (digits < len || pid == 0 || pid > INT_MAX) {
			size_t n = len < sizeof(copy) ? len : sizeof(copy) - 1;
			memcpy(copy, p, n);
			copy[n] = '\0';
			quantity_quote(copy, quote, sizeof(quote));
			return smco_fail(err, SMCO_FORMAT, 0,
					 "--pid: '%s' is not a process id",
					 quote);
		}
		if (pid == getpid())
			return smco_fail(err, SMCO_FORMAT, 0,
					 "--pid: %ld is smco-trace itself",
					 pid);
		int rc = add_pid(o, (pid_t)pid, err);
		if (rc)
			return rc;
		p += len;
		p += strspn(p, separators);
	}
	return 0;
}

int options_output(const char *text, struct options *o, struct smco_err *err)
{
	char quote[96];
	if (!*text)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--output: the file name is empty");
	if (!strcmp(text, "-"))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--output: the trace is written to a file, "
				 "not to standard output; for a file of that "
				 "name use ./-");
	if (strlen(text) >= PATH_MAX)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--output: the file name is too long");
	for (const char *p = text; (p = strchr(p, '%')); p += 2)
		if (!p[1] || !strchr("pn%", p[1]))
			return smco_fail(
				err, SMCO_FORMAT, 0,
				"--output: '%s': %% must be followed "
				"by p (pid), n (name) or %%",
				quantity_quote(text, quote, sizeof(quote)));
	o->output = text;
	return 0;
}

/* A time that must be at least @min_ns. */
int options_time(const char *text, const char *option, uint64_t min_ns,
		 const char *min_text, uint64_t *ret, struct smco_err *err)
{
	struct smco_err inner;
	uint64_t ns;
	if (quantity_time(text, &ns, &inner))
		return usage(err, option, &inner);
	if (ns < min_ns)
		return smco_fail(err, SMCO_FORMAT, 0, "%s: must be %s", option,
				 min_text);
	*ret = ns;
	return 0;
}

/* "1000000:cycles", "10k:page-faults". */
static int take_every(const char *text, const char *colon, struct options *o,
		      struct smco_err *err)
{
	static const char letters[] = "kMG";
	char quote[96];
	size_t digits = strspn(text, "0123456789");
	uint64_t nr = digits && digits < 16 ? strtoull(text, NULL, 10) : 0;
	const char *rest = text + digits, *letter;
	if (rest < colon && (letter = strchr(letters, *rest))) {
		for (; letter >= letters; letter--)
			nr = nr < INT64_MAX / 1000 ? nr * 1000 : 0;
		rest++;
	}
	if (rest != colon || !nr || !colon[1])
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--interval: '%s' is not a number of events "
				 "and their name, as 1000000:cycles",
				 quantity_quote(text, quote, sizeof(quote)));
	o->every_nr = nr;
	o->every_event = colon + 1;
	return 0;
}

int options_interval(const char *text, struct options *o, struct smco_err *err)
{
	const char *colon = strchr(text, ':');
	if (colon)
		return take_every(text, colon, o, err);
	return options_time(text, "--interval", OPTIONS_MIN_INTERVAL_NS,
			    "at least 1ms", &o->interval_ns, err);
}

int options_sample(const char *text, struct options *o, struct smco_err *err)
{
	char quote[48];
	size_t nr = strspn(text, "0123456789");
	uint64_t hz = nr && nr < 10 ? strtoull(text, NULL, 10) : 0;
	if (text[nr] || !hz || hz > OPTIONS_MAX_SAMPLE_HZ)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--sample: '%s' is not a number of samples a "
				 "second, from 1 to %d",
				 quantity_quote(text, quote, sizeof(quote)),
				 OPTIONS_MAX_SAMPLE_HZ);
	o->sample_hz = hz;
	return 0;
}

int options_phase(const char *text, struct options *o, struct smco_err *err)
{
	char quote[96];
	if (!phases_is_name(text))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--phase: '%s' is neither the name of a "
				 "function nor sdt:PROVIDER:NAME",
				 quantity_quote(text, quote, sizeof(quote)));
	for (size_t i = 0; i < o->nr_phases; i++)
		if (!strcmp(o->phase[i], text))
			return 0;
	if (o->nr_phases == OPTIONS_MAX_PHASES)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--phase: more than %d of them",
				 OPTIONS_MAX_PHASES);
	o->phase[o->nr_phases++] = text;
	return 0;
}

int options_min_size(const char *text, struct options *o, struct smco_err *err)
{
	struct smco_err inner;
	uint64_t bytes;
	if (quantity_size(text, &bytes, &inner))
		return usage(err, "--min-size", &inner);
	if (bytes < OPTIONS_MIN_SIZE)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--min-size: must be at least 4K (whole pages "
				 "are watched)");
	o->min_size_bytes = bytes;
	return 0;
}
