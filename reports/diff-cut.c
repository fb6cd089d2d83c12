/*
 * Stacks that were not read to their end, as happens in a program's first
 * milliseconds: which of the sites that begin like them they stand for is not
 * known, so that of these less is known in their run.
 */
#include "reports/diff.h"

#include <stdlib.h>

struct cut_key {
	const struct diff_run *run;
	const struct diff_item *whole;
	size_t nr_frames;
};

static bool is_cut_off(const void *ctx, uint32_t value)
{
	const struct cut_key *k = ctx;
	const struct diff_item *item = &k->run->item[value];
	return item->nr_frames == k->nr_frames &&
	       diff_item_begins(item, k->whole);
}

static int index_stacks(const struct diff_run *run, struct hindex *index)
{
	for (size_t i = 0; i < run->nr_items; i++) {
		const struct diff_item *item = &run->item[i];
		uint64_t hash = 0;
		for (size_t k = 0; k < item->nr_frames; k++)
			hash = diff_frame_hash(hash, &item->frames[k]);
		if (item->nr_frames && !hindex_add(index, hash, (uint32_t)i))
			return SMCO_NOMEM;
	}
	return SMCO_OK;
}

/* Run @k of @s has stacks that are beginnings of @whole's: which are they? */
static void find_beginnings(const struct diff_side *s, size_t k,
			    const struct hindex *index,
			    const struct diff_item *whole,
			    struct diff_entry *entry, bool *is_cut)
{
	uint64_t hash = 0;
	for (size_t i = 0; i + 1 < whole->nr_frames; i++) {
		struct cut_key key = {&s->run[k], whole, i + 1};
		uint32_t found;
		hash = diff_frame_hash(hash, &whole->frames[i]);
		if (!hindex_find(index, hash, is_cut_off, &key, &found))
			continue;
		is_cut[found] = true;
		for (size_t m = 0; m < DIFF_NR_METRICS; m++)
			entry->cut[k][m] += s->run[k].item[found].value[m];
	}
}

static int mark_run(struct diff_side *s, size_t k)
{
	const struct diff_run *run = &s->run[k];
	struct hindex index = {0};
	bool *is_cut = calloc(run->nr_items, sizeof(*is_cut));
	int rc = is_cut ? index_stacks(run, &index) : SMCO_NOMEM;
	for (size_t i = 0; i < s->nr && !rc; i++) {
		struct diff_entry *e = &s->entry[i];
		find_beginnings(s, k, &index, diff_entry_item(s, e), e, is_cut);
	}
	for (size_t i = 0; i < s->nr && !rc; i++) {
		const struct diff_item *item = s->entry[i].in_run[k];
		if (item && is_cut[item - run->item])
			s->entry[i].is_cut = true;
	}
	hindex_free(&index);
	free(is_cut);
	return rc;
}

/* How much of @run's that was cut begins like @whole, of @metric. */
static double cut_value(const struct diff_run *run, const struct hindex *index,
			const struct diff_item *whole, enum diff_metric metric)
{
	double sum = 0;
	uint64_t hash = 0;
	for (size_t i = 0; i + 1 < whole->nr_frames; i++) {
		struct cut_key key = {run, whole, i + 1};
		uint32_t found;
		hash = diff_frame_hash(hash, &whole->frames[i]);
		if (hindex_find(index, hash, is_cut_off, &key, &found))
			sum += run->item[found].value[metric];
	}
	return sum;
}

/* Run @run of @side hides nothing of what has no stack there that was cut. */
static void mark_hidden_in(struct diff *d, int side, const struct diff_run *run,
			   const struct hindex *index)
{
	for (size_t i = 0; i < d->nr_changes; i++) {
		struct diff_change *c = &d->change[i];
		if (c->kind != DIFF_SITE || c->entry[side])
			continue;
		const struct diff_item *item = c->item[!side];
		c->is_hidden &= cut_value(run, index, item, DIFF_ALLOCS) >
				DIFF_CUT_MATTERS * item->value[DIFF_ALLOCS];
	}
}

int diff_mark_hidden(struct diff *d)
{
	int rc = SMCO_OK;
	for (size_t i = 0; i < d->nr_changes; i++) {
		struct diff_change *c = &d->change[i];
		c->is_hidden = c->kind == DIFF_SITE &&
			       !(c->entry[DIFF_BASE] && c->entry[DIFF_NEW]);
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t k = 0; k < d->side[side].nr_runs && !rc; k++) {
			const struct diff_run *run = &d->side[side].run[k];
			struct hindex index = {0};
			rc = index_stacks(run, &index);
			if (!rc)
				mark_hidden_in(d, side, run, &index);
			hindex_free(&index);
		}
	return rc;
}

int diff_mark_cut(struct diff_side *s)
{
	int rc = SMCO_OK;
	for (size_t k = 0; k < s->nr_runs && !rc; k++)
		rc = mark_run(s, k);
	return rc;
}
