/*
 * guard.h - private to the files of the mprotect mechanism (access_mprotect).
 *
 * A block is guarded by taking all access from its pages. The first access
 * faults and opens the block as a whole; the kernel's own accesses would not
 * fault but fail, so while guards are armed every system call is caught and
 * what it is about to touch is opened first (sysargs.h). Page protections are
 * changed by a resident helper only (warden.h), never by a borrowed thread.
 *
 * States: off - nothing in the program but two idle mappings; traced - all
 * system calls are caught, no guard is armed, SIGSEGV is the program's own;
 * on - SIGSEGV is handled by the helper's net, guards may be armed.
 *
 *	guard.c		states, arm, disarm, what the operations return
 *	guard_event.c	faults and system calls
 *	guard_call.c	calls in flight in each thread
 *	guard_place.c	which memory may be guarded at all
 *	guard_older.c	what killed supervisors have left
 *	guard_peers.c	who may look into others' memory
 *	guard_other.c	other processes that look into guarded memory
 */
#ifndef SMCO_GUARD_H
#define SMCO_GUARD_H

#include "supervisor/probe/access.h"
#include "supervisor/probe/guardtab.h"
#include "supervisor/probe/robust.h"
#include "supervisor/probe/sysargs.h"
#include "supervisor/probe/warden.h"

/* Does a thread block SIGSEGV? Not asked when it stands at a fault: for that
 * the kernel has unblocked it. */
enum guard_mask {
	GUARD_MASK_UNKNOWN, /* a handler may have begun, which may block it */
	GUARD_MASK_OPEN,
	GUARD_MASK_BLOCKED,
};

/* One thread, and the system call it is in. */
struct guard_call {
	struct task *task;
	pid_t tid;
	enum guard_mask mask;
	bool active; /* between entry and exit, or to be restarted */
	bool all;    /* may touch any memory */
	struct sysranges ranges;
	/* The program's own fault comes twice: the first time it is tried
	 * again, in case a guard was opened since. */
	taddr_t retry_pc;
	taddr_t retry_addr;
	uint64_t retry_seq;
};

struct guard {
	struct access base;
	struct guard *next; /* private to guard_other.c */
	struct warden *w;
	struct tundo *undo;
	struct guardtab tab;
	bool on;
	bool traced;
	bool closing;
	char refusal[200]; /* "" = none */
	struct guard_call **calls;
	size_t nr_calls;
	size_t cap_calls;
	struct addr_ranges kept;   /* the kernel may touch it at any time */
	struct addr_ranges stacks; /* around stacks and thread areas */
	struct addr_ranges older;  /* mappings of helpers that lost their
				    * supervisor */
	bool had_older;
	struct access_hit *queue; /* ring of hits not told yet */
	size_t queue_head;
	size_t queue_nr;
	size_t queue_cap;
	uint32_t *batch; /* slots about to be armed or opened */
	size_t nr_batch;
	uint64_t arm_seq;	   /* bumped by every arm */
	uint64_t not_before_ns;	   /* a signal of the program's is on its way */
	uint64_t traced_ns;	   /* since when system calls are caught */
	uint64_t nr_syscall_stops; /* since then */
	unsigned idle_stops;	   /* syscall-stops with no guard armed */
	bool looks;		   /* see guard_peer_looks() */
	uint64_t look_again_ns;
	uint64_t side_ns;
	uint64_t hit_ns; /* average cost of a hit */
	uint64_t nr_hits;
	uint64_t nr_gaps;
};

/* --- guard.c --- */
/* Queue the removal of tab entry @index; opened by guard_flush(). @hit (may
 * be NULL) says how it ended; it is queued for next_hit. */
void guard_take(struct guard *g, size_t index, const struct access_hit *hit);
/* Open what was taken. @was_reset_ret (may be NULL): see warden abi. */
void guard_flush(struct guard *g, bool *was_reset_ret);
/* The action of SIGSEGV is the helper's again, if the kernel has reset it. */
bool guard_mend_action(struct guard *g);
/* Take all, as gaps. */
void guard_take_all(struct guard *g, struct task *t, long syscall_nr);
/* on -> traced, guards opened as gaps, the program's SIGSEGV action back. */
void guard_off(struct guard *g);
/* traced -> off. */
void guard_untrace(struct guard *g);
void guard_refuse(struct guard *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool guard_next_hit(struct access *a, struct access_hit *hit);

/* --- guard_event.c --- */
bool guard_on_event(struct access *a, struct tevent *ev,
		    struct access_hit *hit);
/* tproc_before_signals(); @arg: struct guard. */
void guard_before_signal(struct task *t, void *arg);

/* --- guard_call.c --- */
/* Never NULL unless out of memory. */
struct guard_call *guard_call_of(struct guard *g, struct task *t);
/* A thread found when tracing begins: is it in a call? */
void guard_call_look(struct guard *g, struct task *t);
void guard_calls_prune(struct guard *g);
void guard_calls_free(struct guard *g);
/* @t stands in a system call, which is number @nr, or at its end (-1). */
void guard_call_mask(struct guard_call *c, struct task *t, long nr);
/* A handler of @t's is about to run. */
void guard_call_handler(struct guard *g, struct task *t);
/*
 * @t stands at a fault. Did it block SIGSEGV? @was_reset: the kernel has reset
 * the action because somebody did; who that was is known if all others are
 * known not to.
 */
bool guard_call_blocks(struct guard *g, struct task *t, bool was_reset);
/* May some call in flight touch [start, end)? */
bool guard_call_conflict(const struct guard *g, taddr_t start, taddr_t end);
size_t guard_read(void *ctx, taddr_t addr, void *buf, size_t len);

/* --- guard_place.c --- */
/* Look at program and threads when tracing begins, all stopped. */
int guard_place_look(struct guard *g, struct smco_err *err);
/* Why [start, end) must not be guarded, NULL if it may; *prot_ret as it is. */
const char *guard_place_check(const struct guard *g, const struct tmaps *maps,
			      taddr_t start, taddr_t end, uint32_t *prot_ret);
/* Around a stack pointer: a signal's frame, and what it belongs to. */
struct addr_range guard_stack_around(taddr_t addr);
void guard_stack_add(struct guard *g, taddr_t addr);

/* --- guard_other.c --- */
void guard_others_add(struct guard *g);
void guard_others_remove(struct guard *g); /* also if it was not added */
/* @g's process is about to make call @nr: guards of others that it would see
 * go. */
void guard_others_look(struct guard *g, long nr, const uint64_t args[6]);

/* Who may look into others' memory is watched, too: @g is not guarded any more
 * if that is another, and all others are not if it is @g. */
void guard_others_beware(struct guard *g);

/* --- guard_peers.c --- */
/* Does its code import process_vm_readv or process_vm_writev? What it has
 * loaded since counts after a second. Reads files, the first time. */
bool guard_peer_looks(struct guard *g);

/* --- guard_older.c --- */
/* Look for them when the mechanism is opened, before it maps its own. */
int guard_older_look(struct guard *g, struct smco_err *err);
/*
 * All tasks stopped: helpers that are still there are told to go, mappings
 * that nobody needs are taken out. SMCO_BUSY: some are left, and nothing may
 * be guarded yet.
 */
int guard_older_relieve(struct guard *g);
/* The same where nothing is going to be guarded: waits for them to go, for as
 * long as tproc_vacate() does. False: some are left, as harmless as before. */
bool guard_older_remove(struct tproc *p, const struct tmaps *maps);

#endif
