/*
 * pace.h - how far apart the supervisor's ticks are. Its own CPU time has a
 * bound: where the program waits for that CPU, a quarter of the budget must do,
 * seven tenths of it when there is room, for with what else ticks spend (first
 * touches, shootdowns) that is all of it; where it does not, a few percent of a
 * CPU, which slow nothing down. Which of the two holds is what of the CPU time
 * that was used the program waited for; where it shares the CPUs with strangers
 * it gets as much of the time between as it loses of that (control/share.h).
 * What was used for arming counts, too: it does not become less where ticks are
 * farther apart, but a tick that armed much is followed by a longer pause
 * instead of some that are far too short and one that is far too long, in which
 * short naps pass. Where the target allows more than that, one such tick is no
 * reason for a pause in which others that have to be armed wait for a third of
 * a second: it is as long as a few milliseconds of the budget take to earn, or
 * as what ticks usually take asks for. How much there is room for tells more
 * than what ticks took: what is left over is not waited for, and where
 * something is owed, nothing could be armed before that is earned.
 */
#ifndef SMCO_PACE_H
#define SMCO_PACE_H

#include "reports/base.h"

/* How much of the CPU time that the supervisor used the program waited for. */
struct taken {
	uint64_t used_ns, waited_ns; /* when that was asked last */
	/* The same, of late, what was before counting less and less. */
	uint64_t used_lately_ns, waited_lately_ns;
	uint32_t ppk; /* of TAKEN_ALL used */
};
#define TAKEN_ALL 1024
/* @ppk is what it is to seem at first. */
void taken_init(struct taken *t, uint32_t ppk);
/* So far @used_ns were used, and @waited_ns were waited for that. It comes in
 * leaps, later than what was used: each time the program has a CPU again. */
void taken_learn(struct taken *t, uint64_t used_ns, uint64_t waited_ns);

/* Do threads stop by themselves so seldom that none is likely to meanwhile? */
struct quiet {
	uint64_t since_ns, nr_then;
	bool is_known; /* for a second at least */
	bool was;      /* in the last one */
};
/* There were @nr_stops so far of that kind. False in the first second. */
bool quiet_now(struct quiet *q, uint64_t nr_stops, uint64_t now_ns);

struct pace {
	uint64_t shortest_ns; /* between two ticks */
	int64_t m_t_ppb;      /* of the time; 0: there is no bound */
	struct taken taken;
	uint64_t usual_ns; /* what a tick takes, of late; 0 = not known */
};

/* At first all of it is taken to be waited for. */
void pace_init(struct pace *p, uint64_t shortest_ns, int64_t m_t_ppb);
/* From the beginning of a tick to that of the next one, ns. The tick took
 * @tick_ns of a CPU for that, which is not charged yet; so far the supervisor
 * has used @used_ns, of which the program waited for @waited_ns; the ledger has
 * @room_ns left. */
uint64_t pace_next_ns(struct pace *p, uint64_t tick_ns, uint64_t used_ns,
		      uint64_t waited_ns, int64_t room_ns);

#endif
