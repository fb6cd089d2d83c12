#include "reports/diff-judge.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------- measures --- */

double diff_relative(const struct diff_measure *m)
{
	double base = m->side[DIFF_BASE].mean;
	if (m->test.change == 0)
		return 0;
	return base > 0 ? m->test.change / base
			: copysign(INFINITY, m->test.change);
}

static bool is_of_naps(enum diff_metric m)
{
	return m == DIFF_BYTE_SECONDS || m == DIFF_UNUSED || m == DIFF_LONGEST;
}

/* Of single runs: would all naps of @item, which is of side @side, be less than
 * half as long again as what is told of, had all taken as little time as on the
 * other side? */
static bool is_brief_there(const struct diff *d, int side,
			   const struct diff_item *item)
{
	const struct diff_run *own = &d->side[side].run[0];
	double other = (double)d->side[!side].run[0].duration_ns;
	double share = other / (double)own->duration_ns;
	return share < 1 &&
	       item->value[DIFF_LONGEST] * share < 1.5 * (double)own->nap_ns;
}

/* Of single runs: what @item has of @metric and the next run need not. */
static double chance_of(const struct diff *d, int side,
			const struct diff_item *item, enum diff_metric metric)
{
	return is_of_naps(metric) && is_brief_there(d, side, item)
		       ? item->value[metric]
		       : item->chance[metric];
}

/* How far the mean of side @side may be off by itself; with one run a side also
 * by chance. */
static double mean_error(const struct diff *d, int side,
			 const struct diff_entry *e, enum diff_metric metric)
{
	const struct diff_side *s = &d->side[side];
	double sum = 0;
	for (size_t i = 0; e && i < s->nr_runs; i++) {
		const struct diff_item *item = e->in_run[i];
		if (item)
			sum += item->error[metric] +
			       (d->is_judged
					? 0
					: chance_of(d, side, item, metric));
	}
	return sum / (double)s->nr_runs;
}

static size_t count_nonzero(const double *v, size_t nr)
{
	size_t nonzero = 0;
	for (size_t i = 0; i < nr; i++)
		nonzero += v[i] != 0;
	return nonzero;
}

/* by_order of a measure: of what is in all runs of one side and in none of the
 * other, however much it scatters, what that is by chance. */
static double chance_by_order(double *const v[DIFF_SIDES],
			      const size_t nr[DIFF_SIDES])
{
	size_t has[DIFF_SIDES], all = nr[DIFF_BASE] + nr[DIFF_NEW];
	for (int i = 0; i < DIFF_SIDES; i++)
		has[i] = count_nonzero(v[i], nr[i]);
	size_t some = has[DIFF_BASE] + has[DIFF_NEW];
	if (!some || some == all)
		return NAN;
	for (int i = 0; i < DIFF_SIDES; i++)
		if (has[i] == nr[i] && !has[!i])
			return apart_by_chance(nr[i], nr[!i]);
	return 1;
}

/* Blocks that lie unused, and what the machine does to a program, come in whole
 * pieces, and now and then: that each run has one is no lack of scatter. */
static bool comes_by_pieces(const struct diff_change *c, enum diff_metric m)
{
	if (m != DIFF_COUNT)
		return m == DIFF_UNUSED;
	for (int i = 0; i < DIFF_SIDES; i++)
		if (c->item[i] && c->item[i]->chance[m] > 0)
			return true;
	return false;
}

static bool has_variables(const struct diff_side *s)
{
	for (size_t i = 0; i < s->nr_runs; i++)
		if (s->run[i].nr_declared)
			return true;
	return false;
}

/* Naps last longer where everything does, and so does what counts time: of
 * single runs the share by which they do. */
static double length_differs(const struct diff *d, const struct diff_change *c,
			     enum diff_metric metric)
{
	const struct diff_side *s = d->side;
	const struct diff_measure *m = &c->measure[metric];
	const struct diff_item *item =
		c->item[DIFF_BASE] ? c->item[DIFF_BASE] : c->item[DIFF_NEW];
	if (d->is_judged || !s[DIFF_BASE].nr_runs || !s[DIFF_NEW].nr_runs)
		return 0;
	for (int i = 0; i < DIFF_SIDES; i++)
		if (is_of_naps(metric) && c->item[i] &&
		    m->side[i].mean > m->side[!i].mean &&
		    is_brief_there(d, i, c->item[i]))
			return INFINITY;
	if (m->side[DIFF_NEW].mean <= 0 ||
	    (metric != DIFF_BYTE_SECONDS && metric != DIFF_LONGEST &&
	     !(metric == DIFF_COUNT && item && item->is_time)))
		return 0;
	double base = (double)s[DIFF_BASE].run[0].duration_ns;
	double new = (double)s[DIFF_NEW].run[0].duration_ns;
	return base > 0 ? fabs(new - base) / base : 0;
}

/*
 * Fills in @c's measure of @metric. has_changed says so far only that the
 * change is large enough to matter.
 */
static void measure(const struct diff *d, struct diff_change *c,
		    enum diff_metric metric, double *v[DIFF_SIDES])
{
	struct diff_measure *m = &c->measure[metric];
	double error[DIFF_SIDES];
	size_t nr[DIFF_SIDES];
	if (!(diff_metric[metric].kinds & 1u << c->kind))
		return;
	if (c->kind == DIFF_MISTAKE && !(has_variables(&d->side[DIFF_BASE]) &&
					 has_variables(&d->side[DIFF_NEW])))
		return; /* not looked for: not without */
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_side *s = &d->side[i];
		nr[i] = diff_values(s, c->entry[i], metric, v[i]);
		if (nr[i])
			m->side[i] = sample_of(v[i], nr[i]);
		error[i] = mean_error(d, i, c->entry[i], metric);
	}
	m->is_known = nr[DIFF_BASE] && nr[DIFF_NEW];
	if (!m->is_known)
		return;
	bool judged = welch_compare(&m->side[DIFF_BASE], &m->side[DIFF_NEW],
				    &m->test);
	m->by_order = judged ? chance_by_order(v, nr) : NAN;
	if (m->test.p == 0 && m->by_order > 0 && comes_by_pieces(c, metric))
		m->test.p = m->by_order;
	/* Errors of many runs level out, but not that one side was watched
	 * less well than the other. */
	double off = judged ? fabs(error[DIFF_NEW] - error[DIFF_BASE])
			    : error[DIFF_NEW] + error[DIFF_BASE];
	double change = fabs(m->test.change);
	double least = d->least_change;
	m->by_length = length_differs(d, c, metric);
	least += m->by_length;
	m->has_changed = change >= diff_metric[metric].least && change > off &&
			 fabs(diff_relative(m)) >= least;
}

struct trial {
	double p;
	struct diff_measure *m;
	bool has_passed;
};

static int compare_trials(const void *va, const void *vb)
{
	const struct trial *a = va, *b = vb;
	return a->p < b->p ? -1 : a->p > b->p;
}

/* @together: Holm: of @nr trials, that with the smallest p has to pass 5 % /
 * nr, the next 5 % / (nr - 1), ... */
static void hold_to_level(struct trial *trial, size_t nr, bool together)
{
	qsort(trial, nr, sizeof(*trial), compare_trials);
	for (size_t i = 0;
	     i < nr && trial[i].p <= 0.05 / (double)(together ? nr - i : 1);
	     i++)
		trial[i].has_passed = true;
}

/* What is from or to nothing passes by its order, too: by itself at 5 %, and
 * @together where it is, by chance, at most 5 % of what passes of all that only
 * some runs have (Benjamini and Hochberg; all have the same p). */
static void pass_by_order(struct trial *trial, size_t nr, bool together)
{
	size_t nr_some = 0, nr_apart = 0;
	for (size_t i = 0; i < nr; i++) {
		nr_some += !isnan(trial[i].m->by_order);
		nr_apart += trial[i].m->by_order < 1;
	}
	double share = together ? (double)nr_apart / (double)nr_some : 1;
	for (size_t i = 0; i < nr; i++)
		trial[i].has_passed |= trial[i].m->by_order <= 0.05 * share;
}

/* The few numbers of the run as a whole are looked at one by one, at 5 % each.
 */
static int judge_kind(struct diff *d, enum diff_kind kind)
{
	size_t nr = 0;
	struct trial *trial =
		calloc(d->nr_changes * DIFF_NR_METRICS + 1, sizeof(*trial));
	if (!trial)
		return SMCO_NOMEM;
	for (size_t i = 0; i < d->nr_changes; i++)
		for (size_t k = 0; k < DIFF_NR_METRICS; k++) {
			struct diff_measure *m = &d->change[i].measure[k];
			if (d->change[i].kind != kind)
				continue;
			/* What did not move at all is no trial. */
			if (m->is_known && !isnan(m->test.p) &&
			    (m->test.p < 1 || !isnan(m->by_order)))
				trial[nr++] =
					(struct trial){.p = m->test.p, .m = m};
		}
	hold_to_level(trial, nr, kind != DIFF_RUN);
	pass_by_order(trial, nr, kind != DIFF_RUN);
	for (size_t i = 0; i < nr; i++) {
		trial[i].m->has_changed &= trial[i].has_passed;
		trial[i].m->test.p = fmin(trial[i].p, trial[i].m->by_order);
	}
	free(trial);
	return SMCO_OK;
}

/* Of a thing on a side: the share of its blocks that were watched. */
static double watched_share(const struct diff_side *s,
			    const struct diff_entry *e)
{
	double allocs = 0, watched = 0;
	for (size_t i = 0; e && i < s->nr_runs; i++)
		if (e->in_run[i]) {
			allocs += (double)e->in_run[i]->nr_allocs;
			watched += (double)e->in_run[i]->nr_watched;
		}
	return allocs > 0 ? watched / allocs : NAN;
}

int diff_judge_measure(struct diff *d)
{
	double *v[DIFF_SIDES];
	int rc = SMCO_OK;
	for (int i = 0; i < DIFF_SIDES; i++) {
		v[i] = calloc(d->side[i].nr_runs, sizeof(**v));
		if (!v[i])
			rc = SMCO_NOMEM;
	}
	for (size_t i = 0; i < d->nr_changes && !rc; i++) {
		struct diff_change *c = &d->change[i];
		for (size_t k = 0; k < DIFF_NR_METRICS; k++)
			measure(d, c, (enum diff_metric)k, v);
		for (int k = 0; k < DIFF_SIDES; k++)
			c->watched[k] = watched_share(&d->side[k], c->entry[k]);
	}
	for (int i = 0; i < DIFF_SIDES; i++)
		free(v[i]);
	for (size_t i = 0; i < DIFF_NR_KINDS && !rc; i++)
		rc = judge_kind(d, (enum diff_kind)i);
	return rc;
}

/* ------------------------------------------------------------- verdicts --- */

const char *diff_verdict_name(enum diff_verdict v)
{
	static const char *const name[VERDICT_NR] = {
		[VERDICT_SAME] = "same",   [VERDICT_NEW] = "new",
		[VERDICT_GROWN] = "grown", [VERDICT_SHRUNK] = "shrunk",
		[VERDICT_GONE] = "gone",   [VERDICT_UNSURE] = "unsure",
	};
	return name[v];
}

struct diff_quality diff_judge_quality(const struct diff_side *s)
{
	struct diff_quality q = {.is_whole = true};
	double naps = 0, error = 0, watched = 0;
	size_t nr_known = 0;
	for (size_t i = 0; i < s->nr_runs; i++) {
		const struct diff_run *run = &s->run[i];
		q.is_whole &= !run->is_truncated && !run->nr_damaged;
		if (!isnan(run->watched)) {
			watched += run->watched;
			nr_known++;
		}
		naps += run->item[0].value[DIFF_BYTE_SECONDS];
		error += run->item[0].error[DIFF_BYTE_SECONDS];
	}
	q.watched = nr_known ? watched / (double)nr_known : NAN;
	q.error = naps > 0 ? error / naps : 0;
	return q;
}

bool diff_is_watched_less(const struct diff *d, int side)
{
	const struct diff_quality *own = &d->quality[side];
	const struct diff_quality *other = &d->quality[!side];
	return own->watched < 0.9 * other->watched ||
	       (own->error > 0.15 && own->error > 2 * other->error);
}

/* Of a single run on side @less, blocks of which never got a turn: were @c's
 * among them, while on the other side they were not? */
static bool lacks_turns(const struct diff *d, const struct diff_change *c,
			int less)
{
	return !d->is_judged && d->side[less].run[0].lacks_turns &&
	       c->watched[less] < 0.8 * c->watched[!less];
}

/*
 * Naps may be missing on side @less because it was not watched as much, or
 * because its traces lack parts. Where only known blocks got fewer turns, the
 * thing's own blocks decide: a block that is freed at once gets none either,
 * which is a finding and not a lack.
 */
static bool is_in_doubt(const struct diff *d, const struct diff_change *c,
			int less)
{
	double own = c->watched[less], other = c->watched[!less];
	if (!d->quality[less].is_whole || lacks_turns(d, c, less))
		return true;
	if (!diff_is_watched_less(d, less))
		return false;
	return !(own >= 0.8 * other) ||
	       d->quality[less].error > 2 * d->quality[!less].error;
}

/* A variable whose assignments were seen for less of the time on side @less may
 * have had other values there; of a single run, whose assignments were not seen
 * all the time. */
static bool is_seen_less(const struct diff *d, const struct diff_change *c,
			 int less)
{
	if (!d->is_judged && c->item[less] && c->item[less]->is_seen_partly)
		return true;
	return !d->quality[less].is_whole ||
	       !(c->watched[less] >= 0.8 * c->watched[!less]);
}

/* Is it certain that the program has no such variable on @side? */
static bool is_without(const struct diff *d, const struct diff_change *c,
		       int side)
{
	const struct diff_side *s = &d->side[side];
	if (c->entry[side] || !d->quality[side].is_whole)
		return false;
	for (size_t i = 0; i < s->nr_runs; i++)
		if (diff_run_declares(&s->run[i], c->item[!side]->name))
			return false;
	return has_variables(s);
}

const char *diff_mistake(const struct diff *d, const struct diff_change *c,
			 int side)
{
	const struct diff_entry *e = c->entry[side];
	for (size_t i = 0; e && i < d->side[side].nr_runs; i++)
		if (e->in_run[i] && e->in_run[i]->about)
			return e->in_run[i]->about;
	return NULL;
}

/* May stacks that were not read to their end have the rest of it? */
static bool is_cut(const struct diff_change *c)
{
	bool cut = c->is_hidden;
	for (int i = 0; i < DIFF_SIDES; i++)
		cut |= c->entry[i] && c->entry[i]->is_cut;
	return cut;
}

/* Is it known on both sides what it has? Not if it may be one of several on the
 * other, nor if it was cut and others begin like it, whichever it is laid
 * against. */
static bool is_comparable(const struct diff_change *c)
{
	return !(c->how == MATCH_NONE && c->ambiguous) && !is_cut(c);
}

bool diff_judge_is_told(const struct diff *d, const struct diff_change *c)
{
	int less = c->measure[c->by].test.change > 0 ? DIFF_BASE : DIFF_NEW;
	switch (c->verdict) {
	case VERDICT_SAME:
		return false;
	case VERDICT_NEW:
	case VERDICT_GONE:
		return c->kind != DIFF_VARIABLE;
	case VERDICT_UNSURE:
		return d->is_judged ||
		       (c->kind == DIFF_SITE && !is_cut(c) &&
			c->measure[c->by].is_known && !lacks_turns(d, c, less));
	default:
		return true;
	}
}

/* Blocks of unknown stacks: more or fewer of them are more or less known. */
static bool is_nameless(const struct diff_change *c)
{
	const struct diff_item *item =
		c->item[c->item[DIFF_BASE] ? DIFF_BASE : DIFF_NEW];
	return !item->nr_frames;
}

/* Of @c, of which nothing that is known has changed. */
static enum diff_verdict verdict_of_unchanged(const struct diff *d,
					      struct diff_change *c)
{
	const struct diff_measure *naps = &c->measure[DIFF_BYTE_SECONDS];
	if (c->kind == DIFF_VARIABLE) {
		c->by = DIFF_RANGE;
		return is_without(d, c, DIFF_BASE)  ? VERDICT_NEW
		       : is_without(d, c, DIFF_NEW) ? VERDICT_GONE
						    : VERDICT_SAME;
	}
	c->by = DIFF_BYTE_SECONDS;
	if (naps->is_known ||
	    (naps->side[DIFF_BASE].mean == 0 && naps->side[DIFF_NEW].mean == 0))
		return VERDICT_SAME;
	return diff_compares_naps(d) ? VERDICT_UNSURE : VERDICT_SAME;
}

enum diff_verdict diff_judge_verdict(const struct diff *d,
				     struct diff_change *c)
{
	size_t k = 0;

	while (k < DIFF_NR_METRICS &&
	       (!c->measure[k].has_changed || diff_metric[k].is_context))
		k++;
	if (k == DIFF_NR_METRICS)
		return verdict_of_unchanged(d, c);
	const struct diff_measure *m = &c->measure[k];
	bool more = m->test.change > 0;
	c->by = (enum diff_metric)k;
	if (c->kind == DIFF_SITE &&
	    (!is_comparable(c) ||
	     (is_of_naps(c->by) ? is_in_doubt(d, c, more ? DIFF_BASE : DIFF_NEW)
				: is_nameless(c))))
		return VERDICT_UNSURE;
	if (c->kind == DIFF_VARIABLE || c->kind == DIFF_MISTAKE) {
		int less = more ? DIFF_BASE : DIFF_NEW;
		if (!is_without(d, c, less) && is_seen_less(d, c, less))
			return VERDICT_UNSURE;
	}
	if (c->kind == DIFF_VARIABLE)
		return more ? VERDICT_GROWN : VERDICT_SHRUNK;
	if (more)
		return m->side[DIFF_BASE].mean == 0 ? VERDICT_NEW
						    : VERDICT_GROWN;
	return m->side[DIFF_NEW].mean == 0 ? VERDICT_GONE : VERDICT_SHRUNK;
}
