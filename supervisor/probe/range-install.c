/*
 * The memory of sensors in a process: code near the module, and ranges and
 * counters that are shared with the supervisor. A forked copy has its parent's
 * until it is given its own; see range.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/probe/near.h"
#include "supervisor/probe/range-live.h"

/* A fork is seen to within this time after it, on the busiest machine. */
#define LATE_NS (10 * NSEC_PER_SEC)

/* New shared memory in the process, and here, with empty ranges. */
static int share(struct ranges *r, struct smco_err *err)
{
	_cleanup_close_ int fd = -1;
	taddr_t addr;
	int ret = near_share(r->p, r->base, r->base, r->base + r->data_off,
			     r->data_bytes, PROT_READ | PROT_WRITE, &addr, &fd,
			     err);
	if (ret)
		return ret;
	int now = range_plan_is_whole(r->plan) ? MAP_POPULATE : 0;
	void *map = mmap(NULL, r->data_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | now, fd, 0);
	if (map == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot map %llu bytes of shared memory",
				 (unsigned long long)r->data_bytes);
	r->data = map;
	range_empty_cells(r);
	return 0;
}

static int map_area(struct ranges *r, struct smco_err *err)
{
	const struct range_image *img = &r->plan->img;
	const struct range_segment *last = &img->segment[img->nr_segments - 1];
	int64_t done;
	int ret = near_map(r->p, img->segment[0].vaddr + r->bias,
			   last->vaddr + last->len + r->bias, r->bytes,
			   &r->base, err);
	if (ret)
		return ret;
	r->planted = true;
	ret = share(r, err);
	if (ret)
		return ret;
	return near_call(r->p, SYS_mprotect,
			 (uint64_t[6]){r->base, r->data_off - RANGE_GAP_BYTES,
				       PROT_READ | PROT_EXEC},
			 "mprotect to executable", &done, err);
}

static void give_up(struct ranges *r)
{
	range_take_out(r);
	if (r->undo)
		tproc_undo_drop(r->p, r->undo);
	ranges_destroy(r);
}

int ranges_install(struct ranges **ret, struct tproc *p,
		   const struct range_plan *plan, uint64_t bias,
		   struct smco_err *err)
{
	if (!plan->most_windows)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no variable of this module can be watched "
				 "by a sensor");
	int r = near_calls_allowed(p, err);
	if (r)
		return r;
	struct ranges *x = range_new(p, plan, bias);
	if (!x)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	x->undo = tproc_undo_push(p, range_undo, x);
	r = x->undo ? 0 : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r == 0)
		r = map_area(x, err);
	if (r) {
		give_up(x);
		return r;
	}
	range_use_made(x);
	smco_debug("range", "pid %d: %llu KiB for stubs at 0x%llx%s",
		   tproc_pid(p), (unsigned long long)(x->bytes >> 10),
		   (unsigned long long)x->base, x->made ? ", made before" : "");
	*ret = x;
	return 0;
}

/* Its parent may have changed since: what is in the child's text is what the
 * engine's copies of the parent's patches say. */
static void inherit_span(struct ranges *r, struct live_function *f,
			 struct live_span *s)
{
	taddr_t start = live_span_start(f, s);
	s->patch = tproc_patch_at(r->p, start, live_span_len(f, s));
	const uint8_t *now = s->patch ? tpatch_new(s->patch) : NULL;
	for (uint32_t i = s->first; i < s->end; i++) {
		struct live_window *w = &f->window[i];
		w->in = now &&
			!memcmp(now + (w->addr - start), w->jump, w->len);
		w->want = w->in;
		f->in |= w->in;
	}
}

/* Stubs are written while the program runs: those that came after the fork, or
 * at the same time, a child has not got, or not all of. */
static bool has_stubs(struct ranges *r, const struct ranges *parent,
		      const struct live_function *f)
{
	if (!f->built_ns || smco_now_ns() > f->built_ns + LATE_NS)
		return true;
	uint8_t *here = malloc(f->code_len), *there = malloc(f->code_len);
	taddr_t at = r->base + f->code_off;
	bool same = here && there && !tmem_read(r->p, at, here, f->code_len) &&
		    !tmem_read(parent->p, at, there, f->code_len) &&
		    !memcmp(here, there, f->code_len);
	free(here);
	free(there);
	return same;
}

static int inherit(struct ranges *r, const struct ranges *parent,
		   uint32_t number, struct smco_err *err)
{
	const struct live_function *from = &parent->function[number];
	struct live_function *to = &r->function[number];
	if (!from->window)
		return 0;
	if (!range_copy_function(to, from))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	to->in = false;
	for (size_t i = 0; i < to->nr_spans; i++)
		inherit_span(r, to, &to->span[i]);
	if (!to->in && !has_stubs(r, parent, to)) {
		range_unprepare(to);
		return 0;
	}
	range_is_prepared(r, number);
	if (!range_inherit_relays(r, to))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return 0;
}

int ranges_fork(struct ranges **ret, struct ranges *parent, struct tproc *child,
		struct smco_err *err)
{
	struct ranges *x = range_new(child, parent->plan, parent->bias);
	if (!x)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	x->base = parent->base;
	x->code_used = parent->code_used;
	x->made = parent->made;
	x->heeds_others = parent->heeds_others;
	x->planted = true;
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < x->plan->v->nr_functions; i++)
		r = inherit(x, parent, i, err);
	x->undo = tproc_undo_push(child, range_undo, x);
	if (r == 0 && !x->undo)
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r) {
		give_up(x);
		return r;
	}
	*ret = x;
	return 0;
}

int ranges_wake(struct ranges *r, struct smco_err *err)
{
	if (!r->planted)
		return smco_fail(err, SMCO_GONE, 0, "the sensors are out");
	return r->data ? 0 : share(r, err);
}
