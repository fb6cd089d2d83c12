/* What a session does again and again: what its time was spent on, memory
 * looked at, guards that may stand or not. */
#include <time.h>

#include "supervisor/control/fixed.h"
#include "supervisor/session-private.h"

#define FLUSH_NS       (800 * NSEC_PER_MSEC)
#define NEARBY_NS      (50 * NSEC_PER_MSEC)
#define TIME_AHEAD_NS  (200 * (int64_t)NSEC_PER_MSEC)
#define NEARBY_ROOM_NS (20 * NSEC_PER_USEC)

/* The next look nearby, after one that took @took_ns: a tenth of the budget
 * goes into them, at the most. */
static uint64_t nearby_pause_ns(const struct session *s, uint64_t took_ns)
{
	if (s->opt->is_unlimited)
		return NEARBY_NS;
	uint64_t m_t = (uint64_t)control_m_from_overhead(s->opt->target_ppb);
	uint64_t pause = took_ns * 10 * 1000 / (m_t / 1000000 + 1);
	return pause > NEARBY_NS ? pause : NEARBY_NS;
}

/* What a stop of @nr tasks is likely to cost: as much for each as stops have so
 * far, which on a busy machine is a hundred times as much as on an idle one. */
static int64_t stop_cost_ns(const struct session *s, unsigned nr)
{
	uint64_t nr_stops, longest_ns;
	meter_get_stops(&s->meter, &nr_stops, &longest_ns);
	uint64_t each = ledger_spent_ns(s->ledger, LEDGER_STOP, NAP_MONITOR) /
			(nr_stops ? nr_stops : 1);
	return (int64_t)max_u64(each * nr, NEARBY_ROOM_NS);
}

/* It stands, and is where it was computing. */
static bool tell_nearby(struct session *s, struct watched *w, struct task *t)
{
	struct user_regs_struct regs;
	if (task_get_regs(t, &regs) || (int64_t)regs.orig_rax >= 0)
		return false; /* in a system call: did not compute */
	nap_nearby(w->nap, watched_stack(w, t, s->stacks));
	return true;
}

/* *@is_known_ret: NULL is nobody, instead of somebody who is not known. */
static struct task *who_computes(struct session *s, const struct watched *w,
				 bool *is_known_ret)
{
	meter_idle_cpu(&s->meter, tracer_cpus(s->tracer));
	*is_known_ret = true;
	for (struct task *t = tproc_first_task(w->proc); t; t = task_next(t)) {
		int computes = meter_computes(&s->meter, task_tid(t));
		*is_known_ret = computes >= 0;
		if (computes > 0)
			return t;
		if (computes < 0)
			break;
	}
	return NULL;
}

/* Of all tasks, which stand for that, the first one that was computing. */
static void look_at_all(struct session *s, struct watched *w)
{
	if (tproc_stop_briefly(w->proc, NULL))
		return;
	struct task *t = tproc_first_task(w->proc);
	while (t && !tell_nearby(s, w, t))
		t = task_next(t);
	tproc_cont(w->proc);
}

/* It alone stands: to stop those that sleep wakes them up, and all that run
 * wait until the last one has stopped, where the machine is busy for
 * milliseconds. */
static void look_at_one(struct session *s, struct watched *w, struct task *t)
{
	bool was_relaxed = tracer_relax(s->tracer, false);
	if (!task_stop(t)) {
		tell_nearby(s, w, t);
		tracer_resume(s->tracer, t, 0);
	}
	tracer_relax(s->tracer, was_relaxed);
}

/*
 * Who runs at the end of a nap? Stop it for a moment and take its stack, at
 * most twenty times a second and only while there is room.
 */
static void look_nearby(struct session *s, struct watched *w, uint64_t now_ns)
{
	bool is_known;
	if (!nap_wants_nearby(w->nap) || now_ns < s->nearby_due_ns)
		return;
	struct task *t = who_computes(s, w, &is_known);
	unsigned nr = is_known ? 1 : tproc_nr_tasks(w->proc);
	if (ledger_room_ns(s->ledger) < stop_cost_ns(s, nr) ||
	    (is_known && !t) || nr > 16)
		return;
	uint64_t start_ns = smco_now_ns();
	tracer_stops_are(s->tracer, "to see who runs");
	if (t)
		look_at_one(s, w, t);
	else
		look_at_all(s, w);
	uint64_t end_ns = smco_now_ns();
	s->nearby_due_ns = end_ns + nearby_pause_ns(s, end_ns - start_ns);
}

int64_t session_budget_ppb(const struct session *s)
{
	return s->opt->is_unlimited
		       ? PPB
		       : control_m_from_overhead(s->opt->target_ppb);
}

/*
 * So far that nothing more is begun that can wait: more than the last tick
 * happened to use.
 */
bool session_is_far_overdrawn(const struct session *s)
{
	return !s->opt->is_unlimited &&
	       ledger_room_ns(s->ledger) <
		       -allowance_credit_ns(session_budget_ppb(s));
}

/* What the time since the last call was spent on. */
void session_account(struct session *s, uint64_t now_ns)
{
	uint64_t run_ns = meter_stops(&s->meter) + meter_last_words(&s->meter);
	for (size_t i = 0; i < s->nr_ws; i++)
		run_ns += meter_process(&s->meter, s->ws[i]);
	int64_t wait_ns = meter_waits(&s->meter);
	meter_share(&s->meter, now_ns, run_ns, wait_ns);
	tracer_step_aside(s->tracer,
			  meter_cpu(&s->meter, s->ws, s->nr_ws, now_ns));
	/* The share of time that is lost: of CPU time where several threads
	 * run, of the wall's where the program waits, but not for a CPU: that
	 * takes as many times longer as what it lost. Nor for SIGCONT. */
	int64_t wall_ns = (int64_t)(now_ns - s->accounted_ns) - wait_ns -
			  (int64_t)meter_stood(&s->meter);
	if (session_away_all_stand(s))
		wall_ns = 0;
	s->accounted_ns = now_ns;
	run_ns = least_add(&s->time, run_ns, wall_ns, TIME_AHEAD_NS,
			   TIME_AHEAD_NS);
	ledger_advance(s->ledger, now_ns, run_ns);
	s->run_ns += run_ns;
	session_births_account(s);
}

/* Stops that are looked at before others that came earlier, at most. */
#define UNFAIR_STOPS 32

/*
 * Guards tell of what they have met as it comes; whoever met one before now
 * must have been heard before a block is called quiet until now. Bounded, for
 * the program goes on meanwhile.
 */
static void catch_up(struct session *s)
{
	unsigned left = UNFAIR_STOPS;
	struct tevent ev;
	for (size_t i = 0; i < s->nr_ws; i++)
		left += 2 * tproc_nr_tasks(s->ws[i]->proc);
	while (left-- && tracer_next(s->tracer, 0, &ev) > 0 &&
	       ev.kind != TEV_NONE)
		session_dispatch(s, &ev);
	for (size_t i = 0; i < s->nr_ws; i++)
		if (s->ws[i]->nap)
			session_take_hits(s, s->ws[i]);
}

static bool uses_guards(const struct session *s)
{
	for (size_t i = 0; i < s->nr_ws; i++)
		if (s->ws[i]->primary && s->ws[i]->primary->ops->is_guard)
			return true;
	return false;
}

/* Guards that cost the program by standing, and may stand now. */
bool session_has_standing(const struct session *s)
{
	for (size_t i = 0; s->duty.is_on && i < s->nr_ws; i++)
		if (s->ws[i]->primary && s->ws[i]->primary->ops->relax)
			return true;
	return false;
}

/* May they go on, or begin? */
static void keep_or_relax(struct session *s, uint64_t now_ns)
{
	struct ledger_totals t;
	ledger_get(s->ledger, &t);
	const struct duty_state state = {
		.now_ns = now_ns,
		.spent_ns = t.spent_ns,
		.room_ns = ledger_quiet_room_ns(s->ledger),
		.window_room_ns = ledger_quiet_window_ns(s->ledger),
		.window_most_ns = ledger_window_most_ns(s->ledger),
	};
	bool had = session_has_standing(s);
	bool may_stand = duty_step(&s->duty, &state);
	/* Naps that are just complete. */
	if (had && !may_stand) {
		catch_up(s);
		nap_look(s->nap, now_ns);
	}
	for (size_t i = 0; i < s->nr_ws; i++)
		watched_let_stand(s->ws[i], may_stand);
}

/* Between ticks, which may be far apart: their cost runs on. */
void session_check_standing(struct session *s, uint64_t now_ns)
{
	session_account(s, now_ns);
	keep_or_relax(s, now_ns);
	s->next_check_ns = now_ns + s->tick_ns;
}

/* It takes as long as a slice of a tick does, but for one that was held up. */
#define MOMENT_NS (5 * NSEC_PER_MSEC)

/* See to those who stop, up to @until_ns. */
static void attend(struct session *s, uint64_t until_ns)
{
	struct tevent ev;
	tracer_stops_are(s->tracer, SESSION_PASSED_ON);
	while (!s->interrupted && tracer_next(s->tracer, until_ns, &ev) > 0) {
		session_dispatch(s, &ev);
		if (smco_now_ns() >= until_ns)
			break;
	}
}

/*
 * Nobody is to wait for a CPU because of this: where another one is idle, it is
 * done there, and who of the program wakes up meanwhile goes before. Where all
 * are in use that could make it last, for those who stop by themselves, too,
 * so then it is done as if they had. Guards are met in the middle of it.
 */
static void go_aside(struct session *s, uint64_t now_ns)
{
	int cpu = meter_idle_cpu(&s->meter, tracer_cpus(s->tracer));
	bool is_alone = tracer_go_aside(s->tracer, cpu);
	uint64_t by_themselves =
		tracer_nr_stops(s->tracer) - tracer_nr_asked(s->tracer);
	bool is_quiet = quiet_now(&s->quiet, by_themselves, now_ns);
	tracer_relax(s->tracer, is_alone && is_quiet && !uses_guards(s));
}

static bool work_aside(struct session *s, uint64_t now_ns)
{
	go_aside(s, now_ns);
	bool goes_on = nap_tick(s->nap, now_ns);
	tracer_relax(s->tracer, false);
	return goes_on;
}

/*
 * With 50 000 blocks this takes 100 ms. Those who stop by themselves are not to
 * wait for its end, and neither are those who want the CPU that we are on, for
 * it is the program's: every other moment is theirs.
 */
static void look_at_memory(struct session *s, uint64_t now_ns)
{
	for (;;) {
		tracer_stops_are(s->tracer, "to look at memory");
		if (!work_aside(s, now_ns) || s->interrupted)
			break;
		uint64_t done_ns = smco_now_ns();
		uint64_t took_ns = done_ns - now_ns;
		attend(s,
		       done_ns + (took_ns < MOMENT_NS ? took_ns : MOMENT_NS));
		if (uses_guards(s))
			catch_up(s);
		now_ns = smco_now_ns();
	}
}

void session_tick(struct session *s, uint64_t now_ns)
{
	if (uses_guards(s))
		catch_up(s);
	uint64_t wall_ns = now_ns - s->ticked_ns;
	s->ticked_ns = now_ns;
	s->gap_ns = wall_ns > s->tick_ns ? wall_ns : s->tick_ns;
	session_account(s, now_ns);
	control_tick(s->control, now_ns, s->run_ns);
	s->run_ns = 0;

	go_aside(s, now_ns);
	session_births_tick(s, now_ns);
	session_start_late(s, now_ns);
	session_names_tick(s, now_ns);
	keep_or_relax(s, now_ns);
	session_recording_read(s);
	look_at_memory(s, now_ns);
	go_aside(s, now_ns);
	session_recording_advance(s);
	for (size_t i = 0; i < s->nr_ws; i++) {
		struct watched *w = s->ws[i];
		if (!w->nap)
			continue;
		if (s->opt->mechanism == MECHANISM_AUTO &&
		    nap_wants_guard(w->nap) &&
		    ledger_room_ns(s->ledger) >=
			    stop_cost_ns(s, tproc_nr_tasks(w->proc))) {
			if (!w->guard_tried)
				session_births_follow(s);
			watched_open_guard(w);
		}
		look_nearby(s, w, now_ns);
		session_take_hits(s, w);
		if (w->hooks) {
			session_recording_room(s, w, now_ns);
			session_recording_refill(s, w);
		}
	}
	if (now_ns >= s->next_flush_ns) {
		session_flush(s, now_ns);
		s->next_flush_ns = now_ns + FLUSH_NS;
	}
	tracer_relax(s->tracer, false);
}

/* Between ticks of a program that stands. */
#define STANDS_NS (250 * NSEC_PER_MSEC)

/* Since @began_ns there was one. While all stand at stop signals there is
 * nothing new to be seen, at the cost of a CPU that others may want. */
uint64_t session_next_tick(struct session *s, uint64_t began_ns)
{
	s->stands = tracer_all_stand(s->tracer);
	uint64_t next =
		pace_next_ns(&s->pace, s->tick_cpu_ns,
			     smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
			     s->meter.taken_ns, ledger_room_ns(s->ledger));
	/* The shortest is from the end of one to the beginning of the next. */
	uint64_t soonest = smco_now_ns() + s->tick_ns;
	if (s->stands)
		soonest += STANDS_NS;
	return began_ns + next > soonest ? began_ns + next : soonest;
}

/* One goes on: it has touched nothing yet that was not looked at. */
void session_note_stands(struct session *s, uint64_t now_ns)
{
	if (!s->stands || tracer_all_stand(s->tracer))
		return;
	s->stands = false;
	s->next_tick_ns = now_ns;
}
