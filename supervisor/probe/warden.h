/*
 * warden.h - the supervisor's side of the resident helper of the page guards
 * (warden/abi.h says what it is and why). Creating it maps two areas into the
 * program; a spawn needs one thread of it for some ten microseconds. After
 * that commands cost the program nothing but the page table work.
 *
 * All calls from the thread that owns the tracer: it is the one whose death
 * the helper waits for.
 */
#ifndef SMCO_WARDEN_H
#define SMCO_WARDEN_H

#include "reports/base.h"
#include "supervisor/probe/warden/abi.h"
#include "supervisor/tracee/tracee.h"

struct warden;

#define WARDEN_NAME "smco-guard" /* of its mappings and of its process */

/*
 * What takes long and needs no process: 20 ms of CPU time, the first time; 128
 * MiB of addresses, of which no memory stays, are never given back.
 * warden_create() does it if nobody has, which makes a program stand longer.
 */
void warden_prepare(void);
/* Maps image and table into @p. One task stopped. All or nothing. */
int warden_create(struct tproc *p, struct warden **ret, struct smco_err *err);
/* Unmaps them (needs a stopped task unless @gone) and frees. Quits first. */
void warden_destroy(struct warden *w, bool gone);

/*
 * Start the helper in the program, if it is not running; @t is stopped.
 * SMCO_UNSUPPORTED when the program would notice it. SMCO_BUSY when @t cannot
 * be borrowed now, or has not run our code: another thread may do, or a later
 * time.
 */
int warden_spawn(struct warden *w, struct task *t, struct smco_err *err);
/* What that says when @t has come back, by what its code has put down; 0: a
 * helper was made. */
int warden_spawn_result(const struct warden_shared *s, struct smco_err *err);
/* OFF, and nobody but the program uses its memory any more; waits for that. */
void warden_quit(struct warden *w);
bool warden_is_running(const struct warden *w);
/* Alternate signal stacks were in use at the last spawn. */
bool warden_saw_altstacks(const struct warden *w);
/* The alternate signal stack of @t (stopped); *size_ret 0 if none. */
int warden_altstack_of(struct warden *w, struct task *t, taddr_t *start_ret,
		       uint64_t *size_ret);

/*
 * Run one command and wait for its end. Slots must be filled in
 * warden_table(). SMCO_GONE when nobody answers: the helper was killed; the
 * caller must then undo by warden_undo_by_hand(). *cost_ns_ret (may be NULL):
 * how long it took.
 */
int warden_do(struct warden *w, enum warden_op op, const uint32_t *slots,
	      size_t nr, uint64_t *cost_ns_ret);
struct warden_shared *warden_table(struct warden *w);
/* What OFF does, by a stopped task of the program. */
int warden_undo_by_hand(struct warden *w, struct smco_err *err);

#endif
