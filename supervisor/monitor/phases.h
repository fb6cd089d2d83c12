/*
 * phases.h - the monitor that tells when a program is in which phase: calls of
 * a function, named pairs of marks, or points that follow each other, in the
 * program and its libraries. How often each was entered is counted exactly; as
 * many of them as the budget has room for are timed, one after the other, so
 * that what is said of their length is true.
 */
#ifndef SMCO_PHASES_H
#define SMCO_PHASES_H

#include "reports/record.h"
#include "supervisor/control/control.h"
#include "supervisor/probe/mark.h"
#include "symbols/symbols.h"

#define PHASES_MONITOR 4 /* its number in the ledger */
#define PHASES_MAX     MARK_MAX_CHANNELS

struct phases;
struct phase_proc; /* of one process */

struct phases_params {
	const char *const *name; /* sdt:PROVIDER:NAME, or functions; must
				  * stay */
	size_t nr;
	uint64_t start_ns;  /* CLOCK_MONOTONIC of session time 0 */
	uint64_t span_ns;   /* of those that come often one record, that often
			     */
	int64_t m_t_ppb;    /* of the program's time; INT64_MAX: no bound */
	int64_t m_most_ppb; /* the same of what is never exceeded */
	uint32_t (*pid_of)(void *ctx, uint32_t tid); /* 0 = not known */
	/* Of a thread that calls itself @own, in a PID namespace of its own,
	 * which is process @pid's or a copy's. 0 = not known. */
	uint32_t (*tid_of)(void *ctx, uint32_t pid, uint32_t own);
	void (*emit)(void *ctx, const struct record *r);
	void (*put_meta)(void *ctx, const char *key, const char *value);
	void *ctx;
};

/* SMCO_NOMEM. */
int phases_create(const struct phases_params *p, struct ledger *ledger,
		  struct phases **ret, struct smco_err *err);
void phases_destroy(struct phases *ph);
/* What they are called; once the trace is open. */
void phases_put_meta(struct phases *ph);

/* The program has one more thread, which stands at its first instruction. Until
 * there is one, and one process, it is known who passed a mark without a record
 * of it. */
void phases_new_thread(struct phases *ph, struct phase_proc *pp,
		       struct task *t);
/* @t has ended, or left @pp's memory for a program of its own. */
void phases_thread_gone(struct phases *ph, struct phase_proc *pp,
			struct task *t);

/* Is @name of the form that can be asked for? */
bool phases_is_name(const char *name);
/*
 * The file at @path belongs to the program. phases_check, after all of them:
 * SMCO_NOTFOUND, with the names nearest to it, if a phase is in none.
 */
int phases_expect(struct phases *ph, const char *path, struct smco_err *err);
int phases_check(struct phases *ph, struct smco_err *err);
/* Instead: what is in none may come with a library that is loaded later. */
void phases_wait(struct phases *ph);

/*
 * Sensors in all modules of @space, which is up to date, that have none yet.
 * All tasks stopped. What cannot be is not an error: it is said in the end.
 * *pp is NULL at first.
 */
void phases_plant(struct phases *ph, struct phase_proc **pp, struct tproc *p,
		  struct sym_space *space);
/*
 * The list of modules, of which @space has all, may be another: what is gone is
 * forgotten. The process may run, but is stopped where @may_touch. True if
 * phases_plant has something to do, or this with @may_touch. What is planted
 * from now on came later, but not before @since_ns, CLOCK_MONOTONIC.
 */
bool phases_reload(struct phases *ph, struct phase_proc *pp,
		   struct sym_space *space, bool may_touch, uint64_t since_ns);
/* Is a module gone that had sensors? Costs a read of memory for each. */
bool phases_has_lost(const struct phase_proc *pp);
/* A forked copy, stopped. */
struct phase_proc *phases_fork(struct phases *ph, struct phase_proc *parent,
			       struct tproc *child);
/* The process is gone; or it is left alone, and its tasks are stopped. NULL is
 * fine. */
void phases_drop(struct phases *ph, struct phase_proc *pp, bool gone);

/*
 * Where @pp was from the look before the last until now: never in the phase,
 * all of the time in it, in any of its threads, or it was entered or left, or
 * that is not known. A function that is left by an exception is so when it is
 * entered the next time. phases_look: what is asked about ends with this.
 */
enum phase_presence {
	PHASE_NOT_IN,
	PHASE_IN_PARTLY,
	PHASE_IN,
};
void phases_look(struct phases *ph, struct phase_proc *pp);
enum phase_presence phases_presence(struct phases *ph, struct phase_proc *pp,
				    size_t phase);

uint64_t phases_due_ns(const struct phases *ph);
void phases_tick(struct phases *ph, uint64_t now_ns);
/*
 * Counting has no tokens. Where it would cost more than the bound allows
 * (phase-cost.c), the sensors of that module go for good: true if @pp, which
 * may be NULL, has such a module. phases_trim takes them out; all tasks
 * stopped.
 */
bool phases_wants_trim(const struct phase_proc *pp);
void phases_trim(struct phases *ph, struct phase_proc *pp);
/* Totals so far. */
void phases_emit(struct phases *ph, uint64_t now_ns);
void phases_finish(struct phases *ph, uint64_t now_ns);

#endif
