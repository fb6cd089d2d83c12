/*
 * plantsim.h - a program and its plants, simulated: the monitor's loop as it
 * will be run, tick by tick, against touches that follow a simple rule. Each
 * test sets up a struct sim, adds plants, runs it, and looks at what was spent
 * and who was seen.
 *
 * Time is the wall's; touches happen on the program's own clock, which stands
 * still while the program sleeps and while it is held up by the monitoring.
 */
#ifndef PLANTSIM_H
#define PLANTSIM_H

#include <stdlib.h>

#include "supervisor/control/control.h"
#include "t/unit/rnd.h"
#include "t/unit/tap.h"

#define US	NSEC_PER_USEC
#define MS	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define PERCENT (PPB / 100)

struct sim_plant {
	uint64_t period_ns; /* between touches; 0: touched without pause */
	uint64_t phase_ns;
	uint64_t p_ns;
	/* private: */
	plant_t id;
	bool is_armed, is_settled, is_gone;
	uint32_t nr_armed; /* times */
	uint64_t armed_at; /* wall */
	uint64_t touch_at; /* program's clock */
	/* What came of it. */
	uint64_t nr_events;
	uint64_t spent_ns;
	uint64_t last_event; /* wall */
	uint64_t longest_gap;
};

struct sim {
	struct control_params params;
	bool has_ledger; /* room is respected */
	bool has_settle; /* what is quiet for 10 s is settled */
	bool has_no_log; /* nothing kept per tick */
	uint64_t tick_ns;
	unsigned nr_threads;
	bool (*is_awake)(uint64_t wall_ns); /* NULL: always */
	void (*each_tick)(struct sim *s);   /* NULL: nothing */

	/* private: */
	struct control *control;
	struct ledger *ledger;
	struct sim_plant *plants;
	uint32_t nr_plants, max_plants;
	uint32_t *heap; /* armed plants by touch_at */
	uint32_t nr_heap;
	struct sim_armed {
		uint32_t plant, nr_armed;
		uint64_t wall_ns;
	} * armed; /* ring, in the order of arming */
	uint32_t armed_head, armed_tail, armed_mask;
	uint64_t wall_ns, program_ns, run_ns, spent_ns, nr_events;
	/* One row per tick. */
	uint64_t *tick_run, *tick_spent;
	uint32_t nr_ticks, max_ticks;
};

static uint64_t sim_seed = 88172645463325252;

static inline uint64_t sim_rnd(void)
{
	return rnd_next(&sim_seed);
}

static inline void sim_init(struct sim *s, int64_t target, uint32_t max_plants)
{
	s->params.target_overhead_ppb = target;
	if (!s->tick_ns)
		s->tick_ns = 10 * MS;
	if (!s->nr_threads)
		s->nr_threads = 1;
	s->max_plants = max_plants;
	s->plants = calloc(max_plants, sizeof(*s->plants));
	s->heap = calloc(max_plants, sizeof(*s->heap));
	for (s->armed_mask = 1; s->armed_mask < 4 * max_plants;)
		s->armed_mask *= 2;
	s->armed = calloc(s->armed_mask--, sizeof(*s->armed));
	s->control = control_create(&s->params, 0);
	s->ledger = ledger_create(target);
	ledger_advance(s->ledger, 0, 0);
}

static inline void sim_deinit(struct sim *s)
{
	control_destroy(s->control);
	ledger_destroy(s->ledger);
	free(s->plants);
	free(s->heap);
	free(s->armed);
	free(s->tick_run);
	free(s->tick_spent);
	memset(s, 0, sizeof(*s));
}

static inline struct sim_plant *sim_add(struct sim *s, uint64_t period_ns,
					uint64_t p_ns)
{
	struct sim_plant *p = &s->plants[s->nr_plants++];
	*p = (struct sim_plant){
		.period_ns = period_ns,
		.phase_ns = period_ns ? sim_rnd() % period_ns : 0,
		.p_ns = p_ns,
		.last_event = s->wall_ns,
	};
	p->id = control_add(s->control, s->wall_ns, p);
	return p;
}

/* First touch after @t on the program's clock. */
static inline uint64_t sim_touch_after(const struct sim_plant *p, uint64_t t)
{
	if (!p->period_ns)
		return t + 1;
	uint64_t k = (t + p->period_ns - p->phase_ns) / p->period_ns;
	return k * p->period_ns + p->phase_ns;
}

static inline void sim_heap_push(struct sim *s, uint32_t plant)
{
	uint32_t i = s->nr_heap++;
	uint64_t key = s->plants[plant].touch_at;
	while (i && s->plants[s->heap[(i - 1) / 2]].touch_at > key) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = plant;
}

static inline uint32_t sim_heap_pop(struct sim *s)
{
	uint32_t top = s->heap[0], last = s->heap[--s->nr_heap], i = 0;
	for (uint32_t c; (c = 2 * i + 1) < s->nr_heap; i = c) {
		if (c + 1 < s->nr_heap &&
		    s->plants[s->heap[c + 1]].touch_at <
			    s->plants[s->heap[c]].touch_at)
			c++;
		if (s->plants[last].touch_at <= s->plants[s->heap[c]].touch_at)
			break;
		s->heap[i] = s->heap[c];
	}
	s->heap[i] = last;
	return top;
}

/* What was armed for the plant is no longer. */
static inline void sim_release(struct sim *s, struct sim_plant *p)
{
	if (p->is_settled)
		ledger_release_settled(s->ledger, p->p_ns);
	else
		ledger_release(s->ledger, p->p_ns);
	p->is_armed = p->is_settled = false;
}

/* Those armed for 10 s without an event are settled. */
static inline void sim_settle(struct sim *s)
{
	while (s->armed_head != s->armed_tail) {
		struct sim_armed *a = &s->armed[s->armed_head & s->armed_mask];
		struct sim_plant *p = &s->plants[a->plant];
		bool is_past = !p->is_armed || p->nr_armed != a->nr_armed;
		if (!is_past && s->wall_ns - a->wall_ns < 10 * SEC)
			return;
		s->armed_head++;
		if (is_past)
			continue;
		p->is_settled = true;
		ledger_settle(s->ledger, p->p_ns);
	}
}

/* The program frees what the plant stands for. */
static inline void sim_remove(struct sim *s, struct sim_plant *p)
{
	if (p->is_gone)
		return;
	if (p->is_armed)
		sim_release(s, p);
	control_remove(s->control, p->id);
	p->is_gone = true;
}

/* The touches up to now are found, as a look at the page table would: when they
 * were, it does not tell. */
static inline uint64_t sim_harvest(struct sim *s)
{
	uint64_t spent = 0;
	while (s->nr_heap && s->plants[s->heap[0]].touch_at <= s->program_ns) {
		struct sim_plant *p = &s->plants[sim_heap_pop(s)];
		if (!p->is_armed)
			continue;
		sim_release(s, p);
		ledger_charge(s->ledger, LEDGER_TOUCH, 0, p->p_ns);
		control_event(s->control, p->id, s->wall_ns,
			      s->wall_ns - p->armed_at, p->p_ns);
		spent += p->p_ns;
		p->spent_ns += p->p_ns;
		p->nr_events++;
		s->nr_events++;
		if (s->wall_ns - p->last_event > p->longest_gap)
			p->longest_gap = s->wall_ns - p->last_event;
		p->last_event = s->wall_ns;
	}
	return spent;
}

static inline void sim_tick(struct sim *s)
{
	bool is_awake = !s->is_awake || s->is_awake(s->wall_ns);
	plant_t id;
	s->wall_ns += s->tick_ns;
	s->program_ns += is_awake ? s->tick_ns : 0;
	uint64_t spent = sim_harvest(s);
	/* The program got as far as the tick says, and was held up. */
	s->wall_ns += spent / s->nr_threads;
	uint64_t run = is_awake ? s->tick_ns * s->nr_threads + spent : 0;
	s->run_ns += run;
	s->spent_ns += spent;
	ledger_advance(s->ledger, s->wall_ns, run);
	control_tick(s->control, s->wall_ns, run);
	if (s->has_settle)
		sim_settle(s);
	if (!s->has_no_log && s->nr_ticks == s->max_ticks) {
		s->max_ticks = s->max_ticks ? 2 * s->max_ticks : 1024;
		s->tick_run = reallocarray(s->tick_run, s->max_ticks, 8);
		s->tick_spent = reallocarray(s->tick_spent, s->max_ticks, 8);
	}
	if (!s->has_no_log) {
		s->tick_run[s->nr_ticks] = run;
		s->tick_spent[s->nr_ticks++] = spent;
	}
	if (s->each_tick)
		s->each_tick(s);
	while ((!s->has_ledger || ledger_room_ns(s->ledger) > 0) &&
	       control_next_due(s->control, s->wall_ns, &id)) {
		struct sim_plant *p = control_user(s->control, id);
		p->is_armed = true;
		p->nr_armed++;
		p->armed_at = s->wall_ns;
		p->touch_at = sim_touch_after(p, s->program_ns);
		ledger_reserve(s->ledger, p->p_ns);
		control_armed(s->control, id, s->wall_ns);
		sim_heap_push(s, (uint32_t)(p - s->plants));
		if (s->has_settle)
			s->armed[s->armed_tail++ & s->armed_mask] =
				(struct sim_armed){
					.plant = (uint32_t)(p - s->plants),
					.nr_armed = p->nr_armed,
					.wall_ns = s->wall_ns,
				};
	}
}

static inline void sim_run(struct sim *s, uint64_t wall_ns)
{
	for (uint64_t end = s->wall_ns + wall_ns; s->wall_ns < end;)
		sim_tick(s);
}

/* ------------------------------------------------------- what came of it ---
 */

static inline double sim_m_t(const struct sim *s)
{
	int64_t o = s->params.target_overhead_ppb;
	return (double)control_m_from_overhead(o) / PPB;
}

/* The promise as a percentage: target plus one point or a tenth of it. */
static inline double sim_m_allowed(const struct sim *s)
{
	double o = (double)s->params.target_overhead_ppb / PPB;
	o += o / 10 > 0.01 ? o / 10 : 0.01;
	return o / (1 + o);
}

static inline double sim_mean(const struct sim *s)
{
	return (double)s->spent_ns / (double)s->run_ns;
}

/* Monitoring percentage since tick @from. */
static inline double sim_mean_since(const struct sim *s, uint32_t from)
{
	double run = 0, spent = 0;
	for (uint32_t i = from; i < s->nr_ticks; i++) {
		run += (double)s->tick_run[i];
		spent += (double)s->tick_spent[i];
	}
	return spent / run;
}

/* The worst 10 s of run time. */
static inline double sim_worst_window(const struct sim *s)
{
	double worst = 0, run = 0, spent = 0;
	for (uint32_t i = 0, first = 0; i < s->nr_ticks; i++) {
		run += (double)s->tick_run[i];
		spent += (double)s->tick_spent[i];
		while (run - (double)s->tick_run[first] >= 10e9) {
			run -= (double)s->tick_run[first];
			spent -= (double)s->tick_spent[first++];
		}
		if (run >= 10e9 && spent / run > worst)
			worst = spent / run;
	}
	return worst;
}

/* The worst 10 s of wall time, relative to the run time in them. */
static inline double sim_worst_wall_window(const struct sim *s)
{
	double worst = 0, wall = 0, run = 0, spent = 0;
	for (uint32_t i = 0, first = 0; i < s->nr_ticks; i++) {
		wall += (double)(s->tick_ns + s->tick_spent[i] / s->nr_threads);
		run += (double)s->tick_run[i];
		spent += (double)s->tick_spent[i];
		while (wall >= 10e9 + (double)s->tick_ns) {
			run -= (double)s->tick_run[first];
			spent -= (double)s->tick_spent[first];
			wall -= (double)(s->tick_ns + s->tick_spent[first++] /
							      s->nr_threads);
		}
		if (wall >= 10e9 && spent / run > worst)
			worst = spent / run;
	}
	return worst;
}

/* How far the events of plants [first, last) are from their mean, at most. */
static inline double sim_unfairness(const struct sim *s, uint32_t first,
				    uint32_t last)
{
	double sum = 0, worst = 0;
	for (uint32_t i = first; i < last; i++)
		sum += (double)s->plants[i].nr_events;
	double mean = sum / (last - first);
	for (uint32_t i = first; i < last; i++) {
		double off = (double)s->plants[i].nr_events / mean - 1;
		off = off < 0 ? -off : off;
		if (!(off <= worst))
			worst = off;
	}
	return worst;
}

#endif
