/*
 * napsim.h - the NAP monitor on virtual time: a clock that the test moves, the
 * parts of a fake mechanism that do nothing, and one watched process. Each
 * test brings its own arm and collect.
 */
#ifndef NAPSIM_H
#define NAPSIM_H

#include "supervisor/monitor/nap.h"
#include "t/unit/tap.h"

#define MS		NSEC_PER_MSEC
#define NAPSIM_COST_NS	400	    /* of a touch */
#define NAPSIM_BLOCK	0x100000ull /* where napsim_allocate() puts it */
#define NAPSIM_NR_PAGES 2
#define NAPSIM_SIZE	(NAPSIM_NR_PAGES * TPAGE_SIZE)

static uint64_t now = NSEC_PER_SEC; /* virtual CLOCK_MONOTONIC */

static uint64_t napsim_cost_ns = NAPSIM_COST_NS; /* of a touch, as told */

/* What was reported. */
static unsigned nr_naps; /* also those that go on */
static unsigned nr_ongoing;
static struct ev_nap last;

/* As struct nap_params has it. */
static void (*napsim_read_samples)(void *ctx);

static inline uint64_t virtual_clock(void)
{
	return now;
}

static inline int fake_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a, (void)r, (void)n;
	return 0;
}

static inline void fake_drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a, (void)start, (void)end;
}

static inline uint64_t fake_cost(const struct access *a)
{
	(void)a;
	return napsim_cost_ns;
}

/* No guard stands. */
static inline int fake_none(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = UINT32_MAX;
	return 0;
}

/* Of a struct access_ops: a guard that @arm_fn arms; @collect_fn says which
 * stand. */
#define NAPSIM_PARTS(arm_fn, collect_fn)                                       \
	{                                                                      \
		.name = "fake guard", .sees = ACCESS_READS | ACCESS_WRITES,    \
		.is_guard = true, .arm = (arm_fn), .disarm = fake_disarm,      \
		.collect = (collect_fn), .drop = fake_drop,                    \
		.touch_cost_ns = fake_cost,                                    \
	}
#define NAPSIM_GUARD(arm_fn) NAPSIM_PARTS(arm_fn, fake_none)

/* The same: marks that are looked at. */
#define NAPSIM_POLLED(arm_fn, collect_fn)                                      \
	{                                                                      \
		.name = "fake",                                                \
		.sees = ACCESS_READS | ACCESS_WRITES | ACCESS_KERNEL,          \
		.arm = (arm_fn), .disarm = fake_disarm,                        \
		.collect = (collect_fn), .drop = fake_drop,                    \
		.touch_cost_ns = fake_cost,                                    \
	}

static inline void napsim_emit(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event != EV_NAP)
		return;
	last = *(const struct ev_nap *)r->payload;
	nr_naps++;
	nr_ongoing += !!(last.flags & NAP_ONGOING);
}

/* What was said by nap_emit_coverage(). */
static struct ev_coverage cover[COVER_NR];

static inline void napsim_keep_coverage(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event == EV_COVERAGE)
		cover[r->param] = *(const struct ev_coverage *)r->payload;
}

struct napsim {
	struct ledger *l;
	struct control *c;
	struct nap *n;
	struct nap_proc *np;
	struct access a;
};

/* One process, pid 1, watched by @ops from now on; @emit gets the records.
 * Its parts are private to the test until napsim_stop(). */
static inline void napsim_start(struct napsim *s, const struct access_ops *ops,
				int64_t target_ppb, uint64_t nap_ns,
				void (*emit)(void *ctx, const struct record *r))
{
	const struct control_params cp = {
		.kind = CONTROL_CASCADE,
		.target_overhead_ppb = target_ppb,
	};
	const struct nap_params p = {
		.nap_ns = nap_ns,
		.min_size = TPAGE_SIZE,
		.target_overhead_ppb = target_ppb,
		.emit = emit,
		.read_samples = napsim_read_samples,
		.clock = virtual_clock,
		.cpu_clock = virtual_clock,
	};
	s->l = ledger_create(target_ppb);
	s->c = control_create(&cp, now);
	s->n = nap_create(&p, s->l, s->c);
	s->a = (struct access){.ops = ops};
	s->np = nap_proc_create(s->n, 1, &s->a);
}

static inline void napsim_stop(struct napsim *s)
{
	nap_proc_destroy(s->np, now, true);
	nap_destroy(s->n);
	control_destroy(s->c);
	ledger_destroy(s->l);
}

static inline void napsim_run_until(struct napsim *s, uint64_t until_ns)
{
	for (; now < until_ns; now += 10 * MS) {
		ledger_advance(s->l, now, 10 * MS);
		while (nap_tick(s->n, now))
			;
	}
}

static inline void napsim_allocate(struct napsim *s, taddr_t addr,
				   uint64_t size)
{
	const struct heap_event ev = {
		.kind = HEAP_ALLOC,
		.time_ns = now,
		.addr = addr,
		.size = size,
	};
	nap_heap_event(s->np, &ev);
}

#endif
