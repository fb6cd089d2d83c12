/*
 * allowance.h - what may be spent until the next tick on what cannot be made
 * up for later. Pure.
 *
 * An allocation that is not recorded is not watched for the rest of its life,
 * while a block that is not armed now will be armed later. So allocations may
 * be recorded on credit, half a second's budget; the debt is paid back by
 * arming less. Programs allocate in bursts, at their start above all.
 */
#ifndef SMCO_ALLOWANCE_H
#define SMCO_ALLOWANCE_H

#include "reports/base.h"

/* What may be spent of @time_ns, ns, at a share @m_t_ppb of it. */
int64_t allowance_budget_ns(uint64_t time_ns, int64_t m_t_ppb);
/* Half a second's budget, ns, at a share @m_t_ppb of the time. */
int64_t allowance_credit_ns(int64_t m_t_ppb);

/*
 * For each of @nr processes, ns: half of @room_ns (ledger_room_ns), at least
 * the credit while there is no debt, what is left of it while there is one, and
 * a tenth of the budget of @gap_ns, the time between two ticks, in any case.
 */
uint64_t allowance_ns(int64_t m_t_ppb, int64_t room_ns, uint64_t gap_ns,
		      size_t nr);

#endif
