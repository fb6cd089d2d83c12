/*
 * hook.h - entry sensors on the allocation functions, and the code they run
 * inside the tracee (the agent). A call below the cutoff costs a compare in a
 * near stub; a larger one is turned into an aligned one (pages of its own,
 * glibc only, and not where the program's memory is short), its stack is
 * recognised in a cache of stacks seen before, and a fixed-size record goes
 * into a ring shared with the supervisor. No stop, except once per new stack (a
 * trap by an ignored signal).
 *
 * Invariants: memory stays owned by the program's own allocator; with the
 * supervisor dead, everything here goes on working and does nothing; no call
 * blocks, no lock is held across a call into the allocator.
 */
#ifndef SMCO_HOOK_H
#define SMCO_HOOK_H

#include "reports/base.h"
#include "supervisor/tracee/tracee.h"

struct hooks; /* one per tproc */

enum heap_event_kind {
	HEAP_ALLOC,   /* malloc, calloc, memalign, new, ...: block addr,size */
	HEAP_FREE,    /* block addr is about to be freed */
	HEAP_REALLOC, /* old_addr, whose HEAP_FREE came before, is addr,size */
	HEAP_MAP,     /* anonymous mmap addr,size */
	HEAP_UNMAP,   /* munmap of addr,size, or mapped over */
	HEAP_REMAP,   /* the same for mremap, after a HEAP_UNMAP of the old */
};

struct heap_event {
	enum heap_event_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t tid;
	taddr_t addr;
	uint64_t size; /* as asked by the program, bytes */
	taddr_t old_addr;
	uint64_t old_size;
	uint32_t stack;	 /* id from hooks_on_trap's answer; 0 = unknown */
	taddr_t caller;	 /* return address of the call, known in any case */
	bool own_pages;	 /* no other block shares its pages */
	bool zero_fresh; /* pages not touched since mapped */
};

/* Where allocation functions are: filled by the session from symbols. */
struct hook_symbols {
	/* Returns the address of @name in the module that wins the program's
	 * symbol lookup among those that define malloc; 0 if none. @module_ret
	 * gets the module's [start, end) text range. */
	taddr_t (*find)(void *ctx, const char *name, taddr_t *start_ret,
			taddr_t *end_ret);
	/*
	 * The same in libc, for mmap, munmap and mremap; the range tells libc's
	 * own calls from the program's. NULL = @find is asked, which has it
	 * where malloc is libc's. Where libc is linked into the program, or
	 * this returns 0, mappings are not recorded.
	 */
	taddr_t (*find_libc)(void *ctx, const char *name, taddr_t *start_ret,
			     taddr_t *end_ret);
	void *ctx;
};

/*
 * Plant the sensors. All tasks stopped. All or nothing; registered for undo.
 * SMCO_NOTFOUND: no allocation functions (yet) in this process.
 */
int hooks_plant(struct tproc *p, const struct hook_symbols *syms,
		uint64_t cutoff_bytes, struct hooks **ret,
		struct smco_err *err);
/* A forked copy: fresh ring and cache for the child, same sensors. All tasks
 * of @child stopped. SMCO_NOTFOUND: it was copied before they were planted. */
int hooks_fork(const struct hooks *parent, struct tproc *child,
	       struct hooks **ret, struct smco_err *err);
/*
 * The same in two steps. After hooks_copy, which costs some microseconds, the
 * copy has its sensors and passes every call on unseen; nothing else may be
 * done with it than hooks_copy for a copy of its own, hooks_wake, hooks_remove,
 * hooks_destroy. hooks_wake: from now on blocks are recorded; those from before
 * are not known. All tasks stopped for both. Errors of hooks_copy are those of
 * hooks_fork. A failure of hooks_wake takes the sensors out and frees @h.
 */
int hooks_copy(const struct hooks *parent, struct tproc *child,
	       struct hooks **ret, struct smco_err *err);
int hooks_wake(struct hooks *h, struct smco_err *err);
/*
 * Takes the sensors out (also done by detach through the undo list). What is
 * in the ring can still be drained. If a thread stays inside the agent, its
 * code is left mapped, unreachable, and hooks_describe says so.
 * SMCO_BUSY: a thread does not stop in time (none does where all stand
 * already). Then they stay, for a later call, or for detach.
 */
int hooks_remove(struct hooks *h, struct smco_err *err);
/* Frees the supervisor's side: after hooks_remove or detach, or when the
 * process is gone or has exec'ed. What hooks_remove could not take out is
 * freed when detach has. Does not touch the tproc. NULL is fine. */
void hooks_destroy(struct hooks *h);

/*
 * Admission: how many more blocks may be recorded. Each costs
 * hooks_cost_ns(); when none are left calls pass unrecorded and are counted.
 * Blocks of at least @always_bytes are recorded regardless.
 */
void hooks_set_tokens(struct hooks *h, uint32_t tokens);
void hooks_set_cutoff(struct hooks *h, uint64_t bytes);
void hooks_set_always_bytes(struct hooks *h,
			    uint64_t bytes); /* at first 4 MiB */
/*
 * How much more memory blocks may take in all so that they have pages of their
 * own, those below 64 KiB together, and the others (UINT64_MAX = as it comes);
 * at first 16 MiB and as it comes. Nothing where a process has a limit of its
 * own (ulimit -v, -d), which is asked for each time. What they have they keep.
 * True: hooks_describe() says for the first time that they have less than that.
 */
bool hooks_set_spare(struct hooks *h, uint64_t small_bytes,
		     uint64_t large_bytes);
/* How many more new stacks may be asked for, a stop each; when none are left
 * their events carry stack 0. */
void hooks_set_trap_tokens(struct hooks *h, uint32_t tokens);

/* Drain the ring in order; @fn per event. Returns the number drained. Running
 * tasks are fine. Never blocks. There is room for HOOKS_RING of them. */
#define HOOKS_RING 4096
size_t hooks_drain(struct hooks *h,
		   void (*fn)(void *ctx, const struct heap_event *ev),
		   void *ctx);

/*
 * TEV_TRAP: true if the trap is a sensor's request to name a new stack. The
 * registers of the *caller* of the allocation function are in *regs; unwind
 * them, then answer. frames[i] are return addresses (frames[0] = the caller of
 * the allocation function), slots[i] the stack address each was read from
 * (slots[0] = where the sensor found its return address, or 0). @stack is the
 * id that later events carry. Then tracer_resume(task, 0).
 * False: not ours, or the ring was full (and is emptied now, its events come
 * with the next hooks_drain); tracer_resume(task, 0) all the same.
 * hooks_answer returns SMCO_NOMEM when the cache of stacks is full.
 */
bool hooks_on_trap(struct hooks *h, struct task *t, const siginfo_t *si,
		   struct user_regs_struct *regs);
/* After hooks_on_trap was false: is the thread about to begin with a
 * userfaultfd of the program's own? It stands until it is resumed. Said once.
 */
bool hooks_own_uffd(struct hooks *h);
int hooks_answer(struct hooks *h, struct task *t, uint32_t stack,
		 const taddr_t *frames, const taddr_t *slots, size_t nr);

/*
 * Stacks that lead through a sensor, for unwinders. hooks_home: is @regs->rip
 * in a sensor's stub? Then the registers become what the function would have
 * (without what a call of the agent's would save). hooks_have: is @pc in the
 * agent, whose frames have no unwind information? hooks_leave takes their
 * place: *regs as they were at the entry of the function that has the sensor,
 * but for those that a caller saves. For a thread that is in the agent @lowest
 * is NULL and *regs its registers; for one that is in what the agent called,
 * *lowest is where its stack has the return address. False: no way was found,
 * nothing is changed. Hostile input. No stop needed.
 */
struct hook_stack {
	/* Bytes that could be read, from the first on. */
	size_t (*read)(void *ctx, taddr_t addr, void *buf, size_t len);
	void *ctx;
};
bool hooks_home(const struct hooks *h, struct user_regs_struct *regs);
bool hooks_have(const struct hooks *h, taddr_t pc);
bool hooks_leave(const struct hooks *h, const struct hook_stack *stack,
		 const taddr_t *lowest, struct user_regs_struct *regs);

struct hooks_stats {
	uint64_t nr_recorded; /* events put into the ring */
	uint64_t nr_skipped;  /* allocations above the cutoff not admitted */
	uint64_t skipped_bytes;
	uint64_t nr_lost;  /* ring was full (supervisor dead or stuck) */
	uint64_t nr_traps; /* new stacks asked for */
	uint64_t agent_ns; /* time spent in slow paths, beyond the plain call */
};
void hooks_get_stats(struct hooks *h, struct hooks_stats *ret);
/* Calibrated cost of one recorded allocation plus its free, ns. */
uint64_t hooks_cost_ns(const struct hooks *h);
/* One word: which functions in which module carry sensors, for the report. */
const char *hooks_describe(const struct hooks *h);

/*
 * Blocks that already exist (attach): walks glibc's main and thread heaps and
 * finds mmapped chunks, by their headers in tracee memory, all tasks stopped.
 * Hostile input: stops at the first impossible header. @fn gets HEAP_ALLOC
 * events with stack 0. Also registers them with the agent, so that their free
 * is seen. With @only_own those of a forked copy that it does not share with
 * its parent (pagestate_owner()).
 */
int hooks_adopt(struct hooks *h, uint64_t min_bytes, bool only_own,
		void (*fn)(void *ctx, const struct heap_event *ev), void *ctx,
		struct smco_err *err);

#endif
