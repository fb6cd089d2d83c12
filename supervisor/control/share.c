#include "supervisor/control/share.h"

#include "supervisor/control/fixed.h"

#define MEMORY_NS NSEC_PER_SEC
/* As if it had run alone for so long before. */
#define ALONE_NS (10 * NSEC_PER_MSEC)

/* What it would have had beside what it had, but for strangers. */
static uint64_t missed_ns(const struct share *s)
{
	uint64_t wait_ns = s->wait_ns > 0 ? (uint64_t)s->wait_ns : 0;
	return min_u64(wait_ns, s->strange_ns);
}

void share_learn(struct share *s, uint64_t wall_ns, uint64_t run_ns,
		 int64_t wait_ns, uint64_t strange_ns)
{
	s->wall_ns = sat_add_u64(s->wall_ns, wall_ns);
	s->run_ns = sat_add_u64(s->run_ns, run_ns);
	s->wait_ns = sat_i64((i128)s->wait_ns + wait_ns);
	s->strange_ns = sat_add_u64(s->strange_ns, strange_ns);
	while (s->wall_ns > MEMORY_NS) {
		s->wall_ns /= 2;
		s->run_ns /= 2;
		s->wait_ns /= 2;
		s->strange_ns /= 2;
	}
}

uint64_t share_of(const struct share *s, uint64_t ns)
{
	uint64_t had_ns = sat_add_u64(s->run_ns, ALONE_NS);
	return sat_u64((u128)ns * had_ns / ((u128)had_ns + missed_ns(s)));
}
