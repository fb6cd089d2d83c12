#include "reports/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

const char *diff_verdict_name(enum diff_verdict v)
{
	static const char *const name[VERDICT_NR] = {
		[VERDICT_SAME] = "same",   [VERDICT_NEW] = "new",
		[VERDICT_GROWN] = "grown", [VERDICT_SHRUNK] = "shrunk",
		[VERDICT_GONE] = "gone",   [VERDICT_UNSURE] = "unsure",
	};
	return name[v];
}

/* ---------------------------------------------------------------- sides --- */

int diff_add_reader(struct diff *d, int side, struct trace_reader *reader,
		    const char *path, struct smco_err *err)
{
	struct diff_side *s = &d->side[side];
	struct smco_err why = {0};
	struct diff_run *grown =
		reallocarray(s->run, s->nr_runs + 1, sizeof(*grown));
	if (!grown)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->run = grown;
	struct diff_run *run = &s->run[s->nr_runs];
	int rc = diff_run_read(reader, &d->pool, run, &why);
	if (rc)
		return smco_fail(err, rc, 0, "%s: %s", path, why.msg);
	run->path = path;
	s->nr_runs++;
	return SMCO_OK;
}

int diff_add_run(struct diff *d, int side, const char *path,
		 struct smco_err *err)
{
	struct trace_reader *reader;
	const char *file = strcmp(path, "-") ? path : "/dev/stdin";
	int rc = trace_reader_open(file, &reader, err);
	if (rc)
		return rc;
	rc = diff_add_reader(d, side, reader, path, err);
	trace_reader_close(reader);
	return rc;
}

void diff_deinit(struct diff *d)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct diff_side *s = &d->side[i];
		for (size_t k = 0; k < s->nr_runs; k++)
			diff_run_free(&s->run[k]);
		for (size_t k = 0; k < s->nr; k++) {
			free(s->entry[k].in_run);
			free(s->entry[k].cut);
		}
		free(s->run);
		free(s->entry);
	}
	free(d->change);
	diff_pool_free(&d->pool);
	*d = (struct diff){0};
}

int diff_check(const struct diff *d, struct smco_err *err)
{
	const struct diff_run *first = &d->side[DIFF_BASE].run[0];
	for (int i = 0; i < DIFF_SIDES; i++)
		for (size_t k = 0; k < d->side[i].nr_runs; k++) {
			const struct diff_run *run = &d->side[i].run[k];
			if (run->program != first->program)
				return smco_fail(
					err, SMCO_FORMAT, 0,
					"different programs: %.80s ran "
					"\"%.40s\", %.80s ran \"%.40s\" "
					"(--force compares them)",
					first->path, first->program, run->path,
					run->program);
			if (run->is_truncated)
				return smco_fail(
					err, SMCO_FORMAT, 0,
					"%.200s: the trace has no end, what "
					"came later is missing (--force "
					"compares what is there)",
					run->path);
		}
	return SMCO_OK;
}

const struct diff_item *diff_entry_item(const struct diff_side *s,
					const struct diff_entry *e)
{
	for (size_t i = 0; i < s->nr_runs; i++)
		if (e->in_run[i])
			return e->in_run[i];
	return NULL; /* there is no such entry */
}

static struct diff_entry *add_entry(struct diff_side *s)
{
	if (!ARRAY_ROOM(s->entry, s->nr, s->cap))
		return NULL;
	struct diff_entry *e = &s->entry[s->nr];
	*e = (struct diff_entry){0};
	e->in_run = calloc(s->nr_runs, sizeof(*e->in_run));
	e->cut = calloc(s->nr_runs, sizeof(*e->cut));
	s->nr++;
	return e->in_run && e->cut ? e : NULL;
}

/* One item of each entry; the caller frees. */
static const struct diff_item **items_of_side(const struct diff_side *s)
{
	const struct diff_item **item = calloc(s->nr + 1, sizeof(*item));
	for (size_t i = 0; item && i < s->nr; i++)
		item[i] = diff_entry_item(s, &s->entry[i]);
	return item;
}

static const struct diff_item **items_of_run(const struct diff_run *run)
{
	const struct diff_item **item =
		calloc(run->nr_items + 1, sizeof(*item));
	for (size_t i = 0; item && i < run->nr_items; i++)
		item[i] = &run->item[i];
	return item;
}

/* Put what run @k of @s has beside what the runs before it have. */
static int merge_run(struct diff_side *s, size_t k)
{
	const struct diff_item **known = items_of_side(s);
	const struct diff_item **own = items_of_run(&s->run[k]);
	struct diff_pairs pairs = {0};
	int rc = SMCO_NOMEM;
	if (known && own)
		rc = diff_match(known, s->nr, own, s->run[k].nr_items, &pairs);
	for (size_t i = 0; i < pairs.nr && !rc; i++) {
		const struct diff_pair *p = &pairs.pair[i];
		if (p->b == UINT32_MAX)
			continue;
		struct diff_entry *e =
			p->a == UINT32_MAX ? add_entry(s) : &s->entry[p->a];
		if (e)
			e->in_run[k] = own[p->b];
		else
			rc = SMCO_NOMEM;
	}
	free(pairs.pair);
	free(known);
	free(own);
	return rc;
}

static int merge_runs(struct diff_side *s)
{
	int rc = SMCO_OK;
	for (size_t k = 0; k < s->nr_runs && !rc; k++)
		rc = merge_run(s, k);
	return rc ? rc : diff_mark_cut(s);
}

static double value_in(const struct diff_entry *entry, size_t run,
		       enum diff_metric metric)
{
	const struct diff_item *item = entry ? entry->in_run[run] : NULL;
	if (item)
		return item->value[metric];
	return diff_metric[metric].absent_is_zero ? 0 : NAN;
}

/* Cut stacks that may belong to a thing matter if they have more than a tenth
 * of what it has. */
#define CUT_MATTERS 0.1

size_t diff_values(const struct diff_side *side, const struct diff_entry *entry,
		   enum diff_metric metric, double *v)
{
	double most = 0;
	size_t nr = 0;
	for (size_t i = 0; i < side->nr_runs; i++)
		most = fmax(most, value_in(entry, i, metric));
	for (size_t i = 0; i < side->nr_runs; i++) {
		double value = value_in(entry, i, metric);
		bool cut = entry && entry->cut[i][metric] > CUT_MATTERS * most;
		if (!isnan(value) && !cut)
			v[nr++] = value;
	}
	return nr;
}

double diff_relative(const struct diff_measure *m)
{
	double base = m->side[DIFF_BASE].mean;
	if (m->test.change == 0)
		return 0;
	return base > 0 ? m->test.change / base
			: copysign(INFINITY, m->test.change);
}

/* -------------------------------------------------------------- judging --- */

/* How far the mean of a side may be off by itself. */
static double mean_error(const struct diff_side *s, const struct diff_entry *e,
			 enum diff_metric metric)
{
	double sum = 0;
	for (size_t i = 0; e && i < s->nr_runs; i++)
		if (e->in_run[i])
			sum += e->in_run[i]->error[metric];
	return sum / (double)s->nr_runs;
}

static bool is_all_zero(const double *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (v[i] != 0)
			return false;
	return true;
}

static bool is_never_zero(const double *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (v[i] == 0)
			return false;
	return true;
}

/* Nothing in all runs of one side, something in all of the other: with three
 * a side that is not chance, however much the something scatters. */
static bool is_from_or_to_nothing(double *const v[DIFF_SIDES],
				  const size_t nr[DIFF_SIDES])
{
	for (int i = 0; i < DIFF_SIDES; i++)
		if (nr[i] >= 3 && nr[!i] >= 3 && is_all_zero(v[i], nr[i]) &&
		    is_never_zero(v[!i], nr[!i]))
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

double diff_length_differs(const struct diff *d, enum diff_metric metric)
{
	const struct diff_side *s = d->side;
	if (d->is_judged || !s[DIFF_BASE].nr_runs || !s[DIFF_NEW].nr_runs ||
	    (metric != DIFF_BYTE_SECONDS && metric != DIFF_LONGEST))
		return 0;
	double base = (double)s[DIFF_BASE].run[0].duration_ns;
	double new = (double)s[DIFF_NEW].run[0].duration_ns;
	return base > 0 ? fabs(new - base) / base : 0;
}

/*
 * Fills in @c's measure of @metric. has_changed says so far only that the
 * change is large enough to matter; test.p is 0 where no test is needed.
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
		error[i] = mean_error(s, c->entry[i], metric);
	}
	m->is_known = nr[DIFF_BASE] && nr[DIFF_NEW];
	if (!m->is_known)
		return;
	bool judged = welch_compare(&m->side[DIFF_BASE], &m->side[DIFF_NEW],
				    &m->test);
	if (judged && is_from_or_to_nothing(v, nr))
		m->test.p = 0;
	/* Errors of many runs level out, but not that one side was watched
	 * less well than the other. */
	double off = judged ? fabs(error[DIFF_NEW] - error[DIFF_BASE])
			    : error[DIFF_NEW] + error[DIFF_BASE];
	double change = fabs(m->test.change);
	double least = d->least_change;
	if (m->side[DIFF_NEW].mean > 0)
		least += diff_length_differs(d, metric);
	m->has_changed = change >= diff_metric[metric].least && change > off &&
			 fabs(diff_relative(m)) >= least;
}

struct trial {
	double p;
	struct diff_measure *m;
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
	size_t i = 0;
	qsort(trial, nr, sizeof(*trial), compare_trials);
	while (i < nr && trial[i].p <= 0.05 / (double)(together ? nr - i : 1))
		i++;
	for (; i < nr; i++)
		trial[i].m->has_changed = false;
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
			if (m->is_known && !isnan(m->test.p) && m->test.p < 1)
				trial[nr++] = (struct trial){m->test.p, m};
		}
	hold_to_level(trial, nr, kind != DIFF_RUN);
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

static struct diff_quality quality_of(const struct diff_side *s)
{
	struct diff_quality q = {.is_whole = true};
	double naps = 0, error = 0;
	for (size_t i = 0; i < s->nr_runs; i++) {
		const struct diff_run *run = &s->run[i];
		q.is_whole &= !run->is_truncated && !run->nr_damaged;
		q.watched += run->watched / (double)s->nr_runs;
		naps += run->item[0].value[DIFF_BYTE_SECONDS];
		error += run->item[0].error[DIFF_BYTE_SECONDS];
	}
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
	if (!d->quality[less].is_whole)
		return true;
	if (!diff_is_watched_less(d, less))
		return false;
	return !(own >= 0.8 * other) ||
	       d->quality[less].error > 2 * d->quality[!less].error;
}

/* A variable whose assignments were seen for less of the time on side @less may
 * have had other values there. */
static bool is_seen_less(const struct diff *d, const struct diff_change *c,
			 int less)
{
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

bool diff_is_told(const struct diff_change *c)
{
	return c->verdict != VERDICT_SAME &&
	       !(c->kind == DIFF_VARIABLE &&
		 (c->verdict == VERDICT_NEW || c->verdict == VERDICT_GONE));
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

static bool is_of_naps(enum diff_metric m)
{
	return m == DIFF_BYTE_SECONDS || m == DIFF_UNUSED || m == DIFF_LONGEST;
}

/* Is it known on both sides what it has? Not if it may be one of several on the
 * other, or if stacks were cut. */
static bool is_comparable(const struct diff_change *c)
{
	if (c->how == MATCH_NONE && c->ambiguous)
		return false;
	for (int i = 0; i < DIFF_SIDES; i++)
		if (c->entry[i] && c->entry[i]->is_cut)
			return c->how == MATCH_CUT;
	return true;
}

/* Blocks of unknown stacks: more or fewer of them are more or less known. */
static bool is_nameless(const struct diff_change *c)
{
	const struct diff_item *item =
		c->item[c->item[DIFF_BASE] ? DIFF_BASE : DIFF_NEW];
	return !item->nr_frames;
}

static enum diff_verdict verdict_of(const struct diff *d, struct diff_change *c)
{
	size_t k = 0;

	while (k < DIFF_NR_METRICS &&
	       (!c->measure[k].has_changed || diff_metric[k].is_context))
		k++;
	if (k == DIFF_NR_METRICS && c->kind == DIFF_VARIABLE) {
		c->by = DIFF_RANGE;
		return is_without(d, c, DIFF_BASE)  ? VERDICT_NEW
		       : is_without(d, c, DIFF_NEW) ? VERDICT_GONE
						    : VERDICT_SAME;
	}
	if (k == DIFF_NR_METRICS) {
		const struct diff_measure *naps =
			&c->measure[DIFF_BYTE_SECONDS];
		c->by = DIFF_BYTE_SECONDS;
		return naps->is_known || (naps->side[DIFF_BASE].mean == 0 &&
					  naps->side[DIFF_NEW].mean == 0)
			       ? VERDICT_SAME
			       : VERDICT_UNSURE;
	}
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

/* The run first, then what changed: naps by how much, then the rest. */
static int compare_changes(const void *va, const void *vb)
{
	const struct diff_change *a = va, *b = vb;
	if ((a->kind == DIFF_RUN) != (b->kind == DIFF_RUN))
		return a->kind == DIFF_RUN ? -1 : 1;
	bool same_a = !diff_is_told(a);
	bool same_b = !diff_is_told(b);
	if (same_a != same_b)
		return same_a ? 1 : -1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	for (size_t k = 0; k < DIFF_NR_METRICS; k++) {
		double x = fabs(a->measure[k].test.change);
		double y = fabs(b->measure[k].test.change);
		if (!same_a && k < b->by && k < a->by)
			continue;
		if (x != y)
			return x > y ? -1 : 1;
	}
	return a->order < b->order ? -1 : 1;
}

/* ------------------------------------------------------------ comparing --- */

static int pair_sides(struct diff *d)
{
	struct diff_side *s = d->side;
	struct diff_pairs pairs = {0};
	const struct diff_item **base = items_of_side(&s[DIFF_BASE]);
	const struct diff_item **new = items_of_side(&s[DIFF_NEW]);
	int rc = SMCO_NOMEM;
	if (base && new)
		rc = diff_match(base, s[DIFF_BASE].nr, new, s[DIFF_NEW].nr,
				&pairs);
	if (!rc)
		d->change = calloc(pairs.nr + 1, sizeof(*d->change));
	if (!d->change)
		rc = SMCO_NOMEM;
	for (size_t i = 0; i < pairs.nr && !rc; i++) {
		const struct diff_pair *p = &pairs.pair[i];
		struct diff_change *c = &d->change[d->nr_changes++];
		c->how = p->how;
		c->ambiguous = p->ambiguous;
		c->order = i;
		const uint32_t index[DIFF_SIDES] = {p->a, p->b};
		for (int k = 0; k < DIFF_SIDES; k++) {
			if (index[k] == UINT32_MAX)
				continue;
			c->entry[k] = &s[k].entry[index[k]];
			c->item[k] =
				k == DIFF_BASE ? base[index[k]] : new[index[k]];
			c->kind = c->item[k]->kind;
		}
	}
	free(pairs.pair);
	free(base);
	free(new);
	return rc;
}

static int measure_all(struct diff *d)
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

/* Is nothing of it known on both sides? */
static bool is_one_sided(const struct diff_change *c)
{
	for (size_t k = 0; k < DIFF_NR_METRICS; k++)
		if (c->measure[k].is_known)
			return false;
	return true;
}

/* Variables that look right on both sides are no mistakes to tell of. */
static void forget_right_ones(struct diff *d)
{
	size_t nr = 0;
	for (size_t i = 0; i < d->nr_changes; i++) {
		const struct diff_change *c = &d->change[i];
		if (c->kind != DIFF_MISTAKE || diff_mistake(d, c, DIFF_BASE) ||
		    diff_mistake(d, c, DIFF_NEW))
			d->change[nr++] = *c;
	}
	d->nr_changes = nr;
}

int diff_compare(struct diff *d, const struct diff_config *config,
		 struct smco_err *err)
{
	int rc = SMCO_OK;
	d->least_change = config->least_change;
	d->is_judged =
		d->side[DIFF_BASE].nr_runs + d->side[DIFF_NEW].nr_runs > 2;
	for (int i = 0; i < DIFF_SIDES && !rc; i++) {
		d->quality[i] = quality_of(&d->side[i]);
		rc = merge_runs(&d->side[i]);
	}
	if (!rc)
		rc = pair_sides(d);
	forget_right_ones(d);
	if (!rc)
		rc = measure_all(d);
	if (rc)
		return smco_fail(err, rc, 0,
				 "out of memory for the comparison");
	for (size_t i = 0; i < d->nr_changes; i++) {
		struct diff_change *c = &d->change[i];
		c->verdict = verdict_of(d, c);
		d->nr_ambiguous += c->ambiguous;
		if (c->verdict == VERDICT_SAME && is_one_sided(c))
			d->nr_one_sided[c->kind]++;
		else
			d->nr_by_verdict[c->kind][c->verdict]++;
	}
	qsort(d->change, d->nr_changes, sizeof(*d->change), compare_changes);
	return SMCO_OK;
}
