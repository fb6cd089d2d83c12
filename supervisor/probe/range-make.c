/*
 * Stubs are made ahead of time, see range.h. They are those of a process that
 * there is not: its module is at the file's own addresses, and what would be in
 * its memory is here. Of many, two threads make a few functions each, whoever
 * has time; each few have room for as much as they can take, so that nobody has
 * to wait for what others have taken.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/near.h"
#include "supervisor/probe/range-live.h"
#include "symbols/pair.h"

#define MOST_PARTS 16

struct part {
	struct ranges r;     /* all but what is used so far is the whole's */
	uint32_t first, end; /* functions */
};

struct making {
	struct part part[MOST_PARTS];
	size_t nr;
	atomic_size_t next;
	void (*beside)(void *ctx);
	void *ctx;
	atomic_bool failed; /* no memory */
};

static bool grow(void **array, size_t *cap, size_t want, size_t size)
{
	if (want <= *cap)
		return true;
	size_t more = want + want / 2 + 64;
	void *p = realloc(*array, more * size);
	if (!p)
		return false;
	*array = p;
	*cap = more;
	return true;
}

int range_keep_code(struct ranges *r, const struct range_stubs *s,
		    struct smco_err *err)
{
	size_t pad = -s->code.len & (RANGE_STUB_ALIGN - 1);
	if (!grow((void **)&r->code, &r->cap_code,
		  r->code_used + s->code.len + pad, 1) ||
	    !grow((void **)&r->back, &r->cap_back, r->nr_back + s->nr_back,
		  sizeof(*r->back)))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	memcpy(r->code + r->code_used, s->code.buf, s->code.len);
	memset(r->code + r->code_used + s->code.len, 0xcc, pad);
	for (size_t i = 0; i < s->nr_back; i++)
		r->back[r->nr_back++] = (uint32_t)r->code_used + s->back[i];
	return 0;
}

static void *make_parts(void *arg)
{
	struct making *m = arg;
	size_t i;
	while (!m->failed && (i = m->next++) < m->nr) {
		struct part *p = &m->part[i];
		for (uint32_t f = p->first; f < p->end && !m->failed; f++)
			if (range_prepare(&p->r, f, NULL))
				m->failed = true;
	}
	return NULL;
}

static void *make_after(void *arg)
{
	struct making *m = arg;
	if (m->beside)
		m->beside(m->ctx);
	return make_parts(m);
}

/* As much as the stubs of function @f can take, its first aligned. */
static uint64_t room_for(const struct range_plan *plan, uint32_t f)
{
	const struct range_windows *w = &plan->function[f].windows;
	uint64_t bytes = range_plan_stub_bytes(plan->v, w);
	return w->nr ? (bytes + RANGE_STUB_ALIGN - 1) &
			       ~(uint64_t)(RANGE_STUB_ALIGN - 1)
		     : 0;
}

/* The first functions, of @windows, into parts of about as many windows. False:
 * the plan has no room for them. */
static bool split(struct making *m, const struct ranges *whole, size_t windows,
		  size_t nr_parts)
{
	const struct range_plan *plan = whole->plan;
	size_t nr = 0, each = plan->nr_windows / nr_parts + 1;
	uint64_t at = whole->code_used;
	uint32_t f = 0;
	for (m->nr = 0; m->nr < nr_parts; m->nr++) {
		struct part *p = &m->part[m->nr];
		*p = (struct part){.r = *whole, .first = f};
		p->r.code_used = at;
		for (; f < plan->v->nr_functions && nr < windows &&
		       (nr < each * (m->nr + 1) || m->nr + 1 == nr_parts);
		     f++) {
			nr += plan->function[f].info.nr_windows;
			at += room_for(plan, f);
		}
		p->end = f;
		p->r.code_end = at;
	}
	return at <= whole->code_end;
}

/* What the parts came to is @r's. False: no memory. */
static bool join(struct ranges *r, const struct making *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		const struct ranges *p = &m->part[i].r;
		if (!p->nr_built)
			continue;
		r->code_used = p->code_used;
		r->nr_built += p->nr_built;
		if (!grow((void **)&r->back, &r->cap_back,
			  r->nr_back + p->nr_back, sizeof(*r->back)))
			return false;
		if (p->nr_back)
			memcpy(r->back + r->nr_back, p->back,
			       p->nr_back * sizeof(*r->back));
		r->nr_back += p->nr_back;
	}
	return true;
}

/* All of it at once: pages that nobody writes to are none. */
static bool code_room(struct ranges *r, uint64_t bytes)
{
	r->code = malloc(bytes);
	r->cap_code = r->code ? bytes : 0;
	return r->code;
}

static int make(struct making *m, struct ranges *r, size_t windows,
		struct smco_err *err)
{
	bool two = r->plan->nr_windows >= pair_from;
	bool fits = split(m, r, windows, two ? MOST_PARTS : 1);
	bool fine = fits && code_room(r, m->part[m->nr - 1].r.code_end);
	if (!fits)
		smco_debug("range", "what was kept has no room for stubs");
	for (size_t i = 0; i < m->nr; i++) {
		m->part[i].r.code = r->code;
		m->part[i].r.cap_code = r->cap_code;
	}
	m->failed = !fine;
	pair_run(two, make_parts, m, make_after, m);
	fine = !m->failed && join(r, m);
	for (size_t i = 0; i < m->nr; i++)
		free(m->part[i].r.back);
	return fine ? 0 : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
}

int range_plan_make(struct range_plan *plan, size_t windows,
		    void (*beside)(void *ctx), void *ctx, struct smco_err *err)
{
	struct making m = {.beside = beside, .ctx = ctx};
	struct ranges *r = NULL;
	bool needed = !plan->made && plan->most_windows;
	if (needed)
		r = range_new(NULL, plan, 0);
	if (!r || !near_likely(plan->img.segment[0].vaddr, plan->img.end,
			       r->bytes, &r->base)) {
		if (beside)
			beside(ctx);
		ranges_destroy(r);
		return needed && !r
			       ? smco_fail(err, SMCO_NOMEM, 0, "out of memory")
			       : 0;
	}
	int ret = make(&m, r, windows, err);
	if (ret)
		ranges_destroy(r);
	else
		plan->made = r;
	return ret;
}
