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

int diff_mark_cut(struct diff_side *s)
{
	int rc = SMCO_OK;
	for (size_t k = 0; k < s->nr_runs && !rc; k++)
		rc = mark_run(s, k);
	return rc;
}
