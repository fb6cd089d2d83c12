#include "supervisor/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/build-number.h"
#include "supervisor/control/fixed.h"
#include "supervisor/kept.h"
#include "supervisor/output.h"
#include "supervisor/probe/leftover.h"
#include "supervisor/session-private.h"
#include "supervisor/tables.h"
#include "supervisor/tracee/forker.h"

#define TICK_MAX_NS   (20 * NSEC_PER_MSEC)
#define TICK_OFF_NS   (100 * NSEC_PER_MSEC)
#define ALWAYS_BYTES  (1ull << 20)
#define STOP_PRIORITY (-10)

static void show_status(struct session *s, struct status *line, uint64_t now_ns)
{
	struct ledger_totals t;
	struct nap_stats st;
	if (!line || now_ns < status_due_ns(line))
		return;
	ledger_get(s->ledger, &t);
	nap_get_stats(s->nap, &st);
	status_show(line, now_ns,
		    &(struct status_facts){
			    .elapsed_ns = now_ns - s->start_ns,
			    .overhead_ppb = t.recent_ppb,
			    .target_ppb = s->opt->target_ppb,
			    .nr_armed = st.nr_armed,
			    .nr_known = st.nr_known,
			    .nr_naps = st.nr_naps,
		    });
}

static const char *name_for_output(const struct options *o)
{
	return o->command ? o->command[0] : "attach";
}

/* All that takes long; the file has its name when the command has started.
 * @pid: %p in its name. */
static int open_trace(struct session *s, pid_t pid, struct smco_err *err)
{
	const struct options *o = s->opt;
	int rc = output_expand(o->output, pid, name_for_output(o),
			       &s->trace_path, err);
	if (rc)
		return rc;
	rc = trace_writer_prepare(s->trace_path, s->start_ns, &s->trace, err);
	if (!rc)
		session_put_meta(s);
	return rc;
}

static int make_controllers(struct session *s, struct smco_err *err)
{
	static const enum controller_kind kinds[] = {
		[CONTROLLER_CASCADE] = CONTROL_CASCADE,
		[CONTROLLER_ADHOC] = CONTROL_ADHOC,
		[CONTROLLER_GLOBAL] = CONTROL_GLOBAL,
	};
	const struct options *o = s->opt;
	struct control_params cp = {
		.kind = kinds[o->controller],
		.target_overhead_ppb = o->target_ppb,
	};
	struct nap_params np = {
		.nap_ns = o->nap_ns,
		.min_size = o->min_size_bytes,
		.target_overhead_ppb = o->target_ppb,
		.start_ns = s->start_ns,
		.emit = session_emit,
		.read_samples = session_samples_read,
		.ctx = s,
	};
	s->ledger = ledger_create(o->target_ppb);
	s->control = control_create(&cp, s->start_ns);
	s->stacks = stacks_create();
	s->rooms = memory_rooms_create();
	if (s->ledger && s->control)
		s->nap = nap_create(&np, s->ledger, s->control);
	if (!s->nap || !s->stacks || !s->rooms)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	session_recording_init(s);
	duty_init(&s->duty, o->nap_ns, s->start_ns);
	s->tick_ns = nap_window_ns(s->nap);
	if (s->tick_ns > TICK_MAX_NS)
		s->tick_ns = TICK_MAX_NS;
	if (o->target_ppb == 0 || !(o->monitors & MONITOR_NAP))
		s->tick_ns = TICK_OFF_NS;
	pace_init(&s->pace, s->tick_ns,
		  s->opt->is_unlimited
			  ? 0
			  : control_m_from_overhead(s->opt->target_ppb));
	return 0;
}

static void warn_gone(struct session *s, pid_t first, size_t nr)
{
	if (nr == 1)
		smco_fail(&s->warning, SMCO_GONE, 0,
			  "process %d had ended before it could be watched",
			  first);
	else if (nr)
		smco_fail(&s->warning, SMCO_GONE, 0,
			  "%zu processes, the first %d, had ended before they "
			  "could be watched",
			  nr, first);
}

/* All that were asked for, but for those that have ended meanwhile: where
 * processes come and go, what pgrep prints is old. At least one. */
static int seize_all(struct session *s, struct smco_err *err)
{
	const struct options *o = s->opt;
	size_t nr_gone = 0;
	pid_t first = 0;
	s->attached = calloc(o->nr_pids, sizeof(*s->attached));
	if (!s->attached)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < o->nr_pids; i++) {
		pid_t pid = o->pids[i];
		int rc = tracer_seize(s->tracer, pid, err);
		if (rc == SMCO_GONE && !nr_gone++)
			first = pid;
		if (rc == SMCO_GONE && nr_gone < o->nr_pids)
			continue;
		if (rc)
			return rc;
		s->attached[s->nr_attached++] = pid;
		/* It may have ended by now; that is told of later. */
		struct tproc *p = tracer_proc_of(s->tracer, pid);
		s->has_leftovers |= p && leftover_is_there(p);
	}
	warn_gone(s, first, nr_gone);
	return 0;
}

static int start_program(struct session *s, struct smco_err *err)
{
	const struct options *o = s->opt;
	if (o->command) {
		int rc = tracer_launch(s->tracer, o->command, &s->command_pid,
				       err);
		if (!rc && !s->trace)
			*err = s->trace_err;
		return rc ? rc : s->trace_err.code;
	}
	int rc = seize_all(s, err);
	return rc ? rc : open_trace(s, getpid(), err);
}

/*
 * Until the one that was stopped last has been started, or has ended in its
 * exec. Not until nothing else happens: where threads come and go all the time,
 * something always does.
 */
static void start_stopped(struct session *s)
{
	struct tevent ev;
	do {
		if (tracer_next(s->tracer, 0, &ev) <= 0)
			return;
		session_dispatch(s, &ev);
	} while (ev.kind != TEV_NONE && ev.kind != TEV_PROC_GONE &&
		 (ev.kind != TEV_PROC_NEW || ev.why == TPROC_FORKED));
}

/* Those started before run, and may wait for us (for a call stack): not until
 * all others have been started, too. But these do not wait for ever. */
#define ANSWER_NS (4 * NSEC_PER_MSEC)

static void answer_started(struct session *s)
{
	uint64_t until_ns = smco_now_ns() + ANSWER_NS;
	struct tevent ev;
	while (smco_now_ns() < until_ns && tracer_next(s->tracer, 0, &ev) > 0 &&
	       ev.kind != TEV_NONE)
		session_dispatch(s, &ev);
}

/*
 * All are seized, or none is; they stand still one after the other, each for
 * its own start only. Returns an error if one cannot be stopped.
 */
static int attach_all(struct session *s, struct smco_err *err)
{
	int rc = s->nr_attached ? 1 : 0;
	while (rc && !s->interrupted) {
		rc = tracer_stop_seized(s->tracer, err);
		if (rc < 0 && (rc != SMCO_GONE || s->nr_attached == 1))
			return rc;
		if (rc) {
			start_stopped(s);
			answer_started(s);
			session_account(s, smco_now_ns());
		}
	}
	return 0;
}

/* The command, still our copy. */
static void before_exec(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	session_counters_before_exec(s, pid);
	if (s->samples)
		samples_add(s->samples, pid, true);
	open_trace(s, pid, &s->trace_err); /* knows what could be counted */
}

/* Without it nothing is known of any process, and all else that fails says
 * something else. In another PID namespace's we would take strangers, whose
 * memory we may be permitted to write to, for our program. */
static int find_proc(struct smco_err *err)
{
	if (access("/proc/self/stat", R_OK))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "there is no /proc here, which smco-trace "
				 "needs: mount -t proc proc /proc");
	if (procfs_is_strange())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "/proc has the numbers of another PID "
				 "namespace, where ours are other processes': "
				 "mount -t proc proc /proc (or unshare "
				 "--mount-proc)");
	return 0;
}

/* Where memory runs out, of the machine or of a group that we share with the
 * program, the kernel kills us, and the program lives on. */
static void go_first(void)
{
	_cleanup_close_ int fd =
		open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) < 0)
		smco_debug("session", "no oom_score_adj: %s", strerror(errno));
}

int session_create(const struct options *o, struct session **ret,
		   struct smco_err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	struct tracer_options topt = {
		.follow = o->follow,
		.kill_on_exit = o->kill_on_exit && o->command,
		.libs_if_asked = true,
		.no_libs = !(o->monitors &
			     (MONITOR_NAP | MONITOR_PHASES | MONITOR_RANGE)),
		.before_exec = before_exec,
		.before_exec_ctx = s,
	};
	s->opt = o;
	int rc = find_proc(err);
	if (!rc)
		rc = output_check(o->output, name_for_output(o), err);
	if (!rc && o->command) /* what is measured here binds us to CPUs */
		rc = forker_prepare(err);
	if (!rc) {
		/* First, so that it is ready when the command is. */
		s->tables = tables_create(session_budget_ppb(s));
		watched_set_tables(s->tables);
		if (o->command)
			tables_expect(s->tables, o->command[0]);
		for (size_t i = 0; i < o->nr_pids; i++)
			session_keep_space(s, watched_expect(o->pids[i]));
		if (!o->no_cache)
			kept_open(build_number(), time(NULL));
		if (o->monitors & MONITOR_NAP)
			watched_prepare(o->mechanism);
		s->start_ns = smco_now_ns();
		rc = make_controllers(s, err);
	}
	if (!rc)
		rc = session_counters_create(s, &topt, err);
	if (!rc)
		rc = session_range_create(s, &topt, err);
	if (!rc)
		rc = session_samples_create(s, err);
	if (!rc)
		rc = session_phases_create(s, &topt, err);
	session_births_create(s, &topt);
	if (!rc)
		rc = tracer_create(&s->tracer, &topt, err);
	if (!rc) {
		/* Not before: the tracer tries on a child what stops cost. */
		meter_prepare();
		if (!o->command)
			*ret = s;
		rc = start_program(s, err);
	}
	if (rc) {
		*ret = NULL;
		/* It has not run a single instruction yet. */
		if (s->command_pid)
			kill(s->command_pid, SIGKILL);
		session_destroy(s);
		return rc;
	}
	/* The command stands, before its first instruction. */
	if (!topt.kill_on_exit)
		go_first();
	tracer_urgent(s->tracer, true);
	/* A stopped program waits for us: do not wait for a CPU for long. Not
	 * before the start, or the command would inherit it; not permitted
	 * to everybody, and not needed on an idle machine. */
	if (getpriority(PRIO_PROCESS, 0) > STOP_PRIORITY)
		setpriority(PRIO_PROCESS, 0, STOP_PRIORITY);
	meter_init(&s->meter, s->ledger, s->tracer);
	s->ticked_ns = s->accounted_ns = smco_now_ns();
	*ret = s;
	return 0;
}

/* What has to stay in a program is said. */
static void let_go(struct session *s, struct tproc *p)
{
	struct smco_err err = {0};
	if (tproc_detach(p, &err) && !s->warning.code)
		smco_fail(&s->warning, SMCO_BUSY, 0, "process %d: %s",
			  tproc_pid(p), err.msg);
}

/* Where some whose births were not followed have children all the time. */
#define MAX_TAKEN 100

static void leave(struct session *s, struct session_result *ret)
{
	session_account(s, smco_now_ns()); /* while there is somebody to ask */
	session_births_end(s);
	for (int i = 0; i < MAX_TAKEN && session_births_take(s); i++)
		start_stopped(s);
	tracer_stops_are(s->tracer, "to leave");
	session_counters_finish(s);
	if (s->samples)
		samples_finish(s->samples);
	while (s->nr_ws) {
		tracer_leave_newborn(s->tracer);
		struct watched *w = s->ws[s->nr_ws - 1];
		session_name(s, w);
		bool stopped = !tproc_stop(w->proc, NULL);
		struct tproc *p = w->proc;
		session_emit_process(s, w->pid, PROCESS_DETACHED, -1);
		/* Threads that do not stop in time: detaching undoes what is
		 * planted all the same, so that first, and then forget it. */
		if (!stopped)
			let_go(s, p);
		session_drop_watched(s, w, !stopped);
		/* They stand: on a busy machine it takes long till they do. */
		if (stopped)
			let_go(s, p);
	}
	tracer_detach_all(s->tracer, NULL);
	const char *why = "when its time was over";
	if (s->interrupted)
		why = s->interrupted == SIGINT	  ? "on SIGINT"
		      : s->interrupted == SIGTERM ? "on SIGTERM"
		      : s->interrupted == SIGHUP  ? "on SIGHUP"
						  : "on a signal";
	trace_put_meta(s->trace, "detached", why);
	ret->end = SESSION_DETACHED;
}

/* The room in the ledger is for as long good enough for the range monitor. */
#define RANGE_ACCOUNT_NS (NSEC_PER_MSEC / 2)

/* Whoever stops by itself, or late, has to wait for this, so it is urgent as
 * well. */
static void do_what_is_due(struct session *s, struct status *line,
			   bool standing, uint64_t now_ns)
{
	bool count_due = now_ns >= session_counters_due_ns(s);
	bool range_due = now_ns >= session_range_due_ns(s);
	bool sample_due = now_ns >= session_samples_due_ns(s);
	bool phase_due = now_ns >= session_phases_due_ns(s);
	bool tick_due = now_ns >= s->next_tick_ns;
	count_due |= tick_due && s->counters &&
		     counters_may_tick(s->counters, now_ns);
	bool read_due = now_ns >= session_recording_due_ns(s);
	bool check_due = standing && now_ns >= s->next_check_ns;
	if (read_due && !tick_due) /* which reads, too */
		session_recording_read(s);
	if (count_due) {
		session_account(s, now_ns);
		counters_tick(s->counters, now_ns);
	}
	if (range_due) {
		if (now_ns >= s->accounted_ns + RANGE_ACCOUNT_NS)
			session_account(s, now_ns);
		range_tick(s->range, now_ns, s->meter.taken_ns);
	}
	if (sample_due) {
		session_account(s, now_ns);
		samples_tick(s->samples, now_ns);
	}
	if (phase_due) {
		session_account(s, now_ns);
		session_phases_tick(s, now_ns);
	}
	if (now_ns >= session_away_due_ns(s)) {
		session_account(s, now_ns);
		session_away_tick(s, now_ns);
		tracer_stops_are(s->tracer, SESSION_PASSED_ON);
	}
	if (tick_due) {
		uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		session_tick(s, now_ns);
		s->tick_cpu_ns =
			smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
		tracer_stops_are(s->tracer, SESSION_PASSED_ON);
		show_status(s, line, now_ns);
		s->next_tick_ns = session_next_tick(s, now_ns);
		s->next_check_ns = now_ns + s->tick_ns;
	} else if (check_due) {
		session_check_standing(s, now_ns);
	}
	/* Again, if it took too long. */
	tracer_urgent(s->tracer, !session_births_are_left(s));
}

/* Once the command runs: the trace's thread would take the CPU from which that
 * has come, and it would begin on another one. */
static void name_trace(struct session *s)
{
	if (!s->is_trace_named)
		trace_writer_publish_soon(s->trace);
	s->is_trace_named = true;
}

int session_run(struct session *s, struct status *line,
		struct session_result *ret, struct smco_err *err)
{
	*ret = (struct session_result){.end = SESSION_ENDED};
	int failed = attach_all(s, err);
	if (failed)
		leave(s, ret);
	if (!s->command_pid)
		name_trace(s);
	/* From when it is watched: reading what is needed for that, and until
	 * each thread has had a CPU to stop on, may have taken longer. */
	uint64_t end_ns = s->opt->duration_ns
				  ? smco_now_ns() + s->opt->duration_ns
				  : UINT64_MAX;
	while (!failed) {
		struct tevent ev = {0};
		uint64_t until =
			s->next_tick_ns < end_ns ? s->next_tick_ns : end_ns;
		bool standing = session_has_standing(s);
		if (standing && s->next_check_ns < until)
			until = s->next_check_ns;
		if (session_counters_due_ns(s) < until)
			until = session_counters_due_ns(s);
		if (session_range_due_ns(s) < until)
			until = session_range_due_ns(s);
		if (session_samples_due_ns(s) < until)
			until = session_samples_due_ns(s);
		if (session_phases_due_ns(s) < until)
			until = session_phases_due_ns(s);
		if (session_recording_due_ns(s) < until)
			until = session_recording_due_ns(s);
		if (session_away_due_ns(s) < until)
			until = session_away_due_ns(s);
		if (session_suspend_due_ns(s) < until)
			until = session_suspend_due_ns(s);
		int rc = tracer_next(s->tracer, until, &ev);
		bool waits = rc == 0 && session_away_wait(s, until);
		if (rc == 0 && !waits && session_births_take(s))
			continue;
		if (rc <= 0 && !waits)
			break;
		if (!waits)
			session_dispatch(s, &ev);
		name_trace(s);
		uint64_t now = smco_now_ns();
		if (s->interrupted || now >= end_ns) {
			leave(s, ret);
			break;
		}
		session_note_stands(s, now);
		do_what_is_due(s, line, standing, now);
		session_suspend_tick(s, now);
	}
	name_trace(s);
	tracer_urgent(s->tracer, false);
	session_account(s, smco_now_ns());
	session_note_foreign(s);
	ret->wait_status = s->command_status;
	int rc = session_finish_trace(s, failed ? NULL : err);
	ret->warning = s->warning.code ? s->warning.msg : NULL;
	ret->trace_path = s->trace_path;
	return failed ? failed : rc;
}

void session_interrupt(struct session *s, int sig)
{
	/* The command gets the terminal's signals itself; the others are
	 * passed on, once. Asked a second time, we leave it alone. */
	s->nr_signals++;
	if (s->command_pid && s->nr_signals == 1) {
		if (sig != SIGINT && sig != SIGQUIT)
			kill(s->command_pid, sig);
		return;
	}
	s->interrupted = sig;
	tracer_wake(s->tracer);
}

void session_destroy(struct session *s)
{
	if (!s)
		return;
	tracer_destroy(s->tracer);
	session_births_destroy(s);
	session_away_destroy(s);
	watched_unprepare();
	watched_set_tables(NULL);
	tables_destroy(s->tables);
	meter_unprepare();
	kept_close();
	nap_destroy(s->nap);
	memory_rooms_destroy(s->rooms);
	counters_destroy(s->counters);
	range_monitor_destroy(s->range);
	samples_destroy(s->samples);
	phases_destroy(s->phases);
	control_destroy(s->control);
	ledger_destroy(s->ledger);
	stacks_destroy(s->stacks);
	for (size_t i = 0; i < s->nr_spaces; i++)
		sym_space_destroy(s->spaces[i]);
	free(s->spaces);
	free(s->attached);
	free(s->ws);
	if (s->trace)
		trace_writer_close(s->trace, NULL);
	free(s->trace_path);
	free(s);
}
