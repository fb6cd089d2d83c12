/*
 * allowance.h - what may be spent until the next tick on what cannot be made
 * up for later. Pure.
 *
 * An allocation that is not recorded is not watched for the rest of its life,
 * while a block that is not armed now will be armed later. So allocations may
 * be recorded on credit, half a second's budget; the debt is paid back by
 * arming less. A program may end at any time, and the bound is to hold for one
 * that runs for a second: so what is owed has been paid back by then, but for a
 * twentieth of all that was to be spent, which is half of what the bound leaves
 * above the target. Programs allocate in bursts, at their start above all. One
 * that always does has no more than half of the budget for that: what is
 * recorded and never armed is of no use.
 *
 * What is dear (a call stack is a stop, in which other threads may have to
 * stand, too) is bought on no more credit than is right after a second from the
 * very start, so that the bound holds for a program of half a second.
 */
#ifndef SMCO_ALLOWANCE_H
#define SMCO_ALLOWANCE_H

#include "reports/base.h"

/* What may be spent of @time_ns, ns, at a share @m_t_ppb of it. */
int64_t allowance_budget_ns(uint64_t time_ns, int64_t m_t_ppb);
/* Half a second's budget, ns, at a share @m_t_ppb of the time. */
int64_t allowance_credit_ns(int64_t m_t_ppb);

struct allowance {
	int64_t m_t_ppb;
	int64_t saved_ns; /* of half the budget, at most the credit */
	uint64_t base_ns, spent_ns;
};

/* For a share @m_t_ppb of the time. All of the credit is there. */
void allowance_init(struct allowance *a, int64_t m_t_ppb);
/* The program ran for @base_ns so far, and recording took @spent_ns of it. */
void allowance_advance(struct allowance *a, uint64_t base_ns,
		       uint64_t spent_ns);
/*
 * For each of @nr processes, ns: half of @room_ns (ledger_room_ns), at least
 * what is saved, or while there is a debt what is left of the credit, a quarter
 * of it at least, if that is less, and a tenth of the budget of @gap_ns, the
 * time between two ticks, in any case. At small targets starting makes a debt
 * larger than the credit, and most is allocated then.
 */
uint64_t allowance_ns(const struct allowance *a, int64_t room_ns,
		      uint64_t gap_ns, size_t nr);
/* Of that, what may go into what is dear and can be done without: once the
 * smaller credit is used up no more than the tenth of the gap's budget. */
uint64_t allowance_dear_ns(const struct allowance *a, int64_t room_ns,
			   uint64_t gap_ns, size_t nr);
/*
 * Must something that has cost @own_ns so far, of @base_ns of the program's
 * time, pause now that @room_ns are left? It may have all of the budget where
 * nobody else wants any. Where others that cannot pause (our own CPU time) have
 * overdrawn it, too, by more than half of what the bound leaves above the
 * target, half of the budget is what it may always have. 2 ms are worth no
 * pause.
 */
bool allowance_must_pause(int64_t m_t_ppb, uint64_t base_ns, int64_t room_ns,
			  uint64_t own_ns);

#endif
