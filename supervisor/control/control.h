/*
 * control.h - when to watch. Pure: time comes in as an argument (ns since any
 * epoch), nothing is read, printed or slept. Equations are those of the paper
 * (Huang, Seyster, Callanan et al., "Software Monitoring with Controllable
 * Overhead"): overhead o = M/R, monitoring percentage m = o/(1+o).
 *
 * Quantities: times in ns (uint64_t), percentages as ppb ("parts per billion"
 * of 1, so 10 % = 100 000 000) in int64_t, all arithmetic saturating.
 *
 * A plant is one monitored thing. Its cycle: armed for tau until an event, p
 * to process it, then disarmed for d = max(0, p/m_lt - (tau + p)).
 */
#ifndef SMCO_CONTROL_H
#define SMCO_CONTROL_H

#include "reports/base.h"

#define PPB 1000000000LL

/* o_t -> m_t, both ppb. */
int64_t control_m_from_overhead(int64_t overhead_ppb);
/* The overhead that must not be exceeded, ppb, at a target of @target_ppb: a
 * point more, or a tenth of it, whichever is larger. Saturates. */
int64_t control_bound_ppb(int64_t target_ppb);

/* ------------------------------------------------------------- ledger --- */

enum ledger_mech {		 /* what cost the tracee the time */
		   LEDGER_STOP,	 /* ptrace stops */
		   LEDGER_AGENT, /* sensors' slow paths in the tracee */
		   LEDGER_TOUCH, /* first touches of reset pages, guard hits */
		   LEDGER_ARM, /* arming work that slowed the tracee, shootdowns
				*/
		   LEDGER_CPU, /* supervisor's CPU time taken from the tracee */
		   LEDGER_OTHER,
		   LEDGER_NR,
};
const char *ledger_mech_name(enum ledger_mech m);

/*
 * The ledger counts in the program's time ("base"): its CPU time in all
 * threads, or 1 % of the wall time where that is more, so that an idle program
 * is still watched, at a hundredth of what it would cost a busy one. Promise,
 * as long as charges do not exceed what was reserved or in room: the whole run
 * and every 10 s in which it ran (wall time while a thread is busy, stretched
 * to as long as it takes when it mostly sleeps) stay below the target plus one
 * point or a tenth of it, whichever is larger.
 *
 * A target of 0 leaves no room, ever. INT64_MAX means no bound: the room is
 * INT64_MAX, charges are only added up.
 */
struct ledger; /* one per session; the truth the controllers act on */
struct ledger *ledger_create(int64_t target_overhead_ppb); /* NULL: no memory */
void ledger_destroy(struct ledger *l);
/* The program used @run_ns of thread time (incl. what was charged, also where
 * it stood still for it) since the last call, and it is @now_ns now. The first
 * call only sets the clock, its @run_ns counts. Budget accrues from it: m_t
 * times the base; what is not used piles up a little (a quarter of the
 * tolerance of a window) and is lost beyond that. */
void ledger_advance(struct ledger *l, uint64_t now_ns, uint64_t run_ns);
/* Monitors are numbered 0 to 15 by the session; higher ones count as 15. */
void ledger_charge(struct ledger *l, enum ledger_mech mech, unsigned monitor,
		   uint64_t p_ns);
/* What may be spent now, ns; negative when overdrawn. Arm while it is > 0. */
int64_t ledger_room_ns(const struct ledger *l);
/*
 * What may be reserved now, ns, 0 or less if nothing: up to half of what the
 * bound on the last 10 s leaves. Unlike ledger_room_ns() also when overdrawn,
 * by no more than may pile up: a reservation costs nothing yet, and those who
 * spend all that there is until the next tick (our own CPU time) would never
 * leave room for one.
 */
int64_t ledger_reservable_ns(const struct ledger *l);
/* What the bound on the last 10 s leaves, and at most: room that may be used on
 * credit, for it is the one that is promised. */
int64_t ledger_window_room_ns(const struct ledger *l);
int64_t ledger_window_most_ns(const struct ledger *l);
/* The same two, the whole room and that of the last 10 s, as if nothing were
 * reserved: may what is armed go on standing, where that costs something by
 * itself? To let go of it gives the reservation back. */
int64_t ledger_quiet_room_ns(const struct ledger *l);
int64_t ledger_quiet_window_ns(const struct ledger *l);
/* Worst case of what is armed but has not cost anything yet. It counts as if
 * it were spent within the window of 10 s, so all that is armed may cost as
 * much as the whole window (990 ms at 10 %) if nothing else is spent, and 68 ms
 * beside plants that use the budget up. Release gives it back, charge is
 * separate. Between two advances no more is in room than four times what
 * accrued, so that what is armed does not all fire in one tick. */
void ledger_reserve(struct ledger *l, uint64_t ns);
void ledger_release(struct ledger *l, uint64_t ns);
/* @ns of what is reserved is for things that have been quiet for 10 s or more:
 * from now on a sixteenth of it counts. Without that, many quiet plants in the
 * end keep the busy ones from being watched. If they all awake at once after
 * all, one window may exceed the bound by what did not count; the debt is
 * worked off afterwards. Give it back by release_settled, not by release. */
void ledger_settle(struct ledger *l, uint64_t ns);
void ledger_release_settled(struct ledger *l, uint64_t ns);
struct ledger_totals {
	uint64_t run_ns;  /* program's thread time, incl. monitoring */
	uint64_t base_ns; /* the same, at least 1 % of the wall time */
	uint64_t spent_ns;
	uint64_t reserved_ns; /* at this moment */
	uint64_t settled_ns;  /* the same, not in reserved_ns */
	uint64_t mech_ns[LEDGER_NR];
	/* Overheads saturate at 10^13 (a million per cent). */
	int64_t overhead_ppb;	  /* spent / (base - spent), whole run */
	int64_t recent_ppb;	  /* last 10 s of wall time */
	int64_t worst_window_ppb; /* worst 10 s in which it ran so far, the
				     whole run if that was shorter */
};
void ledger_get(const struct ledger *l, struct ledger_totals *ret);
uint64_t ledger_base_ns(const struct ledger *l); /* alone, for it is quick */
uint64_t ledger_spent_ns(const struct ledger *l, enum ledger_mech mech,
			 unsigned monitor);

/* --------------------------------------------------------- controllers --- */

enum controller_kind { CONTROL_CASCADE, CONTROL_ADHOC, CONTROL_GLOBAL };

struct control_params {
	enum controller_kind kind;
	int64_t target_overhead_ppb;
	uint64_t interval_ns; /* T; 0 = the paper's 0.4 s (adhoc 10 s) */
	int64_t gain_ppb;     /* K_I; 0 = 0.1, above 70 % target 0.5 */
};

struct control;
typedef uint32_t plant_t; /* small dense handle, reused after removal */
#define PLANT_NONE UINT32_MAX

struct control *control_create(const struct control_params *params,
			       uint64_t now_ns);
void control_destroy(struct control *c);

/* New plants start disarmed and due at once, in the order added. PLANT_NONE
 * if memory ran out. Calls with a handle that is not in use do nothing. */
plant_t control_add(struct control *c, uint64_t now_ns, void *user);
void control_remove(struct control *c, plant_t id);
void *control_user(const struct control *c, plant_t id);
uint32_t control_nr_plants(const struct control *c);
uint32_t control_nr_armed(const struct control *c);

/* Next plant whose delay is over, or false; the one that waited longest
 * comes first. The caller arms it (and says so with control_armed) or puts it
 * off (control_defer); it is not handed out again before. Plants that the
 * caller has no room for just stay due: stop calling. */
bool control_next_due(struct control *c, uint64_t now_ns, plant_t *ret);
/* When the next one will be due, in the past if one is; UINT64_MAX if none, at
 * a target of 0, and while the global controller is off. Due times are rounded
 * up to 2^16 ns; the answer may be too early (a 64th of the distance), so that
 * control_next_due then says false, but it is never too late. */
uint64_t control_next_due_ns(const struct control *c);
void control_armed(struct control *c, plant_t id, uint64_t now_ns);
/* Not now, for instance because its memory is locked. A plant that was handed
 * out keeps its place: when it comes back, 2^16 ns later at the earliest, it
 * goes before those that were not handed out yet. One that still waits (that
 * was just added) becomes due then, as if it had not been before. Armed ones
 * stay armed. */
void control_defer(struct control *c, plant_t id, uint64_t until_ns);
/* The armed plant's event: it was armed for @tau_ns, processing cost @p_ns.
 * Disarms it, schedules the re-arm after d. Returns d in ns. */
uint64_t control_event(struct control *c, plant_t id, uint64_t now_ns,
		       uint64_t tau_ns, uint64_t p_ns);
/* The same for a plant whose share of what all have is @part of
 * CONTROL_WHOLE: d is that of a local target so much smaller. A priority, which
 * the paper does not have; the primary makes up for what is not used. The
 * global law has no shares. */
#define CONTROL_WHOLE 1024
uint64_t control_event_part(struct control *c, plant_t id, uint64_t now_ns,
			    uint64_t tau_ns, uint64_t p_ns, uint32_t part);
/* One more event of a plant that waits after its last one, because something of
 * it was left armed: it waits for as much longer as that asks for. */
void control_event_more(struct control *c, plant_t id, uint64_t now_ns,
			uint64_t p_ns);
/* Taken out of watching without an event (e.g. freed and reused soon). */
void control_disarm(struct control *c, plant_t id, uint64_t now_ns,
		    uint64_t due_ns);
/* Primary: call at least every interval; does nothing in between. @run_ns is
 * the program's run time since the last call (the denominator of Σp/T). */
void control_tick(struct control *c, uint64_t now_ns, uint64_t run_ns);
int64_t control_local_target_ppb(const struct control *c); /* m_lt */
/* The global controller's switch. When it is off, disarm what is armed. Always
 * true for the others, except at a target of 0. */
bool control_is_on(const struct control *c);

#endif
