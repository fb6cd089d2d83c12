/*
 * mark.h - sensors at marks: places of a program whose instruction is a nop of
 * at least five bytes. Each passing is counted exactly, in memory shared with
 * the program; while it is wanted, a record says when and by which thread. No
 * stop, no call; a passing costs some nanoseconds.
 *
 * The nop is a single instruction, so nobody stands in its middle, and nothing
 * is moved: the stub counts and goes back behind it. It uses no register that
 * it does not put back, leaves flags and red zone alone, and works without a
 * supervisor.
 *
 * A forked copy goes on counting into its parent's memory.
 */
#ifndef SMCO_MARK_H
#define SMCO_MARK_H

#include "supervisor/tracee/tracee.h"

#define MARK_MAX	  256 /* places of a process */
#define MARK_MAX_CHANNELS 64
#define MARK_MAX_COUNTERS 128
#define MARK_RING	  8192 /* records */

/* What passings cost, about: counted; and recorded in addition. */
#define MARK_COUNT_NS  12
#define MARK_RECORD_NS 50

struct mark_place {
	taddr_t addr;
	taddr_t semaphore; /* 16 bits, to be counted up; 0 = none */
	uint32_t channel;  /* below MARK_MAX_CHANNELS: wanted together */
	uint32_t counter;  /* below MARK_MAX_COUNTERS: counted together */
	uint32_t what;	   /* the caller's; stands in records */
};

struct marks;

/*
 * Sensors at @places, in a process all of whose tasks are stopped; [lo, hi) is
 * the module that they lie in. Registered for undo. Places whose code cannot
 * carry one are left out, *nr_ret (optional) is how many can. SMCO_NOTFOUND:
 * none can.
 */
int marks_plant(struct marks **ret, struct tproc *p,
		const struct mark_place *places, size_t nr, taddr_t lo,
		taddr_t hi, size_t *nr_ret, struct smco_err *err);
/* A forked copy of @parent's process, stopped: what is to be undone there. */
int marks_fork(struct marks **ret, struct marks *parent, struct tproc *child,
	       struct smco_err *err);
/* Sensors out, the memory given back unless a thread stays in it, while all
 * tasks are stopped; what was counted stays readable. */
void marks_remove(struct marks *m);
/* After marks_remove, or the process is gone or has exec'ed. Counts and records
 * stay readable for as long as a copy of it has them. NULL is fine. */
void marks_destroy(struct marks *m);

struct mark_shm; /* what a process and its copies share */
struct mark_shm *marks_shm(struct marks *m);
void mark_shm_ref(struct mark_shm *shm);
void mark_shm_unref(struct mark_shm *shm);
/* Passings so far. */
uint64_t mark_shm_count(const struct mark_shm *shm, uint32_t counter);
/*
 * Let the next @tokens passings of @channel be recorded, at least. While none
 * goes missing the run, which stands in each record, stays the same; where
 * tokens had run out meanwhile a new run begins.
 */
void mark_shm_want(struct mark_shm *shm, uint32_t channel, uint32_t tokens);
/* Room for records that nobody has tokens for. */
uint32_t mark_shm_room(const struct mark_shm *shm);

struct mark_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tid;	  /* 0 = not known */
	uint32_t what;
	uint32_t run; /* of its channel */
};
/* The next record, in order for each thread: false if there is none now. */
bool mark_shm_next(struct mark_shm *shm, struct mark_record *ret);

#endif
