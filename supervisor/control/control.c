/*
 * The plants of one controller and their cycle: waiting (in the schedule),
 * handed out (the caller decides), armed. The laws are in primary.c.
 */
#include "supervisor/control/control.h"

#include <stdlib.h>

#include "supervisor/control/primary.h"
#include "supervisor/control/schedule.h"

/*
 * A plant armed later than this after it was due was held back by lack of
 * room; up to it, by the caller's tick.
 */
#define LATE_GRACE_NS (50 * NSEC_PER_MSEC)

/* Plants handed out one after the other are spread all over the table. */
#define PREFETCH_AHEAD 6

enum plant_state { PLANT_FREE, PLANT_WAITING, PLANT_HANDED, PLANT_ARMED };

/* 32 bytes, because there may be millions of them. */
struct plant {
	union {
		void *user;
		uint32_t next_free; /* PLANT_FREE */
	};
	union {
		uint64_t due_ns;  /* waiting, handed: since when it may be
				     armed; putting it off does not change it */
		uint64_t late_ns; /* armed: how long it waited from then on */
	};
	uint32_t delay_us; /* the d before this cycle */
	/* While it waits after an event: of its last cycle. */
	uint32_t p_ns;	/* at most 4 s count */
	uint32_t m_ppb; /* p / (tau + p + d) */
	uint8_t state;
	bool is_fresh; /* no event yet: its wait is no sign of demand */
};
_Static_assert(sizeof(struct plant) == 32, "plants are small");

struct control {
	struct primary primary;
	struct schedule schedule;
	struct plant *plants;
	uint32_t nr_slots; /* allocated */
	uint32_t nr_used;  /* ever used, <= nr_slots */
	uint32_t nr_plants, nr_armed;
	uint32_t first_free; /* SCHEDULE_NONE: none */
	uint64_t last_step_ns;
	uint64_t active_ppb, active_p_ns; /* sums over the plants */
	int64_t awake_ppb; /* part of the time in which the program runs */
	struct primary_sample sample; /* since the last step */
};

struct control *control_create(const struct control_params *params,
			       uint64_t now_ns)
{
	struct control *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	primary_init(&c->primary, params);
	schedule_init(&c->schedule, now_ns);
	c->first_free = SCHEDULE_NONE;
	c->last_step_ns = now_ns;
	c->awake_ppb = PPB;
	return c;
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	schedule_deinit(&c->schedule);
	free(c->plants);
	free(c);
}

/* ------------------------------------------------------------ the table --- */

static struct plant *get(const struct control *c, plant_t id)
{
	if (id >= c->nr_used || c->plants[id].state == PLANT_FREE)
		return NULL;
	return &c->plants[id];
}

static int grow(struct control *c)
{
	if (c->nr_slots > PLANT_NONE / 2)
		return SMCO_NOMEM;
	/* Large arrays grow without being copied. */
	uint32_t nr = c->nr_slots + c->nr_slots / 8 + 64;
	if (schedule_grow(&c->schedule, nr))
		return SMCO_NOMEM;
	struct plant *plants = reallocarray(c->plants, nr, sizeof(*plants));
	if (!plants)
		return SMCO_NOMEM;
	c->plants = plants;
	c->nr_slots = nr;
	return SMCO_OK;
}

/* Its last cycle no longer says what it will do. */
static void forget_cycle(struct control *c, struct plant *p)
{
	c->active_ppb -= p->m_ppb;
	c->active_p_ns -= p->p_ns;
	p->m_ppb = p->p_ns = 0;
}

static void set_state(struct control *c, struct plant *p,
		      enum plant_state state)
{
	c->nr_armed += (state == PLANT_ARMED) - (p->state == PLANT_ARMED);
	p->state = state;
}

/* Waits until @due_ns, wherever it was before. */
static void wait_until(struct control *c, plant_t id, uint64_t now_ns,
		       uint64_t due_ns)
{
	struct plant *p = &c->plants[id];
	schedule_remove(&c->schedule, id);
	set_state(c, p, PLANT_WAITING);
	p->due_ns = due_ns;
	/* At a target of 0 no time ever comes. */
	if (!c->primary.is_off)
		schedule_add(&c->schedule, id, now_ns, due_ns);
}

plant_t control_add(struct control *c, uint64_t now_ns, void *user)
{
	plant_t id = c->first_free;
	if (id != SCHEDULE_NONE) {
		c->first_free = c->plants[id].next_free;
	} else {
		if (c->nr_used == c->nr_slots && grow(c))
			return PLANT_NONE;
		id = c->nr_used++;
	}
	c->plants[id] = (struct plant){.user = user, .is_fresh = true};
	c->nr_plants++;
	wait_until(c, id, now_ns, now_ns);
	primary_resize(&c->primary, c->nr_plants);
	return id;
}

void control_remove(struct control *c, plant_t id)
{
	struct plant *p = get(c, id);
	if (!p)
		return;
	schedule_remove(&c->schedule, id);
	forget_cycle(c, p);
	set_state(c, p, PLANT_FREE);
	p->next_free = c->first_free;
	c->first_free = id;
	c->nr_plants--;
	primary_resize(&c->primary, c->nr_plants);
}

void *control_user(const struct control *c, plant_t id)
{
	const struct plant *p = get(c, id);
	return p ? p->user : NULL;
}

uint32_t control_nr_plants(const struct control *c)
{
	return c->nr_plants;
}

uint32_t control_nr_armed(const struct control *c)
{
	return c->nr_armed;
}

/* ------------------------------------------------------------ the cycle --- */

bool control_next_due(struct control *c, uint64_t now_ns, plant_t *ret)
{
	if (!primary_is_on(&c->primary) ||
	    !schedule_pop(&c->schedule, now_ns, ret))
		return false;
	uint32_t soon = schedule_peek(&c->schedule, PREFETCH_AHEAD);
	if (soon != SCHEDULE_NONE)
		__builtin_prefetch(&c->plants[soon], 1);
	set_state(c, &c->plants[*ret], PLANT_HANDED);
	return true;
}

uint64_t control_next_due_ns(const struct control *c)
{
	if (!primary_is_on(&c->primary))
		return UINT64_MAX;
	return schedule_next_ns(&c->schedule);
}

void control_armed(struct control *c, plant_t id, uint64_t now_ns)
{
	struct plant *p = get(c, id);
	if (!p || p->state == PLANT_ARMED)
		return;
	schedule_remove(&c->schedule, id);
	forget_cycle(c, p);
	set_state(c, p, PLANT_ARMED);
	p->late_ns = sat_sub_u64(now_ns, p->due_ns);
}

void control_defer(struct control *c, plant_t id, uint64_t until_ns)
{
	struct plant *p = get(c, id);
	if (!p || p->state == PLANT_ARMED)
		return;
	if (p->state == PLANT_WAITING) {
		wait_until(c, id, 0, until_ns);
		return;
	}
	set_state(c, p, PLANT_WAITING);
	schedule_put_off(&c->schedule, id, until_ns);
}

/*
 * What @p_ns would have been in the same time, had the plant not been held
 * back: as much more as its cycle was longer than the law wanted it. Waiting
 * while the program sleeps does not count, there is no budget to be had then.
 */
static uint64_t demand_ns(const struct control *c, const struct plant *p,
			  uint64_t tau_ns, uint64_t p_ns)
{
	if (p->is_fresh || p->state != PLANT_ARMED ||
	    p->late_ns <= LATE_GRACE_NS)
		return p_ns;
	uint64_t late = mul_ppb(p->late_ns, c->awake_ppb);
	if (late <= LATE_GRACE_NS)
		return p_ns;
	uint64_t wanted = sat_add_u64(p->delay_us * NSEC_PER_USEC,
				      sat_add_u64(tau_ns, p_ns));
	if (!wanted)
		return p_ns;
	u128 held = (u128)p_ns * (late - LATE_GRACE_NS) / wanted;
	return sat_add_u64(p_ns, sat_u64(held));
}

/* @p waits for its next turn; until then this is what it is known to use. */
static void remember_cycle(struct control *c, struct plant *p,
			   uint64_t cycle_ns, uint64_t p_ns)
{
	forget_cycle(c, p);
	p->p_ns = (uint32_t)min_u64(p_ns, UINT32_MAX);
	/* p <= 4.3 s: the product fits. */
	p->m_ppb =
		cycle_ns ? (uint32_t)(p->p_ns * (uint64_t)PPB / cycle_ns) : 0;
	c->active_ppb += p->m_ppb;
	c->active_p_ns += p->p_ns;
}

uint64_t control_event(struct control *c, plant_t id, uint64_t now_ns,
		       uint64_t tau_ns, uint64_t p_ns)
{
	return control_event_part(c, id, now_ns, tau_ns, p_ns, CONTROL_WHOLE);
}

uint64_t control_event_part(struct control *c, plant_t id, uint64_t now_ns,
			    uint64_t tau_ns, uint64_t p_ns, uint32_t part)
{
	struct plant *p = get(c, id);
	if (!p)
		return 0;
	struct primary_sample *s = &c->sample;
	uint64_t d = primary_delay_ns(&c->primary, tau_ns, p_ns, part);
	uint64_t cycle = sat_add_u64(d, sat_add_u64(tau_ns, p_ns));
	s->p_ns = sat_add_u64(s->p_ns, p_ns);
	s->demand_ns = sat_add_u64(s->demand_ns, demand_ns(c, p, tau_ns, p_ns));
	c->primary.total_p_ns = sat_add_u64(c->primary.total_p_ns, p_ns);
	remember_cycle(c, p, cycle, p_ns);
	p->delay_us = (uint32_t)min_u64(d / NSEC_PER_USEC, UINT32_MAX);
	p->is_fresh = false;
	wait_until(c, id, now_ns, sat_add_u64(now_ns, d));
	return d;
}

void control_event_more(struct control *c, plant_t id, uint64_t now_ns,
			uint64_t p_ns)
{
	struct plant *p = get(c, id);
	if (!p || p->state != PLANT_WAITING)
		return;
	struct primary_sample *s = &c->sample;
	s->p_ns = sat_add_u64(s->p_ns, p_ns);
	s->demand_ns = sat_add_u64(s->demand_ns, p_ns);
	c->primary.total_p_ns = sat_add_u64(c->primary.total_p_ns, p_ns);
	uint64_t d =
		primary_delay_ns(&c->primary, 0, p_ns, CONTROL_WHOLE) + p_ns;
	p->delay_us =
		(uint32_t)min_u64(p->delay_us + d / NSEC_PER_USEC, UINT32_MAX);
	wait_until(c, id, now_ns, sat_add_u64(max_u64(p->due_ns, now_ns), d));
}

void control_disarm(struct control *c, plant_t id, uint64_t now_ns,
		    uint64_t due_ns)
{
	struct plant *p = get(c, id);
	if (!p)
		return;
	forget_cycle(c, p);
	p->delay_us = (uint32_t)min_u64(
		sat_sub_u64(due_ns, now_ns) / NSEC_PER_USEC, UINT32_MAX);
	wait_until(c, id, now_ns, due_ns);
}

void control_tick(struct control *c, uint64_t now_ns, uint64_t run_ns)
{
	struct primary_sample *s = &c->sample;
	s->run_ns = sat_add_u64(s->run_ns, run_ns);
	c->primary.total_run_ns = sat_add_u64(c->primary.total_run_ns, run_ns);
	s->elapsed_ns = sat_sub_u64(now_ns, c->last_step_ns);
	if (!s->elapsed_ns || s->elapsed_ns < c->primary.interval_ns)
		return;
	s->active_ppb = c->active_ppb;
	s->active_p_ns = c->active_p_ns;
	/* Over the last dozen intervals or so. */
	uint64_t ran = min_u64(s->run_ns, s->elapsed_ns);
	int64_t awake = (int64_t)((u128)ran * PPB / s->elapsed_ns);
	c->awake_ppb += (awake - c->awake_ppb) / 8;
	primary_step(&c->primary, c->nr_plants, s);
	*s = (struct primary_sample){0};
	c->last_step_ns = now_ns;
}

bool control_is_on(const struct control *c)
{
	return primary_is_on(&c->primary);
}

int64_t control_local_target_ppb(const struct control *c)
{
	return c->primary.is_off ? 0 : c->primary.m_lt_fine / FINE_PER_PPB;
}
