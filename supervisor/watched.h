/*
 * watched.h - one process under watch: its symbols, sensors, access mechanism
 * and blocks, kept together because they live and die with its memory image.
 */
#ifndef SMCO_WATCHED_H
#define SMCO_WATCHED_H

#include "supervisor/linkmap.h"
#include "supervisor/mapped.h"
#include "supervisor/monitor/nap.h"
#include "supervisor/monitor/phases.h"
#include "supervisor/monitor/range-monitor.h"
#include "supervisor/monitor/samples.h"
#include "supervisor/options.h"
#include "supervisor/probe/access.h"
#include "supervisor/probe/hook.h"
#include "supervisor/stacks.h"
#include "supervisor/tracee/tracee.h"
#include "symbols/symbols.h"

#define WATCHED_NAME 256
struct watched {
	struct tproc *proc;
	pid_t pid;
	unsigned nr_stale; /* stacks that made us read the mappings again */
	struct sym_space *space; /* handed to the session at the end: stacks
				  * point into it */
	struct hooks *hooks;	 /* NULL until planted */
	struct hooks *asleep;	 /* a copy's that waits: see hooks_copy() */
	struct access *primary;
	struct access *guard; /* NULL = none */
	bool guard_tried;
	struct smco_err no_guard; /* by its own doing; code 0: not so */
	struct nap_proc *nap;
	struct range_proc *range;	 /* the session's; NULL = none */
	struct phase_proc *phases;	 /* the session's; NULL = none */
	struct linkmap linkmap;		 /* what is loaded, for them */
	bool libs_changed;		 /* and they do not know yet */
	taddr_t linker_way, linker_home; /* see tproc_linker_way(); 0 = none */
	uint64_t libs_seen_ns;		 /* when they last knew all */
	uint64_t maps_read_ns; /* when the module list was last brought up */
	struct mapped mapped;  /* since then, as far as somebody told */
	bool is_gone; /* its memory is: no more is to be had of its mappings */
	/* the meter's, at its last reading */
	uint64_t agent_ns, side_ns, guard_side_ns, cpu_ns;
	char why_mechanism[256]; /* which one, and why none better */
	bool adopted;		 /* existing blocks were taken in */
	uint64_t late_ns;  /* when it came, while it waits for its start; 0 */
	unsigned nr_tries; /* of that start, in vain */
	bool is_attached;  /* to it, not begun by what is watched */
	bool is_patient;   /* stacks wait for tables, but not for long */
	bool stack_late;   /* the last one asked for came before its table */
	/* the session's */
	uint64_t nr_unwanted;  /* stops, at the last look; see session-away.c */
	unsigned nr_dear;      /* looks in a row at which they were too dear */
	unsigned memory_group; /* memory-room.h's number for it */
	uint64_t room_due_ns;  /* to look there again; 0 = not yet known */
	char name[WATCHED_NAME]; /* its command line, as was said last */
	uint64_t came_ns, name_due_ns;
};

/* Before any program is under control: load and calibrate what the mechanism
 * asked for may need. Failures are not errors here; watched_open_access says
 * what is missing. */
void watched_prepare(enum options_mechanism mechanism);
void watched_unprepare(void);
/* Who makes ready what stacks need; may be NULL. */
struct tables;
void watched_set_tables(struct tables *tables);

/*
 * Before @pid is attached to: read what stopping it would have to wait for. The
 * caller keeps the result until it is attached to, what was read lives as long;
 * NULL where there is nothing to be had.
 */
struct sym_space *watched_expect(pid_t pid);

/* @is_young: made by fork, and has not run yet, or its .cpu_ns is set by the
 * caller; nothing is read of it then. */
struct watched *watched_create(struct tproc *p, bool is_young,
			       struct smco_err *err);
/* @gone: the process's memory must not be touched. The space stays. */
void watched_destroy(struct watched *w, bool gone);

/* May guards stand that cost while nothing happens? If not, they go. */
void watched_let_stand(struct watched *w, bool may_stand);
/* Read the maps, bring the module list up to date. SMCO_GONE: there are none
 * any more. */
int watched_update_modules(struct watched *w, struct smco_err *err);

/* Open the access mechanism asked for (or the best), make its monitor part.
 * All tasks stopped. */
int watched_open_access(struct watched *w, enum options_mechanism mechanism,
			struct nap *nap, struct smco_err *err);

/* A guard on stale blocks, where it can be had: tells who ends a nap by
 * writing. Opened once it is of use; tried again by the next call where they do
 * not stop at once, which this does not wait for. Tasks run. */
void watched_open_guard(struct watched *w);

/* Plant sensors if the allocation functions are there: 0, SMCO_NOTFOUND. All
 * tasks stopped. */
int watched_plant(struct watched *w, uint64_t cutoff, struct smco_err *err);
/* Take in blocks that exist already (attach); of a copy that was woken, if
 * @only_own, those that it has made itself. All tasks stopped. */
int watched_adopt(struct watched *w, uint64_t min_bytes, bool only_own,
		  struct stacks *stacks, struct smco_err *err);

/* A sensor asks for a stack's name. False if it was not ours, or a sensor's
 * ring was full, which watched_drain() reads. */
bool watched_on_trap(struct watched *w, struct task *t, const siginfo_t *si,
		     struct stacks *stacks);
/* The stack of a stopped task, by id. */
uint32_t watched_stack(struct watched *w, struct task *t,
		       struct stacks *stacks);
/*
 * The stack of a thread as it was when a sample was taken: kernel frames,
 * registers, what of the stack was copied. Tasks may run.
 */
struct watched_sample {
	const taddr_t *kernel;
	size_t nr_kernel;
	const struct user_regs_struct *regs; /* NULL = not known */
	struct sym_stack stack;
	bool may_wait; /* nothing is kept of one that is late */
};
uint32_t watched_sample_stack(struct watched *w,
			      const struct watched_sample *sample,
			      struct stacks *stacks,
			      enum samples_stack *how_ret);
/* Code was mapped: PERF_RECORD_MMAP2. */
void watched_mapped(struct watched *w, const struct ring_record *r);
/* Move what the sensors recorded to the monitor. Returns how much. */
size_t watched_drain(struct watched *w, struct stacks *stacks);

#endif
