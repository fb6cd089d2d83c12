/*
 * range-monitor.h - the monitor of integer ranges: the smallest and largest
 * value of each variable of a program. A plant is a function; its sensors
 * (probe/range.h) are in or out as range-duty.c decides by the ledger's room.
 * Variables in memory for good that others write to through pointers, or that
 * no sensor serves, are watched by debug registers in turn (probe/watch.h), and
 * looked at now and then.
 *
 * Watched are the program's own file and its libraries, those that are loaded
 * while it runs, too; of the system's only what is selected by name. Called by
 * the session's thread only.
 */
#ifndef SMCO_RANGE_MONITOR_H
#define SMCO_RANGE_MONITOR_H

#include "reports/trace.h"
#include "supervisor/control/control.h"
#include "supervisor/monitor/range-select.h"
#include "supervisor/tracee/tracee.h"
#include "symbols/symbols.h"

/* The ledger's number of this monitor. */
#define RANGE_MONITOR 2
/* And that of its watchpoints. */
#define RANGE_WATCH_MONITOR 5

/* Where a process was in a time: never in a phase, perhaps, or all of it. */
enum range_presence {
	RANGE_OUT,
	RANGE_PARTLY,
	RANGE_ALL,
};

struct range_params {
	struct range_select select;
	enum controller_kind kind;
	int64_t target_overhead_ppb;
	uint64_t start_ns; /* of the session */
	bool use_cache;	   /* keep what programs' files say: cachedir.h */
	bool ptrace_watch; /* watchpoints by ptrace where perf has none */
	/* False: there is no room for it now, and it is not in the trace. */
	bool (*emit)(void *ctx, const struct record *r);
	void (*put_stack)(void *ctx, uint32_t id,
			  const struct trace_frame *frames, size_t nr);
	void (*put_meta)(void *ctx, const char *key, const char *value);
	/*
	 * Of how many phases ranges are told, too; 0: none, and the rest is
	 * not called. presence: of @p since the look before the last, until
	 * now, one for each phase. look: before what sensors saw is taken.
	 */
	size_t nr_phases;
	void (*look)(void *ctx, struct tproc *p);
	void (*presence)(void *ctx, struct tproc *p, enum range_presence *ret);
	void *ctx;
};

struct range_monitor;
struct range_proc; /* what one process has of it */

/* NULL: no memory. */
struct range_monitor *range_monitor_create(const struct range_params *params,
					   struct ledger *l);
void range_monitor_destroy(struct range_monitor *m);

/*
 * Read the variables of the file @path (absolute, as mappings have it; @open is
 * what to open) now,
 * rather than when a process is stopped for it: a program, or a library that it
 * needs. A file without debug information is no error; the trace will say it.
 * The program comes first.
 */
int range_expect(struct range_monitor *m, const char *path, const char *open,
		 bool is_library, struct smco_err *err);
/* SMCO_FORMAT: none of those has a variable that the selection matches. */
int range_check(const struct range_monitor *m, struct smco_err *err);

/*
 * A process runs a program: find its file, put its sensors in. All tasks
 * stopped, and for at most @wait_ns until the file is read; if that takes
 * longer, or may take no time at all (0), it is watched later, while it runs.
 * UINT64_MAX: it has not begun, or was expected. NULL: no memory, or nothing
 * may be watched.
 */
struct range_proc *range_proc_create(struct range_monitor *m, struct tproc *p,
				     uint64_t wait_ns);
/* It should have been by now. NULL is fine. */
bool range_proc_is_late(const struct range_proc *p);
/*
 * The same for the libraries that it has mapped by now, all tasks stopped;
 * @for_good: it had not run before they were, and will never unload them. Those
 * that come later are found while it runs. @p may be NULL.
 */
void range_proc_libraries(struct range_monitor *m, struct range_proc *p,
			  bool for_good);
/* The same for a forked copy of @parent's (may be NULL). */
struct range_proc *range_proc_fork(struct range_monitor *m,
				   struct range_proc *parent, struct tproc *p);
/* Its results stay. @gone: its memory must not be touched; otherwise all tasks
 * are stopped. NULL is fine. */
void range_proc_destroy(struct range_monitor *m, struct range_proc *rp,
			bool gone);

/* Must range_task_new be told of threads before they run? */
bool range_wants_tasks(const struct range_monitor *m);
/* A thread came, before its first instruction, or has ended. @rp may be NULL.
 */
void range_task_new(struct range_monitor *m, struct range_proc *rp, pid_t tid);
void range_task_gone(struct range_proc *rp, pid_t tid);

/* If @regs are in a sensor, make them what the program would have without it.
 * For unwinders. @rp may be NULL. */
void range_proc_home(const struct range_proc *rp,
		     struct user_regs_struct *regs);

/* Decide what is in, look at what is polled. Tasks run. So far the program has
 * waited @taken_ns for our CPU time. */
void range_tick(struct range_monitor *m, uint64_t now_ns, uint64_t taken_ns);
/* What sensors saw since the last time goes to the phases that processes were
 * in: often, for it is told apart by these times. */
void range_phases_tick(struct range_monitor *m, uint64_t now_ns);
/* When range_tick should be called next. */
uint64_t range_due_ns(const struct range_monitor *m);
/* Write what is known and was not written yet, of variables that had a value;
 * nothing if it was done so lately that it would take more than its share of
 * the target. */
void range_emit(struct range_monitor *m, uint64_t now_ns);
/* The program has ended or is left: write all that is left, and which variables
 * had no value. What was read of files is kept for the next time. */
void range_finish(struct range_monitor *m, uint64_t now_ns);

#endif
