#include "supervisor/pace.h"

#include "supervisor/control/fixed.h"

#define LONGEST_NS (500 * NSEC_PER_MSEC)
#define FREE_PPB   40000000 /* of one CPU, beyond the target */
/* One tick that takes long is followed by no longer a pause than the budget
 * needs to earn this: 44 ms at 10 %. */
#define EARNED_NS (4 * NSEC_PER_MSEC)
/* Unless many do: what one usually takes follows by one in so many. */
#define USUAL 16
/* Ticks that are so many of the shortest pauses apart are near enough. */
#define NOT_FAR 3
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

/* Of @cpu_ns the program waits for that much. */
static uint64_t missed_ns(const struct pace *p, uint64_t cpu_ns)
{
	return cpu_ns * p->taken.ppk / TAKEN_ALL;
}

/* Behind a tick of @cpu_ns, as far as the program does not wait for it. */
static uint64_t free_pause_ns(const struct pace *p, uint64_t cpu_ns)
{
	return time_for(cpu_ns, (uint64_t)p->m_t_ppb + FREE_PPB);
}

/* Behind a tick of @cpu_ns, if @ppb of the time is for what the program waits
 * for. */
static uint64_t pause_ns(const struct pace *p, uint64_t cpu_ns, uint64_t ppb)
{
	return max_u64(free_pause_ns(p, cpu_ns),
		       time_for(missed_ns(p, cpu_ns), ppb));
}

/* Until this tick of @cpu_ns and the next one are paid for, by their part of
 * @room_ns and of what is earned meanwhile. Ticks that are not far apart need
 * not be nearer. */
static uint64_t paid_ns(const struct pace *p, uint64_t cpu_ns, int64_t room_ns)
{
	uint64_t both = missed_ns(p, cpu_ns) + missed_ns(p, p->usual_ns);
	uint64_t there = (uint64_t)room_ns / 10 * 7;
	uint64_t more = both > there ? both - there : 0;
	uint64_t least =
		max_u64(free_pause_ns(p, cpu_ns), NOT_FAR * p->shortest_ns);
	return max_u64(least, time_for(more, (uint64_t)p->m_t_ppb / 10 * 7));
}

uint64_t pace_next_ns(struct pace *p, uint64_t tick_ns, uint64_t used_ns,
		      uint64_t waited_ns, int64_t room_ns)
{
	taken_learn(&p->taken, used_ns, waited_ns);
	if (p->m_t_ppb <= 0)
		return p->shortest_ns;
	uint64_t m_t = (uint64_t)p->m_t_ppb;
	uint64_t cpu_ns = tick_ns + WAKE_NS;
	uint64_t usual_ns = p->usual_ns ? p->usual_ns : cpu_ns;
	p->usual_ns = usual_ns - usual_ns / USUAL + cpu_ns / USUAL;
	uint64_t with_room = m_t / 10 * 7;
	uint64_t next = pause_ns(p, cpu_ns, room_ns > 0 ? with_room : m_t / 4);
	if (room_ns > 0)
		next = min_u64(next, paid_ns(p, cpu_ns, room_ns));
	else
		next = max_u64(next, time_for((uint64_t)-room_ns, m_t));
	uint64_t most = max_u64(time_for(EARNED_NS, m_t),
				pause_ns(p, p->usual_ns, with_room));
	next = max_u64(min_u64(next, most), p->shortest_ns);
	return min_u64(next, LONGEST_NS);
}
