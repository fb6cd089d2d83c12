#include "supervisor/control/allowance.h"

#include "supervisor/control/control.h"
#include "supervisor/control/fixed.h"

#define CREDIT_TIME_NS (500 * NSEC_PER_MSEC)
/* By then it is paid back, but for this part of what was to be spent. */
#define BACK_NS	   NSEC_PER_SEC
#define OWED_SHARE 20
/* Worth no pause. */
#define GRACE_NS (2 * (int64_t)NSEC_PER_MSEC)

int64_t allowance_budget_ns(uint64_t time_ns, int64_t m_t_ppb)
{
	return (int64_t)(time_ns / 1000) * m_t_ppb / (PPB / 1000);
}

int64_t allowance_credit_ns(int64_t m_t_ppb)
{
	return allowance_budget_ns(CREDIT_TIME_NS, m_t_ppb);
}

/* What may be owed after @base_ns of the program's time. */
static int64_t credit_after_ns(uint64_t base_ns, int64_t m_t_ppb)
{
	int64_t credit = allowance_credit_ns(m_t_ppb);
	int64_t soon =
		allowance_budget_ns(sat_sub_u64(BACK_NS, base_ns), m_t_ppb);
	int64_t later = allowance_budget_ns(base_ns / OWED_SHARE, m_t_ppb);
	if (soon < later)
		soon = later;
	return soon < credit ? soon : credit;
}

void allowance_init(struct allowance *a, int64_t m_t_ppb)
{
	*a = (struct allowance){
		.m_t_ppb = m_t_ppb,
		.saved_ns = allowance_credit_ns(m_t_ppb),
	};
}

void allowance_advance(struct allowance *a, uint64_t base_ns, uint64_t spent_ns)
{
	int64_t credit = allowance_credit_ns(a->m_t_ppb);
	a->saved_ns += allowance_budget_ns(sat_sub_u64(base_ns, a->base_ns) / 2,
					   a->m_t_ppb) -
		       (int64_t)sat_sub_u64(spent_ns, a->spent_ns);
	a->base_ns = base_ns;
	a->spent_ns = spent_ns;
	if (a->saved_ns > credit)
		a->saved_ns = credit;
	/* Nor does one burst count for ever. */
	if (a->saved_ns < -credit)
		a->saved_ns = -credit;
}

/* What of that may be owed for what is dear: no more than is right for who ends
 * at once. */
static int64_t dear_after_ns(uint64_t base_ns, int64_t m_t_ppb)
{
	return credit_after_ns(max_u64(base_ns, BACK_NS), m_t_ppb);
}

/* @part: of the @credit, what there is of it in any case. */
static uint64_t allow(const struct allowance *a, int64_t room_ns,
		      uint64_t gap_ns, int64_t credit, int64_t part)
{
	int64_t least = allowance_budget_ns(gap_ns / 10, a->m_t_ppb);
	int64_t most = room_ns / 2;
	int64_t on_credit = room_ns < 0 ? credit + room_ns : credit;
	if (on_credit < part)
		on_credit = part;
	if (on_credit > a->saved_ns)
		on_credit = a->saved_ns;
	if (most < on_credit)
		most = on_credit;
	if (most < least)
		most = least;
	return (uint64_t)most;
}

uint64_t allowance_ns(const struct allowance *a, int64_t room_ns,
		      uint64_t gap_ns, size_t nr)
{
	int64_t credit = credit_after_ns(a->base_ns, a->m_t_ppb);
	return allow(a, room_ns, gap_ns, credit, credit / 4) / (nr ? nr : 1);
}

uint64_t allowance_dear_ns(const struct allowance *a, int64_t room_ns,
			   uint64_t gap_ns, size_t nr)
{
	int64_t credit = dear_after_ns(a->base_ns, a->m_t_ppb);
	return allow(a, room_ns, gap_ns, credit, 0) / (nr ? nr : 1);
}

bool allowance_must_pause(int64_t m_t_ppb, uint64_t base_ns, int64_t room_ns,
			  uint64_t own_ns)
{
	int64_t budget = allowance_budget_ns(base_ns, m_t_ppb);
	int64_t own = own_ns < INT64_MAX ? (int64_t)own_ns : INT64_MAX;
	if (room_ns > 0)
		return false;
	if (own - GRACE_NS > budget)
		return true;
	return own - GRACE_NS > budget / 2 &&
	       room_ns < -budget / OWED_SHARE - GRACE_NS;
}
