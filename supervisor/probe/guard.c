#include "supervisor/probe/guard.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What a hit costs before the first one was measured, beyond the stop. */
#define HIT_GUESS_NS (10 * NSEC_PER_USEC)

static void guard_close(struct access *a);

/* --- small state --- */

void guard_refuse(struct guard *g, const char *fmt, ...)
{
	va_list ap;
	if (g->refusal[0])
		return; /* the first reason is the one to tell */
	va_start(ap, fmt);
	vsnprintf(g->refusal, sizeof(g->refusal), fmt, ap);
	va_end(ap);
	smco_debug("guard", "%d: %s", (int)tproc_pid(g->base.proc), g->refusal);
}

static const char *guard_refusal(const struct access *a)
{
	const struct guard *g = (const struct guard *)a;
	return g->refusal[0] ? g->refusal : NULL;
}

static void queue_hit(struct guard *g, const struct access_hit *hit)
{
	if (g->queue_nr == g->queue_cap) {
		size_t cap = g->queue_cap ? g->queue_cap * 2 : 64;
		struct access_hit *q = malloc(cap * sizeof(*q));
		if (!q)
			return; /* a block found to be open when armed again */
		for (size_t i = 0; i < g->queue_nr; i++)
			q[i] = g->queue[(g->queue_head + i) % g->queue_cap];
		free(g->queue);
		g->queue = q;
		g->queue_head = 0;
		g->queue_cap = cap;
	}
	g->queue[(g->queue_head + g->queue_nr++) % g->queue_cap] = *hit;
}

bool guard_next_hit(struct access *a, struct access_hit *hit)
{
	struct guard *g = (struct guard *)a;
	if (!g->queue_nr)
		return false;
	*hit = g->queue[g->queue_head];
	g->queue_head = (g->queue_head + 1) % g->queue_cap;
	g->queue_nr--;
	return true;
}

/* --- opening --- */

void guard_take(struct guard *g, size_t index, const struct access_hit *hit)
{
	const struct guard_entry *e = &g->tab.v[index];
	if (hit) {
		struct access_hit h = *hit;
		h.range = (struct page_range){
			.start = e->start, .end = e->end, .user = e->user};
		h.stopped = false;
		g->nr_gaps += h.is_gap;
		g->nr_hits += !h.is_gap;
		queue_hit(g, &h);
	}
	g->batch[g->nr_batch++] = e->slot;
	guardtab_remove(&g->tab, index);
	if (!g->tab.nr)
		g->idle_stops = 0;
}

static bool blocked(struct task *t, void *arg)
{
	return guard_call_blocks(arg, t, true);
}

bool guard_mend_action(struct guard *g)
{
	return g->on && !warden_do(g->w, WARDEN_OPEN, NULL, 0, NULL) &&
	       warden_table(g->w)->was_reset;
}

void guard_flush(struct guard *g, bool *was_reset_ret)
{
	uint64_t cost;
	if (!g->nr_batch)
		return;
	int rc = warden_do(g->w, WARDEN_OPEN, g->batch, g->nr_batch, &cost);
	g->nr_batch = 0;
	bool was_reset = !rc && warden_table(g->w)->was_reset;
	if (was_reset_ret)
		*was_reset_ret = was_reset;
	else if (was_reset)
		tproc_block_after_fault(g->base.proc, blocked, g);
	if (!rc)
		return;
	/* Killed from outside. Everything is opened, the hard way. */
	guard_refuse(g, "the helper in the program was killed");
	guard_off(g);
}

void guard_take_all(struct guard *g, struct task *t, long syscall_nr)
{
	const struct access_hit hit = {
		.time_ns = smco_now_ns(),
		.task = t,
		.in_kernel = t != NULL,
		.syscall_nr = syscall_nr,
		.is_gap = true,
	};
	while (g->tab.nr)
		guard_take(g, g->tab.nr - 1, &hit);
	guard_flush(g, NULL);
}

/* --- states --- */

static void undo_by_hand(struct guard *g)
{
	struct tproc *p = g->base.proc;
	if (tproc_stop(p, NULL))
		return;
	warden_undo_by_hand(g->w, NULL);
	tproc_cont(p);
}

void guard_off(struct guard *g)
{
	struct tproc *p = g->base.proc;
	if (!g->on)
		return;
	g->on = false;
	/*
	 * The program's own action comes back, which knows nothing of a fault
	 * that a guard has caused: if nobody has looked at that yet, it would
	 * be the program's when we are killed now.
	 */
	bool stand = !tproc_stop(p, NULL);
	guard_take_all(g, NULL, -1);
	if (stand)
		tproc_take_back_faults(p);
	if (warden_do(g->w, WARDEN_OFF, NULL, 0, NULL))
		undo_by_hand(g);
	if (stand)
		tproc_cont(p);
}

void guard_untrace(struct guard *g)
{
	struct tproc *p = g->base.proc;
	if (!g->traced) {
		guard_off(g);
		return;
	}
	bool stand = !tproc_stop(p, NULL); /* once for all of that */
	guard_off(g);
	g->traced = false;
	tproc_before_signals(p, NULL, NULL);
	if (warden_is_running(g->w))
		warden_do(g->w, WARDEN_QUIT, NULL, 0, NULL);
	tproc_trace_syscalls(p, false);
	if (stand)
		tproc_cont(p);
}

static int look_at_altstacks(struct guard *g, struct smco_err *err)
{
	if (!warden_saw_altstacks(g->w))
		return 0;
	for (struct task *t = tproc_first_task(g->base.proc); t;
	     t = task_next(t)) {
		taddr_t start;
		uint64_t size;
		if (warden_altstack_of(g->w, t, &start, &size))
			return smco_fail(err, SMCO_BUSY, 0,
					 "thread %d: where its signal stack is "
					 "cannot be found out now",
					 (int)task_tid(t));
		if (size)
			addr_ranges_add(&g->kept, start, start + size);
	}
	return 0;
}

static int spawn(struct guard *g, struct smco_err *err)
{
	int rc = SMCO_BUSY;
	for (struct task *t = tproc_first_task(g->base.proc); t;
	     t = task_next(t)) {
		rc = warden_spawn(g->w, t, err);
		if (rc != SMCO_BUSY)
			break;
	}
	return rc;
}

/* off -> traced. All tasks stopped. */
static int start_tracing(struct guard *g, struct smco_err *err)
{
	struct tproc *p = g->base.proc;
	int rc = guard_place_look(g, err);
	if (!rc)
		rc = tproc_trace_syscalls(p, true);
	if (rc)
		return rc;
	g->traced = true;
	tproc_before_signals(p, guard_before_signal, g);
	g->traced_ns = smco_now_ns();
	g->nr_syscall_stops = 0;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		guard_call_look(g, t);
	rc = spawn(g, err);
	if (!rc)
		rc = look_at_altstacks(g, err);
	if (rc)
		guard_untrace(g);
	return rc;
}

/* traced -> on */
static int turn_on(struct guard *g)
{
	int rc = warden_do(g->w, WARDEN_ON, NULL, 0, NULL);
	g->on = !rc;
	g->idle_stops = 0;
	if (rc)
		guard_untrace(g);
	return rc;
}

/* --- arm and disarm --- */

static int arm_ready(struct guard *g, struct page_range *r, size_t n)
{
	struct warden_shared *s = warden_table(g->w);
	struct tmaps maps;
	int rc;
	/* The program's own handler came through ours: see warden_handler. */
	if (g->on && s->dead) {
		guard_off(g);
		s->dead = 0;
	}
	if (!g->on) {
		rc = turn_on(g);
		if (rc)
			return rc;
	}
	rc = tproc_read_maps(g->base.proc, &maps, NULL);
	if (rc)
		return rc;
	/* Each guard may add two mappings; a quarter of the limit is ours. */
	size_t room =
		g->tab.max_slots > g->tab.nr ? g->tab.max_slots - g->tab.nr : 0;
	guard_calls_prune(g);
	for (size_t i = 0; i < n; i++) {
		uint32_t prot = 0, slot;
		const char *why = NULL;
		if (guardtab_overlap(&g->tab, r[i].start, r[i].end))
			why = "armed already";
		if (!why)
			why = guard_place_check(g, &maps, r[i].start, r[i].end,
						&prot);
		if (!why && guard_call_conflict(g, r[i].start, r[i].end))
			why = "a system call in flight may touch it";
		if (!why && !room)
			why = "no more mappings to spare";
		if (!why && guardtab_add(&g->tab, r[i].start, r[i].end, prot,
					 r[i].user, &slot))
			why = "no slot";
		if (why) {
			smco_debug("guard", "%#llx-%#llx not armed: %s",
				   (unsigned long long)r[i].start,
				   (unsigned long long)r[i].end, why);
			r[i].nr_reset = UINT32_MAX;
			continue;
		}
		room--;
		s->slot[slot].start = r[i].start;
		s->slot[slot].end = r[i].end;
		s->slot[slot].prot = prot;
		if (slot >= s->nr_slots)
			__atomic_store_n(&s->nr_slots, slot + 1,
					 __ATOMIC_RELEASE);
		g->batch[g->nr_batch++] = slot;
		r[i].nr_reset = 0;
	}
	tmaps_deinit(&maps);
	return 0;
}

/* The ranges that the helper could protect; the others leave the table. */
static void arm_settle(struct guard *g, struct page_range *r, size_t n)
{
	struct warden_shared *s = warden_table(g->w);
	for (size_t i = 0; i < n; i++) {
		if (r[i].nr_reset == UINT32_MAX)
			continue;
		size_t at = guardtab_first(&g->tab, r[i].start);
		if (at == g->tab.nr || g->tab.v[at].start != r[i].start) {
			r[i].nr_reset = UINT32_MAX;
			continue;
		}
		int e = s->slot[g->tab.v[at].slot].error;
		if (e) {
			smco_debug("guard", "%#llx: mprotect: %s",
				   (unsigned long long)r[i].start,
				   strerror(-e));
			guardtab_remove(&g->tab, at);
			r[i].nr_reset = UINT32_MAX;
			continue;
		}
		r[i].nr_reset =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
	}
}

static int arm_stopped(struct guard *g, struct page_range *r, size_t n)
{
	uint64_t cost = 0;
	int rc = arm_ready(g, r, n);
	if (!rc && g->nr_batch) {
		size_t nr = g->nr_batch;
		g->arm_seq++;
		g->nr_batch = 0;
		rc = warden_do(g->w, WARDEN_ARM, g->batch, nr, &cost);
		g->side_ns += cost;
		if (rc) {
			guard_refuse(g, "the helper in the program was killed");
			guard_off(g);
		}
	}
	arm_settle(g, r, n);
	return rc;
}

static int guard_arm(struct access *a, struct page_range *r, size_t n)
{
	struct guard *g = (struct guard *)a;
	struct tproc *p = a->proc;
	struct smco_err err = {0};
	int rc = 0;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = UINT32_MAX;
	if (g->refusal[0] || g->closing)
		return SMCO_UNSUPPORTED;
	if (!g->on && smco_now_ns() < g->not_before_ns)
		return SMCO_BUSY;
	/* From here on every new system call is seen before it runs, so the
	 * program need not be stopped. */
	if (g->traced && warden_is_running(g->w))
		return arm_stopped(g, r, n);
	uint64_t begin = smco_now_ns();
	guard_others_beware(g);
	if (g->refusal[0])
		return SMCO_UNSUPPORTED;
	rc = tproc_stop_briefly(p, &err);
	if (rc)
		return rc;
	rc = guard_older_relieve(g);
	if (!rc)
		rc = start_tracing(g, &err);
	if (!rc)
		rc = arm_stopped(g, r, n);
	else if (rc == SMCO_UNSUPPORTED)
		guard_refuse(g, "%s", err.msg);
	if (rc)
		smco_debug("guard", "cannot arm: %s", err.msg);
	tproc_cont(p);
	smco_debug("guard", "armed first in %llu us",
		   (unsigned long long)(smco_now_ns() - begin) / 1000);
	return rc;
}

static int guard_disarm(struct access *a, struct page_range *r, size_t n)
{
	struct guard *g = (struct guard *)a;
	for (size_t i = 0; i < n; i++) {
		size_t at = guardtab_first(&g->tab, r[i].start);
		if (at < g->tab.nr && g->tab.v[at].start == r[i].start &&
		    g->tab.v[at].end == r[i].end)
			guard_take(g, at, NULL);
	}
	guard_flush(g, NULL);
	return 0;
}

static void guard_drop(struct access *a, taddr_t start, taddr_t end)
{
	struct guard *g = (struct guard *)a;
	/* What was unmapped was opened before: the call was seen. */
	for (;;) {
		size_t at = guardtab_first(&g->tab, start);
		if (at == g->tab.nr || g->tab.v[at].start >= end)
			break;
		guard_take(g, at, NULL);
	}
	guard_flush(g, NULL);
}

static int guard_collect(struct access *a, struct page_range *r, size_t n)
{
	struct guard *g = (struct guard *)a;
	for (size_t i = 0; i < n; i++) {
		const struct guard_entry *e =
			guardtab_overlap(&g->tab, r[i].start, r[i].end);
		r[i].nr_present =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		r[i].nr_touched = 0;
		r[i].nr_huge = 0;
		r[i].first_touched = 0;
		/* No longer watched: a hit or a gap is in the queue. */
		if (!e || e->start != r[i].start || e->end != r[i].end)
			r[i].nr_reset = UINT32_MAX;
	}
	return 0;
}

/* Fewer stops than one in this time are not what the budget went for. */
#define CHEAP_STOP_NS (10 * NSEC_PER_MSEC)

static void guard_relax(struct access *a)
{
	struct guard *g = (struct guard *)a;
	uint64_t stood = smco_now_ns() - g->traced_ns;
	if (g->traced && g->nr_syscall_stops > stood / CHEAP_STOP_NS)
		guard_untrace(g);
}

/* --- life --- */

/* A call of which nothing is known waits until all are open, at 3 us each. */
#define MOST_GUARDS 4096

static uint32_t max_guards(void)
{
	unsigned long long limit = 65530;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	if (f) {
		if (fscanf(f, "%llu", &limit) != 1)
			limit = 65530;
		fclose(f);
	}
	limit /= 8; /* two more mappings each, a quarter of all */
	return limit < MOST_GUARDS ? (uint32_t)limit : MOST_GUARDS;
}

static void guard_free(struct guard *g, bool gone)
{
	guard_others_remove(g);
	warden_destroy(g->w, gone);
	guardtab_deinit(&g->tab);
	guard_calls_free(g);
	addr_ranges_free(&g->kept);
	addr_ranges_free(&g->stacks);
	addr_ranges_free(&g->older);
	free(g->queue);
	free(g->batch);
	free(g);
}

static void clear(struct guard *g)
{
	struct tproc *p = g->base.proc;
	g->closing = true;
	guard_untrace(g);
	if (g->w && !tproc_stop(p, NULL)) {
		warden_destroy(g->w, false);
		g->w = NULL;
		tproc_cont(p);
	}
}

static int undo(struct tproc *p, void *arg)
{
	struct guard *g = arg;
	(void)p;
	g->undo = NULL;
	clear(g);
	return 0;
}

static int guard_prepare(struct smco_err *err)
{
	(void)err;
	warden_prepare();
	return 0;
}

static int guard_open(struct tproc *p, struct access **ret,
		      struct smco_err *err)
{
	struct guard *g = calloc(1, sizeof(*g));
	if (!g)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	g->base.ops = &access_mprotect;
	g->base.proc = p;
	guardtab_init(&g->tab, max_guards());
	g->batch = calloc(WARDEN_MAX_SLOTS, sizeof(g->batch[0]));
	g->hit_ns = tracer_stop_cost_ns(tproc_tracer(p)) + HIT_GUESS_NS;
	int rc = g->batch ? guard_place_look(g, err)
			  : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (!rc)
		rc = guard_older_look(g, err);
	if (!rc) {
		g->undo = tproc_undo_push(p, undo, g);
		rc = g->undo ? warden_create(p, &g->w, err)
			     : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (rc) {
		if (g->undo)
			tproc_undo_drop(p, g->undo);
		guard_free(g, false);
		return rc;
	}
	guard_others_add(g);
	guard_others_beware(g);
	*ret = &g->base;
	return 0;
}

static void guard_close(struct access *a)
{
	struct guard *g = (struct guard *)a;
	clear(g);
	if (g->undo)
		tproc_undo_drop(a->proc, g->undo);
	guard_free(g, g->w != NULL);
}

static void guard_forget(struct access *a)
{
	struct guard *g = (struct guard *)a;
	guard_free(g, true);
}

static uint64_t guard_touch_cost_ns(const struct access *a)
{
	return ((const struct guard *)a)->hit_ns;
}

static uint64_t guard_side_cost_ns(const struct access *a)
{
	return ((const struct guard *)a)->side_ns;
}

/* A fork needs nothing: the call that makes the copy is seen at its entry, and
 * nothing is guarded any more when memory and handlers are copied. */
const struct access_ops access_mprotect = {
	.name = "mprotect",
	.sees = ACCESS_READS | ACCESS_WRITES | ACCESS_KERNEL,
	.is_guard = true,
	.prepare = guard_prepare,
	.open = guard_open,
	.close = guard_close,
	.forget = guard_forget,
	.arm = guard_arm,
	.disarm = guard_disarm,
	.collect = guard_collect,
	.on_event = guard_on_event,
	.next_hit = guard_next_hit,
	.drop = guard_drop,
	.touch_cost_ns = guard_touch_cost_ns,
	.side_cost_ns = guard_side_cost_ns,
	.relax = guard_relax,
	.refusal = guard_refusal,
};
