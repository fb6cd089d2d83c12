/*
 * counters-private.h - what the files behind counters.h share.
 */
#ifndef SMCO_COUNTERS_PRIVATE_H
#define SMCO_COUNTERS_PRIVATE_H

#include "supervisor/monitor/counters.h"

#define COUNTERS_HASH 256
/* Of one group: what was taken and not yet written. */
struct pending {
	struct counter_sum sum;
	uint64_t read_ns; /* the last record's end */
	/* Of the thread's counting_ns, and, of groups with filters, of its
	 * cheap_ns: taken off. */
	uint64_t cost_ns, cheap_ns;
	uint64_t run_ns; /* and the same of the thread's all_run_ns */
};

/* Our stops, or moves by them, in what one event has counted of a thread. */
struct stops {
	uint64_t nr; /* taken off so far */
	/* Those that are known before they were counted. */
	uint64_t owed;
	uint64_t seen; /* stops, when moves were asked for last */
	/* Times that we took its CPU, where those are switches, so far. */
	uint64_t taken;
};

struct thread {
	struct thread *next; /* of the same hash */
	pid_t pid, tid;
	const void *task;
	struct counter_thread *counters;
	bool had_siblings;
	/* It has ended, and children of its may not have (of_creators). */
	bool is_kept;
	struct stops *stops;	 /* by event; of those that count them */
	uint64_t nr_before;	 /* stops before anything was counted */
	struct pending *pending; /* by group */
	/* Context switches that were taken, and that the ledger has. */
	uint64_t nr_switches, nr_charged;
	/* What counting has cost while the thread was at work, ns; of that, at
	 * COUNTER_CHEAP. */
	uint64_t counting_ns, cheap_ns;
	uint64_t all_run_ns; /* its time in which calls cost most */
	/* Its time, without that, in which calls cost least, and how many it
	 * made in it; of late. */
	uint64_t calm_ns, nr_calm;
	/* The kernel writes its counts down: where; -1 = it does not. When it
	 * did so last for the pending, 0 = they are in a record; and when it
	 * left its CPU without, and was read. What that has cost so far. */
	int slot;
	bool is_fresh; /* not yet, from the end of this interval on */
	uint64_t at_ns, more_ns, cost_ns;
};

/* Where counting all the time costs too much. */
struct counters_windows {
	bool is_used;
	uint64_t opened_ns;  /* 0 = none is open */
	uint64_t next_ns;    /* then */
	uint64_t work_ns;    /* the counters' when it was opened */
	uint64_t toggles_ns; /* and toggles_cost_ns after the last one */
	uint64_t nr;
	/* Of those with all that there is to count, since it was asked last
	 * whether windows are needed. */
	uint64_t nr_all, all_ns, all_cost_ns;
};

#define COUNTERS_PRICES 9
struct counters_price {
	uint64_t ns[COUNTERS_PRICES], nr;
};

struct jot;
struct sieve;
struct tally;

struct counters {
	struct counters_params p;
	struct counter_plan plan;
	struct ledger *ledger;
	struct counter_every every; /* .nr 0 = intervals are times */
	uint64_t every_ns;	    /* what the end of one costs a thread */
	uint64_t nr_joined;	    /* intervals that are part of the next */
	struct thread *hash[COUNTERS_HASH];
	struct thread machine; /* tid 0 */
	/* What is not followed, tid 0 of a process, and what was told of it. */
	struct counters_rest {
		struct thread thread;
		struct counter_past told;
	} rest[COUNTERS_RESTS];
	/* When that was of the first; how long groups have paused since; and up
	 * to when that is known. */
	uint64_t rest_told_ns, rest_off_ns[COUNTER_MAX_GROUPS], pauses_ns;
	struct jot *jot; /* NULL = everybody is read */
	/* What is not counted of our stops; NULL = it cannot be told. By event:
	 * its sieve, -1 = none; NULL = nobody has one. */
	struct sieve *sieve;
	int *sieve_fd;
	/* System calls, where no event counts them; NULL = events do. */
	struct tally *tally;
	struct counter_tally by_tally;
	struct call_columns columns;
	uint64_t toggled_ns; /* of its beginnings and ends, known so far */
	uint64_t toggles_cost_ns, toggle_ns; /* in all; one, usually */
	int64_t bare_calls_ns; /* counter_calls_ns, before the last of them */
	bool has_asked;	       /* for one that has not come yet */
	bool heeds_calls;      /* interrupts by which counters are read, too */
	uint64_t nr_unjotted;  /* threads that are read all the same */
	uint64_t nr_fresh;     /* those that are not yet written down */
	uint64_t fresh_ns;     /* and when they are to be */
	uint64_t ticked_ns;
	uint64_t due_ns;	  /* the next records */
	uint64_t check_ns;	  /* the next look at what is spent, without */
	uint64_t first_ns;	  /* when the first thread came */
	enum counter_level level; /* of all threads */
	struct counters_windows windows;
	uint64_t random;
	bool is_last;	 /* the reading after which there is none */
	bool is_crowded; /* intervals come too fast to look at CHECK_NS */
	/* Counts of context switches and system calls, for the ledger: their
	 * groups and places. */
	size_t switch_group, switch_index, call_group, call_index;
	bool has_switches, has_calls;
	/* Count of migrations that is told; what it came to so far. */
	size_t move_group, move_index;
	bool has_moves;
	uint64_t nr_moves;
	bool inherits;	    /* a group of the plan does */
	uint64_t switch_ns; /* what each costs more with counters */
	/* The same of a system call, with all and at COUNTER_CHEAP; what such a
	 * call takes at least, without; and what of that is our being there. */
	uint64_t call_ns, cheap_ns, bare_ns, idle_ns;
	/* The last that were measured of them, on us. */
	struct counters_price all_price, cheap_price;
	struct counter_thread *self; /* NULL = none are */
	uint64_t hit_ns;	     /* what any other tracepoint costs */
	/* What calls and hits have cost so far, while they were counted, and
	 * what calls cost in any case. */
	uint64_t work_ns, unseen_cost_ns;
	uint64_t reading_ns;	/* and readings that disturbed somebody */
	uint64_t own_read_ns;	/* a reading that disturbs nobody */
	uint64_t measure_ns;	/* when it is asked next what reading takes */
	uint64_t nr_unmeasured; /* readings of all since, and this one */
	uint64_t measured_ns;	/* what that was */
	uint64_t nr_failed;	/* threads that could not be counted */
	uint64_t nr_busy;	/* groups that lost their counters */
	uint64_t nr_stops;	/* of threads that are counted no more */
	uint64_t nr_readings;	/* of threads, group by group */
	struct smco_err why_failed;
};

/* ---- counters-plan.c ---- */

/* What is counted, into c->plan, and where its context switches are. */
int counters_plan(struct counters *c, struct smco_err *err);
/* Does it count each stop of a thread, which is a context switch? */
bool counters_has_stops(const struct pmu_event *ev);
/* How many of @group's values are shown; hidden ones are its last. */
size_t counters_nr_shown(const struct counters *c, size_t group);
/* What of ours cannot be told from what the program does, in which events, in
 * one sentence; false: none. */
bool counters_say_ours(const struct counters *c, char *buf, size_t size);

/* What reading a thread takes that does not run on another CPU: this one. */
uint64_t counters_read_cost_ns(const struct counter_plan *plan);

/* ---- counters-stops.c ---- */

/* @t's @group is counted from now on, or, if @since is its birth, from then:
 * of @nr_stops so far those that are not in its counts. Where the kernel tells
 * its past every stop's switch is counted. */
void counters_begin_stops(const struct counters *c, struct thread *t,
			  const struct counter_group *g,
			  enum counter_since since, uint64_t nr_stops);
/* So many were counted with @t, of a thread that it has created. */
void counters_owe_stops(struct counters *c, struct thread *t, uint64_t nr);
/* What of @sum, of @t's @group, is ours is taken off. Each stop was a switch,
 * but may be heard of a little earlier; who had no others was not taken off its
 * CPU, either. */
void counters_take_off_stops(struct counters *c, struct thread *t, size_t group,
			     struct counter_sum *sum);

/* ---- counters-price.c ---- */

/* What calls and hits cost; @before_ns: counter_bare_call_ns before anything
 * was counted. Once it is known what is. */
void counters_measure_prices(struct counters *c, uint64_t before_ns);
/* From now on these prices are measured now and then: they are not the same all
 * the time, for a CPU is as fast as others let it be. */
void counters_sample_begin(struct counters *c);
void counters_sample_end(struct counters *c);
void counters_sample_price(struct counters *c, enum counter_level level);
/* Does COUNTER_CHEAP count all calls, and cost less? */
bool counters_has_cheap(const struct counters *c);
/* @sum of @t's @group was counted at the level that there is: what that cost is
 * charged, and no time of the thread's. */
void counters_take_price(struct counters *c, struct thread *t, size_t group,
			 const struct counter_sum *sum);
/* What is known of the time of calls counts less than what will be. */
void counters_age_calm(struct counters *c);
/* What one hit of any tracepoint of the plan costs but those of system calls,
 * ns; 0 if there is none, or it cannot be measured. */
uint64_t counters_hit_cost_ns(const struct counters *c);
/* How many of such there are in @sum, of group @group, but for those that count
 * something else than how often they are hit. */
uint64_t counters_nr_hits(const struct counters *c, size_t group,
			  const struct counter_sum *sum);

/* ---- counters-windows.c ---- */

/* After a reading of all: at which level threads are counted from now on, and
 * when the next look is, where it is not counters_next_check_ns. */
void counters_pause_or_go_on(struct counters *c, uint64_t now_ns);
uint64_t counters_next_check_ns(const struct counters *c, uint64_t now_ns);
/* Is nothing to be read between intervals, but at the end of a window? */
bool counters_are_idle(const struct counters *c);

/* ---- counters.c ---- */

/* @sum of @t's @group was taken: what is not the program's is taken off, and
 * the rest waits to be written. */
void counters_settle(struct counters *c, struct thread *t, size_t group,
		     struct counter_sum *sum);
/* The records of all threads, of what was taken so far. */
void counters_write_all(struct counters *c, uint64_t now_ns);
/* All that @t's groups have counted is taken. */
void counters_take_all(struct counters *c, struct thread *t);
/* Context switches of @t up to now: @waiting of them were not yet taken. */
void counters_charge_switches(struct counters *c, struct thread *t,
			      uint64_t waiting);

/* ---- counters-jot.c ---- */

/* Have the kernel write down what is counted, if it can and that saves
 * something; once it is known what is. */
void counters_jot_open(struct counters *c);
/* @t's counters are open, or about to be closed. One that @is_new is written
 * down from the interval's end on: many do not live so long, and all that it
 * takes is saved then. */
void counters_jot_add(struct counters *c, struct thread *t, bool is_new);
void counters_jot_remove(struct counters *c, struct thread *t);
/* A new thread's first interval is over, and was read. */
void counters_jot_begin(struct counters *c, struct thread *t);
/* The records of what was written down of one thread. True if it has counted
 * more, stands, and is to be read. */
bool counters_jot_drain(struct counters *c, struct thread *t, uint64_t now_ns);
/* @t stands and is about to be read: what comes was counted until it left its
 * CPU. */
void counters_jot_stands(struct counters *c, struct thread *t, uint64_t now_ns);
/* @t, which stands, has other events now (counter_thread_renew). */
void counters_jot_renewed(struct counters *c, struct thread *t);
/* From now on everybody is read. */
void counters_jot_leave(struct counters *c, uint64_t now_ns);
/* Need nobody be read? */
bool counters_jots_all(const struct counters *c);
/* When to look again. */
uint64_t counters_jot_due_ns(const struct counters *c, uint64_t now_ns);

/* ---- counters-sieve.c ---- */

/* Have what happens in our stops not counted, where that can be; once it is
 * known what is counted, and before anything is. */
void counters_sieve_open(struct counters *c);
void counters_sieve_close(struct counters *c);
/* Is @event without what our stops make? */
bool counters_is_sieved(const struct counters *c, size_t event);
/* As long as the descriptor is open, which the caller closes, @ev costs what
 * those of the plan cost. -1: it does so anyway. */
int counters_sieve_one(const struct counters *c, const struct pmu_event *ev);
/* Migrations of @t by stops of ours, so far; 0 if that cannot be told. */
uint64_t counters_nr_moves(const struct counters *c, const struct thread *t);
/* So often we took the CPU on which @t ran; 0 as above. */
uint64_t counters_nr_taken(const struct counters *c, const struct thread *t);
/* @t has ended. */
void counters_sieve_forget(const struct counters *c, const struct thread *t);

/* ---- counters-tally.c ---- */

/* Those of @events that can be are counted by BPF, before a plan is made. */
void counters_tally_events(struct counters *c, struct pmu_event *events,
			   size_t nr);
/* From now on threads that are opened are tallied: once the plan is made. */
int counters_tally_open(struct counters *c, struct smco_err *err);
void counters_tally_close(struct counters *c);
/* Is it done at @level? Then it is, else it will soon not be. False: it cannot
 * be. */
bool counters_tally_at(struct counters *c, enum counter_level level);
/* May a level begin at which it is done, without waiting for that? If not, it
 * will be soon, or be asked for again. */
bool counters_tally_ready(struct counters *c);
bool counters_tally_is_on(const struct counters *c); /* or events count */
/* What that and its ends have cost the program since this was asked last, ns on
 * each CPU that it ran on. */
uint64_t counters_tally_toggled_ns(struct counters *c);
/* What a call costs more that is tallied, now that it is; 1 if that is not
 * known. And the usual of some, of before it began. */
uint64_t counters_tally_more_ns(const struct counters *c);
uint64_t counters_tally_price_ns(struct counters *c);

/* ---- counters-unfollowed.c ---- */

void counters_drop_rests(struct counters *c);
/* The level that there is is about to change, or the rest to be told. */
void counters_note_pauses(struct counters *c, uint64_t now_ns);

/* ---- counters-record.c ---- */

/* The group's record, which ends at @now_ns, if anything was counted. */
void counters_write_group(struct counters *c, struct thread *t, size_t group,
			  uint64_t now_ns);

/* ---- counters-every.c ---- */

/* The records of all intervals that an event has ended, of one thread. True if
 * they come so fast that they should be asked for more often. */
bool counters_drain(struct counters *c, struct thread *t);

#endif
