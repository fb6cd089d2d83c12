/*
 * What counting costs, and when it ends for that.
 *
 * Nothing holds counting back: whoever passes a mark counts. So it may spend
 * what the bound leaves, and in the beginning the budget of the shortest run
 * that the bound speaks of, also where starting has used that up: until then
 * nobody knows how long the program is going to run, and a count that is not
 * whole is of less use. Nor may it at any time cost half a second's budget more
 * than there was meanwhile.
 */
#include "supervisor/control/allowance.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"
#include "supervisor/probe/mark-cost.h"

#define LEAST_CREDIT (int64_t) NSEC_PER_MSEC
#define SHORTEST_NS  (100 * NSEC_PER_MSEC)
#define LEAST_GAP_NS NSEC_PER_MSEC
/* A line that several CPUs write to goes from one to the other. */
#define CONTENDED 4

/* The counts are where the program can write: more than it can pass in an hour
 * is not believed. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return min_u64(now - before, UINT32_MAX);
}

uint64_t phase_cost_take(struct phases *ph, struct shared *sh)
{
	const struct mark_cost *c = mark_cost_here();
	struct mark_passings now =
		mark_shm_passings(sh->shm, (uint32_t)ph->p.nr * 2);
	uint64_t owners = grown(now.by_owners, sh->counted.by_owners),
		 others = grown(now.by_others, sh->counted.by_others);
	uint64_t ns = (owners * c->owner +
		       others * c->other * (sh->is_shared ? CONTENDED : 1)) /
		      1000;
	sh->counted = now;
	sh->last_ns += ns;
	sh->debt_ns += (int64_t)ns;
	ph->counting_ns += ns;
	return ns;
}

static void end(struct phases *ph, struct shared *sh, uint64_t now_ns)
{
	sh->is_dear = true;
	if (!ph->nr_trimmed++)
		ph->trimmed_ns = now_ns - ph->p.start_ns;
}

/* What counting may cost before the bound is exceeded, ns. */
static int64_t left_ns(const struct phases *ph, const struct ledger_totals *t)
{
	int64_t most = allowance_budget_ns(max_u64(t->base_ns, SHORTEST_NS),
					   ph->p.m_most_ppb);
	int64_t first = allowance_budget_ns(SHORTEST_NS, ph->p.m_t_ppb);
	most -= (int64_t)sat_sub_u64(t->spent_ns, ph->counting_ns);
	if (most < first)
		most = first;
	if (most < LEAST_CREDIT)
		most = LEAST_CREDIT;
	return most - (int64_t)ph->counting_ns;
}

/* What is spent until one can look again, as @last_ns were in @gap_ns. */
static int64_t soon_ns(uint64_t last_ns, uint64_t gap_ns)
{
	return gap_ns ? (int64_t)(last_ns * LEAST_GAP_NS / gap_ns) : 0;
}

/* When there may be nothing left. */
static uint64_t next_ns(int64_t left, uint64_t last_ns, uint64_t gap_ns,
			uint64_t tick_ns)
{
	if (left <= 0 || !last_ns)
		return tick_ns;
	u128 until = (u128)(uint64_t)left * gap_ns / last_ns;
	return until > tick_ns	      ? tick_ns
	       : until < LEAST_GAP_NS ? LEAST_GAP_NS
				      : (uint64_t)until;
}

uint64_t phase_cost_judge(struct phases *ph, uint64_t now_ns, uint64_t tick_ns)
{
	struct ledger_totals t;
	struct shared *dearest = NULL;
	uint64_t last_ns = 0, gap_ns = now_ns - ph->tick_ns;
	if (ph->p.m_t_ppb == INT64_MAX)
		return tick_ns;
	ledger_get(ph->ledger, &t);
	int64_t budget = allowance_budget_ns(
			sat_sub_u64(t.base_ns, ph->base_ns), ph->p.m_t_ppb),
		credit = allowance_credit_ns(ph->p.m_t_ppb),
		left = left_ns(ph, &t);
	if (credit < LEAST_CREDIT)
		credit = LEAST_CREDIT;
	for (struct shared *sh = ph->shared; sh; sh = sh->next) {
		sh->debt_ns -= budget;
		if (sh->debt_ns < 0)
			sh->debt_ns = 0;
		if (!sh->is_dear && sh->debt_ns > credit)
			end(ph, sh, now_ns);
		if (!sh->is_dear &&
		    (!dearest || sh->last_ns > dearest->last_ns))
			dearest = sh;
		last_ns += sh->is_dear ? 0 : sh->last_ns;
	}
	/* What takes less than half of the budget is not what exceeds it. */
	left -= soon_ns(last_ns, gap_ns);
	if (dearest && left <= 0 && (int64_t)dearest->last_ns > budget / 2) {
		end(ph, dearest, now_ns);
		last_ns -= dearest->last_ns;
	}
	for (struct shared *sh = ph->shared; sh; sh = sh->next)
		sh->last_ns = 0;
	ph->base_ns = t.base_ns;
	ph->tick_ns = now_ns;
	return next_ns(left, last_ns, gap_ns, tick_ns);
}
