/* Which windows cost least, see range-cheap.h. */
#include "supervisor/monitor/range-cheap.h"

#include "supervisor/control/fixed.h"

/* The cheapest windows stay in: all together this part of the target of
 * lately, whatever they are worth; and so much of it, where those of less worth
 * than that count as dearer. What has its extreme value once is found by who is
 * there all the time, and of most it takes as much as a hundredth of the
 * hottest. While something is owed it is less, by how much that is of what may
 * be spent in RANGE_DEEP_NS, or in a part of the time so far: a run may end
 * before it is paid back. The least that stays is this part. */
#define CHEAP_PART   10
#define CHEAP_GLOBAL 5 /* one switch for all knows no worth */
#define WORTHY_PPK   750
#define WORTHY_LEAST 4
#define SOON_PART    16
#define LITTLE_WORTH (CONTROL_WHOLE / 8)
#define LATELY_NS    NSEC_PER_SEC

static unsigned power_of(uint64_t ps)
{
	return 63 - (unsigned)__builtin_clzll(ps | 1);
}

static unsigned rank_of(const struct range_duty_window *w)
{
	uint64_t times = max_u64(LITTLE_WORTH / max_u64(w->part, 1), 1);
	return power_of(sat_u64((u128)w->lately_ps * times));
}

unsigned range_cheap_nr(const struct range_cheap *c)
{
	return c->nr_active ? c->nr_active : 1;
}

uint64_t range_cheap_nr_plants(const struct range_duty *d)
{
	return max_u64(d->cheap->nr_plants, control_nr_plants(d->control));
}

static void count_plants(struct range_duty *d)
{
	d->cheap->nr_plants -= d->nr_counted;
	d->nr_counted = d->is_active ? control_nr_plants(d->control) : 0;
	d->cheap->nr_plants += d->nr_counted;
}

/* @w counts in the sums. */
static void count(struct range_cheap *c, struct range_duty_window *w)
{
	w->rank = rank_of(w);
	c->sum_ps[power_of(w->lately_ps)] += w->lately_ps;
	c->rank_ps[w->rank] += w->lately_ps;
}

static void uncount(struct range_cheap *c, const struct range_duty_window *w)
{
	c->sum_ps[power_of(w->lately_ps)] -= w->lately_ps;
	c->rank_ps[w->rank] -= w->lately_ps;
}

static void join(struct range_duty *d)
{
	struct range_cheap *c = d->cheap;
	d->is_there = true;
	d->prev = NULL;
	d->next = c->first;
	if (d->next)
		d->next->prev = d;
	c->first = d;
	for (size_t i = 0; i < d->end; i++)
		count(c, &d->window[i]);
}

void range_cheap_leave(struct range_duty *d)
{
	struct range_cheap *c = d->cheap;
	if (!d->is_there)
		return;
	for (size_t i = 0; i < d->end; i++)
		uncount(c, &d->window[i]);
	if (d->next)
		d->next->prev = d->prev;
	if (d->prev)
		d->prev->next = d->next;
	else
		c->first = d->next;
	c->nr_active -= d->is_active;
	d->is_there = d->is_active = d->was_noted = false;
	count_plants(d);
}

void range_cheap_note(struct range_duty *d, struct range_duty_window *w,
		      uint64_t ps)
{
	if (!d->is_there)
		join(d);
	uncount(d->cheap, w);
	w->lately_ps = sat_add_u64(w->lately_ps, ps);
	count(d->cheap, w);
	d->was_noted = true;
	d->cheap->nr_active += !d->is_active;
	d->is_active = true;
}

/* What was counts half as much from now on; not of those that are out, which
 * could only come to seem cheap. */
static void fade(struct range_cheap *c, uint64_t now_ns)
{
	c->halved_ns = now_ns;
	c->lately_ns /= 2;
	c->nr_active = 0;
	for (unsigned b = 0; b < RANGE_CHEAP_POWERS; b++)
		c->sum_ps[b] = c->rank_ps[b] = 0;
	for (struct range_duty *d = c->first; d; d = d->next) {
		d->is_active = d->was_noted;
		d->was_noted = false;
		c->nr_active += d->is_active;
		count_plants(d);
		for (size_t i = 0; i < d->end; i++) {
			struct range_duty_window *w = &d->window[i];
			if (w->is_in)
				w->lately_ps /= 2;
			count(c, w);
		}
	}
}

/* The first power that @left_ps is not enough for. */
static unsigned first_dear(const uint64_t sum_ps[RANGE_CHEAP_POWERS],
			   uint64_t left_ps)
{
	unsigned b = 0;
	while (b < RANGE_CHEAP_POWERS - 1 && sum_ps[b] <= left_ps)
		left_ps -= sum_ps[b++];
	return b;
}

/* What those that are worth it may take of the target, in thousandths. */
static int64_t worthy_ppk(const struct range_duty *d,
			  const struct range_duty_state *s)
{
	uint64_t age_ns = sat_sub_u64(s->now_ns, d->born_ns);
	uint64_t soon_ns = min_u64(age_ns / SOON_PART, RANGE_DEEP_NS);
	int64_t deep_ns = (int64_t)mul_ppb(soon_ns, d->m_t_ppb) + 1;
	int64_t left_ns = deep_ns + (s->room_ns < 0 ? s->room_ns : 0);
	int64_t least = WORTHY_PPK / WORTHY_LEAST;
	if (d->kind == CONTROL_GLOBAL)
		return 0;
	if (left_ns <= 0)
		return least;
	return clamp_i64(WORTHY_PPK * left_ns / deep_ns, least, WORTHY_PPK);
}

/* The ledger's time goes on: not while the program waits for a CPU, when what
 * is in costs nothing, and nothing may be spent. */
static void advance(struct range_cheap *c, const struct range_duty_state *s)
{
	if (c->is_told)
		c->lately_ns += sat_sub_u64(s->base_ns, c->base_ns);
	else
		c->halved_ns = s->now_ns;
	c->is_told = true;
	c->base_ns = s->base_ns;
	if (sat_sub_u64(s->now_ns, c->halved_ns) >= LATELY_NS)
		fade(c, s->now_ns);
}

/* To within a factor of two. */
void range_cheap_find(struct range_duty *d, const struct range_duty_state *s)
{
	struct range_cheap *c = d->cheap;
	int64_t worthy_ppb = d->m_t_ppb / 1000 * worthy_ppk(d, s);
	advance(c, s);
	count_plants(d);
	uint64_t all_ps = c->lately_ns * 1000;
	int64_t part = d->kind == CONTROL_GLOBAL ? CHEAP_GLOBAL : CHEAP_PART;
	d->dear = first_dear(c->sum_ps, mul_ppb(all_ps, d->m_t_ppb / part));
	d->dear_rank = first_dear(c->rank_ps, mul_ppb(all_ps, worthy_ppb));
}

/* If it cost so many times as much, powers of two. */
bool range_cheap_is_among(const struct range_duty *d,
			  const struct range_duty_window *w, unsigned more)
{
	return power_of(w->lately_ps) + more < d->dear ||
	       w->rank + more < d->dear_rank;
}

bool range_is_cheap(const struct range_duty *d,
		    const struct range_duty_window *w)
{
	return range_cheap_is_among(d, w, 0) &&
	       w->rate_ppb <= (uint64_t)d->m_t_ppb;
}
