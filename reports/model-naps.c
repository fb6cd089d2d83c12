/*
 * A nap is written when it begins to count, perhaps in between, and when it
 * ends; the last of these is what is known. So all records are put in order
 * by nap, those superseded are dropped, and the rest is put in the order in
 * which naps are added up and listed.
 */
#include "reports/model-naps.h"

#include <stdlib.h>

#include "reports/suppress.h"

struct read_nap {
	struct model_nap nap;
	uint64_t order; /* of its record */
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_blocks(const struct model_nap *a, const struct model_nap *b)
{
	int c = compare_u64(a->nap.pid, b->nap.pid);
	if (!c)
		c = compare_u64(a->nap.addr, b->nap.addr);
	return c ? c : compare_u64(a->nap.alloc_ns, b->nap.alloc_ns);
}

/* 0: the same nap. */
static int compare_ids(const struct model_nap *a, const struct model_nap *b)
{
	int c = compare_u64(a->file, b->file);
	if (!c)
		c = compare_blocks(a, b);
	return c ? c : compare_u64(a->nap.start_ns, b->nap.start_ns);
}

static int compare_read(const void *va, const void *vb, void *ctx)
{
	(void)ctx;
	const struct read_nap *a = va, *b = vb;
	int c = compare_ids(&a->nap, &b->nap);
	return c ? c : compare_u64(a->order, b->order);
}

static int compare_naps(const void *va, const void *vb, void *ctx)
{
	(void)ctx;
	const struct model_nap *a = va, *b = vb;
	int c = compare_u64(a->site, b->site);
	if (!c)
		c = compare_blocks(a, b);
	return c ? c : compare_u64(a->nap.start_ns, b->nap.start_ns);
}

/* A site is of one file. */
static bool same_object(const struct model_nap *a, const struct model_nap *b)
{
	return a->site == b->site && !compare_blocks(a, b);
}

/* ----------------------------------------------------------------- sums --- */

static void sum_nap(struct nap_sum *sum, const struct ev_nap *nap,
		    bool new_object, uint64_t brief_ns)
{
	enum nap_end end = model_nap_end(nap);
	double byte_seconds = (double)nap->size * (double)nap->length_ns / 1e9;
	bool is_brief = nap->length_ns < brief_ns;
	sum->nr++;
	sum->nr_objects += new_object;
	sum->nr_never_accessed += !!(nap->flags & NAP_NEVER_ACCESSED);
	sum->nr_by_end[end]++;
	if (end == END_NEVER)
		sum->unused_bytes += nap->size;
	if (end == END_NEVER && is_brief)
		sum->brief_unused_bytes += nap->size;
	sum->nr_writes_only += !!(nap->flags & NAP_WRITES_ONLY);
	sum->nr_head_unseen += !!(nap->flags & NAP_HEAD_UNSEEN);
	if (nap->length_ns > sum->longest_ns) {
		sum->longest_ns = nap->length_ns;
		sum->longest_error_ns = nap->error_ns;
	}
	sum->byte_seconds += byte_seconds;
	if (is_brief)
		sum->brief_byte_seconds += byte_seconds;
	sum->error_byte_seconds +=
		(double)nap->size * (double)nap->error_ns / 1e9;
}

/* The naps before the one at hand. */
struct passed {
	struct model_nap last;	/* of all */
	struct model_nap added; /* of those that count */
	bool has_last, has_added;
	bool is_suppressed; /* the last one's site */
	uint64_t brief_ns;  /* naps that are shorter are brief */
};

static int add_nap(struct summary *s, struct passed *before,
		   const struct model_nap *n)
{
	struct model_stack *stack = &s->stack[n->site];
	struct model_process *p = model_process(s, n->file, n->nap.pid);
	bool is_new = !before->has_added || !same_object(n, &before->added);
	if (!s->select.only_sums) {
		if (!stack->nr_naps++)
			stack->first_nap = s->naps.nr;
		if (shelf_add(&s->naps, n))
			return SMCO_NOMEM;
	}
	sum_nap(&stack->sum, &n->nap, is_new, before->brief_ns);
	sum_nap(&s->sum, &n->nap, is_new, before->brief_ns);
	if (p)
		sum_nap(&p->sum, &n->nap, is_new, before->brief_ns);
	before->added = *n;
	before->has_added = true;
	return model_culprits_take(s, n);
}

/* Count @n where the selection wants it. */
static int pass_nap(struct summary *s, struct passed *before,
		    const struct model_nap *n)
{
	const struct suppress *suppress = s->select.suppress;
	const struct model_stack *stack = &s->stack[n->site];
	bool is_new = !before->has_last || !same_object(n, &before->last);
	int rc = SMCO_OK;
	if (suppress && (!before->has_last || n->site != before->last.site))
		before->is_suppressed = suppress_matches(
			suppress, stack->frames, stack->nr_frames);
	if (before->is_suppressed)
		sum_nap(&s->suppressed, &n->nap, is_new, before->brief_ns);
	else if (!select_nap(&s->select, s, n))
		s->nr_left_out++;
	else
		rc = add_nap(s, before, n);
	before->last = *n;
	before->has_last = true;
	return rc;
}

/* -------------------------------------------------------------- loading --- */

static size_t memory(const struct summary *s)
{
	return s->select.nap_bytes ? s->select.nap_bytes : SELECT_NAP_BYTES;
}

void model_naps_begin(struct summary *s)
{
	spill_init(&s->read_naps, sizeof(struct read_nap), memory(s),
		   compare_read, NULL);
	shelf_init(&s->naps, sizeof(struct model_nap), memory(s));
}

int model_naps_take(struct summary *s, const struct model_nap *nap)
{
	struct read_nap new = {*nap, s->nr_read_naps++};
	return spill_add(&s->read_naps, &new);
}

/* Of each nap what is known last. */
static int drop_superseded(struct spill *read, struct spill *naps)
{
	struct read_nap last, next;
	int rc = spill_sort(read);
	int more = rc ? rc : spill_next(read, &last);
	while (more == 1 && !rc) {
		more = spill_next(read, &next);
		if (more != 1 || compare_ids(&last.nap, &next.nap))
			rc = spill_add(naps, &last.nap);
		if (more == 1)
			last = next;
	}
	return more < 0 ? more : rc;
}

int model_naps_finish(struct summary *s)
{
	struct spill naps;
	uint64_t nap_ns = model_meta_u64(s, "nap_ns", 0);
	struct passed before = {.brief_ns = nap_ns > UINT64_MAX / 2
						    ? UINT64_MAX
						    : nap_ns + nap_ns / 2};
	struct model_nap nap;
	spill_init(&naps, sizeof(nap), memory(s), compare_naps, NULL);
	int rc = drop_superseded(&s->read_naps, &naps);
	spill_deinit(&s->read_naps);
	if (!rc)
		rc = spill_sort(&naps);
	while (!rc && (rc = spill_next(&naps, &nap)) == 1)
		rc = pass_nap(s, &before, &nap);
	spill_deinit(&naps);
	model_culprits_finish(s);
	return rc;
}

void model_naps_free(struct summary *s)
{
	spill_deinit(&s->read_naps);
	free(s->tally);
	shelf_deinit(&s->naps);
}
