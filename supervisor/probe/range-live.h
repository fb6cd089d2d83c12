/* range-live.h - what is behind struct ranges. Private to range-*.c. */
#ifndef SMCO_RANGE_LIVE_H
#define SMCO_RANGE_LIVE_H

#include "supervisor/probe/range-plan.h"

/* One jump in one process. */
struct live_window {
	taddr_t addr;
	uint8_t old[CODE_JUMP_BYTES];
	uint8_t jump[CODE_JUMP_BYTES];
	/* Stub offset of the instruction that was at addr + i; UINT32_MAX if
	 * none was. */
	uint32_t moved[CODE_JUMP_BYTES];
	uint8_t len; /* of the jump: two bytes lead to the relay */
	/* Padding with the jump to the stub; 0: none is needed. */
	taddr_t relay;
	uint8_t relay_old[CODE_JUMP_BYTES];
	uint8_t relay_jump[CODE_JUMP_BYTES];
	struct tpatch *relay_patch; /* NULL: it is not there */
	uint32_t cost_ps;	    /* of a hit */
	bool in;
	bool want;  /* what range_apply makes of it */
	bool taken; /* somebody else's code is there: it is left to them */
};

/* Windows that are written at once: what lies between them is the function's
 * own code. */
struct live_span {
	uint32_t first;	      /* window */
	uint32_t end;	      /* exclusive */
	struct tpatch *patch; /* NULL: none of them is in */
};

/* Windows whose counters are in one line of the cache. */
#define LIVE_LINE 8

/* Where a thread in a function's stubs is; the same in all processes. */
struct range_steps {
	struct range_step *step; /* by offset, from the function's first byte */
	uint64_t *addr;		 /* of each: the file's address */
	size_t nr;
	unsigned nr_users; /* functions of processes */
};

struct live_function {
	struct live_window *window; /* NULL: not prepared */
	struct live_span *span;
	size_t nr_windows, nr_spans, nr_relays;
	struct ranges *of;	  /* while it holds relays */
	struct tundo *relay_undo; /* NULL: it holds none */
	struct range_steps *steps;
	uint64_t built_ns; /* its stubs were written; 0: with the area */
	uint32_t code_off; /* in the area */
	uint32_t code_len;
	bool in;      /* a window is */
	bool useless; /* its stubs could not be built */
	bool chosen;  /* within ranges_choose: it is on the list */
	bool pooled;  /* window and span are of the pool */
};

/* How a cell has widened. */
struct live_worth {
	uint64_t width;	  /* as it was asked for last */
	uint64_t nr;	  /* hits by then */
	uint64_t nr_then; /* as many when it had widened last; 0: never */
	uint32_t gain;	  /* of RANGE_WORTH: parts of the width, on average */
};

struct ranges {
	struct tproc *p; /* NULL: range-make.c */
	const struct range_plan *plan;
	uint64_t bias;
	taddr_t base;	   /* of the area: code, a gap, shared data */
	uint64_t data_off; /* from the base */
	uint64_t bytes;	   /* of the area */
	uint64_t data_bytes;
	uint64_t code_used;
	uint64_t code_end; /* stubs end here at the latest */
	/* What was made ahead of time for this very distance, or NULL. The rest
	 * of the plan's stubs are made here. */
	const struct ranges *made;
	size_t nr_built; /* functions: see ranges_nr_built */
	uint8_t *pool;	 /* for copies of what was made */
	size_t pool_bytes, pool_used;
	/* Without a process: the code from the base on, and which words of it
	 * are addresses of the module. */
	uint8_t *code;
	size_t cap_code;
	uint32_t *back;
	size_t nr_back, cap_back;
	uint8_t *data;	 /* the supervisor's mapping; NULL: none yet */
	size_t nr_cells; /* that have begun empty; the plan may have more */
	uint64_t *told;	 /* hits of each window, when they were told of */
	/* What a hit costs of each that is prepared, and 1; 0: it is not. A
	 * look goes through many of them, and needs nothing else. */
	uint32_t *cost_ps;
	struct live_worth *worth; /* of each cell */
	/* For ranges_glance, in lines of LIVE_LINE windows. */
	uint32_t *warm; /* those that were passed when last looked at */
	size_t nr_warm;
	bool *is_warm;
	size_t next_line;
	struct live_function *function; /* one for each of the plan's */
	struct live_window **relayed;	/* windows whose relay is there */
	size_t nr_relayed, cap_relayed;
	uint64_t seen[RANGE_MOST_SEEN]; /* where threads stood, in the file */
	size_t nr_seen;
	bool (*is_there)(void *ctx); /* NULL: always */
	void *is_there_ctx;
	struct tundo *undo;
	bool heeds_others; /* ranges_heed_others */
	uint32_t *beside;  /* ranges_beside */
	size_t nr_beside, cap_beside;
	bool planted;	/* the area is mapped */
	bool left;	/* taken out, but the area had to stay */
	bool is_owed;	/* could not be taken out: detach does it */
	bool is_orphan; /* and frees this, too */
};

/* range-patch.c. All tasks stopped. */
/* Windows of @nr functions in or out as they are wanted. One that cannot be
 * changed is left as it is, wanted so, and SMCO_BUSY returned in the end. */
int range_apply(struct ranges *r, const uint32_t *functions, size_t nr,
		struct smco_err *err);
int range_put_out(struct ranges *r, struct live_function *f,
		  struct smco_err *err);
static inline taddr_t live_span_start(const struct live_function *f,
				      const struct live_span *s)
{
	return f->window[s->first].addr;
}
static inline size_t live_span_len(const struct live_function *f,
				   const struct live_span *s)
{
	const struct live_window *last = &f->window[s->end - 1];
	return last->addr + last->len - live_span_start(f, s);
}
/* Threads in signal handlers that were interrupted where a jump is now. */
void range_fix_frames(struct ranges *r);
/* Text back as it was, whoever knows of the patches. */
void range_restore_text(struct ranges *r);
/* Nobody will come back to the stubs: threads at an instruction of their own
 * are moved home. */
bool range_nobody_inside(void *ranges);

/*
 * range-hold.c: the relays of @f, all before its first jump and until its last
 * one is out: whatever undoes patches, newest first, never takes one away that
 * a jump leads to. All tasks stopped. Windows whose relay is somebody else's by
 * now are not wanted any more.
 */
void range_hold_relays(struct ranges *r, struct live_function *f);
void range_drop_relays(struct ranges *r, struct live_function *f);
/* Of a forked copy, whose text has the parent's. False: no memory. */
bool range_inherit_relays(struct ranges *r, struct live_function *f);
/* A thread at @pc, the first byte of a relay, may as well be at the window that
 * is returned; NULL: no relay is there. */
const struct live_window *range_relay_at(const struct ranges *r, taddr_t pc);
/* The relays of text that was restored by range_restore_text. */
void range_restore_relays(struct ranges *r, struct live_function *f);

/* range.c */
/* Where in the data the counters are. */
uint64_t range_counters_off(const struct range_plan *plan);
/* Those of functions that were planned since: nobody has used them. */
void range_empty_cells(struct ranges *r);

/* Code and what is written stay apart. */
#define RANGE_GAP_BYTES (64ULL << 10)
/* Everything out; all tasks stopped. The supervisor's mapping stays. */
void range_take_out(struct ranges *r);
/* For tproc_undo_push, with a struct ranges. */
int range_undo(struct tproc *p, void *ranges);
/* Nothing in any process. NULL: no memory. */
struct ranges *range_new(struct tproc *p, const struct range_plan *plan,
			 uint64_t bias);

/* range-make.c: the next stubs of @r, which has no process. */
int range_keep_code(struct ranges *r, const struct range_stubs *s,
		    struct smco_err *err);
/* range-made.c */
/* @to has nothing before. False: no memory, and it needs range_unprepare. */
bool range_copy_function(struct live_function *to,
			 const struct live_function *from);
/* range-others.c. Has somebody changed the text that @made has stubs of? It has
 * if that cannot be told. */
bool range_has_others(const struct ranges *r, const struct live_function *made);
/* Which instructions of windows are no longer the file's, by number; NULL: none
 * is to be heeded, or there is no memory for it. The caller's to free(). */
bool *range_find_others(const struct ranges *r, const struct range_code *code,
			const struct range_windows *w);
/* Variables with sites that these hide, for ranges_beside. False: no memory. */
bool range_note_beside(struct ranges *r, const struct range_code *code,
		       const struct range_windows *w, const bool *others);
/* What was made ahead is for @r, if it is for where that has its area. */
void range_use_made(struct ranges *r);
/* Those of @functions that were are in the process then. */
int range_place_made(struct ranges *r, const uint32_t *functions, size_t nr,
		     struct smco_err *err);

/* range-prepare.c */
#define RANGE_STUB_ALIGN 64u /* each function's first */
int range_prepare(struct ranges *r, uint32_t function, struct smco_err *err);
void range_unprepare(struct live_function *f);
/* Its windows are known now, wherever they are from. */
void range_is_prepared(struct ranges *r, uint32_t function);
/* The function whose stub @pc is in, and the step; NULL: in none. */
const struct live_function *range_function_at(const struct ranges *r,
					      taddr_t pc, size_t *step_ret);

#endif
