/*
 * nap.h - the monitor for Non-Accessed Periods: blocks of memory that nobody
 * touches for at least the NAP length. Every block is a plant of the
 * controller; looking at a block costs the program the first touch of each
 * page whose accessed bit was reset (or a guard hit), and that is charged to
 * the ledger.
 *
 * What is reported is true: a nap is called only when every page of the block
 * was seen quiet for the whole NAP length. Where the budget does not suffice
 * naps are missed, and the coverage says so; they are never made up. Of blocks
 * directly above a sampled stack the first pages are left out, and that is said
 * (NAP_HEAD_UNSEEN).
 *
 * The monitor owns blocks and plants. It calls no ptrace; the mechanism comes
 * in as a struct access, records go out by a callback.
 */
#ifndef SMCO_NAP_H
#define SMCO_NAP_H

#include "reports/record.h"
#include "supervisor/control/control.h"
#include "supervisor/probe/access.h"
#include "supervisor/probe/hook.h"

#define NAP_MONITOR 0 /* its number in the ledger */

struct nap;	 /* the monitor; one per session */
struct nap_proc; /* one address space */

struct nap_params {
	uint64_t nap_ns;	     /* shortest nap that is reported */
	uint64_t min_size;	     /* bytes; smaller blocks are ignored */
	int64_t target_overhead_ppb; /* INT64_MAX = no limit */
	uint64_t start_ns;	     /* CLOCK_MONOTONIC of session time 0 */
	void (*emit)(void *ctx, const struct record *r);
	/* Call nap_sampled() for all samples taken so far, and nothing else of
	 * the monitor; NULL = there are none. */
	void (*read_samples)(void *ctx);
	void *ctx;
	/* CLOCK_MONOTONIC, and the CPU time of this thread; NULL = those. Tests
	 * have their own. */
	uint64_t (*clock)(void), (*cpu_clock)(void);
};

struct nap *nap_create(const struct nap_params *p, struct ledger *ledger,
		       struct control *control);
void nap_destroy(struct nap *n);

/* How often nap_tick wants to be called, ns. */
uint64_t nap_window_ns(const struct nap *n);

/* @primary watches; it stays the caller's. */
struct nap_proc *nap_proc_create(struct nap *n, pid_t pid,
				 struct access *primary);
/* A second mechanism, a guard, on blocks that are stale, to learn who ends
 * their nap: worth opening as soon as there are such blocks. It stays the
 * caller's, who keeps it until after nap_proc_destroy. */
bool nap_wants_guard(const struct nap_proc *np);
void nap_set_guard(struct nap_proc *np, struct access *guard);
/*
 * @np is of a forked copy of @parent's process, known since @now_ns, and has
 * nothing of its own yet. The blocks that both have are @np's when @parent is
 * destroyed as gone: until then they cannot be watched in it.
 */
void nap_copied(struct nap_proc *np, const struct nap_proc *parent,
		uint64_t now_ns);
/* The process ended, was left, or changed its image: ongoing naps are closed
 * as of @now_ns. @gone: its memory must not be touched any more. */
void nap_proc_destroy(struct nap_proc *np, uint64_t now_ns, bool gone);

/* Arm nothing in this process until told otherwise; what is armed stays. */
void nap_hold_back(struct nap_proc *np, bool hold);

/* What the sensors saw. */
void nap_heap_event(struct nap_proc *np, const struct heap_event *ev);
/* A mapping found in the maps, not by a sensor. */
void nap_adopt_mapping(struct nap_proc *np, taddr_t addr, uint64_t size,
		       uint64_t now_ns);

/* A sample of a stack was taken by copying [sp, end), which is no access of the
 * program's. */
void nap_sampled(struct nap_proc *np, taddr_t sp, taddr_t end,
		 uint64_t time_ns);

/* Look, decide, arm, for a few ms. All times CLOCK_MONOTONIC. True: that is not
 * the whole tick; see who has stopped meanwhile, and call it again. */
bool nap_tick(struct nap *n, uint64_t now_ns);
/* A guard was hit (access_ops.on_event or next_hit said so). @stack: id of
 * the stack that did it, 0 = unknown. */
void nap_guard_hit(struct nap_proc *np, const struct access_hit *hit,
		   uint32_t stack, bool is_primary);
/* True if the last tick found the end of a nap or of a quiet spell, so that
 * a look at what runs now tells who did it; nap_nearby names it. */
bool nap_wants_nearby(const struct nap_proc *np);
void nap_nearby(struct nap_proc *np, uint32_t stack);

/* The part of a tick that judges what guards have stood for; nothing is armed.
 */
void nap_look(struct nap *n, uint64_t now_ns);

/* Write the totals of every site that changed, and naps that go on. */
void nap_emit_totals(struct nap *n, uint64_t now_ns);
/* At the end: coverage. */
void nap_emit_coverage(struct nap *n);

struct nap_stats {
	uint64_t nr_known; /* blocks alive */
	uint64_t nr_armed; /* of these under watch just now */
	uint64_t nr_naps;  /* reported so far */
	uint64_t bytes;	   /* of supervisor memory for them */
};
void nap_get_stats(const struct nap *n, struct nap_stats *ret);

#endif
