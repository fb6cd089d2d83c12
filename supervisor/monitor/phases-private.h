/* phases-private.h - what the parts of the phases' monitor share. */
#ifndef SMCO_PHASES_PRIVATE_H
#define SMCO_PHASES_PRIVATE_H

#include "supervisor/monitor/phase-levels.h"
#include "supervisor/monitor/phase-name.h"
#include "supervisor/monitor/phases.h"

#define PHASES_HASH_SIZE 1024

#define PHASE_CUTS 16

struct phase {
	struct phase_name name;
	bool has_points, has_pairs; /* of marks, in files so far */
	bool is_found;		    /* in a file that is the program's */
	uint64_t count; /* begins and points, of memory that is gone */
	uint64_t ended; /* passings, too, of such memory */
	uint64_t nr_seen, seen_ns, longest_ns;
	uint64_t nr_recorded; /* beginnings and ends */
	/* Of slices that are over: what each stands for, passings, and how long
	 * somebody was inside behind these, but for what goes on behind a cut,
	 * see phase-still.c. */
	double weight, weighted_ns;
	struct phase_inside still;
	bool is_far; /* no second looks */
	struct phase_cut {
		unsigned nr; /* so far */
		uint64_t ns[PHASE_CUTS], for_ns[PHASE_CUTS];
		uint64_t sum_ns; /* all for_ns */
	} far, near;		 /* from look to look; until the second one */
	uint64_t near_ns; /* looks that have a second one were for so long */
	uint64_t began;	  /* before the last look at records */
	uint64_t told;	  /* of those, records tell */
	uint64_t open;	  /* threads' that are in it, as far as is known */
	/* Records of one each, in this interval; how long those were. */
	size_t nr_alone;
	double alone_ns;
	double told_ns; /* that somebody was inside, in intervals that are over
			 */
	/* In this interval some were passed without a record. Otherwise records
	 * of those that were counted are still to come. */
	bool is_missed;
};

#define PHASE_STACKS  64
#define PHASE_NUMBERS 64

/* Which passings are recorded: phase-slices.c. */
struct phase_slice {
	uint64_t passed; /* beginnings and ends at the last look */
	uint64_t most;	 /* between two looks, of late */
	uint64_t next;	 /* the first one of the slice to come */
	/* The last slice; the first that was not in it. */
	uint64_t begin, end;
	uint32_t len; /* of that to come, 0: not planned yet */
	bool is_all;  /* the last one goes on while there is room */
	/* Records of the last one so far. Gaps between those of a thread, those
	 * behind a beginning and those behind an end, each with the weight of
	 * all that are as long; and how long it was inside in them. It stands
	 * for all passings from @stood_for on. */
	uint64_t nr_records;
	double nr_gaps[2];
	struct phase_inside in;
	double times[2]; /* what each gap of the slice before stood for */
	uint64_t stood_for;
	struct thread_phase *touched; /* has more of it, at levels */
};

/* What is passed in one place, see phase-still.c. */
struct phase_still {
	uint64_t begun, ended; /* at the last look */
	uint32_t number;
	bool is_again; /* not passed by the second look either */
	struct phase_levels levels;
};

/* Memory that processes share with us. */
struct shared {
	struct shared *next;
	struct mark_shm *shm;
	uint32_t pid; /* of the first that had it */
	unsigned nr_owners;
	/* Threads call themselves otherwise than we do (PID namespaces); those
	 * that were asked about last. */
	bool has_own_numbers;
	struct own_number {
		uint32_t own, tid;
	} number[PHASE_NUMBERS];
	struct mark_passings counted; /* that the ledger was told of */
	uint64_t last_ns; /* what counting has cost since the last tick */
	int64_t debt_ns;  /* what it has cost beyond the budget */
	bool is_dear;	  /* so much that it ends */
	bool is_shared;	  /* there are or were several threads */
	bool is_mixed;	  /* who counts for itself did not always */
	struct phase_slice slice[PHASES_MAX];
	uint64_t look_ns;  /* the last one */
	uint64_t again_ns; /* so much later was a second one, 0: none */
	/* Of each place one for each phase, owned. */
	struct phase_still *still[MARK_PLACES];
	/* Of threads that do not read their own number, but @there; if it is
	 * not known, records of that number may be theirs wherever they are. */
	struct thread_stack {
		uint32_t there, tid;
		taddr_t start, end;
		bool is_known;
	} stack[PHASE_STACKS];
	size_t nr_stacks;
	bool has_too_many;
};

struct phase_proc {
	struct tproc *p;
	uint32_t pid;
	struct code_file *known; /* that were looked at */
	size_t nr_known, cap_known;
	struct marks **marks;
	struct shared **shared;
	struct place *place; /* of marks */
	size_t nr, cap;
	/* Modules are those of the program's start; or came after. */
	bool is_late;
	uint64_t since_ns; /* the last time that they were not there */
	/* How often marks of each phase were passed, at the last look and at
	 * that before; NULL: none yet. */
	struct phase_seen {
		uint64_t before, at_look;
	} * seen;
};

/*
 * A file that is mapped as code. Not the number that its space has for it: a
 * forked copy has a space of its own, with other numbers for the same files.
 */
struct code_file {
	taddr_t bias;
	uint64_t inode; /* 0: none, it was forgotten */
};

/* The code that has marks. */
struct place {
	struct code_file file;
	taddr_t start;
};

/* What a file has of the phases. */
struct phase_file {
	struct phase_file *next;
	uint64_t inode, entry, sections; /* enough to know it by */
	struct mark_plan plan;
};

struct call {
	taddr_t sp;
	/* When its sensor began and when that was done; how long calls within
	 * took, with their sensors. */
	uint64_t began_ns, since_ns, inner_ns;
	uint32_t depth, nr_deeper;
	uint64_t record; /* of its slice, which began it */
};

struct thread_phase {		   /* a phase that a thread is or was in */
	struct thread_phase *next; /* of the same hash */
	uint32_t tid, pid, phase, run;
	uint32_t nr_calls; /* in it now; one of marks is in it or not */
	uint32_t cap_calls;
	struct call *call; /* outermost first */
	/* Its last record; when that was written. */
	struct phase_slice *slice;
	uint64_t last_ns, last_record;
	uint32_t number; /* that it reads as its own */
	bool owns;	 /* counts for itself */
	bool knows_level;
	bool is_behind_end;
	int32_t level;
	/* Not known yet whether it was inside; part of the slice's. */
	struct phase_levels levels;
	struct thread_phase *next_touched;
	bool is_touched;
	/* Timed in this interval, with a record of their own or without; with
	 * any it is one of the span's. */
	struct thread_phase *next_in_span;
	bool is_in_span;
	uint64_t nr_alone, nr_in_span, span_ns;
	double inside_ns; /* known since the last interval, about */
};

struct phases {
	struct phases_params p;
	struct ledger *ledger;
	struct phase *phase;
	bool any_function;
	bool may_come; /* what is not found yet */
	/* Modules that were loaded later and have sensors, the first of them.
	 */
	char late[300];
	size_t nr_late;
	size_t nr_beside; /* places that lead to another sensor of ours */
	struct phase_file *file;
	char **expected; /* paths */
	size_t nr_expected, cap_expected;
	struct thread_phase *open[PHASES_HASH_SIZE];
	size_t nr_open;
	struct thread_phase *span;
	/* The program's only thread and its process, so far; or there are more,
	 * or none yet (0). */
	uint32_t sole_tid, sole_pid;
	bool has_more;
	uint64_t nr_tasks; /* that there were, at most; 0: not known */
	uint64_t span_start_ns;
	struct shared *shared;
	uint64_t due_ns;
	uint64_t again_ns; /* the second look, 0: none */
	uint64_t again_from_ns;
	size_t nr_refused; /* modules */
	struct smco_err why_refused;
	uint64_t base_ns;     /* the program's time at the last tick */
	uint64_t tick_ns;     /* when that was */
	uint64_t counting_ns; /* what counting has cost so far */
	size_t nr_trimmed;    /* modules, in copies once */
	uint64_t trimmed_ns;  /* the first of them, since the beginning */
	uint64_t nr_unknown;  /* entries of a thread that cannot be told */
	uint64_t random;      /* 0: not seeded yet */
	uint64_t timing_ns;   /* of the timing's own, in each that is timed */
	bool is_finished;
};

/* phase-files.c: the file @elf, module @module of @space, which may be NULL if
 * no phase is a function. NULL: memory is out. */
const struct phase_file *phase_file_get(struct phases *ph, uint64_t inode,
					Elf *elf, struct sym_space *space,
					uint32_t module);
void phase_files_free(struct phases *ph);

/* phase-cost.c: what counting in @sh has cost since it was asked last. */
uint64_t phase_cost_take(struct phases *ph, struct shared *sh);
/* Where it is too much it ends (is_dear). When to come again, ns, at most
 * @tick_ns. */
uint64_t phase_cost_judge(struct phases *ph, uint64_t now_ns, uint64_t tick_ns);

/* phase-still.c: at each look, after records were, and when @sh goes. */
void phase_still_look(struct phases *ph, struct shared *sh, uint64_t now_ns);
/* When to look again after the look at @now_ns; 0: there is no need. */
uint64_t phase_still_again_ns(struct phases *ph, uint64_t now_ns);
void phase_still_look_again(struct phases *ph, struct shared *sh,
			    uint64_t now_ns);
/* Levels are what they are by now. */
void phase_still_leave(struct phases *ph, struct shared *sh);
/* How long somebody was inside, as far as looks tell. */
double phase_still_ns(const struct phase *phase);
/* How much of a gap of @ns is not seen by looks. */
double phase_still_short_ns(const struct phase *phase, uint64_t ns);
void phase_still_free(struct shared *sh);

/* phase-gaps.c: the next record of @o; first of all. */
void phase_gaps_take(struct phases *ph, struct shared *sh,
		     struct thread_phase *o, const struct mark_record *r);
/* A passing that began with record @first of the slice ends, where levels are
 * not known: it was @ns long. */
void phase_gaps_take_call(struct phases *ph, struct thread_phase *o,
			  uint64_t first, uint64_t ns);
/* The slice is over, and each of its gaps stands for so many. */
void phase_gaps_weigh(struct phase *phase, struct phase_slice *s,
		      const double times[2]);
/* Threads' levels are what they are by now; after records were looked at. */
void phase_gaps_look(struct phases *ph, struct shared *sh);
/* @sh goes. */
void phase_gaps_end(struct phases *ph, struct shared *sh);

/* phase-slices.c: at random in [0, @below). */
uint64_t phase_draw(struct phases *ph, uint64_t below);
/* Which passings in @sh are recorded next. */
void phase_slices_look(struct phases *ph, struct shared *sh);
/* What was timed in @sh's last slices counts; @sh goes. */
void phase_slices_end(struct phases *ph, struct shared *sh);
/*
 * How long threads were in @phase, together: what is between two passings of a
 * slice is like what is between those before it since the last slice; but for
 * what phase-still.c has seen. 0: not known.
 */
double phase_slices_inside_ns(const struct phases *ph, uint32_t phase);
/* The same as a number, no more than threads were there. */
uint64_t phase_slices_about_ns(const struct phases *ph, uint32_t phase,
			       uint64_t now_ns);

/* phase-threads.c: thread @t, stopped, of @p, which is there or just born. Who
 * is alone with its number counts for itself. The number whose records cannot
 * be told any more, or 0. */
uint32_t phase_threads_note(struct shared *sh, const struct phase_proc *p,
			    struct task *t, bool is_new);
/* @copy, which stands at its first instruction, shares @sh. */
void phase_threads_copied(struct shared *sh, const struct phase_proc *copy);
void phase_threads_forget(struct shared *sh, uint32_t pid, struct task *t);
enum phase_thread {
	PHASE_THREAD_AS_SAID,
	PHASE_THREAD_TOLD, /* *tid is set, as we number threads */
	PHASE_THREAD_UNKNOWN,
};
enum phase_thread phase_threads_find(const struct shared *sh,
				     const struct mark_record *r,
				     uint32_t *tid);

/* phase-times.c */
/* The thread that reads @own, if it was seen in @phase; or NULL. */
struct thread_phase *phase_times_find(struct phases *ph, struct shared *sh,
				      uint32_t own, uint32_t phase);
void phase_times_take(struct phases *ph, struct shared *sh,
		      const struct mark_record *r);
/* From now on it is not known whose a record with the number @own is: how the
 * passings that are open end is not either, and they count as such. */
void phase_times_doubt(struct phases *ph, struct shared *sh, uint32_t own);
/* Process @pid is gone or left: what its threads are in ends at @now_ns. */
void phase_times_leave(struct phases *ph, uint32_t pid, uint64_t now_ns);
void phase_times_free(struct phases *ph);
/* Is it known of each time that @phase was entered how it ended, or that it did
 * not? */
bool phase_times_miss_none(const struct phases *ph, uint32_t phase);
/* phases.c: all records and levels so far are looked at. */
void phases_settle(struct phases *ph);
/* How often its begins and points were passed; ends as well. */
uint64_t phases_count(const struct phases *ph, size_t phase);
uint64_t phase_passed(const struct phases *ph, uint32_t phase);

/*
 * phase-spans.c: what is recorded of phases over time. Few are records of their
 * own; of many the records are as many as the intervals are.
 */
/* @o has timed @nr calls, together @own_ns beside those within, until @end_ns.
 */
void phase_spans_take(struct phases *ph, struct thread_phase *o,
		      const struct ev_phase *ev, uint64_t nr, uint64_t own_ns,
		      uint64_t end_ns);
/* It is known now that @o was inside for @ns more, about. */
void phase_spans_inside(struct phases *ph, struct thread_phase *o, double ns);
void phase_spans_emit_one(struct phases *ph, const struct thread_phase *o,
			  const struct ev_phase *ev, uint64_t end_ns);
/* Before records are looked at, and after that, at every tick. */
void phase_spans_look(struct phases *ph, uint64_t now_ns);
void phase_spans_tick(struct phases *ph, uint64_t now_ns);
/* The last interval. */
void phase_spans_finish(struct phases *ph, uint64_t now_ns);

#endif
