/*
 * mend.h - waits that a stop of ours has interrupted end when they would have
 * without it, and as they would have. Shared by the files of this room.
 */
#ifndef SMCO_TRACEE_MEND_H
#define SMCO_TRACEE_MEND_H

#include "supervisor/tracee/internal.h"

/* --- mend-look.c --- */
/* PTRACE_INTERRUPT comes next: since when does @t wait, and what does the
 * kernel not tell any more when it has been interrupted? */
void mend_before_interrupt(struct task *t);
bool mend_wants_look(const struct task *t);
/* The same of a call that begins, to be interrupted at once. @t is in its
 * syscall-enter-stop, with @regs. */
void mend_note_entry(struct task *t, const struct user_regs_struct *regs);
/* --- mend-slept.c --- */
/* Does @t sleep? *ret: since when. */
bool slept_look(const struct task *t, struct slept *ret);
/*
 * How long had @t, which stands, waited when it was interrupted? ns, 0 when
 * that is not known: then the wait may end late, never early. Goes to another
 * CPU for it where the thread did.
 */
uint64_t mend_waited_ns(const struct task *t);

/* --- mend.c --- */
/* Is @nr, in @p, a wait that may have an end, which a stop would move? */
bool mend_has_timeout(struct tproc *p, long nr);
/* Stopped on the way to signal delivery: the wait must go on, or end as a
 * handler makes it end. */
void mend_at_stop(struct task *t);
bool mend_wants_syscall_stops(const struct task *t);
/* True if @t must run on at once, to a stop where the call can be restarted.
 * @interrupted: a PTRACE_INTERRUPT was on its way. */
bool mend_at_syscall_stop(struct task *t, bool interrupted);
void mend_at_detach(struct task *t);
void mend_forget(struct task *t);

/* --- mend-late.c --- */
/* Is this a wait that may come too late when it is made again? It has been
 * interrupted if the kernel makes it again, or it says EINTR where no kernel
 * does. */
bool late_may_be(const struct user_regs_struct *regs);
/* @t has been interrupted in @regs, and no handler is going to run. *@regs are
 * what it has then. */
void late_at_stop(struct task *t, struct user_regs_struct *regs);
/* The code in which @t makes it again is about to go: back to its own call,
 * which is waited for as long as before. */
void late_go_home(struct task *t);
/* @t is about to be let go: what has changed so far it does not miss. */
void late_at_detach(struct task *t);

/* --- mend-expiry.c --- */
/* @t, whose end is noted, begins its wait anew with all of its time: it is to
 * be stopped at that end. */
void expiry_note(struct task *t);
/* Stops those that have come to their ends; until when nothing more is to be
 * done, @deadline_ns at most. CLOCK_MONOTONIC. */
uint64_t expiry_look(struct tracer *tr, uint64_t deadline_ns);

/* --- mend-uring.c --- */
/* A call of io_uring_enter that submits nothing. */
bool uring_waits(const struct user_regs_struct *regs);
/* It has just returned as if it had all that it was to wait for. @interrupted:
 * we know that something came in between. */
bool uring_is_cut(const struct task *t, const struct user_regs_struct *regs,
		  bool interrupted);
/* Are there fewer results than one with @args waits for, as far as can be
 * known? */
bool uring_lacks(const struct task *t, const uint64_t args[6]);
/* Is there at least one? */
bool uring_has_any(const struct task *t, const struct user_regs_struct *regs);

#endif
