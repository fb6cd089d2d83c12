#include "supervisor/pace.h"

#include "supervisor/control/fixed.h"

#define LONGEST_NS (500 * NSEC_PER_MSEC)
#define FREE_PPB   40000000 /* of one CPU, beyond the target */
/* One tick that takes long is followed by no longer a pause than the budget
 * needs to earn this: 44 ms at 10 %. */
#define EARNED_NS (4 * NSEC_PER_MSEC)
/* Unless many do: what one usually takes follows by one in so many. */
#define USUAL 16
/* What waking up for a tick and going back to sleep take beside it, in caches
 * that the program has filled: 100 to 200 us were measured. */
#define WAKE_NS (100 * NSEC_PER_USEC)
/* What was used before that much more was counts less by one in so many. */
#define LEARN_NS (250 * NSEC_PER_USEC)
#define MEMORY	 8
/* And no more than that is learnt at once. */
#define MOST_NS (4 * LEARN_NS)

/* A second. */
#define FEW_STOPS 20

bool quiet_now(struct quiet *q, uint64_t nr_stops, uint64_t now_ns)
{
	uint64_t nr = nr_stops - q->nr_then;
	uint64_t ns = now_ns - q->since_ns;
	if (ns < NSEC_PER_SEC)
		return q->was && nr <= FEW_STOPS;
	q->was = q->is_known && nr * NSEC_PER_SEC <= FEW_STOPS * ns;
	q->is_known = true;
	q->since_ns = now_ns;
	q->nr_then = nr_stops;
	return q->was;
}

void pace_init(struct pace *p, uint64_t shortest_ns, int64_t m_t_ppb)
{
	*p = (struct pace){
		.shortest_ns = shortest_ns,
		.m_t_ppb = m_t_ppb,
	};
	taken_init(&p->taken, TAKEN_ALL);
}

static uint64_t growth(uint64_t now, uint64_t *last)
{
	uint64_t d = now > *last ? now - *last : 0;
	*last = now;
	return d;
}

void taken_init(struct taken *t, uint32_t ppk)
{
	*t = (struct taken){
		.used_lately_ns = MEMORY * LEARN_NS,
		.waited_lately_ns = MEMORY * LEARN_NS * ppk / TAKEN_ALL,
		.ppk = ppk,
	};
}

void taken_learn(struct taken *t, uint64_t used_ns, uint64_t waited_ns)
{
	if (t->used_ns && used_ns < t->used_ns + LEARN_NS)
		return;
	bool is_first = !t->used_ns;
	uint64_t used = growth(used_ns, &t->used_ns);
	uint64_t waited = growth(waited_ns, &t->waited_ns);
	/* What was before says nothing. */
	if (is_first || !used)
		return;
	if (used > MOST_NS) {
		waited = sat_u64((u128)waited * MOST_NS / used);
		used = MOST_NS;
	}
	t->used_lately_ns += used - t->used_lately_ns / MEMORY;
	t->waited_lately_ns += waited - t->waited_lately_ns / MEMORY;
	t->ppk = t->waited_lately_ns >= t->used_lately_ns
			 ? TAKEN_ALL
			 : (uint32_t)(t->waited_lately_ns * TAKEN_ALL /
				      t->used_lately_ns);
}

/* At @ppb of a CPU. */
static uint64_t time_for(uint64_t cpu_ns, uint64_t ppb)
{
	return cpu_ns < NSEC_PER_SEC ? cpu_ns * NSEC_PER_SEC / (ppb + 1)
				     : LONGEST_NS;
}

/* Behind a tick of @cpu_ns, if @ppb of the time is for what the program waits
 * for. */
static uint64_t pause_ns(const struct pace *p, uint64_t cpu_ns, uint64_t ppb)
{
	uint64_t m_t = (uint64_t)p->m_t_ppb;
	return max_u64(time_for(cpu_ns, m_t + FREE_PPB),
		       time_for(cpu_ns * p->taken.ppk / TAKEN_ALL, ppb));
}

uint64_t pace_next_ns(struct pace *p, uint64_t tick_ns, uint64_t used_ns,
		      uint64_t waited_ns, bool has_room)
{
	taken_learn(&p->taken, used_ns, waited_ns);
	if (p->m_t_ppb <= 0)
		return p->shortest_ns;
	uint64_t m_t = (uint64_t)p->m_t_ppb;
	uint64_t cpu_ns = tick_ns + WAKE_NS;
	uint64_t usual_ns = p->usual_ns ? p->usual_ns : cpu_ns;
	p->usual_ns = usual_ns - usual_ns / USUAL + cpu_ns / USUAL;
	uint64_t with_room = m_t / 10 * 7;
	uint64_t next = pause_ns(p, cpu_ns, has_room ? with_room : m_t / 4);
	uint64_t most = max_u64(time_for(EARNED_NS, m_t),
				pause_ns(p, p->usual_ns, with_room));
	next = max_u64(min_u64(next, most), p->shortest_ns);
	return min_u64(next, LONGEST_NS);
}
