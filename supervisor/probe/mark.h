/*
 * mark.h - sensors at marks: places of a program where a plan (mark-plan.h) has
 * found room for a jump. Each passing is counted exactly, in memory shared with
 * the program; while it is wanted, a record says when and by which thread. No
 * stop, no call; a passing costs some nanoseconds.
 *
 * The stub counts, does what the instructions did that gave way to the jump,
 * and goes back behind them. It uses no register that it does not put back,
 * leaves flags and red zone alone, and works without a supervisor. What is on
 * the program's stack is what would be there without it.
 *
 * A forked copy goes on counting into its parent's memory.
 */
#ifndef SMCO_MARK_H
#define SMCO_MARK_H

#include "supervisor/probe/mark-plan.h"
#include "supervisor/tracee/tracee.h"

#define MARK_MAX_CHANNELS 64
#define MARK_MAX_COUNTERS 128
#define MARK_RING	  8192 /* records */
#define MARK_OWNERS	  256
#define MARK_PLACES	  (MARK_OWNERS + 1) /* that are counted in */

#define MARK_RECORD_NS 50 /* what a record costs in addition, about */
#define MARK_SKIP_NS   5  /* a passing that a run leaves out */
#define MARK_MAX_SKIP  (1u << 30)

struct marks;

/*
 * Sensors in all windows of @plan, in a process all of whose tasks are stopped;
 * the module's addresses are the plan's plus @bias, [lo, hi) is its code.
 * Registered for undo. Where a jump of ours is already (an allocation sensor,
 * planted before), the mark comes first and leads there. Windows whose code is
 * not the file's otherwise (somebody has changed it), or that a thread stands
 * in, are left out: *nr_ret (optional) is
 * how many spots have one, and @err (optional) says why of the first, though it
 * is a success. SMCO_NOTFOUND: none has. The plan may go.
 */
int marks_plant(struct marks **ret, struct tproc *p,
		const struct mark_plan *plan, uint64_t bias, taddr_t lo,
		taddr_t hi, size_t *nr_ret, struct smco_err *err);
/* At how many windows others of ours come next. */
size_t marks_nr_beside(const struct marks *m);
/* A forked copy of @parent's process, stopped: what is to be undone there. */
int marks_fork(struct marks **ret, struct marks *parent, struct tproc *child,
	       struct smco_err *err);
/* Sensors out, the memory given back unless a thread stays in it, while all
 * tasks are stopped; what was counted stays readable. */
void marks_remove(struct marks *m);
/* Is a jump of ours where the first was put? Not if its module was unmapped, or
 * was mapped there anew. The process may run. */
bool marks_are_there(const struct marks *m);
/* As marks_remove, of a module that is not mapped any more: what is there now
 * is left alone. */
void marks_forget(struct marks *m);
/* After marks_remove, or the process is gone or has exec'ed. Counts and records
 * stay readable for as long as a copy of it has them. NULL is fine. */
void marks_destroy(struct marks *m);

struct mark_shm; /* what a process and its copies share */
struct mark_shm *marks_shm(struct marks *m);
void mark_shm_ref(struct mark_shm *shm);
void mark_shm_unref(struct mark_shm *shm);
/* Where its threads read the number in their records, see own-tid.h. */
uint32_t mark_shm_tid_offset(const struct mark_shm *shm);
/* Passings so far. */
uint64_t mark_shm_count(const struct mark_shm *shm, uint32_t counter);
/* Of the first @nr_counters together: by threads that count for themselves, and
 * by all others, see mark-cost.h. */
struct mark_passings {
	uint64_t by_owners, by_others;
};
struct mark_passings mark_shm_passings(const struct mark_shm *shm,
				       uint32_t nr_counters);
/*
 * Who is known to be the only one that reads @number as its own (own-tid.h)
 * counts for itself from now on, a thread of process @pid, which costs a
 * quarter; if there is room. If somebody does already, nobody can be told from
 * others any more, as mark_shm_share.
 */
void mark_shm_own(struct mark_shm *shm, uint32_t number, uint32_t pid);
/* One who reads @number, too, stands and is about to run: who owns it counts as
 * others do from now on. Or those have gone. */
void mark_shm_pause(struct mark_shm *shm, uint32_t number);
void mark_shm_resume(struct mark_shm *shm, uint32_t number);
/* Thread @number of process @pid has gone; 0: all of that process's. */
void mark_shm_disown(struct mark_shm *shm, uint32_t number, uint32_t pid);
/* Nobody counts for itself any more. */
void mark_shm_share(struct mark_shm *shm);
bool mark_shm_owns(const struct mark_shm *shm, uint32_t number);
/*
 * Places that were counted in so far: the first by all who do not count for
 * themselves, each other one by one thread at a time.
 */
size_t mark_shm_nr_places(const struct mark_shm *shm);
struct mark_pair {
	uint64_t begun, ended; /* read in turn: fewer are open, or as many */
	uint32_t number;       /* of the thread that counts there, 0: none */
};
struct mark_pair mark_shm_pair(const struct mark_shm *shm, size_t place,
			       uint32_t channel);
/* Where @number counts. */
size_t mark_shm_place(const struct mark_shm *shm, uint32_t number);
/*
 * Which passings of @channel are recorded. A run is a number of them one after
 * the other; it stands in each record, in 16 bits. It has ended when one was
 * not recorded for want of a token.
 */
enum mark_run {
	MARK_RUN_NONE, /* yet */
	MARK_RUN_ENDED,
	MARK_RUN_AWAITED, /* passings that it leaves out are to come first */
	MARK_RUN_ON,
};
enum mark_run mark_shm_run(const struct mark_shm *shm, uint32_t channel);
/* A new run: the next @skip passings are left out, then @tokens are recorded.
 * One that is left out costs MARK_SKIP_NS more than one while there is no run.
 * At most MARK_RING tokens, MARK_MAX_SKIP to be skipped. */
void mark_shm_begin(struct mark_shm *shm, uint32_t channel, uint32_t skip,
		    uint32_t tokens);
/* A run that is on goes on for the next @tokens passings, at least. */
void mark_shm_extend(struct mark_shm *shm, uint32_t channel, uint32_t tokens);
/* Room for records that nobody has tokens for. */
uint32_t mark_shm_room(const struct mark_shm *shm);

struct mark_record {
	/* CLOCK_MONOTONIC: when the thread came, and when it was recorded,
	 * which took that long where it was; at most some 20 us of it are
	 * known. */
	uint64_t time_ns, left_ns;
	uint32_t tid; /* 0 = not known; may be the creator's: own-tid.h */
	uint32_t what;
	uint32_t run;  /* of its channel */
	int32_t level; /* begun without what ended, where the thread counts */
	taddr_t sp;    /* the thread's stack pointer there */
};
/* The next record, in order for each thread: false if there is none now. */
bool mark_shm_next(struct mark_shm *shm, struct mark_record *ret);

#endif
