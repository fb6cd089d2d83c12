#include "supervisor/control/allowance.h"

#include "supervisor/control/control.h"

#define CREDIT_TIME_NS (500 * NSEC_PER_MSEC)

int64_t allowance_budget_ns(uint64_t time_ns, int64_t m_t_ppb)
{
	return (int64_t)(time_ns / 1000) * m_t_ppb / (PPB / 1000);
}

int64_t allowance_credit_ns(int64_t m_t_ppb)
{
	return allowance_budget_ns(CREDIT_TIME_NS, m_t_ppb);
}

uint64_t allowance_ns(int64_t m_t_ppb, int64_t room_ns, uint64_t gap_ns,
		      size_t nr)
{
	int64_t credit = allowance_credit_ns(m_t_ppb);
	int64_t least = allowance_budget_ns(gap_ns / 10, m_t_ppb);
	int64_t most = room_ns / 2;
	int64_t on_credit = room_ns < 0 ? credit + room_ns : credit;
	if (most < on_credit)
		most = on_credit;
	if (most < least)
		most = least;
	return (uint64_t)most / (nr ? nr : 1);
}
