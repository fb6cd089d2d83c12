/*
 * Which passings are recorded, where there is no room for all of them.
 *
 * A slice is so many beginnings and ends one after the other. What it begins
 * with is chosen by number, at random, before it is known how long any of them
 * is going to last: whoever began a slice when it wakes up would begin it
 * within a long one mostly, of which the beginning is missed, and end it before
 * the next. The sensor counts up to it, which costs a little, so it is told
 * only when that is near.
 *
 * Where so many are passed between two looks that counting is too dear, a slice
 * begins a random number of them after a look: that number is the sum of two,
 * so that where the look was within a rhythm of fewer matters little.
 *
 * While there is room for twice as many as came of late a slice is extended at
 * each look, and none is missed.
 */
#include "supervisor/control/allowance.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

#define MAX_TOKENS   4096		  /* of a phase, until the next look */
#define LEAST_TOKENS 32			  /* so few are no matter */
#define LOOK_NS	     (10 * NSEC_PER_MSEC) /* or more, between two */
#define LEAST_LEN    32
#define SHARED_LEN   1024 /* there are others' passings within long ones */
#define NEAR	     4096 /* what may always be counted up to */
/* The same, where a slice begins after each look; after each other look where
 * nothing is left. */
#define NEAR_A_LOOK 2048
#define CONTENDED   4 /* counting, where several threads do */
#define MOST_PASSED (UINT32_MAX / 8)

/* splitmix64 */
uint64_t phase_draw(struct phases *ph, uint64_t below)
{
	if (!ph->random)
		ph->random = smco_now_ns();
	uint64_t z = ph->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint64_t)((u128)(z ^ z >> 31) * below >> 64);
}

/* The counts are where the program can write. */
static void take_count(struct phase_slice *s, uint64_t now)
{
	uint64_t grown = now - s->passed;
	if (grown > MOST_PASSED) {
		grown = MOST_PASSED;
		s->len = 0;
		s->end = now;
	}
	s->passed = now;
	s->most = max_u64(grown, s->most - s->most / 8);
}

static uint64_t passed(const struct shared *sh, uint32_t channel)
{
	return mark_shm_count(sh->shm, channel * 2) +
	       mark_shm_count(sh->shm, channel * 2 + 1);
}

static double nr_gaps(const struct phase_slice *s)
{
	return s->nr_gaps[0] + s->nr_gaps[1];
}

/* How many passings the last slice stands for, when there were @all. */
static uint64_t stands_for(const struct phase_slice *s, uint64_t all)
{
	return nr_gaps(s) > 0 ? sat_sub_u64(min_u64(s->end, all), s->stood_for)
			      : 0;
}

/* How many gaps each of its stands for, if it stands for @nr: as many of them
 * are behind beginnings as passings are. */
static void get_times(const struct shared *sh, uint32_t channel, uint64_t nr,
		      double ret[2])
{
	const struct phase_slice *s = &sh->slice[channel];
	double begun = (double)mark_shm_count(sh->shm, channel * 2),
	       ended = (double)mark_shm_count(sh->shm, channel * 2 + 1);
	ret[0] = ret[1] = nr ? (double)nr / nr_gaps(s) : 0;
	if (s->nr_gaps[0] <= 0 || s->nr_gaps[1] <= 0 || begun + ended < 1)
		return;
	ret[0] = (double)nr * begun / (begun + ended) / s->nr_gaps[0];
	ret[1] = (double)nr * ended / (begun + ended) / s->nr_gaps[1];
}

/* The last slice is over. */
static void weigh(struct phases *ph, struct shared *sh, uint32_t channel)
{
	struct phase_slice *s = &sh->slice[channel];
	uint64_t nr = stands_for(s, s->passed);
	double times[2];
	get_times(sh, channel, nr, times);
	ph->phase[channel].weight += (double)nr;
	phase_gaps_weigh(&ph->phase[channel], s, times);
	s->stood_for += nr;
	s->nr_gaps[0] = s->nr_gaps[1] = 0;
	s->nr_records = 0;
}

static bool is_room_for_all(const struct phase_slice *s, uint64_t tokens)
{
	return tokens >= 2 * s->most;
}

static uint64_t skip_ns(const struct shared *sh)
{
	return sh->is_shared ? MARK_SKIP_NS * CONTENDED : MARK_SKIP_NS;
}

static void begin(struct phases *ph, struct shared *sh, uint32_t channel,
		  uint64_t skip)
{
	struct phase_slice *s = &sh->slice[channel];
	weigh(ph, sh, channel);
	s->len = min_u64(s->len, mark_shm_room(sh->shm));
	mark_shm_begin(sh->shm, channel, (uint32_t)skip, (uint32_t)s->len);
	s->begin = s->passed + skip;
	s->end = s->begin + s->len;
	s->is_all = is_room_for_all(s, s->len);
	s->len = 0;
	ledger_charge(ph->ledger, LEDGER_OTHER, PHASES_MONITOR,
		      skip * skip_ns(sh));
}

/* Where the next slice of @tokens or so begins: far enough that another look
 * comes first. */
static void plan(struct phases *ph, const struct shared *sh,
		 struct phase_slice *s, uint64_t tokens)
{
	bool all = is_room_for_all(s, tokens);
	uint64_t gap = all ? s->most : 2 * s->most,
		 len = max_u64(tokens, LEAST_LEN);
	s->len = sh->is_shared ? max_u64(len, SHARED_LEN) : len;
	/* A longer one comes so much more seldom. */
	gap += phase_draw(ph, all ? gap + 1
				  : max_u64(gap, 4 * s->len * s->len / len));
	s->next = s->end + gap;
	if (s->next <= s->passed)
		s->next = s->passed + gap;
}

/* How many passings may be counted up to, for as much as @tokens cost. */
static uint64_t near_of(const struct shared *sh, uint64_t tokens,
			uint64_t least)
{
	return max_u64(tokens * MARK_RECORD_NS, least * MARK_SKIP_NS) /
	       skip_ns(sh);
}

/* A slice of @tokens begins after this look, or the next one. */
static void begin_blindly(struct phases *ph, struct shared *sh,
			  uint32_t channel, uint64_t tokens)
{
	struct phase_slice *s = &sh->slice[channel];
	uint64_t half = near_of(sh, tokens, NEAR_A_LOOK) / 2;
	s->len = max_u64(tokens, LEAST_LEN);
	if (tokens > LEAST_TOKENS || phase_draw(ph, 2))
		begin(ph, sh, channel,
		      phase_draw(ph, half) + phase_draw(ph, half));
}

/* No slice is on. */
static void go_on(struct phases *ph, struct shared *sh, uint32_t channel,
		  uint64_t tokens)
{
	struct phase_slice *s = &sh->slice[channel];
	if (!s->len)
		plan(ph, sh, s, tokens);
	if (2 * s->most > max_u64(NEAR, near_of(sh, 4 * tokens, 0)))
		begin_blindly(ph, sh, channel, tokens);
	else if (s->next <= s->passed)
		plan(ph, sh, s, tokens);
	else if (s->next - s->passed <= 2 * s->most)
		begin(ph, sh, channel, s->next - s->passed);
}

/* What comes seldom is not missed. */
static bool is_few(const struct phase_slice *s)
{
	return 2 * s->most <= LEAST_TOKENS;
}

static void begin_soon(struct phases *ph, struct shared *sh, uint32_t channel,
		       uint64_t tokens)
{
	sh->slice[channel].len = tokens;
	begin(ph, sh, channel, phase_draw(ph, sh->slice[channel].most + 1));
}

/* Not until a number that depends on when we looked; and not one that was for
 * less than all: long ones are in those that are on at a look. */
static void extend(struct phases *ph, struct shared *sh, uint32_t channel,
		   uint64_t tokens)
{
	struct phase_slice *s = &sh->slice[channel];
	if (tokens > LEAST_TOKENS)
		tokens -= phase_draw(ph, (tokens - LEAST_TOKENS) / 4 + 1);
	if (!s->is_all || !is_room_for_all(s, tokens))
		return;
	mark_shm_extend(sh->shm, channel, (uint32_t)tokens);
	s->end = max_u64(s->end, s->passed + tokens);
}

static void look(struct phases *ph, struct shared *sh, uint32_t channel,
		 uint64_t tokens)
{
	struct phase_slice *s = &sh->slice[channel];
	switch (mark_shm_run(sh->shm, channel)) {
	case MARK_RUN_NONE:
		s->len = tokens;
		begin(ph, sh, channel, 0);
		s->is_all = true;
		break;
	case MARK_RUN_ON:
		extend(ph, sh, channel, tokens);
		break;
	case MARK_RUN_AWAITED:
		ph->phase[channel].is_missed = true;
		if (is_few(s) && s->begin > s->passed + LEAST_TOKENS)
			begin_soon(ph, sh, channel, tokens);
		break;
	case MARK_RUN_ENDED:
		ph->phase[channel].is_missed = true;
		if (is_few(s))
			begin_soon(ph, sh, channel, tokens);
		else
			go_on(ph, sh, channel, tokens);
		break;
	}
}

/* What is left for each phase where more than the budget is used up already: a
 * sixty-fourth of it. */
static uint64_t least_tokens(const struct phases *ph)
{
	if (ph->p.m_t_ppb == INT64_MAX)
		return MAX_TOKENS;
	int64_t ns = allowance_budget_ns(LOOK_NS, ph->p.m_t_ppb);
	return (uint64_t)ns / 64 / MARK_RECORD_NS / ph->p.nr;
}

void phase_slices_look(struct phases *ph, struct shared *sh)
{
	int64_t room = ledger_room_ns(ph->ledger);
	uint64_t paid = room > 0 ? (uint64_t)room / 8 / MARK_RECORD_NS : 0;
	paid = max_u64(paid, max_u64(LEAST_TOKENS, least_tokens(ph)));
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		struct phase_slice *s = &sh->slice[i];
		uint64_t free = mark_shm_room(sh->shm) / (ph->p.nr - i);
		uint64_t tokens = min_u64(min_u64(paid, MAX_TOKENS), free);
		take_count(s, passed(sh, i));
		if (tokens)
			look(ph, sh, i, tokens);
		else
			ph->phase[i].is_missed = true;
	}
}

void phase_slices_end(struct phases *ph, struct shared *sh)
{
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		sh->slice[i].passed = passed(sh, i);
		weigh(ph, sh, i);
	}
}

uint64_t phase_passed(const struct phases *ph, uint32_t phase)
{
	uint64_t nr = ph->phase[phase].count + ph->phase[phase].ended;
	for (const struct shared *sh = ph->shared; sh; sh = sh->next)
		nr += passed(sh, phase);
	return nr;
}

double phase_slices_inside_ns(const struct phases *ph, uint32_t phase)
{
	double nr = ph->phase[phase].weight, ns = ph->phase[phase].weighted_ns;
	for (const struct shared *sh = ph->shared; sh; sh = sh->next) {
		const struct phase_slice *s = &sh->slice[phase];
		uint64_t more = stands_for(s, passed(sh, phase));
		struct phase_inside in = s->in;
		double times[2];
		get_times(sh, phase, more, times);
		phase_inside_scale(&in, times);
		nr += (double)more;
		ns += in.ns;
	}
	if (nr < 1)
		return 0;
	if (ph->phase[phase].nr_recorded >= phase_passed(ph, phase))
		return (double)ph->phase[phase].seen_ns;
	ns *= (double)phase_passed(ph, phase) / nr;
	return (ns < 0 ? 0 : ns) + phase_still_ns(&ph->phase[phase]);
}

uint64_t phase_slices_about_ns(const struct phases *ph, uint32_t phase,
			       uint64_t now_ns)
{
	double ns = phase_slices_inside_ns(ph, phase);
	/* No thread was in it for longer than it was there. */
	double most = (double)sat_sub_u64(now_ns, ph->p.start_ns) *
		      (double)ph->nr_tasks;
	if (most > 0 && ns > most)
		ns = most;
	return ns < (double)INT64_MAX ? (uint64_t)ns : INT64_MAX;
}
