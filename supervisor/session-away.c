/*
 * Processes that are let go for a while. Whoever is traced stops for each of
 * its signals, whatever for: a shell for the end of each of its children,
 * though those are not followed. Where that costs more than the budget has room
 * for, and nothing else is left to be left out, the process is left alone, as
 * at the end of all (detach, nothing of ours stays), and attached to again when
 * there is room. Meanwhile it is on the kernel's list of those that are not
 * followed (unfollowed.h), by which its end is known, what it has done, and its
 * children.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/procfs.h"
#include "supervisor/control/fixed.h"
#include "supervisor/session-private.h"

/* So long what stops it is looked at, and so often in a row it is too dear. */
#define LOOK_NS (50 * NSEC_PER_MSEC)
#define NR_DEAR 2
/* So few are not worth it. */
#define MIN_STOPS 4
/* What a stop is taken to cost at the most, before what it loses by it. */
#define MAX_STOP_NS (200 * NSEC_PER_USEC)
/* Of what a thread that stops for a signal loses, the clock of stops sees a
 * half: it also goes on later, and elsewhere. */
#define LOSS 2
/* It is not let go again and again, and does not come for nothing. */
#define MIN_PAUSE_NS (NSEC_PER_SEC / 2)
#define MAX_PAUSE_NS (8 * NSEC_PER_SEC)
#define STAYED_NS    (2 * NSEC_PER_SEC)
#define MIN_PRICE_NS (10 * NSEC_PER_MSEC)
/* Where nobody tells of the end of what we attached to it is looked for. */
#define WAIT_NS (20 * NSEC_PER_MSEC)

static struct away *find(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < s->away.nr; i++)
		if (s->away.of[i].pid == pid)
			return &s->away.of[i];
	return NULL;
}

static struct away *get(struct session *s, pid_t pid)
{
	struct absences *all = &s->away;
	struct away *a = find(s, pid);
	if (a)
		return a;
	if (all->nr_slots == UNFOLLOWED_LET_GO)
		return NULL;
	struct away *of = reallocarray(all->of, all->nr + 1, sizeof(*of));
	if (!of)
		return NULL;
	all->of = of;
	a = &of[all->nr++];
	all->slot_pid[++all->nr_slots] = pid;
	*a = (struct away){
		.pid = pid,
		.slot = all->nr_slots,
		.pause_ns = MIN_PAUSE_NS,
		.price_ns = MIN_PRICE_NS,
	};
	return a;
}

void session_away_destroy(struct session *s)
{
	free(s->away.of);
}

bool session_away_was(const struct session *s, pid_t pid)
{
	return find(s, pid);
}

static void note_back(struct session *s, struct away *a)
{
	a->is = IS_HERE;
	a->came_ns = smco_now_ns();
	s->away.ns += a->came_ns - a->went_ns;
}

void session_away_ended(struct session *s, pid_t pid)
{
	struct away *a = find(s, pid);
	if (!a)
		return;
	if (a->is != IS_HERE) {
		unfollowed_forget(s->births.list, pid);
		note_back(s, a);
	}
	*a = s->away.of[--s->away.nr];
}

uint64_t session_away_ns(const struct session *s)
{
	uint64_t ns = s->away.ns, now_ns = smco_now_ns();
	for (size_t i = 0; i < s->away.nr; i++)
		if (s->away.of[i].is != IS_HERE)
			ns += now_ns - s->away.of[i].went_ns;
	return ns;
}

bool session_away_stands(const struct session *s, pid_t pid)
{
	const struct away *a = find(s, pid);
	char path[PROCFS_PATH], buf[512];
	if (!a || a->is != IS_AWAY)
		return false;
	procfs_path(path, sizeof(path), pid, "stat");
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return false;
	const char *p = strrchr(buf, ')');
	return p && p[1] && p[2] == 'T';
}

bool session_away_all_stand(const struct session *s)
{
	bool any = false;
	for (size_t i = 0; i < s->away.nr && !s->nr_ws; i++) {
		any |= s->away.of[i].is == IS_AWAY;
		if (!session_away_stands(s, s->away.of[i].pid))
			return false;
	}
	return any;
}

/* --- going --- */

/* As at the end of all. @w's tasks stand. */
static int leave(struct session *s, struct watched *w, struct smco_err *err)
{
	struct tproc *p = w->proc;
	pid_t pid = w->pid;
	session_name(s, w);
	session_emit_process(s, pid, PROCESS_DETACHED, -1);
	session_drop_watched(s, w, false);
	/* Born while a thread was let run, to leave what is planted. */
	tracer_leave_newborn(s->tracer);
	if (s->counters)
		counters_leave_births(s->counters, smco_now_ns());
	for (struct task *t = tproc_first_task(p); t && s->counters;
	     t = task_next(t)) {
		counters_gone(s->counters, task_tid(t), smco_now_ns());
		unfollowed_count_from(s->births.list, task_tid(t));
	}
	session_births_count(s, false);
	return tproc_let_go(p, err);
}

static bool let_go(struct session *s, struct watched *w)
{
	struct smco_err err = {0};
	struct unfollowed *list = s->births.list;
	struct away *a = get(s, w->pid);
	uint64_t began_ns = smco_now_ns();
	tracer_stops_are(s->tracer, "to let a process go for a while");
	if (!a || tproc_stop_briefly(w->proc, &err))
		return false;
	if (!tproc_may_go(w->proc) ||
	    unfollowed_let_go(list, w->pid, a->slot, &err)) {
		tproc_cont(w->proc);
		return false;
	}
	bool is_often = a->came_ns && began_ns < a->came_ns + STAYED_NS;
	a->pause_ns = is_often ? min_u64(2 * a->pause_ns, MAX_PAUSE_NS)
			       : MIN_PAUSE_NS;
	a->is = IS_AWAY;
	a->nr_execs = 0;
	s->away.nr_times++;
	if (leave(s, w, &err) && !s->warning.code)
		smco_fail(&s->warning, SMCO_BUSY, 0, "process %d: %s",
			  (int)a->pid, err.msg);
	a->went_ns = smco_now_ns();
	a->price_ns = max_u64(2 * (a->went_ns - began_ns), MIN_PRICE_NS);
	smco_debug("session", "pid %d is let go for a while: %u us",
		   (int)a->pid,
		   (unsigned)((a->went_ns - began_ns) / NSEC_PER_USEC));
	return true;
}

/* One stop's cost by the last look's, ns. */
static uint64_t stop_cost_ns(struct session *s)
{
	struct absences *all = &s->away;
	uint64_t nr, longest_ns,
		spent = ledger_spent_ns(s->ledger, LEDGER_STOP, NAP_MONITOR);
	meter_get_stops(&s->meter, &nr, &longest_ns);
	uint64_t d_nr = nr > all->nr_stops ? nr - all->nr_stops : 0;
	uint64_t d_ns = spent > all->stops_ns ? spent - all->stops_ns : 0;
	all->nr_stops = nr;
	all->stops_ns = spent;
	return d_nr ? min_u64(d_ns / d_nr, MAX_STOP_NS) : 0;
}

/* Did @nr stops in @time_ns, @each_ns each, cost more than may be? */
static bool is_dear(const struct session *s, uint64_t nr, uint64_t each_ns,
		    uint64_t time_ns)
{
	return LOSS * nr * each_ns >
	       (uint64_t)allowance_budget_ns(time_ns, session_budget_ppb(s));
}

static void look_at(struct session *s, struct watched *w, uint64_t each_ns,
		    uint64_t time_ns)
{
	uint64_t so_far = tproc_nr_unwanted(w->proc);
	uint64_t nr = so_far - min_u64(w->nr_unwanted, so_far);
	w->nr_unwanted = so_far;
	bool dear = nr >= MIN_STOPS && ledger_room_ns(s->ledger) <= 0 &&
		    is_dear(s, nr, each_ns, time_ns);
	w->nr_dear = dear ? w->nr_dear + 1 : 0;
	s->births.wants_list |= dear;
	if (w->nr_dear < NR_DEAR || !s->births.list ||
	    unfollowed_is_full(s->births.list))
		return;
	pid_t pid = w->pid;
	if (let_go(s, w))
		find(s, pid)->each_ns = each_ns;
}

/* --- coming back --- */

bool session_away_is_back(struct session *s, struct tproc *p)
{
	struct away *a = find(s, tproc_pid(p));
	if (!a || a->is != IS_COMING)
		return false;
	for (struct task *t = tproc_first_task(p); t && s->counters;
	     t = task_next(t))
		unfollowed_count_to(s->births.list, task_tid(t), a->slot);
	unfollowed_forget(s->births.list, a->pid);
	note_back(s, a);
	return true;
}

/* False: not now. */
static bool seize(struct session *s, struct away *a)
{
	struct smco_err err = {0};
	if (a->is == IS_AWAY && (unfollowed_shares(s->births.list, a->pid) ||
				 tracer_seize(s->tracer, a->pid, &err))) {
		smco_debug("session", "pid %d: %s", (int)a->pid, err.msg);
		return false;
	}
	a->is = IS_COMING;
	tracer_stops_are(s->tracer, "to attach");
	if (tracer_stop_seized(s->tracer, &err) >= 0)
		return true;
	smco_debug("session", "pid %d: %s", (int)a->pid, err.msg);
	a->is = IS_AWAY;
	return false;
}

/* As much as its going and coming cost, and all that was owed is paid. */
static bool has_earned(const struct session *s, const struct away *a,
		       uint64_t now_ns)
{
	int64_t earned_ns =
		allowance_budget_ns(now_ns - a->went_ns, session_budget_ppb(s));
	return ledger_room_ns(s->ledger) > 0 &&
	       earned_ns >= (int64_t)a->price_ns;
}

/* Is there room for it, and for what it stops for? @nr_born: children of such
 * ones since the last look, @time_ns ago. */
static bool may_come(const struct session *s, const struct away *a,
		     unsigned nr_execs, uint64_t nr_born, uint64_t time_ns)
{
	uint64_t now_ns = smco_now_ns();
	if (a->is == IS_COMING)
		return true;
	/* What a script ends with is what is to be watched. */
	if (nr_execs > a->nr_execs && a->pid == s->command_pid)
		return s->opt->target_ppb;
	return now_ns >= a->went_ns + a->pause_ns && has_earned(s, a, now_ns) &&
	       !is_dear(s, nr_born, a->each_ns, time_ns);
}

/* Of the command the tracer tells it. */
static void note_end(struct session *s, pid_t pid, int exit_status)
{
	if (pid == s->command_pid)
		return;
	session_away_ended(s, pid);
	if (exit_status >= 0)
		session_emit_process(s, pid, PROCESS_ENDED, exit_status);
}

/* One at a time: what that cost is known by the next look. */
static void look_for_who_comes(struct session *s, uint64_t nr_born,
			       uint64_t time_ns)
{
	for (size_t i = s->away.nr; i-- > 0;) {
		struct away *a = &s->away.of[i];
		unsigned nr_execs = 0;
		int exit_status;
		if (a->is == IS_HERE)
			continue;
		if (!unfollowed_lives(s->births.list, a->pid, &nr_execs,
				      &exit_status)) {
			note_end(s, a->pid, exit_status);
			continue;
		}
		if (!may_come(s, a, nr_execs, nr_born, time_ns))
			continue;
		a->nr_execs = nr_execs;
		if (!seize(s, a))
			a->pause_ns += MIN_PAUSE_NS;
		return;
	}
}

/* Stops that nobody here asked for. */
static uint64_t nr_by_themselves(const struct session *s)
{
	return tracer_nr_stops(s->tracer) - tracer_nr_asked(s->tracer);
}

static bool may_go(const struct session *s)
{
	return s->births.may_leave && !s->births.is_over;
}

uint64_t session_away_due_ns(const struct session *s)
{
	const struct absences *all = &s->away;
	bool any = nr_by_themselves(s) != all->nr_own;
	for (size_t i = 0; i < all->nr; i++)
		any |= all->of[i].is != IS_HERE;
	return any && may_go(s) ? all->looked_ns + LOOK_NS : UINT64_MAX;
}

void session_away_tick(struct session *s, uint64_t now_ns)
{
	struct absences *all = &s->away;
	uint64_t time_ns = now_ns - all->looked_ns;
	if (!may_go(s) || time_ns < LOOK_NS)
		return;
	bool is_first = !all->looked_ns;
	uint64_t each_ns = stop_cost_ns(s), born = all->nr_born;
	all->looked_ns = now_ns;
	all->nr_own = nr_by_themselves(s);
	all->nr_born = s->births.list ? unfollowed_nr_born(s->births.list) : 0;
	if (is_first) {
		for (size_t i = 0; i < s->nr_ws; i++)
			s->ws[i]->nr_unwanted =
				tproc_nr_unwanted(s->ws[i]->proc);
		return;
	}
	look_for_who_comes(s, all->nr_born - born, time_ns);
	for (size_t i = s->nr_ws; i-- > 0;)
		look_at(s, s->ws[i], each_ns, time_ns);
}

bool session_away_wait(struct session *s, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	unsigned nr_execs;
	int exit_status;
	bool any = false;
	for (size_t i = s->away.nr; i-- > 0;) {
		const struct away *a = &s->away.of[i];
		if (a->is != IS_AWAY)
			continue;
		if (unfollowed_lives(s->births.list, a->pid, &nr_execs,
				     &exit_status))
			any = true;
		else
			note_end(s, a->pid, exit_status);
	}
	if (any && !s->interrupted && smco_now_ns() < until_ns)
		nanosleep(&pause, NULL);
	return any;
}
