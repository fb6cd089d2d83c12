/*
 * loan.h - a stopped task borrowed to run something for us: its registers and
 * signal mask are put away, and put back so that the stop it was in continues
 * as if nothing had been. In between the borrower owns the task's stops.
 */
#ifndef SMCO_TRACEE_LOAN_H
#define SMCO_TRACEE_LOAN_H

#include "supervisor/tracee/internal.h"

struct loan {
	struct task *t;
	int status;	     /* of the stop it was in */
	enum stop_kind kind; /* of that stop */
	bool in_entry;	     /* STOP_SYSCALL: enter-stop */
	bool signal_path;    /* now in a stop on the way to signal delivery */
	bool stop_again;     /* a SIGSTOP came in between: send it again */
	uint64_t sigstop_ns; /* the first of these, 0 = none */
	bool has_regs;
	struct user_regs_struct regs;
	uint64_t mask;
	taddr_t from; /* where it was sent last */
	siginfo_t si; /* STOP_SIGNAL */
	bool stray;   /* the program's own came in between: in .stray_si */
	siginfo_t stray_si;
};

/* The best stopped task to borrow, NULL if none. */
struct task *loan_choose(struct tproc *p);
bool loan_possible(struct task *t);
/* Errors here and below: SMCO_GONE; SMCO_BUSY, the task does not come back (see
 * task_next_stop()). After any but success, too, loan_end() is to be called. */
int loan_take(struct loan *l, struct task *t);
/* Block all signals (but SIGKILL and SIGSTOP). */
int loan_block(struct loan *l);
int loan_set_regs(struct loan *l, const struct user_regs_struct *regs);
/* PTRACE_SYSCALL until a syscall-stop. */
int loan_to_syscall_stop(struct loan *l);
/*
 * PTRACE_CONT, with nothing but @sig unblocked, until the code has raised @sig
 * for itself by tgkill with the pc at @pc (0 = anywhere but at its beginning).
 * What was pending is the program's, and put back in the end. SMCO_FAULT: the
 * code crashed.
 */
int loan_run_to_signal(struct loan *l, int sig, taddr_t pc);
/* A harmless signal for that, none of which the program has pending. */
int loan_carrier(struct loan *l);
/* The task gets its registers back, but is still ours. */
int loan_leave_code(struct loan *l);
int loan_give_back(struct loan *l);
/* The end of a loan in which @r came out: the task is given back, or gets what
 * is its own as soon as it stops. Returns @r, or why that is not so. */
int loan_end(struct loan *l, int r);

#endif
