/* Processes and their events. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/probe/leftover.h"
#include "supervisor/session-private.h"

#define FIRST_TOKENS 2048
#define FIRST_TRAPS  32
/* A process that had to wait for its start and lives for so long is worth it.
 */
#define LATE_NS (100 * NSEC_PER_MSEC)
/* It is tried again so often, each time after twice as long. */
#define LATE_TRIES 4

/* So many are started although more is spent than may be, and another one each
 * second. */
#define AHEAD_NR 8
#define AHEAD_NS NSEC_PER_SEC
/* So many programs that the command itself becomes do not wait. */
#define COMMAND_EXECS 16

/* What was charged up to then is good enough to say whether one may start. */
#define ACCOUNT_NS (5 * NSEC_PER_MSEC)

static struct watched *find_watched(const struct tproc *p)
{
	return p ? tproc_user(p) : NULL;
}

static void add_coverage(struct session *s, const struct hooks_stats *st)
{
	s->not_admitted.nr_objects += st->nr_skipped;
	s->not_admitted.bytes += st->skipped_bytes;
	s->lost.nr_objects += st->nr_lost;
}

/* Guards that a process could not have (any more): what of it was not seen. */
static void note_refusal(struct session *s, const struct watched *w)
{
	struct access *both[] = {w->primary, w->guard};
	char text[400];
	for (size_t i = 0; i < ARRAY_SIZE(both) && !s->has_refusal; i++) {
		const struct access *a = both[i];
		const char *why =
			a && a->ops->refusal ? a->ops->refusal(a) : NULL;
		const char *name = a ? a->ops->name : "uffd";
		if (i && !a && w->no_guard.code)
			why = w->no_guard.msg;
		if (!why)
			continue;
		s->has_refusal = true;
		snprintf(text, sizeof(text), "no %s guards in process %d: %s",
			 name, (int)w->pid, why);
		trace_put_meta(s->trace, "refused", text);
	}
}

void session_note_foreign(struct session *s)
{
	unsigned nr = tracer_nr_foreign(s->tracer);
	struct smco_err why;
	if (!nr)
		return;
	smco_fail(&why, SMCO_UNSUPPORTED, 0,
		  "%u 32-bit program%s begun by what was watched; only 64-bit "
		  "ones can be supervised, so %s ran on unwatched",
		  nr, nr == 1 ? " was" : "s were", nr == 1 ? "it" : "they");
	trace_put_meta(s->trace, "missing", why.msg);
	if (!s->warning.code)
		s->warning = why;
}

void session_keep_space(struct session *s, struct sym_space *space)
{
	struct sym_space **spaces =
		realloc(s->spaces, (s->nr_spaces + 1) * sizeof(*s->spaces));
	if (!space || !spaces) {
		s->spaces = spaces ? spaces : s->spaces;
		return; /* if memory is out it stays, with its stacks */
	}
	s->spaces = spaces;
	s->spaces[s->nr_spaces++] = space;
}

void session_drop_watched(struct session *s, struct watched *w, bool gone)
{
	if (!w)
		return;
	w->is_gone = gone;
	if (s->samples) /* while its stacks can be unwound */
		samples_drain(s->samples);
	note_refusal(s, w);
	watched_drain(w, s->stacks);
	s->nr_unwatched += w->late_ns != 0;
	if (w->hooks) {
		struct hooks_stats st;
		hooks_get_stats(w->hooks, &st);
		add_coverage(s, &st);
	}
	session_range_drop(s, w, gone);
	session_phases_drop(s, w, gone);
	for (size_t i = 0; i < s->nr_ws; i++)
		if (s->ws[i] == w)
			s->ws[i] = s->ws[--s->nr_ws];
	struct sym_space *space = w->space;
	bool is_unused = w->late_ns && !s->samples && !sym_nr_modules(space);
	if (!is_unused)
		session_keep_space(s, space);
	tproc_set_user(w->proc, NULL);
	sym_space_retire(space);
	watched_destroy(w, gone);
	if (is_unused)
		sym_space_destroy(space);
}

static struct watched *add_watched(struct session *s, struct tproc *p,
				   bool is_young)
{
	if (s->nr_ws == s->cap_ws) {
		size_t cap = s->cap_ws ? s->cap_ws * 2 : 8;
		struct watched **ws = realloc(s->ws, cap * sizeof(*ws));
		if (!ws)
			return NULL;
		s->ws = ws;
		s->cap_ws = cap;
	}
	struct watched *w = watched_create(p, is_young, NULL);
	if (!w)
		return NULL;
	s->ws[s->nr_ws++] = w;
	tproc_set_user(p, w);
	return w;
}

/* The first process decides what the report says about the mechanism. */
static void note_mechanism(struct session *s, const struct watched *w)
{
	if (s->has_mechanism)
		return;
	s->has_mechanism = true;
	trace_put_meta(s->trace, "mechanism",
		       w->primary ? w->primary->ops->name : "none");
	if (w->why_mechanism[0])
		trace_put_meta(s->trace, "mechanism_why", w->why_mechanism);
}

/* Its first blocks live longest, a daemon's as well; few enough to be known
 * before the next tick has counted what there is to spend. */
static void give_first_tokens(const struct session *s, const struct watched *w)
{
	if (!s->opt->target_ppb || !w->hooks)
		return;
	hooks_set_tokens(w->hooks, FIRST_TOKENS);
	hooks_set_trap_tokens(w->hooks, FIRST_TRAPS);
}

static void plant(struct session *s, struct watched *w)
{
	struct smco_err err = {0};
	if (w->hooks || w->asleep || !w->nap)
		return;
	int rc = watched_plant(w, s->opt->min_size_bytes, &err);
	if (rc) {
		smco_debug("session", "pid %d: %s", (int)w->pid, err.msg);
		if (rc != SMCO_NOTFOUND && rc != SMCO_GONE)
			trace_put_meta(s->trace, "missing", err.msg);
		return;
	}
	trace_put_meta(s->trace, "sensors", hooks_describe(w->hooks));
	session_recording_room(s, w, smco_now_ns());
	give_first_tokens(s, w);
}

/*
 * A script that ends with exec after some small programs, as those that choose
 * an interpreter's version do: what it becomes is what is to be watched, from
 * its first instruction, whatever they have used up.
 */
bool session_is_asked_for(const struct session *s, const struct tevent *ev)
{
	return ev->why == TPROC_EXECED &&
	       tproc_pid(ev->proc) == s->command_pid &&
	       s->nr_command_execs <= COMMAND_EXECS;
}

static bool has_room(const struct session *s)
{
	return s->opt->is_unlimited || ledger_room_ns(s->ledger) > 0;
}

/*
 * Where children come and go all the time each start that is owed is followed
 * by the next, and what may be owed once would be owed for ever.
 */
static bool may_be_ahead(struct session *s)
{
	uint64_t now_ns = smco_now_ns();
	uint64_t from_ns = now_ns - AHEAD_NR * AHEAD_NS;
	if (s->ahead_ns < from_ns)
		s->ahead_ns = from_ns;
	if (s->ahead_ns + AHEAD_NS > now_ns)
		return false;
	s->ahead_ns += AHEAD_NS;
	return true;
}

/* What can wait, and is paid for by what the program did not do yet. */
static bool may_owe(struct session *s)
{
	return !session_is_far_overdrawn(s) && (has_room(s) || may_be_ahead(s));
}

/* Ticks may be far apart, and starts come in between. */
static void account_lately(struct session *s)
{
	uint64_t now_ns = smco_now_ns();
	if (now_ns >= s->accounted_ns + ACCOUNT_NS)
		session_account(s, now_ns);
}

/*
 * Starting to watch a process costs milliseconds, which those that live for
 * less (a shell's, a build's) are not worth, and which add up. The first few
 * are watched from their first instruction; where they come so fast that more
 * is spent than may_owe() lets them, the next have to wait. So have
 * copies (a server's, one for each client): the sensors in their memory see
 * nothing meanwhile.
 */
static bool has_to_wait(struct session *s, const struct tevent *ev)
{
	const struct watched *parent = find_watched(ev->parent);
	if (!(s->opt->monitors & MONITOR_NAP) || session_is_asked_for(s, ev))
		return false;
	if (!session_is_far_overdrawn(s))
		account_lately(s);
	if (ev->why == TPROC_FORKED)
		return (parent && parent->late_ns) || /* as its parent does */
		       !may_owe(s);
	/* Of several that we attach to the first is started at once, the others
	 * when the budget can pay for them. */
	if (ev->why == TPROC_ATTACHED)
		return s->nr_ws && !has_room(s);
	return ev->why == TPROC_EXECED && !may_owe(s);
}

/* What had to wait for its start may begin. */
static bool may_start(struct session *s, const struct watched *w)
{
	return w->is_attached ? has_room(s) : may_owe(s);
}

static void open_access(struct session *s, struct watched *w)
{
	struct smco_err err = {0};
	if (watched_open_access(w, s->opt->mechanism, s->nap, &err))
		smco_debug("session", "pid %d: %s", (int)w->pid, err.msg);
	if (w->primary && w->primary->ops->is_guard)
		session_births_follow(s);
	note_mechanism(s, w);
}

/* All tasks stopped. */
static void start_waiting_one(struct session *s, struct watched *w)
{
	struct hooks *asleep = w->asleep;
	struct smco_err err = {0};
	w->late_ns = 0;
	w->asleep = NULL;
	if (!w->nap)
		open_access(s, w);
	if (!asleep) {
		plant(s, w);
		return;
	}
	watched_update_modules(w, NULL);
	if (hooks_wake(asleep, &err)) {
		smco_debug("session", "pid %d: %s", (int)w->pid, err.msg);
		return;
	}
	w->hooks = asleep;
	session_recording_room(s, w, smco_now_ns());
}

/* What a copy has of @parent's sensors, while it waits. */
static void let_sleep(struct watched *w, const struct watched *parent)
{
	struct smco_err err = {0};
	const struct hooks *h = NULL;
	if (parent)
		h = parent->hooks ? parent->hooks : parent->asleep;
	if (h && hooks_copy(h, w->proc, &w->asleep, &err))
		smco_debug("session", "pid %d: %s", (int)w->pid, err.msg);
}

void session_start_late(struct session *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->nr_ws; i++) {
		struct watched *w = s->ws[i];
		if (!w->late_ns || now_ns < w->late_ns + LATE_NS ||
		    !may_start(s, w))
			continue;
		tracer_stops_are(s->tracer, "to start watching");
		if (tproc_stop(w->proc, NULL))
			continue;
		bool is_copy = w->asleep;
		start_waiting_one(s, w);
		/* Its libraries are not there yet, or it has no malloc. */
		if (!is_copy && !w->is_attached && !w->hooks &&
		    w->nr_tries++ < LATE_TRIES)
			w->late_ns = now_ns + (LATE_NS << w->nr_tries);
		else
			watched_adopt(w, s->opt->min_size_bytes, is_copy,
				      s->stacks, NULL);
		tproc_cont(w->proc);
		return; /* what that cost is known by the next tick */
	}
}

static void start_naps(struct session *s, struct watched *w,
		       const struct tevent *ev, bool waits)
{
	struct smco_err err = {0};
	w->is_attached = ev->why == TPROC_ATTACHED;
	if (waits) {
		w->late_ns = smco_now_ns();
		if (ev->why == TPROC_FORKED)
			let_sleep(w, find_watched(ev->parent));
		return;
	}
	open_access(s, w);
	if (ev->why == TPROC_FORKED) {
		struct watched *parent = find_watched(ev->parent);
		int rc = 0;
		watched_update_modules(w, NULL);
		if (parent && parent->hooks)
			rc = hooks_fork(parent->hooks, w->proc, &w->hooks,
					&err);
		session_recording_room(s, w, smco_now_ns());
		if (rc == SMCO_NOTFOUND)
			plant(s, w);
		else if (may_owe(s))
			give_first_tokens(s, w);
		/* Its sensors know the blocks that its parent's knew. */
		if (!rc && w->hooks && w->nap && parent->nap)
			nap_copied(w->nap, parent->nap, smco_now_ns());
		return;
	}
	plant(s, w);
	if (ev->why == TPROC_ATTACHED)
		watched_adopt(w, s->opt->min_size_bytes, false, s->stacks,
			      &err);
}

static void start_watching(struct session *s, struct tproc *p,
			   const struct tevent *ev)
{
	static const enum process_why whys[] = {
		[TPROC_LAUNCHED] = PROCESS_LAUNCHED,
		[TPROC_ATTACHED] = PROCESS_ATTACHED,
		[TPROC_FORKED] = PROCESS_FORKED,
		[TPROC_EXECED] = PROCESS_EXECED,
	};

	/* exec: what was there is gone with its memory */
	struct watched *before = find_watched(p);
	uint64_t cpu_ns = before ? before->cpu_ns : 0;
	if (ev->why == TPROC_EXECED) {
		s->nr_command_execs += tproc_pid(p) == s->command_pid;
		session_drop_watched(s, before, true);
	}
	bool waits = has_to_wait(s, ev);
	/* If one that waits is ever started its libraries are there by then. */
	if (ev->why == TPROC_EXECED && (!waits || s->range || s->phases))
		tproc_await_libs(p);
	session_samples_left(s, ev);
	session_away_is_back(s, p);
	session_emit_process(s, tproc_pid(p), whys[ev->why], -1);
	if ((ev->why == TPROC_LAUNCHED || ev->why == TPROC_EXECED) &&
	    !s->warning.code)
		tproc_explain_privilege(p, &s->warning);
	session_counters_process(s, ev);
	bool is_copy = ev->why == TPROC_FORKED;
	struct watched *w = add_watched(s, p, is_copy || before);
	if (!w)
		return;
	w->cpu_ns += cpu_ns;
	if (is_copy)
		session_name_copy(s, w, find_watched(ev->parent));
	else if (ev->why == TPROC_EXECED)
		session_name_program(s, w);
	else
		session_name(s, w);
	if (s->opt->monitors & MONITOR_NAP)
		start_naps(s, w, ev, waits);
	/* Who plants last leaves first: sensors may want the same place. A
	 * variable has other places, or is told to be seen less; a phase whose
	 * mark is not there is wrong. */
	session_phases_process(s, w, ev);
	session_range_process(s, w, ev);
}

/* What takes long for many threads, and needs none of them to stand. */
static void start_running(struct session *s, const struct tevent *ev)
{
	if (ev->why == TPROC_ATTACHED) {
		session_counters_attached(s, ev->proc);
		session_samples_attached(s, ev->proc);
	}
	session_samples_running(s, ev->proc);
}

/* It is tried so often, 200 ms each, to stop it anew. */
#define CLEAN_STOPS 50

/* A process that we attached to, whose last supervisor was killed. All its
 * tasks stand; they may run on in between. */
static void start_clean(struct session *s, struct tproc *p,
			const struct tevent *ev)
{
	struct smco_err err = {0};
	tracer_stops_are(s->tracer, "to clear what a killed smco-trace left");
	int rc = tproc_stop(p, NULL); /* at once: they do already */
	tproc_resume_new(p);
	if (leftover_remove(p, &err) < 0)
		smco_debug("session", "%s", err.msg);
	if (rc == 0)
		tproc_cont(p);
	tracer_stops_are(s->tracer, "to attach");
	rc = SMCO_BUSY;
	for (int i = 0; rc && i < CLEAN_STOPS && !s->interrupted; i++)
		rc = tproc_stop(p, &err);
	if (rc == 0) {
		start_watching(s, p, ev);
		tproc_cont(p);
		start_running(s, ev);
	} else if (!s->interrupted) {
		trace_put_meta(s->trace, "missing", err.msg);
	}
}

static void guard_hit(struct session *s, struct watched *w,
		      const struct access_hit *hit, bool is_primary)
{
	uint32_t stack = 0;
	if (hit->task && hit->stopped)
		stack = watched_stack(w, hit->task, s->stacks);
	/* An allocator writes into what it is given back, after the sensor has
	 * told of it: such a block is freed, not used. */
	session_recording_read(s);
	nap_guard_hit(w->nap, hit, stack, is_primary);
}

/* A fault or syscall stop: a guard's, or the program's own business. */
static void memory_event(struct session *s, struct tevent *ev)
{
	struct watched *w = find_watched(ev->proc);
	int sig = ev->kind == TEV_FAULT ? ev->siginfo.si_signo : 0;
	struct access *both[] = {w ? w->primary : NULL, w ? w->guard : NULL};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct access_hit hit;
		if (!both[i] || !both[i]->ops->on_event ||
		    !both[i]->ops->on_event(both[i], ev, &hit))
			continue;
		sig = 0;
		if (hit.range.user)
			guard_hit(s, w, &hit, i == 0);
		session_take_hits(s, w);
		break;
	}
	if (sig)
		tracer_stops_are(s->tracer, SESSION_PASSED_ON);
	tracer_resume(s->tracer, ev->task, sig);
}

static const char *purpose_of(const struct tevent *ev)
{
	switch (ev->kind) {
	case TEV_PROC_NEW:
		return ev->why == TPROC_ATTACHED ? "to attach"
						 : "to start watching";
	case TEV_LIBS:
		return "to plant sensors";
	case TEV_TRAP:
		return "for a call stack";
	case TEV_FAULT:
	case TEV_SYSCALL_IN:
	case TEV_SYSCALL_OUT:
	case TEV_NONE:
		return "for memory under guard";
	default:
		return SESSION_PASSED_ON;
	}
}

void session_dispatch(struct session *s, struct tevent *ev)
{
	struct watched *w = find_watched(ev->proc);
	tracer_stops_are(s->tracer, purpose_of(ev));
	switch (ev->kind) {
	case TEV_PROC_NEW:
		if (ev->why == TPROC_FORKED ||
		    (ev->why == TPROC_EXECED && ev->parent)) /* by vfork */
			session_births_seen(s);
		if (ev->why == TPROC_ATTACHED && s->has_leftovers) {
			start_clean(s, ev->proc, ev);
			break;
		}
		start_watching(s, ev->proc, ev);
		tproc_resume_new(ev->proc);
		start_running(s, ev);
		break;
	case TEV_LIBS:
		if (w && w->late_ns && !w->asleep && may_owe(s))
			start_waiting_one(s, w);
		else if (w)
			plant(s, w);
		if (w)
			session_phases_process(s, w, ev);
		if (w)
			session_range_libraries(s, w);
		tracer_resume(s->tracer, ev->task, 0);
		break;
	case TEV_TRAP:
		/* No stack: its ring was full, which is a copy now. The thread
		 * does not wait until that is read. */
		if (w && !watched_on_trap(w, ev->task, &ev->siginfo, s->stacks))
			s->recording.is_due = true;
		tracer_resume(s->tracer, ev->task, 0);
		session_recording_stack(s, w, ev->stop_ns);
		break;
	case TEV_FAULT:
	case TEV_SYSCALL_IN:
	case TEV_SYSCALL_OUT:
		memory_event(s, ev);
		break;
	case TEV_PROC_GONE:
		if (w)
			meter_ended(&s->meter, w, ev->cpu_ns);
		session_drop_watched(s, w, true);
		session_away_ended(s, tproc_pid(ev->proc));
		meter_survivors(&s->meter, s->ws, s->nr_ws);
		if (ev->is_left) {
			session_emit_process(s, tproc_pid(ev->proc),
					     PROCESS_DETACHED, -1);
			break;
		}
		if (tproc_pid(ev->proc) == s->command_pid)
			s->command_status = ev->exit_status;
		session_emit_process(s, tproc_pid(ev->proc), PROCESS_ENDED,
				     ev->exit_status);
		break;
	case TEV_LEFT_ENDED:
		session_away_ended(s, s->command_pid);
		s->command_status = ev->exit_status;
		session_emit_process(s, s->command_pid, PROCESS_ENDED,
				     ev->exit_status);
		break;
	case TEV_NONE:
		/* Perhaps a guard's reader woke us: a thread waits. */
		for (size_t i = 0; i < s->nr_ws; i++)
			if (s->ws[i]->nap)
				session_take_hits(s, s->ws[i]);
		break;
	case TEV_TASK_NEW:
	case TEV_TASK_GONE:
		session_counters_task(s, ev);
		session_range_task(s, ev);
		session_phases_task(s, ev);
		if (ev->kind == TEV_TASK_NEW)
			tracer_resume(s->tracer, ev->task, 0);
		break;
	case TEV_DONE:
		break;
	}
	tracer_stops_are(s->tracer, SESSION_PASSED_ON);
}

static void take_hits_of(struct session *s, struct watched *w, struct access *a,
			 bool is_primary)
{
	struct access_hit hit;
	if (!a || !a->ops->next_hit)
		return;
	while (a->ops->next_hit(a, &hit)) {
		guard_hit(s, w, &hit, is_primary);
		if (hit.task && hit.stopped && a->ops->resume)
			a->ops->resume(a, &hit);
	}
}

void session_take_hits(struct session *s, struct watched *w)
{
	take_hits_of(s, w, w->guard, false);
	take_hits_of(s, w, w->primary, true);
}
