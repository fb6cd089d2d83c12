#include "supervisor/pace.h"

#define LONGEST_NS (500 * NSEC_PER_MSEC)
#define FREE_PPB   40000000 /* of one CPU, beyond the target */
/* What waking up for a tick and going back to sleep take beside it, in caches
 * that the program has filled: 100 to 200 us were measured. */
#define WAKE_NS (100 * NSEC_PER_USEC)
#define MEMORY	8 /* times */

void pace_init(struct pace *p, uint64_t shortest_ns, int64_t m_t_ppb)
{
	*p = (struct pace){
		.shortest_ns = shortest_ns,
		.m_t_ppb = m_t_ppb,
		.taken.ppk = TAKEN_ALL,
	};
}

static uint64_t growth(uint64_t now, uint64_t *last)
{
	uint64_t d = now > *last ? now - *last : 0;
	*last = now;
	return d;
}

void taken_learn(struct taken *t, uint64_t used_ns, uint64_t charged_ns)
{
	uint64_t used = growth(used_ns, &t->used_ns);
	uint64_t charged = growth(charged_ns, &t->charged_ns);
	if (!used)
		return;
	uint64_t ppk = charged >= used ? TAKEN_ALL : charged * TAKEN_ALL / used;
	t->ppk =
		(uint32_t)((t->ppk * (MEMORY - 1) + ppk + MEMORY / 2) / MEMORY);
}

/* At @ppb of a CPU. */
static uint64_t time_for(uint64_t cpu_ns, uint64_t ppb)
{
	return cpu_ns < NSEC_PER_SEC ? cpu_ns * NSEC_PER_SEC / (ppb + 1)
				     : LONGEST_NS;
}

uint64_t pace_next_ns(struct pace *p, uint64_t tick_ns, uint64_t used_ns,
		      uint64_t charged_ns, bool has_room)
{
	taken_learn(&p->taken, used_ns, charged_ns);
	if (p->m_t_ppb <= 0)
		return p->shortest_ns;
	uint64_t m_t = (uint64_t)p->m_t_ppb;
	uint64_t cpu_ns = tick_ns + WAKE_NS;
	uint64_t next = time_for(cpu_ns, m_t + FREE_PPB);
	uint64_t dear = time_for(cpu_ns * p->taken.ppk / TAKEN_ALL,
				 has_room ? m_t / 10 * 9 : m_t / 4);
	if (next < dear)
		next = dear;
	if (next < p->shortest_ns)
		next = p->shortest_ns;
	return next < LONGEST_NS ? next : LONGEST_NS;
}
