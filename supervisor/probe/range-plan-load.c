/* What planning begins with, see range-plan.h: the file's code, which variables
 * are where in it, and whose address it gives away. */
#include <stdlib.h>

#include "supervisor/probe/range-plan.h"
#include "supervisor/probe/range-taken.h"
#include "symbols/pair.h"

static uint64_t *all_starts(const struct variables *v, size_t *nr_ret)
{
	uint64_t *starts = calloc(v->nr_ranges + 1, sizeof(*starts));
	for (size_t i = 0; starts && i < v->nr_ranges; i++)
		starts[i] = v->ranges[i].lo;
	*nr_ret = v->nr_ranges;
	return starts;
}

/* Whose address others know, see range-site.c: its own, or its struct's. */
struct sharing {
	struct range_plan *plan;
	size_t first, end; /* of the index's data */
};

static void *mark_shared(void *arg)
{
	const struct sharing *s = arg;
	struct range_plan *plan = s->plan;
	for (size_t i = s->first; i < s->end; i++) {
		const struct range_index_data *e = &plan->ix.data[i];
		bool shared = range_image_taken(&plan->img, e->lo, e->lo + 1);
		uint64_t first = e->lo;
		if (!shared)
			first = range_first_member(plan->v, e->var);
		if (shared || (first != e->lo &&
			       range_image_taken(&plan->img, first, first + 1)))
			__atomic_store_n(&plan->var[e->var].shared_out, true,
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The code, and where variables are in it, which take about as long. */
struct beginning {
	struct range_plan *plan;
	int fd;
	int image_ret, index_ret;
	struct smco_err image_err, index_err;
};

static void *load_image(void *arg)
{
	struct beginning *b = arg;
	size_t nr_starts = 0;
	_cleanup_free_ uint64_t *starts = all_starts(b->plan->v, &nr_starts);
	b->image_ret =
		starts ? range_image_load(&b->plan->img, b->plan->elf, b->fd,
					  starts, nr_starts, &b->image_err)
		       : smco_fail(&b->image_err, SMCO_NOMEM, 0,
				   "out of memory");
	return NULL;
}

static void *make_index(void *arg)
{
	struct beginning *b = arg;
	b->index_ret = range_plan_index(b->plan, &b->index_err);
	return NULL;
}

int range_plan_load(struct range_plan *plan, int fd, struct smco_err *err)
{
	struct beginning b = {.plan = plan, .fd = fd};
	struct sharing half[2] = {{.plan = plan}, {.plan = plan}};
	pair_run(plan->v->nr_places >= pair_from, make_index, &b, load_image,
		 &b);
	if (b.image_ret || b.index_ret) {
		*err = b.image_ret ? b.image_err : b.index_err;
		return b.image_ret ? b.image_ret : b.index_ret;
	}
	for (unsigned i = 0; i < 2; i++)
		pair_half(plan->ix.nr_data, i, &half[i].first, &half[i].end);
	pair_run(plan->ix.nr_data >= pair_from, mark_shared, &half[1],
		 mark_shared, &half[0]);
	return 0;
}
