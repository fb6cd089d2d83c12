/* nap-private.h - what the files of the NAP monitor share. */
#ifndef SMCO_NAP_PRIVATE_H
#define SMCO_NAP_PRIVATE_H

#include "supervisor/monitor/block.h"
#include "supervisor/monitor/nap.h"
#include "supervisor/monitor/site.h"

/* A block that is looked at again at @due_ns. Kept apart from the block so
 * that a tick with 100 000 of them reads 16 bytes of each. */
struct nap_queue_entry {
	uint64_t due_ns;
	struct block *block;
};

struct nap_ranges {
	struct page_range *range;
	uint32_t nr, cap;
};

struct nap_queue {
	struct nap_queue_entry *entry;
	uint32_t nr, cap;
};

#define NAP_QUIET_WINDOWS 2 /* between looks at what is quiet, at least */
#define NAP_LONG_QUIET_NS (10 * NSEC_PER_SEC) /* as ledger_settle has it */
#define NAP_SIZES	  20 /* powers of two of pages; the last has all above */

struct nap {
	struct nap_params params;
	struct ledger *ledger;
	struct control *control;
	struct sites sites;
	struct nap_proc *procs;
	uint64_t window_ns;
	uint32_t stretch; /* of the time between looks at quiet blocks */
	uint64_t adapt_ns, adapt_cpu_ns, adapt_base_ns, adapt_spent_ns;
	uint64_t adapt_event_ns, event_ns;   /* p of all events, then and now */
	uint64_t adapt_own_ns;		     /* our thread's CPU time */
	uint64_t adapt_arming_ns, arming_ns; /* of that, for arming */
	uint64_t nr_events, adapt_nr_events; /* with a p, then and now */
	uint64_t event_more_ns;	 /* what each is told to cost beside its p */
	int64_t tick_room_ns;	 /* at the beginning of this tick */
	uint64_t tick_arming_ns; /* what arming has cost the program in it, and
				  * is not charged yet */
	int64_t large_room_ns;	 /* for large blocks, in this tick */
	uint64_t large_most;	 /* pages: none that needs more gets some */
	int64_t smaller_ns; /* of that room, for those that need half of it or
			     * less */
	uint64_t waits_ns[NAP_SIZES]; /* what large ones had no room for in it,
				       * by the size of what they need */
	int64_t fair_ns;	      /* an even part of what may be reserved */
	int64_t dear_room_ns; /* for those that take more, in this tick */
	uint64_t dear_ns;     /* reserved for these */
	/* What large blocks under guards have a claim to of what may be
	 * reserved, and whether parts may follow in this tick. */
	uint64_t claims_ns;
	bool is_parts_turn;
	bool waits_cheap;    /* one that takes no more had no room */
	bool was_short;	     /* a small one was put off for lack of room */
	bool has_armed;	     /* somebody had a turn in this tick */
	uint64_t witness_ns; /* what second witnesses cost so far */
	uint64_t nr_known, nr_naps;
	uint64_t totals_ns; /* when nap_emit_totals came last */
	bool in_tick;	    /* its last slice was not the end of it */
	uint32_t arm_left;  /* plants that may still have their turn in it */
	/* coverage, counted when a block ends or at the end */
	struct ev_coverage cover[COVER_NR];
};

struct nap_proc {
	struct nap *nap;
	struct nap_proc *next;
	pid_t pid;
	struct access *primary;
	struct access *guard;
	struct block_set *blocks;
	struct nap_queue queue;	 /* blocks that are armed */
	struct nap_queue settle; /* large blocks with standing pages */
	struct nap_ranges look;	 /* scratch of one tick */
	struct nap_ranges plan;	 /* to be armed by nap_poll_flush */
	uint64_t planned_pages;
	struct nap_ranges guard_plan; /* stale blocks to be guarded */
	uint64_t guard_ns;	      /* none are planned before that time */
	uint32_t nr_guarded;
	uint64_t guards_held_ns; /* reserved for these */
	bool wants_guard;	 /* there was a block to guard */
	bool is_held_back;
	uint64_t looked_ns;
	struct nap_shade *shade; /* nap-shade.c */
	uint32_t nr_shades, cap_shades;
	uint32_t look_left;  /* of .queue, from its beginning, in this tick */
	struct block *ended; /* block whose quiet ended in this tick */
	struct ev_nap ended_nap;       /* its nap, if it was one */
	uint64_t ended_ns;	       /* by then */
	const struct nap_proc *parent; /* nap-inherit.c; NULL = none any more */
	uint64_t copied_ns;	       /* the fork was not before that */
	struct nap_gone *gone;	       /* what it let go of since */
	uint32_t nr_gone, cap_gone;
};

static inline uint64_t session_ns(const struct nap *n, uint64_t mono_ns)
{
	return mono_ns > n->params.start_ns ? mono_ns - n->params.start_ns : 0;
}

/* As nap records tell it: all of them round down, so that what is not after
 * something in truth is not in them. */
static inline uint64_t told_ns(const struct nap *n, uint64_t mono_ns)
{
	return in_units(session_ns(n, mono_ns),
			unit_for(n->params.nap_ns, NAP_UNIT_NS));
}

/* queue (nap-queue.c): a block is in at most one place of proc->queue */
bool nap_queue_add(struct nap_queue *q, struct block *b, uint64_t due_ns);
void nap_queue_remove(struct nap_queue *q, struct block *b);

/* nap-poll.c: looking. A tick begins, and goes on up to about @until_ns: false
 * = there is more to look at. */
void nap_poll_begin(struct nap_proc *np, uint64_t now_ns);
bool nap_poll_go_on(struct nap_proc *np, uint64_t now_ns, uint64_t until_ns);
void nap_poll_settle(struct nap_proc *np, uint64_t now_ns);
/* Before the planned ranges are reset: what was touched in pages that they
 * share with other blocks would be lost on those. */
void nap_poll_look_sharers(struct nap_proc *np);
/* @b is gone: nothing of it is reserved any more. */
void nap_poll_forget(struct block *b);
/* @nr pages of @b from its @first on, whatever of it is watched. */
bool nap_ranges_add(struct nap_ranges *l, struct block *b, uint64_t first,
		    uint64_t nr);
uint64_t nap_sample_page(const struct block *b, unsigned k);
unsigned nap_sample_nr(const struct block *b);
/* @nr_clear pages of @b stand reset now. */
void nap_set_clear(struct block *b, uint32_t nr_clear);
/* @nr more pages, of which it pays for @nr_ours when they are touched. */
void nap_add_clear(struct block *b, uint32_t nr, uint32_t nr_ours);
/* Only @nr_clear pages of @b still stand reset: charge those that were touched
 * meanwhile. What others have reset since is more, and not charged to it. */
void nap_account_for(struct block *b, uint32_t nr_clear);
/* The same after a look at the whole block. */
void nap_account(struct block *b);

/* Is more reserved for @b than its part, when all of it stands reset? */
void nap_judge_dear(struct block *b);

/* nap-arm.c: arming. Plans only, until nap_poll_flush. */
#define NAP_PLAN_BATCH 4096
/* So many pages are armed as a whole at once, without a sample. */
#define NAP_SMALL_PAGES 16
/* A tick begins: who may have what of the room, by what was short in the last
 * one. */
void nap_share_room(struct nap *n);
/* Arm a plant that is due. False if there is no room: defer it. */
bool nap_poll_arm(struct block *b, uint64_t now_ns);
/* Arm more pages of a block whose sample was quiet. False: no room. */
bool nap_poll_widen(struct block *b);
void nap_poll_flush(struct nap_proc *np, uint64_t now_ns);
int64_t nap_room_ns(const struct nap_proc *np);
uint64_t nap_touch_cost(const struct nap_proc *np);

/*
 * nap-shade.c: the first pages of a block, whose accessed bits say nothing
 * because sampling the stack below sets them. What is armed and looked at
 * begins behind these.
 */
uint64_t nap_shade_pages(const struct block *b);
/* So many that @b cannot be watched. */
bool nap_shade_hides(struct block *b, uint64_t now_ns);
/* Look at them by themselves, seldom. */
void nap_shade_look(struct nap_proc *np, uint64_t now_ns);
/* May the nap of @b begin that its other pages complete? @b may have been hit
 * after that. */
bool nap_shade_allows(struct block *b, uint64_t now_ns);
/* Were they touched by sampling since then? */
bool nap_shade_was_dark(const struct block *b, uint64_t since_ns);
void nap_shade_forget(struct block *b);

static inline uint64_t nap_shade(const struct block *b)
{
	return b->flags & BLOCK_SHADED ? nap_shade_pages(b) : 0;
}
/* The pages of @b that are watched, from the first of them on. */
static inline taddr_t nap_first_page(const struct block *b)
{
	return block_first_page(b) + nap_shade(b) * TPAGE_SIZE;
}
static inline uint64_t nap_nr_pages(const struct block *b)
{
	return block_nr_pages(b) - nap_shade(b);
}

static inline struct page_range nap_whole_range(struct block *b)
{
	return (struct page_range){
		.start = nap_first_page(b),
		.end = block_end_page(b),
		.user = b,
		.armed_ns = b->armed_ns,
	};
}

/* nap-guard.c. Look for naps; a tick plans parts that are to follow, too. */
void nap_guard_look(struct nap_proc *np, uint64_t now_ns);
void nap_guard_tick(struct nap_proc *np, uint64_t now_ns);

/* nap-guard-arm.c. Plans only, until nap_guard_arm_flush(). While that works
 * the program's stops wait: not too many at once, but for the last one no more
 * than 128 MiB, and of a block no more than 80 at once. */
#define NAP_GUARD_BATCH 512
#define NAP_GUARD_PAGES 32768
bool nap_guard_arm(struct block *b, uint64_t now_ns);
/* The next part of @b, which is in BLOCK_WIDEN. */
void nap_guard_widen(struct block *b, uint64_t now_ns);
void nap_guard_arm_flush(struct nap_proc *np, uint64_t now_ns);
/* Is as much planned as may be done at once? */
bool nap_guard_is_full(const struct nap_proc *np);
/* @r of @b is no longer guarded: it takes nothing to open it. */
void nap_guard_opened(struct block *b, const struct page_range *r);
/* What does not stand of @b does not follow any more. */
void nap_guard_turn_over(struct block *b);
/* Nothing of @b is; it has been quiet for long. */
void nap_guard_release(struct block *b);
void nap_guard_settle(struct block *b);

/* nap-witness.c */
/*
 * The second witness, on a block that is about to become stale: it rarely
 * fires, and then tells what no bit can, who ended the nap and when. Planned
 * here, set by nap_guard_flush at the end of the tick; the price of a hit is
 * reserved.
 */
void nap_plan_guard(struct block *b);
void nap_guard_flush(struct nap_proc *np, uint64_t now_ns);
/* The guard is gone; @open: first open it (its memory is still the block's). */
void nap_unguard(struct block *b, bool open);

/* When a quiet block under watch is looked at next. */
uint64_t nap_recheck_ns(const struct block *b, uint64_t now_ns);

/* nap-emit.c */
void nap_begin(struct block *b, uint64_t now_ns);
/* The nap of @b ended between its last quiet check and @now_ns. */
void nap_end(struct block *b, uint64_t lo_ns, uint64_t hi_ns, uint32_t flags,
	     uint32_t stack, int32_t syscall_nr);
void nap_emit_ongoing(struct block *b, uint64_t now_ns, uint32_t flags);

/* nap-inherit.c */
/* [start, end) is let go of, if that is of interest. */
void nap_note_gone(struct nap_proc *np, taddr_t start, taddr_t end);
void nap_forget_parent(struct nap_proc *np);
/* @np is about to end: what of its blocks its copies have is theirs, if it is
 * @gone and they do not share it with it any more. */
void nap_hand_down(struct nap_proc *np, uint64_t now_ns, bool gone);

/* nap.c */
/* A block of the program's, known from now on; not a new allocation. NULL when
 * out of memory. */
struct block *nap_block_add(struct nap_proc *np, taddr_t addr, uint64_t size,
			    uint32_t stack, uint64_t now_ns, uint16_t flags);
/* An access to @b was seen within [lo, hi]; @p_ns is what seeing it cost (for
 * the controller; the caller charges the ledger). Where @b has no turn, of a
 * part that stood: it waits the longer. */
void nap_block_hit(struct block *b, uint64_t lo_ns, uint64_t hi_ns,
		   uint64_t p_ns);

#endif
