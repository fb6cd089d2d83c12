/* What windows of a function cost at least, see range-alone.h. */
#include "supervisor/monitor/range-alone.h"

#include "supervisor/control/fixed.h"

static void add_function(struct range_duty_cost *cost,
			 const struct range_news *news, size_t nr,
			 uint32_t alone_ps)
{
	uint64_t most = 0, hits = 0, sum_ps = 0;
	for (size_t i = 0; i < nr; i++) {
		most = max_u64(most, news[i].hits);
		hits = sat_add_u64(hits, news[i].hits);
		sum_ps = sat_add_u64(sum_ps, cost[i].cost_ps);
	}
	uint64_t lack_ps = sat_sub_u64(sat_u64((u128)most * alone_ps), sum_ps);
	for (size_t i = 0; lack_ps && i < nr; i++)
		cost[i].cost_ps = sat_add_u64(
			cost[i].cost_ps,
			(uint64_t)((u128)lack_ps * news[i].hits / hits));
}

void range_alone_add(struct range_duty_cost *cost,
		     const struct range_news *news, size_t nr,
		     uint32_t alone_ps)
{
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr; end++)
			if (news[end].function != news[i].function)
				break;
		add_function(cost + i, news + i, end - i, alone_ps);
	}
}
