#include "reports/phase-ranges.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/phases.h"
#include "reports/ranges.h"

struct key {
	const struct model_phase_ranges *m;
	uint32_t id[2]; /* phase, range */
};

static bool same(const void *ctx, uint32_t value)
{
	const struct key *k = ctx;
	const struct model_phase_range *r = &k->m->range[value];
	return r->phase == k->id[0] && r->range == k->id[1];
}

static bool less(bool is_signed, int64_t a, int64_t b)
{
	return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

static void widen(bool any, bool is_signed, int64_t smallest, int64_t largest,
		  int64_t *to_smallest, int64_t *to_largest)
{
	if (!any || less(is_signed, smallest, *to_smallest))
		*to_smallest = smallest;
	if (!any || less(is_signed, *to_largest, largest))
		*to_largest = largest;
}

static void join(struct model_phase_range *r, const struct ev_phase_range *ev,
		 bool any)
{
	widen(any, r->is_signed, ev->smallest, ev->largest, &r->smallest,
	      &r->largest);
	if (!(ev->flags & PHASE_RANGE_SURE))
		return;
	widen(r->has_sure, r->is_signed, ev->sure_smallest, ev->sure_largest,
	      &r->sure_smallest, &r->sure_largest);
	r->has_sure = true;
}

int model_phase_ranges_take(struct model_phase_ranges *m,
			    struct model_phases *phases,
			    const struct model_ranges *ranges,
			    struct trace_reader *reader, uint32_t file,
			    const struct record *r)
{
	struct ev_phase_range ev;
	struct key key = {.m = m};
	uint32_t at;
	memcpy(&ev, r->payload, sizeof(ev));
	/* Of a variable that was lost with its chunk nothing can be said. */
	key.id[1] = model_ranges_of(ranges, file, r->param);
	if (key.id[1] == UINT32_MAX)
		return SMCO_OK;
	int rc = model_phases_index(phases, reader, file, ev.phase, &key.id[0]);
	if (rc)
		return rc == SMCO_NOTFOUND ? SMCO_OK : rc;
	uint64_t hash = hindex_hash(0, key.id, sizeof(key.id));
	if (hindex_find(&m->index, hash, same, &key, &at)) {
		join(&m->range[at], &ev, true);
		return SMCO_OK;
	}
	if (!ARRAY_ROOM(m->range, m->nr, m->cap) ||
	    !hindex_add(&m->index, hash, (uint32_t)m->nr))
		return SMCO_NOMEM;
	m->range[m->nr] = (struct model_phase_range){
		.phase = key.id[0],
		.range = key.id[1],
		.is_signed =
			ranges->range[key.id[1]].var.flags & VARIABLE_SIGNED,
	};
	join(&m->range[m->nr++], &ev, false);
	return SMCO_OK;
}

static int compare(const void *va, const void *vb)
{
	const struct model_phase_range *a = va, *b = vb;
	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return range_compare_place(a->decl, a->type, b->decl, b->type);
}

void model_phase_ranges_finish(struct model_phase_ranges *m,
			       const struct model_ranges *ranges)
{
	for (size_t i = 0; i < m->nr; i++) {
		m->range[i].decl = ranges->range[m->range[i].range].decl;
		m->range[i].type = ranges->range[m->range[i].range].type;
	}
	if (m->nr)
		qsort(m->range, m->nr, sizeof(*m->range), compare);
}

void model_phase_ranges_free(struct model_phase_ranges *m)
{
	free(m->range);
	hindex_free(&m->index);
}

long double phase_range_number(const struct model_phase_range *r, int64_t bound)
{
	return r->is_signed ? (long double)bound : (long double)(uint64_t)bound;
}
