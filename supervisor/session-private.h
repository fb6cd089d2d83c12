/* session-private.h - what the files of the session share. */
#ifndef SMCO_SESSION_PRIVATE_H
#define SMCO_SESSION_PRIVATE_H

#include <signal.h>

#include "reports/trace.h"
#include "supervisor/control/allowance.h"
#include "supervisor/control/control.h"
#include "supervisor/control/duty.h"
#include "supervisor/control/least.h"
#include "supervisor/control/price.h"
#include "supervisor/memory-room.h"
#include "supervisor/meter.h"
#include "supervisor/monitor/counters.h"
#include "supervisor/monitor/nap.h"
#include "supervisor/monitor/range-monitor.h"
#include "supervisor/monitor/samples.h"
#include "supervisor/pace.h"
#include "supervisor/probe/unfollowed.h"
#include "supervisor/session.h"
#include "supervisor/stacks.h"
#include "supervisor/watched.h"

/* What the sensors record of allocations. */
struct recording {
	struct allowance allowance;
	uint64_t cpu_ns;    /* of ours, for reading it, so far */
	uint64_t read_ns;   /* when it was read last */
	uint64_t due_ns;    /* a ring will be as good as full */
	bool is_due;	    /* one was full */
	struct price stack; /* a stop for a call stack */
	/* Those since the last tick, as we saw them. */
	unsigned nr_stacks;
	uint64_t stacks_ns;
	/* All stops, by the ledger and as we saw them, at the last tick. */
	uint64_t charged_ns, seen_ns;
};

/* Births of processes, and whether they are followed. */
struct births {
	bool may_leave;		 /* them unfollowed, where they cost too much */
	bool is_over;		 /* all are followed from now on */
	bool are_left;		 /* they are not followed now */
	bool is_told;		 /* that they are again, to all threads */
	bool wants_list;	 /* at the next tick */
	struct unfollowed *list; /* NULL: none yet, or not to be had */
	uint64_t changed_ns;	 /* are_left was */
	uint64_t nr_seen;	 /* were followed */
	uint64_t nr_taken;	 /* were not at first, and are now */
};

/* A process that is let go for a while, or was. */
struct away {
	pid_t pid;
	enum { IS_HERE, IS_AWAY, IS_COMING } is;
	unsigned slot;	   /* unfollowed.h */
	unsigned nr_execs; /* at the last look */
	uint64_t went_ns, came_ns;
	uint64_t pause_ns; /* it stays away for so long at least */
	uint64_t price_ns; /* of letting it go and of coming back */
	uint64_t each_ns;  /* what a stop has cost */
};

struct absences {
	struct away *of;
	size_t nr;
	/* At the last look. */
	uint64_t looked_ns, stops_ns, nr_stops, nr_own, nr_born;
	pid_t slot_pid[UNFOLLOWED_LET_GO + 1]; /* from the second one on */
	unsigned nr_slots;
	uint64_t nr_times, ns; /* so far, of those that are back or gone */
};

struct session {
	const struct options *opt;
	uint64_t start_ns;
	char *trace_path;
	struct trace_writer *trace;
	bool is_trace_named;
	bool is_over; /* nobody runs: what is written may take its time */
	bool trace_failed;
	struct smco_err trace_err;
	struct tracer *tracer;
	struct ledger *ledger;
	struct control *control;
	int64_t told_local_ppb; /* the local target in the trace */
	struct nap *nap;
	struct counters *counters;   /* NULL = not asked for */
	struct range_monitor *range; /* NULL = not asked for */
	struct samples *samples;     /* NULL = not asked for */
	struct phases *phases;	     /* NULL = not asked for */
	struct duty duty;
	struct recording recording;
	struct births births;
	struct absences away;
	struct memory_rooms *rooms;
	struct stacks *stacks;
	struct tables *tables;
	struct meter meter;
	struct watched **ws; /* processes under watch */
	size_t nr_ws, cap_ws;
	struct sym_space **spaces; /* of ended ones, for naming */
	size_t nr_spaces;
	pid_t command_pid; /* 0 = attached */
	int command_status;
	unsigned nr_command_execs; /* so often it became another program */
	struct smco_err warning;   /* the first there was; code 0 = none */
	uint64_t next_tick_ns, next_flush_ns, nearby_due_ns;
	uint64_t tick_ns;
	bool stands; /* as the last tick saw it: all that is traced */
	struct pace pace;
	uint64_t tick_cpu_ns;	/* what the last tick took of a CPU */
	uint64_t ticked_ns;	/* when the last tick began */
	struct quiet quiet;	/* its threads */
	uint64_t accounted_ns;	/* when the ledger was told of the time last */
	struct least time;	/* at least the wall's, see account() */
	uint64_t run_ns;	/* of that, since the last tick */
	uint64_t next_check_ns; /* of guards that cost by standing */
	uint64_t next_trim_ns;	/* of phases that are too dear to count */
	uint64_t gap_ns;	/* between the last two */
	bool has_mechanism;
	bool has_refusal;
	pid_t *attached; /* of those asked for who was there */
	size_t nr_attached;
	bool has_leftovers; /* one of those attached to has memory of ours */
	struct ev_coverage not_admitted, lost;
	uint64_t ahead_ns;     /* up to then starts were owed */
	uint64_t nr_unwatched; /* processes that ended before their turn */
	volatile sig_atomic_t interrupted; /* the signal; 0 = go on */
	volatile sig_atomic_t nr_signals;
	volatile sig_atomic_t is_suspend_asked;
	uint64_t suspend_until_ns; /* 0 = the request was not seen yet */
};

/* What the tracer does by itself between two events. */
#define SESSION_PASSED_ON "to pass on a signal, a call or a birth"

/* EV_PROCESS's why */
enum process_why {
	PROCESS_LAUNCHED,
	PROCESS_ATTACHED,
	PROCESS_FORKED,
	PROCESS_EXECED,
	PROCESS_ENDED,
	PROCESS_DETACHED,
};

/*
 * session-tick.c: more is spent than half a second's budget can pay back. What
 * costs the program by standing or by starting has to wait.
 */
bool session_is_far_overdrawn(const struct session *s);
/* session-processes.c: a program that the command itself has become, which does
 * not wait for that. */
bool session_is_asked_for(const struct session *s, const struct tevent *ev);
/* Of the program's time, parts of 1e9; all of it without a bound. */
int64_t session_budget_ppb(const struct session *s);
/* What the time since the last call was spent on goes into the ledger. */
void session_account(struct session *s, uint64_t now_ns);
/* Looks at memory, and does what else has to be done now and then. */
void session_tick(struct session *s, uint64_t now_ns);
/* When the next one is due, monotonic ns; the last one began at @began_ns. */
uint64_t session_next_tick(struct session *s, uint64_t began_ns);
/* Where the program went on from a stop signal there is a tick at once. */
void session_note_stands(struct session *s, uint64_t now_ns);
/* Are there guards that cost the program by standing, and may stand now? */
bool session_has_standing(const struct session *s);
/* May they go on? Between ticks, which may be far apart. */
void session_check_standing(struct session *s, uint64_t now_ns);

/* session-suspend.c: job control. When to look whether the command stands. */
uint64_t session_suspend_due_ns(const struct session *s);
void session_suspend_tick(struct session *s, uint64_t now_ns);

/* session-births.c: whether births of processes are followed */
void session_births_create(struct session *s, struct tracer_options *topt);
void session_births_destroy(struct session *s); /* after the tracer */
/* One was. */
void session_births_seen(struct session *s);
/* Is there room for the next? After all that was spent has been charged. */
void session_births_account(struct session *s);
/* Guards are about to be in a process, whose tasks all stand: when they go on
 * its births are followed. */
void session_births_follow(struct session *s);
bool session_births_are_left(const struct session *s);
/* Attaches to one that lives, if there is room for that. */
void session_births_tick(struct session *s, uint64_t now_ns);
/* Attaches to one that lives, however young: TEV_PROC_NEW follows. False: there
 * is none. */
bool session_births_take(struct session *s);
/* Was @pid, which is attached to, born to what we follow? */
bool session_births_took(const struct session *s, pid_t pid);
/* What those have done that are not followed goes to the counters; if it
 * @is_last, with those that end at this moment. */
void session_births_count(struct session *s, bool is_last);
/* All are followed from now on. */
void session_births_end(struct session *s);
/* So many were not, up to now. */
uint64_t session_births_nr_left(const struct session *s);

/*
 * session-away.c: processes that are let go for a while, for what stops them
 * costs more than there is room for. Who goes, who comes back?
 */
void session_away_tick(struct session *s, uint64_t now_ns);
/* When to ask, monotonic ns; UINT64_MAX: nobody stops, and nobody is away. */
uint64_t session_away_due_ns(const struct session *s);
void session_away_destroy(struct session *s);
/* Is @p one of those, and back? All its tasks stand. */
bool session_away_is_back(struct session *s, struct tproc *p);
/* Was @pid ever let go? */
bool session_away_was(const struct session *s, pid_t pid);
/* One has ended, known by its status. */
void session_away_ended(struct session *s, pid_t pid);
/* Nobody else is left: waits until @until_ns, or a little while. False: none of
 * them lives. */
bool session_away_wait(struct session *s, uint64_t until_ns);
/* Has a stop signal stopped @pid, which is let go? */
bool session_away_stands(const struct session *s, pid_t pid);
/* All that there is, is let go, and stopped so: its time does not go on. */
bool session_away_all_stand(const struct session *s);
/* For so long some were, ns, up to now. */
uint64_t session_away_ns(const struct session *s);

/* session-recording.c: allocations that the sensors record */
void session_recording_init(struct session *s);
/* When rings are to be read between two ticks; UINT64_MAX: they can wait. */
uint64_t session_recording_due_ns(const struct session *s);
void session_recording_read(struct session *s);
/* A thread of @w stood for its call stack since @stop_ns, and goes on. NULL: a
 * process that is not watched. */
void session_recording_stack(struct session *s, struct watched *w,
			     uint64_t stop_ns);
/* How much larger the blocks of @w may become, once a second and when it has
 * just got sensors: as its control groups have memory left. */
void session_recording_room(struct session *s, struct watched *w,
			    uint64_t now_ns);
/* What it has cost by now; once a tick, before the refills. */
void session_recording_advance(struct session *s);
/* How many may be recorded until the next tick. */
void session_recording_refill(struct session *s, struct watched *w);

/* session-records.c: what goes into the trace */
void session_emit(void *session, const struct record *r);
void session_emit_process(struct session *s, pid_t pid, enum process_why why,
			  int exit_status);
void session_put_meta(struct session *s);
void session_put_meta_u64(struct session *s, const char *key, uint64_t v);
/* Everything known so far, at least once a second. */
void session_flush(struct session *s, uint64_t now_ns);
/* The program is gone or left alone: totals, coverage, names; closes. Then
 * trace_path is where the trace is: PATH.old if another has its name by now,
 * NULL if it is gone. */
int session_finish_trace(struct session *s, struct smco_err *err);

/* session-files.c: the program's file, or those of processes, then their
 * libraries; until it returns other than 0, which is passed on. @open: what to
 * open for @path. *any_ret is false where there is no such command. */
typedef int (*session_file_fn)(struct session *s, const char *path,
			       const char *open, bool is_library,
			       struct smco_err *err);
int session_each_file(struct session *s, session_file_fn fn, bool *any_ret,
		      struct smco_err *err);

/* session-counters.c: the counters' part of it all; nothing without them */
int session_counters_create(struct session *s, struct tracer_options *topt,
			    struct smco_err *err);
/* The command, still our copy: counted from its exec on. */
void session_counters_before_exec(struct session *s, pid_t pid);
/* A process came that was not attached to; all its tasks are stopped. */
void session_counters_process(struct session *s, const struct tevent *ev);
/* One that was, and runs on. */
void session_counters_attached(struct session *s, struct tproc *p);
/* TEV_TASK_NEW and TEV_TASK_GONE. */
void session_counters_task(struct session *s, const struct tevent *ev);
uint64_t session_counters_due_ns(const struct session *s);
/* The last records. Once more does nothing. */
void session_counters_finish(struct session *s);
/* session-samples.c: the samples' part of it all; nothing without them */
int session_samples_create(struct session *s, struct smco_err *err);
/* Take what was sampled so far. @ctx is the session. */
void session_samples_read(void *ctx);
/* By exec, a process left the memory that it shared with another (vfork), and
 * is not watched yet. */
void session_samples_left(struct session *s, const struct tevent *ev);
/* A process was attached to, and runs on. */
void session_samples_attached(struct session *s, struct tproc *p);
/* It runs on: its mappings are read while it has any, which nobody waits for.
 */
void session_samples_running(struct session *s, struct tproc *p);
uint64_t session_samples_due_ns(const struct session *s);
/* session-phases.c: the phases' part of it all; nothing without them */
void session_phases_task(struct session *s, const struct tevent *ev);
int session_phases_create(struct session *s, struct tracer_options *topt,
			  struct smco_err *err);
/* A process came, or its libraries did: all its tasks are stopped. */
void session_phases_process(struct session *s, struct watched *w,
			    const struct tevent *ev);
/* It goes, or is left alone: then its tasks are stopped. */
void session_phases_drop(struct session *s, struct watched *w, bool gone);
uint64_t session_phases_due_ns(const struct session *s);
void session_phases_tick(struct session *s, uint64_t now_ns);
/* session-range.c: the ranges' part of it all; nothing without them */
int session_range_create(struct session *s, struct tracer_options *topt,
			 struct smco_err *err);
/* TEV_TASK_NEW and TEV_TASK_GONE. */
void session_range_task(struct session *s, const struct tevent *ev);
/* A process came; all its tasks are stopped. */
void session_range_process(struct session *s, struct watched *w,
			   const struct tevent *ev);
/* It goes, or is left alone: then its tasks are stopped. */
/* TEV_LIBS. */
void session_range_libraries(struct session *s, struct watched *w);
void session_range_drop(struct session *s, struct watched *w, bool gone);
uint64_t session_range_due_ns(const struct session *s);

/* session-names.c: @w's name as it is now goes into the trace; when it came and
 * before it is left, and in between when that is due. */
void session_name(struct session *s, struct watched *w);
/* The same of a program that has not run yet, so that it can have no other name
 * but its file's. */
void session_name_program(struct session *s, struct watched *w);
/* The same of a copy made by fork, without reading anything: as @parent is. */
void session_name_copy(struct session *s, struct watched *w,
		       const struct watched *parent);
void session_names_tick(struct session *s, uint64_t now_ns);
/* The command line of a process, as far as it is short, and another name that
 * it has given itself; control characters are the reader's business. False if
 * there is none. */
bool session_read_command(pid_t pid, char line[WATCHED_NAME]);

/* session-processes.c: what comes and goes */
void session_dispatch(struct session *s, struct tevent *ev);
/* Destroyed at the end: stacks point into it, and a thread works on it. */
void session_keep_space(struct session *s, struct sym_space *space);
/* At the end: what had to be left because it has 32 bits. */
void session_note_foreign(struct session *s);
void session_drop_watched(struct session *s, struct watched *w, bool gone);
/* The budget has room again: start to watch a process that had to wait. */
void session_start_late(struct session *s, uint64_t now_ns);
/* Guards with a queue of their own. */
void session_take_hits(struct session *s, struct watched *w);

#endif
