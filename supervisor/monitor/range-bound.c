/* What hits cost all together, bound by the time there was. */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-duty.h"

uint64_t range_duty_bound(struct range_duty_cost *cost, size_t nr,
			  uint64_t sum_ps, uint64_t most_ns)
{
	u128 most_ps = (u128)most_ns * 1000;
	if (sum_ps <= most_ps)
		return sum_ps;
	for (size_t i = 0; i < nr; i++)
		cost[i].cost_ps =
			sat_u64((u128)cost[i].cost_ps * most_ps / sum_ps);
	return (uint64_t)most_ps;
}
