/* Allocation sites: stacks that look the same, and who stands out there. */
#include "reports/model.h"

#include <stdlib.h>
#include <string.h>

#include "reports/names.h"

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
	if (from->longest_ns > to->longest_ns) {
		to->longest_ns = from->longest_ns;
		to->longest_error_ns = from->longest_error_ns;
	}
	to->byte_seconds += from->byte_seconds;
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
		if (!m)
			return SMCO_NOMEM;
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
	if (!ret->site)
		return SMCO_NOMEM;
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

/* ------------------------------------------------------------- culprits --- */

static int compare_culprits(const void *va, const void *vb)
{
	const struct model_culprit *a = va, *b = vb;
	int c = compare_u64(a->stack, b->stack);
	return c ? c : compare_u64((uint32_t)a->syscall, (uint32_t)b->syscall);
}

static int compare_counts(const void *va, const void *vb)
{
	const struct model_culprit *a = va, *b = vb;
	int c = -compare_u64(a->nr, b->nr);
	return c ? c : compare_culprits(va, vb);
}

static bool same_culprit(const struct summary *s, const struct model_culprit *a,
			 const struct model_culprit *b)
{
	size_t na = 0, nb = 0;
	if (a->syscall != b->syscall)
		return false;
	if (a->stack == b->stack)
		return true;
	const struct trace_frame *fa = model_frames(s, a->stack, &na);
	const struct trace_frame *fb = model_frames(s, b->stack, &nb);
	if (!fa || !fb || na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (!names_same_frame(&fa[i], &fb[i]))
			return false;
	return true;
}

static void join(struct model_culprit *to, const struct model_culprit *from)
{
	to->nr += from->nr;
	to->nr_nearby += from->nr_nearby;
}

/* The one of @c with most naps. Equal ids are joined first, then what looks
 * the same among those with most naps. */
static struct model_culprit most_of(const struct summary *s,
				    struct model_culprit *c, size_t nr)
{
	size_t kinds = 0;
	if (!nr)
		return (struct model_culprit){.syscall = -1};
	qsort(c, nr, sizeof(*c), compare_culprits);
	for (size_t i = 0; i < nr; i++) {
		if (kinds && !compare_culprits(&c[kinds - 1], &c[i]))
			join(&c[kinds - 1], &c[i]);
		else
			c[kinds++] = c[i];
	}
	qsort(c, kinds, sizeof(*c), compare_counts);
	size_t some = kinds < 64 ? kinds : 64, best = 0;
	for (size_t i = 0; i < some; i++)
		for (size_t j = 0; j < i; j++)
			if (c[j].nr && same_culprit(s, &c[j], &c[i])) {
				join(&c[j], &c[i]);
				c[i].nr = 0;
				break;
			}
	for (size_t i = 1; i < some; i++)
		if (c[i].nr > c[best].nr)
			best = i;
	return c[best];
}

/* Is @n one of those asked for; what stands for it. */
static bool culprit_of(const struct ev_nap *n, int end,
		       struct model_culprit *ret)
{
	*ret = (struct model_culprit){.nr = 1, .syscall = -1};
	if (end < 0) {
		ret->stack = n->last_stack;
		return n->last_stack;
	}
	if (model_nap_end(n) != (enum nap_end)end)
		return false;
	ret->stack = n->ended_stack;
	ret->nr_nearby = !!(n->flags & NAP_END_NEARBY);
	if (end == END_SYSCALL)
		ret->syscall = n->ended_syscall;
	return ret->stack || ret->syscall >= 0;
}

static struct model_culprit culprit(const struct summary *s,
				    const struct model_site *site, int end)
{
	struct model_culprit best = {.syscall = -1};
	struct model_culprit *all =
		calloc(site->sum.nr ? site->sum.nr : 1, sizeof(*all));
	size_t nr = 0;
	for (size_t i = 0; all && i < site->nr_stacks; i++) {
		const struct model_stack *stack = &s->stack[site->member[i]];
		for (size_t j = 0; j < stack->nr_naps; j++)
			nr += culprit_of(&s->nap[stack->first_nap + j].nap, end,
					 &all[nr]);
	}
	if (all)
		best = most_of(s, all, nr);
	free(all);
	return best;
}

struct model_culprit model_ended_by(const struct summary *s,
				    const struct model_site *site,
				    enum nap_end end)
{
	return culprit(s, site, (int)end);
}

struct model_culprit model_last_used_by(const struct summary *s,
					const struct model_site *site)
{
	return culprit(s, site, -1);
}
