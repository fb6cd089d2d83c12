/*
 * Births of processes as something that has its price: each stops its parent,
 * and the newborn itself at its start, at each exec and at its end, which takes
 * longer than a short program does. Where the budget has no room for that they
 * are not followed, and the kernel keeps a list of who was born so. Those that
 * live on are attached to when there is room again.
 *
 * What a copy has of its parent's plants harms it as little as it would if we
 * had been killed (hook.h, range.h). Guards would, so with those all births are
 * followed; so they are where something is counted of each child that the
 * kernel neither keeps by itself nor has it inherit.
 */
#include <time.h>

#include "supervisor/probe/leftover.h"
#include "supervisor/session-private.h"

/* Who lives for so long is worth it. */
#define AGE_NS (100 * NSEC_PER_MSEC)
/* So many are looked at to find one that is still there. */
#define MAX_LOOKS 16
/* Parents that have not stopped by themselves by then are told of it. */
#define TELL_NS (100 * NSEC_PER_MSEC)

static bool is_shared(void *session, pid_t pid)
{
	const struct session *s = session;
	return s->births.list && unfollowed_shares(s->births.list, pid);
}

void session_births_create(struct session *s, struct tracer_options *topt)
{
	const struct options *o = s->opt;
	const unsigned can =
		MONITOR_NAP | MONITOR_RANGE |
		(s->counters && counters_may_leave_births(s->counters)
			 ? MONITOR_COUNTERS
			 : 0);
	s->births.may_leave = o->follow && !topt->kill_on_exit &&
			      !o->is_unlimited && !(o->monitors & ~can);
	if (!s->births.may_leave)
		return;
	topt->is_shared = is_shared;
	topt->is_shared_ctx = s;
}

void session_births_destroy(struct session *s)
{
	unfollowed_close(s->births.list);
	s->births.list = NULL;
}

static bool has_guards(const struct session *s)
{
	for (size_t i = 0; i < s->nr_ws; i++) {
		const struct watched *w = s->ws[i];
		if (w->guard || (w->primary && w->primary->ops->is_guard))
			return true;
	}
	return false;
}

/*
 * While they are left, what still stops are threads that have got a signal,
 * each of a child that has ended. Whoever answers that in real time takes the
 * CPU that it woke up on from the next child, though another one may be idle.
 */
static void set_left(struct session *s, bool are_left)
{
	struct births *b = &s->births;
	if (are_left == b->are_left)
		return;
	b->are_left = are_left;
	b->changed_ns = smco_now_ns();
	b->is_told = false;
	if (are_left && s->counters)
		counters_leave_births(s->counters, b->changed_ns);
	tracer_follow_births(s->tracer, !are_left);
	tracer_follow_cpu(s->tracer, !are_left);
	tracer_urgent(s->tracer, !are_left);
}

void session_births_follow(struct session *s)
{
	set_left(s, false);
}

bool session_births_are_left(const struct session *s)
{
	return s->births.are_left;
}

void session_births_account(struct session *s)
{
	struct births *b = &s->births;
	if (!b->may_leave || b->is_over)
		return;
	bool wants = ledger_room_ns(s->ledger) <= 0 && !has_guards(s);
	b->wants_list |= wants && b->nr_seen > 0;
	set_left(s, wants && b->list && !unfollowed_is_full(b->list));
}

void session_births_seen(struct session *s)
{
	s->births.nr_seen++;
}

/* Follow @pid, which is on the list. False: it has gone, or cannot be. */
static bool take(struct session *s, pid_t pid)
{
	struct smco_err err = {0};
	int rc = tracer_seize(s->tracer, pid, &err);
	struct tproc *p = rc ? NULL : tracer_proc_of(s->tracer, pid);
	/* It leaves the list before its number can be another's. */
	bool was_there = unfollowed_forget(s->births.list, pid);
	if (rc || !p) {
		smco_debug("session", "pid %d: %s", (int)pid, err.msg);
		return false;
	}
	if (!was_there) {
		tproc_detach(p, NULL);
		return false;
	}
	s->births.nr_taken++;
	s->has_leftovers |= leftover_is_there(p);
	tracer_stops_are(s->tracer, "to attach");
	return tracer_stop_seized(s->tracer, &err) > 0;
}

static bool take_one(struct session *s, uint64_t before_ns)
{
	pid_t pids[MAX_LOOKS];
	size_t nr = unfollowed_list(s->births.list, before_ns, pids, MAX_LOOKS);
	for (size_t i = 0; i < nr; i++)
		if (take(s, pids[i]))
			return true;
	return false;
}

bool session_births_take(struct session *s)
{
	return s->births.list && take_one(s, smco_now_ns());
}

void session_births_tick(struct session *s, uint64_t now_ns)
{
	struct births *b = &s->births;
	struct smco_err err = {0};
	if (b->wants_list && !b->list) {
		b->wants_list = false;
		if (unfollowed_open(s->counters != NULL, &b->list, &err)) {
			smco_debug("session", "%s", err.msg);
			b->may_leave = false;
		}
		session_births_account(s);
		return;
	}
	session_births_count(s, false);
	if (!b->list || b->are_left)
		return;
	if (!b->is_told && now_ns >= b->changed_ns + TELL_NS) {
		b->is_told = true;
		tracer_stops_are(s->tracer, "to follow births again");
		tracer_tell_births(s->tracer);
	}
	take_one(s, now_ns - AGE_NS);
}

/* So long those who end are waited for, in all and at a time. */
#define ENDS_NS	     (10 * NSEC_PER_MSEC)
#define ENDS_EACH_NS (100 * NSEC_PER_USEC)

static void await_ends(const struct unfollowed *list)
{
	const struct timespec pause = {.tv_nsec = ENDS_EACH_NS};
	uint64_t until_ns = smco_now_ns() + ENDS_NS;
	while (unfollowed_some_end(list) && smco_now_ns() < until_ns)
		nanosleep(&pause, NULL);
}

bool session_births_took(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < s->opt->nr_pids; i++)
		if (s->opt->pids[i] == pid)
			return false;
	return s->births.nr_taken != 0 && !session_away_was(s, pid);
}

static void count_slot(struct session *s, unsigned slot, pid_t pid, pid_t tid)
{
	const struct unfollowed_counts all =
		unfollowed_counts(s->births.list, slot);
	const struct counter_past past = {
		.minor_faults = all.minor_faults,
		.major_faults = all.major_faults,
		.switches = all.switches,
		.migrations = all.migrations,
		.run_ns = all.run_ns,
	};
	counters_unfollowed(s->counters, slot, pid, tid, &past, smco_now_ns());
}

void session_births_count(struct session *s, bool is_last)
{
	const struct unfollowed *list = s->births.list;
	const struct absences *away = &s->away;
	if (!list || !s->counters)
		return;
	if (is_last)
		await_ends(list);
	count_slot(s, 0, s->opt->nr_pids ? s->opt->pids[0] : s->command_pid, 0);
	for (unsigned i = 1; i <= away->nr_slots; i++)
		count_slot(s, i, away->slot_pid[i], away->slot_pid[i]);
}

void session_births_end(struct session *s)
{
	s->births.is_over = true;
	set_left(s, false);
	if (s->births.list)
		tracer_tell_births(s->tracer);
}

uint64_t session_births_nr_left(const struct session *s)
{
	const struct births *b = &s->births;
	uint64_t nr = b->list ? unfollowed_nr_born(b->list) : 0;
	return nr > b->nr_taken ? nr - b->nr_taken : 0;
}
