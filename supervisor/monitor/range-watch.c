/*
 * Variables in memory that others write to through pointers, by watchpoints,
 * and sites where no sensor has room, by breakpoints: four words at a time, in
 * turn, as plants of a controller. A word that is
 * written often is switched off by the kernel when it has cost what there was
 * room for, and is due again when the controller says; one that sits still
 * leaves when others wait. Without a limit sites that are few enough stay in:
 * nobody else sees what they do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/procfs.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* How long a word has its turn where others wait. Longer where arming takes
 * long: it may take such a part of the target. */
#define TURN_NS	  (40 * NSEC_PER_MSEC)
#define ARM_SHARE 8
#define TICK_NS	  (20 * NSEC_PER_MSEC)
#define QUICK_NS  (4 * NSEC_PER_MSEC) /* while there are hits */
/* Where nothing happens, and many look: then it takes this part of the target
 * at most, but is not much longer than usual until something is seen. */
#define LOOKS_SHARE 8
#define LONGEST_NS  (100 * NSEC_PER_MSEC)
#define INTERVAL_NS (100 * NSEC_PER_MSEC) /* as range-duty.c's */
#define RETRY_NS    NSEC_PER_SEC	  /* no register was free */
#define FIRST_HITS  32 /* before there is a budget to speak of */
#define MOST_HITS   (1 << 16)
/* What one word may use of the room there is. */
#define ROOM_SHARE 4

/* --- in a process --- */

void range_watch_open(struct range_monitor *m)
{
	struct smco_err err = {0}, own = {0};
	if (m->watch_tried || !m->p.target_overhead_ppb)
		return;
	m->watch_tried = true;
	int rc = watchpoints_open(&m->watchpoints, &err);
	if (rc && m->p.ptrace_watch &&
	    watchpoints_open_by_ptrace(&m->watchpoints, &own))
		err = own;
	m->may_ask = rc == SMCO_PERM && !m->p.ptrace_watch;
	if (rc)
		snprintf(m->why_no_watch, sizeof(m->why_no_watch), "%s",
			 err.msg);
	smco_debug("range", "watchpoints: %s",
		   !m->watchpoints			      ? m->why_no_watch
		   : watchpoints_stop_threads(m->watchpoints) ? "by ptrace"
		   : watchpoints_have_bpf(m->watchpoints)     ? "in the kernel"
							      : "without BPF");
}

/* What was written to the word of @reg, to rp->value. */
static void take_in(struct range_part *rp, const struct range_register *reg)
{
	const struct range_word *w = &rp->unit->words[reg->word];
	uint32_t how = w->is_insn ? RANGE_BREAKPOINT : RANGE_WATCHPOINT;
	int64_t smallest, largest;
	for (uint32_t k = 0; k < w->nr; k++)
		if (watchpoint_read(reg->w, k, &smallest, &largest))
			range_value_add(&rp->value[w->var[k]],
					range_type_at(rp->unit, w->var[k]),
					smallest, largest, how);
}

void range_watch_collect(struct range_part *rp)
{
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		if (rp->reg[i].w)
			take_in(rp, &rp->reg[i]);
}

static uint64_t own_cpu_ns(void)
{
	return smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t range_watch_charge(struct range_monitor *m, uint64_t since_cpu_ns)
{
	uint64_t ns = own_cpu_ns() - since_cpu_ns;
	ledger_charge(m->ledger, LEDGER_ARM, RANGE_WATCH_MONITOR, ns);
	return ns;
}

/* Returns ns charged. */
static uint64_t charge_arming(struct range_monitor *m, uint64_t since_cpu_ns)
{
	uint64_t ns = range_watch_charge(m, since_cpu_ns);
	m->arm_ns = m->arm_ns ? (m->arm_ns * 7 + ns) / 8 : ns;
	return ns;
}

/* Its hits since the last time: to the ledger. */
static uint64_t charge_hits(struct range_monitor *m, struct range_part *rp,
			    struct range_register *reg)
{
	uint64_t hits, ns = watchpoint_take_cost_ns(reg->w, &hits);
	reg->cycle_cost_ns += ns;
	rp->turns[reg->word].hits += hits;
	m->nr_hits += hits;
	m->hits_ns += ns;
	rp->hits_own_ns += hits * watchpoints_own_ns(m->watchpoints);
	/* Stops are charged as such. */
	if (watchpoints_stop_threads(m->watchpoints))
		ns = hits * watchpoints_untold_ns(m->watchpoints);
	ledger_charge(m->ledger, LEDGER_TOUCH, RANGE_WATCH_MONITOR, ns);
	return hits;
}

uint64_t range_seen_until(const struct range_register *reg, uint64_t now_ns)
{
	return max_u64(min_u64(watchpoint_spent_ns(reg->w), now_ns),
		       reg->since_ns);
}

/* The controller learns what it cost since it did last. */
static void end_cycle(struct range_part *rp, struct range_register *reg,
		      uint64_t now_ns)
{
	plant_t id = rp->turns[reg->word].plant;
	uint64_t p_ns = reg->cycle_cost_ns;
	uint64_t armed_ns = sat_sub_u64(now_ns, reg->cycle_ns);
	if (p_ns)
		control_event(rp->turn_control, id, now_ns,
			      sat_sub_u64(armed_ns, p_ns), p_ns);
	else
		control_disarm(rp->turn_control, id, now_ns, now_ns);
	reg->cycle_ns = now_ns;
	reg->cycle_cost_ns = 0;
}

static void leave(struct range_monitor *m, struct range_part *rp,
		  struct range_register *reg, uint64_t now_ns)
{
	uint64_t start_ns = own_cpu_ns();
	struct watchpoint *w = reg->w;
	rp->turns[reg->word].watched_ns +=
		range_seen_until(reg, now_ns) - reg->since_ns;
	watchpoint_stop(w);
	take_in(rp, reg);
	charge_hits(m, rp, reg);
	/* One that was hit comes back when arming it is paid for, too, and
	 * taking it out, which takes as long; others by turns. */
	if (reg->cycle_cost_ns)
		reg->cycle_cost_ns += 2 * reg->armed_cost_ns;
	end_cycle(rp, reg, now_ns);
	reg->w = NULL;
	watchpoint_disarm(w);
	charge_arming(m, start_ns);
}

/* What a word may be hit now, in all threads together. */
static int64_t hits_in_room(const struct range_monitor *m, int64_t room_ns)
{
	if (target_is_unlimited(m->p.target_overhead_ppb))
		return INT64_MAX;
	int64_t hits = room_ns / ROOM_SHARE /
		       (int64_t)watchpoints_hit_ns(m->watchpoints);
	return clamp_i64(hits, 0, MOST_HITS);
}

/* In one process, which is told at the end. */
static void note_why_not(struct range_monitor *m, const struct smco_err *err)
{
	snprintf(m->why_not_all, sizeof(m->why_not_all), "%s", err->msg);
}

/* @word gets the register: 0, SMCO_BUSY where there is none for it, ... */
static int come(struct range_monitor *m, struct range_part *rp,
		struct range_register *reg, uint32_t word, int64_t hits)
{
	struct smco_err err = {0};
	struct watch_what what;
	uint64_t start_ns = own_cpu_ns();
	if (!range_word_what(rp, word, &what) ||
	    (what.nr_pointers && !watchpoints_know_pointers(m->watchpoints)))
		return SMCO_NOTFOUND;
	int rc = watchpoint_arm(&reg->w, m->watchpoints, rp->proc, &what, hits,
				&err);
	reg->armed_cost_ns = charge_arming(m, start_ns);
	if (rc) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		if (rc == SMCO_UNSUPPORTED)
			note_why_not(m, &err);
		reg->w = NULL;
		return rc;
	}
	reg->word = word;
	reg->since_ns = reg->cycle_ns = smco_now_ns();
	reg->cycle_cost_ns = 0;
	reg->what = what;
	control_armed(rp->turn_control, rp->turns[word].plant, reg->since_ns);
	/* What it was before the first write. */
	if (range_pointee_at(rp->unit, rp->unit->words[word].var[0]))
		range_pointee_look(rp, rp->unit->words[word].var[0], &what);
	return 0;
}

/* Does @word, once it has a register, keep it? One is left for variables. */
static bool stays(const struct range_monitor *m, const struct range_part *rp,
		  size_t word)
{
	const struct range_unit *u = rp->unit;
	bool others = u->nr_words > u->nr_insns;
	return target_is_unlimited(m->p.target_overhead_ppb) &&
	       u->words[word].is_insn && u->nr_insns + others <= rp->nr_regs;
}

/* Those that stay come first. */
static void fill_for_good(struct range_monitor *m, struct range_part *rp,
			  int64_t hits)
{
	unsigned i = 0;
	for (uint32_t word = 0; word < rp->nr_turns; word++) {
		if (!stays(m, rp, word))
			continue;
		while (i < rp->nr_regs && rp->reg[i].w)
			i++;
		if (i < rp->nr_regs)
			(void)come(m, rp, &rp->reg[i], word, hits);
	}
}

/* Those whose turn it is get the registers that are free. */
static void fill(struct range_monitor *m, struct range_part *rp,
		 uint64_t now_ns, int64_t hits)
{
	plant_t id;
	for (unsigned i = 0; i < rp->nr_regs && hits > 0; i++) {
		if (rp->reg[i].w)
			continue;
		if (!control_next_due(rp->turn_control, now_ns, &id))
			return;
		uint32_t word =
			(uint32_t)(uintptr_t)control_user(rp->turn_control, id);
		int rc = come(m, rp, &rp->reg[i], word, hits);
		if (!rc)
			continue;
		control_defer(
			rp->turn_control, id,
			now_ns + (rc == SMCO_NOTFOUND ? TICK_NS : RETRY_NS));
		if (rc == SMCO_NOTFOUND) {
			i--; /* others may have the register */
			continue;
		}
		/* Others have the rest of them. */
		if (rc == SMCO_BUSY && i)
			rp->nr_regs = i;
		return;
	}
}

/* The words that can be watched. */
static size_t nr_wanted(const struct range_monitor *m,
			const struct range_part *rp)
{
	const struct range_unit *u = rp->unit;
	/* Instructions are the last. */
	return range_have_insns(m) ? u->nr_words : u->nr_words - u->nr_insns;
}

static void add_plant(struct range_part *rp, size_t word, uint64_t now_ns)
{
	rp->turns[word].plant =
		control_add(rp->turn_control, now_ns, (void *)(uintptr_t)word);
}

/* To words that had none. False: no memory. */
static bool add_turns(const struct range_monitor *m, struct range_part *rp,
		      uint64_t now_ns)
{
	size_t nr = nr_wanted(m, rp);
	if (nr == rp->nr_turns)
		return true;
	struct range_turns *more =
		reallocarray(rp->turns, nr, sizeof(*rp->turns));
	if (!more)
		return false;
	rp->turns = more;
	for (size_t i = rp->nr_turns; i < nr; i++) {
		rp->turns[i] = (struct range_turns){.hits = 0};
		add_plant(rp, i, now_ns);
	}
	rp->nr_turns = nr;
	return true;
}

void range_watch_more(struct range_monitor *m, struct range_part *rp)
{
	if (!m->watchpoints || nr_wanted(m, rp) == rp->nr_turns)
		return;
	if (!rp->turn_control)
		range_watch_start(m, rp, true);
	else
		add_turns(m, rp, smco_now_ns());
}

void range_watch_start(struct range_monitor *m, struct range_part *rp,
		       bool may_come_often)
{
	const struct control_params params = {
		.kind = m->p.kind,
		.target_overhead_ppb = m->p.target_overhead_ppb,
		.interval_ns = m->p.kind == CONTROL_ADHOC ? 0 : INTERVAL_NS,
	};
	uint64_t now_ns = smco_now_ns();
	if (!m->watchpoints || !nr_wanted(m, rp))
		return;
	rp->turn_control = control_create(&params, now_ns);
	/* A library that was unloaded had turns before. */
	for (size_t i = 0; rp->turn_control && i < rp->nr_turns; i++)
		add_plant(rp, i, now_ns);
	if (!rp->turn_control || !add_turns(m, rp, now_ns)) {
		range_watch_stop(m, rp);
		return;
	}
	rp->nr_regs = WATCH_REGISTERS;
	rp->watch_tick_ns = now_ns;
	rp->watch_due_ns = now_ns + QUICK_NS;
	rp->moved = range_watch_moved(rp);
	rp->run_watch_ns = tproc_cpu_ns(rp->proc);
	int64_t hits = hits_in_room(m, ledger_room_ns(m->ledger));
	if (!may_come_often)
		hits = clamp_i64(hits, FIRST_HITS, INT64_MAX);
	fill_for_good(m, rp, hits);
	fill(m, rp, now_ns, hits);
}

void range_watch_allow(struct range_monitor *m, struct range_part *rp,
		       unsigned nr)
{
	uint64_t now_ns = smco_now_ns();
	if (nr > rp->nr_regs)
		rp->watch_due_ns = now_ns;
	rp->nr_regs = nr;
	for (unsigned i = nr; i < WATCH_REGISTERS; i++)
		if (rp->reg[i].w)
			leave(m, rp, &rp->reg[i], now_ns);
}

uint64_t range_watch_turn_ns(const struct range_monitor *m)
{
	int64_t target = m->p.target_overhead_ppb;
	if (target_is_unlimited(target))
		return TURN_NS;
	uint64_t m_t = (uint64_t)control_m_from_overhead(target) + 1;
	uint64_t ns = sat_u64((u128)m->arm_ns * WATCH_REGISTERS * ARM_SHARE *
			      PPB / m_t);
	return max_u64(TURN_NS, ns);
}

/* Has it cost more than its share of the time? */
static bool is_beyond(const struct range_monitor *m, struct range_part *rp,
		      const struct range_register *reg, uint64_t now_ns)
{
	uint64_t p_ns = reg->cycle_cost_ns;
	uint64_t armed_ns = sat_sub_u64(now_ns, reg->cycle_ns);
	if (target_is_unlimited(m->p.target_overhead_ppb) || !p_ns)
		return false;
	return !control_is_on(rp->turn_control) ||
	       p_ns > mul_ppb(armed_ns,
			      control_local_target_ppb(rp->turn_control));
}

static bool is_same(const struct watch_what *a, const struct watch_what *b)
{
	bool same = a->addr == b->addr && a->nr_pointers == b->nr_pointers;
	for (size_t i = 0; same && i < a->nr_pointers; i++)
		same = a->pointer[i].addr == b->pointer[i].addr &&
		       a->pointer[i].value == b->pointer[i].value;
	return same;
}

/* Do pointers lead elsewhere by now, or did its library go? */
static bool has_moved(struct range_part *rp, const struct range_register *reg)
{
	struct watch_what what;
	if (!reg->what.nr_pointers)
		return false;
	return !range_word_what(rp, reg->word, &what) ||
	       !is_same(&what, &reg->what);
}

uint64_t range_watch_gap_ns(uint64_t lost_ns, int64_t m_t_ppb)
{
	u128 ns = (u128)lost_ns * LOOKS_SHARE * PPB;
	return m_t_ppb > 0 ? max_u64(min_u64(sat_u64(ns / (u128)m_t_ppb),
					     LONGEST_NS),
				     TICK_NS)
			   : TICK_NS;
}

/* The next look, after one that took @took_ns: all come at the same time, for
 * to wake up takes longer. */
static uint64_t next_look_ns(const struct range_monitor *m,
			     const struct range_part *rp, uint64_t now_ns,
			     uint64_t took_ns)
{
	int64_t target = m->p.target_overhead_ppb;
	uint64_t lost_ns =
		took_ns * m->taken.ppk / TAKEN_ALL * range_part_sharing(m, rp);
	uint64_t due_ns =
		now_ns +
		range_watch_gap_ns(lost_ns,
				   target_is_unlimited(target)
					   ? 0
					   : control_m_from_overhead(target));
	return due_ns + TICK_NS - 1 - (due_ns + TICK_NS - 1) % TICK_NS;
}

/* By ptrace: does the program want to hear of SIGTRAP by now? */
static bool is_in_its_way(struct range_monitor *m, struct range_part *rp,
			  uint64_t now_ns)
{
	struct smco_err err = {0};
	bool any = false;
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		any |= rp->reg[i].w != NULL;
	if (!any || !watchpoints_stop_threads(m->watchpoints) ||
	    !tproc_may_watch(rp->proc, &err))
		return false;
	note_why_not(m, &err);
	rp->rest_until_ns = now_ns + RETRY_NS;
	return true;
}

/* By ptrace: words leave and come in one stop. True: all stand. */
static bool stop_to_change(const struct range_monitor *m, struct range_part *rp)
{
	return watchpoints_stop_threads(m->watchpoints) &&
	       !tproc_stop_briefly(rp->proc, NULL);
}

/* Is it the end of the turn of @reg? @others wait. */
static bool is_over(const struct range_monitor *m, struct range_part *rp,
		    const struct range_register *reg, uint64_t now_ns,
		    bool others)
{
	return watchpoint_spent_ns(reg->w) != UINT64_MAX ||
	       is_beyond(m, rp, reg, now_ns) || has_moved(rp, reg) ||
	       (others && !stays(m, rp, reg->word) &&
		now_ns >= reg->since_ns + range_watch_turn_ns(m) &&
		ledger_room_ns(m->ledger) > 0);
}

static bool has_free(const struct range_part *rp)
{
	for (unsigned i = 0; i < rp->nr_regs; i++)
		if (!rp->reg[i].w)
			return true;
	return false;
}

void range_watch_tick(struct range_monitor *m, struct range_part *rp,
		      uint64_t now_ns)
{
	if (!rp->turn_control || now_ns < rp->watch_due_ns)
		return;
	if (!rp->nr_regs) {
		rp->watch_due_ns = now_ns + RETRY_NS;
		return;
	}
	uint64_t cpu_ns = own_cpu_ns();
	uint64_t run_ns = tproc_cpu_ns(rp->proc);
	control_tick(rp->turn_control, now_ns,
		     sat_sub_u64(run_ns, rp->run_watch_ns));
	rp->run_watch_ns = run_ns;
	int64_t room_ns = ledger_room_ns(m->ledger);
	int64_t hits = hits_in_room(m, room_ns);
	bool others = control_next_due_ns(rp->turn_control) <= now_ns;
	uint64_t nr_hits[WATCH_REGISTERS];
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		nr_hits[i] = rp->reg[i].w ? charge_hits(m, rp, &rp->reg[i]) : 0;
	uint64_t standing_ns = range_watch_standing(m, rp);
	bool rests = range_watch_must_rest(m, rp, standing_ns, now_ns) ||
		     is_in_its_way(m, rp, now_ns);
	bool stand = false;
	rp->watch_tick_ns = now_ns;
	rp->watch_due_ns = standing_ns ? now_ns + TICK_NS
				       : next_look_ns(m, rp, now_ns,
						      own_cpu_ns() - cpu_ns);
	for (unsigned i = 0; i < WATCH_REGISTERS; i++) {
		struct range_register *reg = &rp->reg[i];
		if (!reg->w)
			continue;
		if (nr_hits[i]) {
			watchpoints_measure_again(m->watchpoints, now_ns);
			rp->watch_due_ns = now_ns + QUICK_NS;
		}
		if (rests || is_over(m, rp, reg, now_ns, others)) {
			stand = stand || stop_to_change(m, rp);
			leave(m, rp, reg, now_ns);
		} else if (hits > 0) {
			watchpoint_refill(reg->w, hits);
		}
	}
	/* What it costs by being armed is seen soon after a rest. */
	if (rests)
		rp->watch_due_ns = rp->rest_until_ns;
	else if (rp->rest_until_ns > now_ns - RETRY_NS)
		rp->watch_due_ns = now_ns + QUICK_NS;
	if (!rests && hits > 0 && has_free(rp)) {
		if (!stand && control_next_due_ns(rp->turn_control) <= now_ns)
			stand = stop_to_change(m, rp);
		fill(m, rp, now_ns, hits);
	}
	if (stand)
		tproc_cont(rp->proc);
}

void range_watch_stop(struct range_monitor *m, struct range_part *rp)
{
	uint64_t now_ns = smco_now_ns();
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		if (rp->reg[i].w)
			leave(m, rp, &rp->reg[i], now_ns);
	control_destroy(rp->turn_control);
	rp->turn_control = NULL;
}

void range_watch_task_new(struct range_monitor *m, struct range_part *rp,
			  pid_t tid)
{
	struct smco_err err = {0};
	if (!rp->turn_control)
		return;
	uint64_t start_ns = own_cpu_ns();
	for (unsigned i = 0; i < WATCH_REGISTERS; i++) {
		struct range_register *reg = &rp->reg[i];
		if (!reg->w || !watchpoint_add_task(reg->w, tid, &err))
			continue;
		/* What one thread writes unseen is not watched. */
		smco_debug("range", "thread %d: %s", (int)tid, err.msg);
		leave(m, rp, reg, smco_now_ns());
	}
	range_watch_charge(m, start_ns);
}

void range_watch_task_gone(struct range_part *rp, pid_t tid)
{
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		if (rp->reg[i].w)
			watchpoint_drop_task(rp->reg[i].w, tid);
}

bool range_wants_tasks(const struct range_monitor *m)
{
	/* A program that is begun later may be the first to want them. */
	return m->p.target_overhead_ppb;
}
