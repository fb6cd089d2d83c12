/* Allocation sites: stacks that look the same. */
#include "reports/model.h"

#include <stdlib.h>
#include <string.h>

#include "reports/names.h"
#include "reports/shortage.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static void totals_add(struct ev_site *to, const struct ev_site *from)
{
	to->nr_allocs += from->nr_allocs;
	to->bytes += from->bytes;
	to->live_bytes += from->live_bytes;
	to->nr_live += from->nr_live;
	to->nr_watched += from->nr_watched;
	to->nr_naps += from->nr_naps;
}

static void sum_add(struct nap_sum *to, const struct nap_sum *from)
{
	to->nr += from->nr;
	to->nr_objects += from->nr_objects;
	to->nr_never_accessed += from->nr_never_accessed;
	for (size_t i = 0; i < END_NR; i++)
		to->nr_by_end[i] += from->nr_by_end[i];
	to->unused_bytes += from->unused_bytes;
	to->nr_writes_only += from->nr_writes_only;
	to->nr_head_unseen += from->nr_head_unseen;
	if (from->longest_ns > to->longest_ns) {
		to->longest_ns = from->longest_ns;
		to->longest_error_ns = from->longest_error_ns;
	}
	to->byte_seconds += from->byte_seconds;
	to->error_byte_seconds += from->error_byte_seconds;
	to->brief_unused_bytes += from->brief_unused_bytes;
	to->brief_byte_seconds += from->brief_byte_seconds;
}

struct site_key {
	const struct summary *s;
	const struct model_site *sites;
	const struct model_stack *stack;
	unsigned depth;
};

static size_t shown_frames(const struct model_stack *stack, unsigned depth)
{
	size_t nr = names_worth_showing(stack->frames, stack->nr_frames);
	return depth && nr > depth ? depth : nr;
}

static bool look_alike(const struct model_stack *a, const struct model_stack *b,
		       unsigned depth)
{
	size_t n = shown_frames(a, depth);
	if (n != shown_frames(b, depth))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!names_same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

static bool same_site(const void *ctx, uint32_t value)
{
	const struct site_key *k = ctx;
	return look_alike(k->sites[value].stack, k->stack, k->depth);
}

static uint64_t hash_site(const struct model_stack *stack, unsigned depth)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < shown_frames(stack, depth); i++) {
		const struct trace_frame *f = &stack->frames[i];
		hash = hindex_hash(hash, f->function, strlen(f->function));
		hash = hindex_hash(hash, &f->line, sizeof(f->line));
		if (!*f->function)
			hash = hindex_hash(hash, &f->offset, sizeof(f->offset));
	}
	return hash;
}

static int compare_sites(const void *va, const void *vb)
{
	const struct model_site *a = va, *b = vb;
	if (a->sum.byte_seconds != b->sum.byte_seconds)
		return a->sum.byte_seconds > b->sum.byte_seconds ? -1 : 1;
	int c = -compare_u64(a->totals.bytes, b->totals.bytes);
	return c ? c : compare_u64(a->stack->id, b->stack->id);
}

static int join_site(struct summary const *s, uint32_t i, unsigned depth,
		     struct hindex *index, struct model_sites *sites)
{
	const struct model_stack *stack = &s->stack[i];
	struct site_key key = {s, sites->site, stack, depth};
	uint64_t hash = hash_site(stack, depth);
	uint32_t found;
	if (!hindex_find(index, hash, same_site, &key, &found)) {
		found = (uint32_t)sites->nr;
		if (!hindex_add(index, hash, found))
			return SMCO_NOMEM;
		sites->site[sites->nr++] = (struct model_site){
			.stack = stack,
		};
	}
	struct model_site *site = &sites->site[found];
	size_t n = site->nr_stacks;
	if (!(n & (n - 1))) { /* 0 or a power of two: full */
		uint32_t *m =
			reallocarray(site->member, n ? n * 2 : 1, sizeof(*m));
		if (!m) {
			shortage_tell();
			return SMCO_NOMEM;
		}
		site->member = m;
	}
	site->member[site->nr_stacks++] = i;
	if (!look_alike(site->stack, stack, 0))
		site->cut_alike = true;
	totals_add(&site->totals, &stack->totals);
	sum_add(&site->sum, &stack->sum);
	return SMCO_OK;
}

int model_sites(const struct summary *s, unsigned depth,
		struct model_sites *ret)
{
	struct hindex index = {0};
	int rc = SMCO_OK;
	*ret = (struct model_sites){0};
	ret->site = calloc(s->nr_stacks ? s->nr_stacks : 1, sizeof(*ret->site));
	if (!ret->site) {
		shortage_tell();
		return SMCO_NOMEM;
	}
	for (size_t i = 0; i < s->nr_stacks && !rc; i++)
		rc = join_site(s, (uint32_t)i, depth, &index, ret);
	hindex_free(&index);
	if (rc) {
		model_sites_free(ret);
		return rc;
	}
	if (ret->nr)
		qsort(ret->site, ret->nr, sizeof(*ret->site), compare_sites);
	return SMCO_OK;
}

void model_sites_free(struct model_sites *sites)
{
	for (size_t i = 0; i < sites->nr; i++)
		free(sites->site[i].member);
	free(sites->site);
	*sites = (struct model_sites){0};
}
