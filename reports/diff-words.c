#include "reports/diff-words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/units.h"

enum diff_unit diff_words_unit(const struct diff_change *c,
			       enum diff_metric metric)
{
	const struct diff_item *item =
		c->item[c->item[DIFF_NEW] ? DIFF_NEW : DIFF_BASE];
	return metric == DIFF_COUNT && item->is_ns ? UNIT_NS
						   : diff_metric[metric].unit;
}

char *diff_words_value(enum diff_unit unit, double v, bool ascii, char *buf)
{
	char mean[UNITS_MAX];
	switch (unit) {
	case UNIT_BYTES:
		units_bytes(units_whole(v), buf);
		break;
	case UNIT_BYTE_SECONDS:
		units_byte_seconds(v, ascii, buf);
		break;
	case UNIT_NS:
		units_duration(units_whole(v), buf);
		break;
	case UNIT_PPB:
		units_percent(fabs(v) < 9e18 ? (int64_t)v : INT64_MAX, buf);
		break;
	case UNIT_NUMBER:
		snprintf(buf, WORDS_MAX, "%s%s", v <= -0.5 ? "-" : "",
			 units_count(units_whole(fabs(v)), mean));
		break;
	case UNIT_COUNT:
		units_count(units_whole(v), mean);
		if (v < 100 && v != floor(v)) /* a mean of few */
			snprintf(mean, sizeof(mean), "%.1f", v);
		snprintf(buf, WORDS_MAX, "%s", mean);
		break;
	}
	return buf;
}

char *diff_words_delta(enum diff_unit unit, double v, bool ascii, char *buf)
{
	char size[WORDS_MAX];
	diff_words_value(unit, fabs(v), ascii, size);
	if (unit == UNIT_PPB && strchr(size, '%'))
		strcpy(strchr(size, '%'), "points");
	snprintf(buf, WORDS_MAX, "%s%.100s", v < 0 ? "-" : "+", size);
	return buf;
}

/* "+12", "-3.4": percents of @share, which is finite. */
static char *percents(double share, char *buf)
{
	double v = 100 * share;
	int decimals = fabs(v) < 9.95 && v != 0 ? 1 : 0;
	if (fabs(v) >= 1e6)
		snprintf(buf, UNITS_MAX, "%+.2e", v);
	else
		snprintf(buf, UNITS_MAX, "%+.*f", decimals, v);
	return buf;
}

/* Is a change told as a share of the base? */
static bool has_shares(enum diff_unit unit)
{
	return unit != UNIT_PPB && unit != UNIT_NUMBER;
}

char *diff_words_relative(enum diff_unit unit, const struct diff_measure *m,
			  char *buf)
{
	char number[UNITS_MAX];
	double share = diff_relative(m);
	if (!has_shares(unit))
		return diff_words_delta(unit, m->test.change, true, buf);
	if (isinf(share))
		snprintf(buf, WORDS_MAX, "from nothing");
	else if (share > -1e-9 && share < 1e-9)
		snprintf(buf, WORDS_MAX, "no change");
	else if (share >= 9)
		snprintf(buf, WORDS_MAX,
			 share < 1e6 ? "%.0f times as much"
				     : "%.1e times as much",
			 share + 1);
	else
		snprintf(buf, WORDS_MAX, "%s %%", percents(share, number));
	return buf;
}

char *diff_words_interval(enum diff_unit unit, const struct diff_measure *m,
			  bool ascii, char *buf)
{
	char low[WORDS_MAX], high[WORDS_MAX];
	double base = m->side[DIFF_BASE].mean;
	*buf = '\0';
	if (isnan(m->test.low) || m->test.low == m->test.high)
		return buf; /* not judged, or no scatter at all */
	if (base > 0 && diff_relative(m) < 9 && has_shares(unit))
		snprintf(buf, WORDS_MAX, "%.30s to %.30s %%",
			 percents(m->test.low / base, low),
			 percents(m->test.high / base, high));
	else
		snprintf(buf, WORDS_MAX, "%.40s to %.40s",
			 diff_words_delta(unit, m->test.low, ascii, low),
			 diff_words_delta(unit, m->test.high, ascii, high));
	return buf;
}

const char *diff_words_why_not(const struct diff *d, enum diff_metric metric,
			       const struct diff_measure *m)
{
	if (m->test.p > 0.05)
		return "noise";
	if (fabs(m->test.change) < diff_metric[metric].least ||
	    fabs(diff_relative(m)) < d->least_change)
		return "small";
	if (isinf(m->by_length) ||
	    fabs(diff_relative(m)) < d->least_change + m->by_length)
		return "as the runs' lengths";
	if (!isnan(m->test.p))
		return "not sure among so many";
	return metric == DIFF_COUNT ? "the machine's doing"
				    : "within the naps' errors";
}

const char *diff_words_name(const struct diff_change *c)
{
	return c->item[c->item[DIFF_NEW] ? DIFF_NEW : DIFF_BASE]->name;
}

char *diff_words_finding(const struct diff_change *c, bool ascii, char *buf)
{
	char delta[WORDS_MAX];
	const char *name = diff_words_name(c);
	if (c->kind == DIFF_MISTAKE ||
	    (c->kind == DIFF_VARIABLE && !c->measure[c->by].has_changed)) {
		snprintf(buf, WORDS_MAX, "%.100s%s", name,
			 c->kind == DIFF_MISTAKE ? ": a mistake?" : "");
		return buf;
	}
	if (!c->measure[c->by].has_changed) {
		snprintf(buf, WORDS_MAX, "not known on one side");
		return buf;
	}
	enum diff_unit unit = diff_words_unit(c, c->by);
	if (!*name)
		name = diff_metric[c->by].label;
	/* The amount has the unit that stands behind the event's name. */
	size_t len = c->kind == DIFF_COUNTER && unit == UNIT_NS
			     ? strcspn(name, " ")
			     : strlen(name);
	snprintf(buf, WORDS_MAX, "%.40s %.*s",
		 diff_words_delta(unit, c->measure[c->by].test.change, ascii,
				  delta),
		 (int)(len < 80 ? len : 80), name);
	return buf;
}

const char *diff_words_match(const struct diff_change *c)
{
	for (int i = 0; i < DIFF_SIDES; i++)
		if (c->entry[i] && c->entry[i]->is_cut && c->how != MATCH_CUT)
			return "by what is known of stacks that were not read "
			       "to their end";
	if (c->is_hidden)
		return "not at all: it may be among stacks that were not read "
		       "to their end";
	if (c->how == MATCH_NONE)
		return c->ambiguous ? "not at all: several look alike on the "
				      "other side"
				    : NULL;
	if (c->ambiguous)
		return "by the order of lines: several look alike";
	switch (c->how) {
	case MATCH_CUT:
		return "though one stack was not read to its end";
	case MATCH_STEMS:
		return "by names without files, types and parameters";
	case MATCH_INLINED:
		return "though one stack lacks frames, as after inlining";
	case MATCH_CALLERS:
		return "by the function that allocates; its callers differ";
	default:
		return NULL;
	}
}

/* Why @c is unsure although its own blocks were watched as much; "". */
static const char *doubt(const struct diff *d, const struct diff_change *c)
{
	bool more = c->measure[c->by].test.change > 0;
	int less = more ? DIFF_BASE : DIFF_NEW;
	if (c->verdict != VERDICT_UNSURE || diff_words_match(c))
		return "";
	if (!d->quality[less].is_whole)
		return less == DIFF_BASE
			       ? "; of the base, parts of traces are missing"
			       : "; of the new runs, parts of traces are "
				 "missing";
	if (c->kind != DIFF_SITE || !diff_is_watched_less(d, less) ||
	    !(c->watched[less] >= 0.8 * c->watched[!less]))
		return "";
	return less == DIFF_BASE
		       ? "; but naps are known less exactly in the base"
		       : "; but naps are known less exactly in the new runs";
}

char *diff_words_watched(const struct diff *d, const struct diff_change *c,
			 char *buf)
{
	double base = c->watched[DIFF_BASE], new = c->watched[DIFF_NEW];
	*buf = '\0';
	if (c->verdict == VERDICT_UNSURE ||
	    (!isnan(base) && !isnan(new) && fabs(base - new) >= 0.2)) {
		char was[UNITS_MAX] = "unknown", is[UNITS_MAX] = "unknown";
		if (!isnan(base))
			snprintf(was, sizeof(was), "%.0f %%", 100 * base);
		if (!isnan(new))
			snprintf(is, sizeof(is), "%.0f %%", 100 * new);
		snprintf(buf, NOTE_MAX, "%.30s of %s, before %.30s%s", is,
			 c->kind == DIFF_SITE ? "its blocks" : "the time", was,
			 doubt(d, c));
	}
	return buf;
}

/* ---------------------------------------------------------------- notes --- */

static bool note_noise(const struct diff *d, char *buf)
{
	if (d->is_judged)
		return false;
	snprintf(buf, NOTE_MAX,
		 "one run a side: noise cannot be judged. Changes below %.3g "
		 "%%, of naps and time as much more as the runs differ in "
		 "length, or within the naps' own errors, naps just long "
		 "enough to be "
		 "told of, ranges of variables that were not watched all the "
		 "time, and what the machine does to a program (context "
		 "switches, migrations, major faults) are not shown (--all); "
		 "repeat the runs to know more (--base, --new)",
		 100 * d->least_change);
	return true;
}

static bool note_few(const struct diff *d, char *buf)
{
	if (!d->is_judged ||
	    (d->side[DIFF_BASE].nr_runs > 1 && d->side[DIFF_NEW].nr_runs > 1))
		return false;
	snprintf(buf, NOTE_MAX,
		 "one run on one side: its noise is taken to be that of the "
		 "other");
	return true;
}

static bool note_watched(const struct diff *d, char *buf)
{
	const struct diff_quality *base = &d->quality[DIFF_BASE];
	const struct diff_quality *new = &d->quality[DIFF_NEW];
	if (!diff_is_watched_less(d, DIFF_BASE) &&
	    !diff_is_watched_less(d, DIFF_NEW))
		return false;
	int n = snprintf(buf, NOTE_MAX,
			 "watched unequally: known blocks %.0f %% of the time "
			 "in the base, %.0f %% in the new runs",
			 100 * base->watched, 100 * new->watched);
	if (base->error > 0 && new->error > 0)
		n += snprintf(buf + n, NOTE_MAX - (size_t)n,
			      "; the naps there are known to within %.0f %% "
			      "and %.0f %%",
			      100 * base->error, 100 * new->error);
	snprintf(buf + n, NOTE_MAX - (size_t)n,
		 ". What is missing where less was watched need not be gone");
	return true;
}

/* The first run that did watch blocks, or that did not; NULL: none. */
static const struct diff_run *run_with_naps(const struct diff *d, bool has)
{
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++)
			if (d->side[i].run[k].has_naps == has)
				return &d->side[i].run[k];
	return NULL;
}

static bool note_without(const struct diff *d, char *buf)
{
	const struct diff_run *without = run_with_naps(d, false);
	if (!without || !run_with_naps(d, true))
		return false;
	snprintf(buf, NOTE_MAX,
		 "%.150s was made without -m nap: %s what is allocated and "
		 "lies unused",
		 without->path,
		 diff_compares_naps(d) ? "it does not count for"
				       : "nothing is said of");
	return true;
}

static bool note_nap(const struct diff *d, char *buf)
{
	const struct diff_run *first = run_with_naps(d, true);
	char a[UNITS_MAX], b[UNITS_MAX];
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++) {
			const struct diff_run *run = &d->side[i].run[k];
			if (!run->has_naps)
				continue;
			if (run->nap_ns == first->nap_ns &&
			    run->min_size == first->min_size &&
			    run->mechanism == first->mechanism)
				continue;
			bool nap = run->nap_ns != first->nap_ns;
			bool size = run->min_size != first->min_size;
			snprintf(buf, NOTE_MAX,
				 "%s differs: %.60s in %.150s, %.60s in %.150s",
				 nap	? "--nap"
				 : size ? "--min-size"
					: "the mechanism",
				 nap	? units_duration(first->nap_ns, a)
				 : size ? units_bytes(first->min_size, a)
					: first->mechanism,
				 first->path,
				 nap	? units_duration(run->nap_ns, b)
				 : size ? units_bytes(run->min_size, b)
					: run->mechanism,
				 run->path);
			return true;
		}
	return false;
}

static bool note_cut(const struct diff *d, char *buf)
{
	uint64_t cut = 0;
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++)
			cut += d->side[i].run[k].is_truncated;
	snprintf(buf, NOTE_MAX,
		 "%" PRIu64 " of the traces have no end: what came later is "
		 "missing",
		 cut);
	return cut;
}

static bool note_damage(const struct diff *d, char *buf)
{
	uint64_t damaged = 0, lost = 0;
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++) {
			damaged += d->side[i].run[k].nr_damaged;
			lost += d->side[i].run[k].nr_lost;
		}
	snprintf(buf, NOTE_MAX,
		 "%" PRIu64 " damaged part%s of the traces skipped, %" PRIu64
		 " record%s lost",
		 damaged, damaged == 1 ? "" : "s", lost, lost == 1 ? "" : "s");
	return damaged;
}

bool diff_words_note(const struct diff *d, size_t i, char *buf)
{
	static bool (*const note[])(const struct diff *, char *) = {
		note_noise,   note_few, note_cut,     note_damage,
		note_without, note_nap, note_watched,
	};
	for (size_t k = 0; k < ARRAY_SIZE(note); k++)
		if (note[k](d, buf) && !i--)
			return true;
	return false;
}

bool diff_words_counts(const struct diff *d, enum diff_kind kind, char *buf)
{
	const size_t *by_verdict = d->nr_by_verdict[kind];
	size_t nr = 0, changed = 0, one = d->nr_one_sided[kind];
	char number[UNITS_MAX];
	for (size_t v = VERDICT_SAME + 1; v < VERDICT_NR; v++) {
		if (!by_verdict[v])
			continue;
		nr += (size_t)snprintf(buf + nr, NOTE_MAX - nr, "%s%s %s",
				       nr ? ", " : "",
				       units_count(by_verdict[v], number),
				       diff_verdict_name(v));
		changed += by_verdict[v];
	}
	nr += (size_t)snprintf(buf + nr, NOTE_MAX - nr, "%s%s unchanged",
			       changed ? "; " : "nothing changed, ",
			       units_count(by_verdict[VERDICT_SAME], number));
	if (one)
		snprintf(buf + nr, NOTE_MAX - nr, ", %s known on one side only",
			 units_count(one, number));
	return changed || by_verdict[VERDICT_SAME] || one ||
	       (kind == DIFF_SITE && diff_compares_naps(d));
}

const char *diff_words_command(const struct diff_side *s)
{
	return *s->run[0].shown ? s->run[0].shown
				: "(command not in the trace)";
}

char *diff_words_runs(const struct diff_side *s, char *buf)
{
	char time[UNITS_MAX];
	double sum = 0;
	for (size_t i = 0; i < s->nr_runs; i++)
		sum += (double)s->run[i].duration_ns / (double)s->nr_runs;
	units_duration(units_whole(sum), time);
	if (s->nr_runs == 1)
		snprintf(buf, WORDS_MAX, "%s", time);
	else
		snprintf(buf, WORDS_MAX, "%zu runs of %s", s->nr_runs, time);
	return buf;
}
