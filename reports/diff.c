#include "reports/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/diff-judge.h"
#include "reports/source.h"

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
	int rc = diff_run_read(reader, d->ahead_bytes, &d->pool, run, &why);
	if (rc)
		return smco_fail(err, rc, 0, "%s: %s", source_name(path),
				 why.msg);
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
					source_name(run->path));
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

static double value_in(const struct diff_side *side,
		       const struct diff_entry *entry, size_t run,
		       enum diff_metric metric)
{
	const struct diff_item *item = entry ? entry->in_run[run] : NULL;
	if (!side->run[run].has_naps && diff_metric_is_of_blocks(metric))
		return NAN; /* not looked for: not nothing */
	if (item)
		return item->value[metric];
	return diff_metric[metric].absent_is_zero ? 0 : NAN;
}

size_t diff_values(const struct diff_side *side, const struct diff_entry *entry,
		   enum diff_metric metric, double *v)
{
	double most = 0;
	size_t nr = 0;
	for (size_t i = 0; i < side->nr_runs; i++)
		most = fmax(most, value_in(side, entry, i, metric));
	for (size_t i = 0; i < side->nr_runs; i++) {
		double value = value_in(side, entry, i, metric);
		bool cut = entry &&
			   entry->cut[i][metric] > DIFF_CUT_MATTERS * most;
		if (!isnan(value) && !cut)
			v[nr++] = value;
	}
	return nr;
}

static bool has_naps(const struct diff_side *s)
{
	for (size_t i = 0; i < s->nr_runs; i++)
		if (s->run[i].has_naps)
			return true;
	return false;
}

bool diff_compares_naps(const struct diff *d)
{
	return has_naps(&d->side[DIFF_BASE]) && has_naps(&d->side[DIFF_NEW]);
}

/* ------------------------------------------------------------ comparing --- */

/* The run first, then what changed: naps by how much, then the rest. */
static int compare_changes(const void *va, const void *vb)
{
	const struct diff_change *a = va, *b = vb;
	if ((a->kind == DIFF_RUN) != (b->kind == DIFF_RUN))
		return a->kind == DIFF_RUN ? -1 : 1;
	bool same_a = !a->is_told, same_b = !b->is_told;
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
		d->quality[i] = diff_judge_quality(&d->side[i]);
		rc = merge_runs(&d->side[i]);
	}
	if (!rc)
		rc = pair_sides(d);
	forget_right_ones(d);
	if (!rc)
		rc = diff_mark_hidden(d);
	if (!rc)
		rc = diff_judge_measure(d);
	if (rc)
		return smco_fail(err, rc, 0,
				 "out of memory for the comparison");
	for (size_t i = 0; i < d->nr_changes; i++) {
		struct diff_change *c = &d->change[i];
		c->verdict = diff_judge_verdict(d, c);
		c->is_told = diff_judge_is_told(d, c);
		d->nr_ambiguous += c->ambiguous;
		if (c->verdict == VERDICT_SAME && is_one_sided(c))
			d->nr_one_sided[c->kind]++;
		else
			d->nr_by_verdict[c->kind][c->verdict]++;
	}
	qsort(d->change, d->nr_changes, sizeof(*d->change), compare_changes);
	return SMCO_OK;
}
