/*
 * pace.h - how far apart the supervisor's ticks are. Its own CPU time has a
 * bound: where the program waits for that CPU, a quarter of the budget must do,
 * nine tenths of it when there is room, which nobody else has asked for; where
 * it does not, a few percent of a CPU, which slow nothing down. Which of the
 * two holds is what was charged of the CPU time that was used. What is done
 * only while there is room in the budget (arming) is not meant: it does not
 * become less where ticks are farther apart.
 */
#ifndef SMCO_PACE_H
#define SMCO_PACE_H

#include "reports/base.h"

/* How much of the CPU time that the supervisor used the program missed. */
struct taken {
	uint64_t used_ns, charged_ns; /* when that was asked last */
	uint32_t ppk;		      /* of TAKEN_ALL used, lately */
};
#define TAKEN_ALL 1024
/* So far @used_ns were used, of which @charged_ns are in the ledger. */
void taken_learn(struct taken *t, uint64_t used_ns, uint64_t charged_ns);

struct pace {
	uint64_t shortest_ns; /* between two ticks */
	int64_t m_t_ppb;      /* of the time; 0: there is no bound */
	struct taken taken;
};

/* At first all of it is taken to be charged. */
void pace_init(struct pace *p, uint64_t shortest_ns, int64_t m_t_ppb);
/* From the beginning of a tick to that of the next one, ns. The tick took
 * @tick_ns of a CPU for that; so far the supervisor has used @used_ns, of which
 * @charged_ns are in the ledger, which has room left or not. */
uint64_t pace_next_ns(struct pace *p, uint64_t tick_ns, uint64_t used_ns,
		      uint64_t charged_ns, bool has_room);

#endif
