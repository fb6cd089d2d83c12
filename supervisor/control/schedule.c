#include "supervisor/control/schedule.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_BITS 6
#define TICK_MAX  (UINT64_MAX >> SCHEDULE_GRAIN_SHIFT)

/*
 * Invariant: a plant of tick t sits on the level of the highest 6-bit digit in
 * which t and the clock differ, in the slot of that digit of t. As t > clock,
 * that digit is above the clock's, so the slots of a level need no wrapping,
 * everything on a level comes before everything on the next, and the first set
 * bit of the lowest level in use is what comes next. The clock may move
 * forward to any time before that without moving a plant.
 */

static uint64_t tick_of(uint64_t due_ns)
{
	uint64_t grain = 1ULL << SCHEDULE_GRAIN_SHIFT;
	if (due_ns > UINT64_MAX - grain)
		return TICK_MAX;
	return (due_ns + grain - 1) >> SCHEDULE_GRAIN_SHIFT;
}

void schedule_init(struct schedule *s, uint64_t now_ns)
{
	memset(s, 0, sizeof(*s));
	memset(s->head, 0xff, sizeof(s->head));
	memset(s->tail, 0xff, sizeof(s->tail));
	s->clock = now_ns >> SCHEDULE_GRAIN_SHIFT;
}

void schedule_deinit(struct schedule *s)
{
	free(s->nodes);
	s->nodes = NULL;
	s->nr_nodes = 0;
}

int schedule_grow(struct schedule *s, uint32_t nr)
{
	if (nr <= s->nr_nodes)
		return SMCO_OK;
	struct schedule_node *nodes =
		reallocarray(s->nodes, nr, sizeof(*nodes));
	if (!nodes)
		return SMCO_NOMEM;
	s->nodes = nodes;
	for (uint32_t i = s->nr_nodes; i < nr; i++)
		nodes[i] = (struct schedule_node){.row = SCHEDULE_ROWS};
	s->nr_nodes = nr;
	return SMCO_OK;
}

static void append(struct schedule *s, uint32_t id, uint32_t row)
{
	struct schedule_node *n = &s->nodes[id];
	n->row = (uint16_t)row;
	n->next = SCHEDULE_NONE;
	n->prev = s->tail[row];
	if (n->prev == SCHEDULE_NONE)
		s->head[row] = id;
	else
		s->nodes[n->prev].next = id;
	s->tail[row] = id;
}

/* Into the row for its tick, by the clock as it stands. */
static void place(struct schedule *s, uint32_t id, uint64_t tick)
{
	const struct schedule_node *n = &s->nodes[id];
	if (tick <= s->clock) {
		append(s, id,
		       n->was_put_off ? SCHEDULE_READY_AGAIN : SCHEDULE_READY);
		return;
	}
	unsigned level = (63 - __builtin_clzll(tick ^ s->clock)) / SLOT_BITS;
	unsigned slot = tick >> (level * SLOT_BITS) & (SCHEDULE_SLOTS - 1);
	s->occupied[level] |= 1ULL << slot;
	append(s, id, level * SCHEDULE_SLOTS + slot);
}

/* First tick at which a row of the wheel has to be looked at. */
static bool next_row(const struct schedule *s, uint32_t *row, uint64_t *tick)
{
	for (unsigned level = 0; level < SCHEDULE_LEVELS; level++) {
		if (!s->occupied[level])
			continue;
		unsigned slot = __builtin_ctzll(s->occupied[level]);
		unsigned shift = level * SLOT_BITS;
		uint64_t above = s->clock >> (shift + SLOT_BITS) << SLOT_BITS;
		*row = level * SCHEDULE_SLOTS + slot;
		*tick = (above | slot) << shift;
		return true;
	}
	return false;
}

static void advance(struct schedule *s, uint64_t now_ns)
{
	uint64_t now = now_ns >> SCHEDULE_GRAIN_SHIFT;
	uint32_t row;
	uint64_t tick;
	while (next_row(s, &row, &tick) && tick <= now) {
		s->clock = tick;
		uint32_t id = s->head[row];
		s->head[row] = s->tail[row] = SCHEDULE_NONE;
		s->occupied[row / SCHEDULE_SLOTS] &=
			~(1ULL << row % SCHEDULE_SLOTS);
		while (id != SCHEDULE_NONE) {
			uint32_t next = s->nodes[id].next;
			place(s, id, tick_of(s->nodes[id].due_ns));
			id = next;
		}
	}
	if (now > s->clock)
		s->clock = now;
}

void schedule_add(struct schedule *s, uint32_t id, uint64_t now_ns,
		  uint64_t due_ns)
{
	struct schedule_node *n = &s->nodes[id];
	n->due_ns = due_ns;
	n->was_put_off = false;
	if (due_ns <= now_ns) {
		/* Whoever became due before stands before it in the row. */
		advance(s, now_ns);
		append(s, id, SCHEDULE_READY);
		return;
	}
	place(s, id, tick_of(due_ns));
}

void schedule_put_off(struct schedule *s, uint32_t id, uint64_t until_ns)
{
	struct schedule_node *n = &s->nodes[id];
	uint64_t tick = tick_of(until_ns);
	if (tick <= s->clock) {
		tick = s->clock + 1;
		until_ns = tick << SCHEDULE_GRAIN_SHIFT;
	}
	n->due_ns = until_ns;
	n->was_put_off = true;
	place(s, id, tick);
}

void schedule_remove(struct schedule *s, uint32_t id)
{
	struct schedule_node *n = &s->nodes[id];
	uint32_t row = n->row;
	if (row == SCHEDULE_ROWS)
		return;
	if (n->prev == SCHEDULE_NONE)
		s->head[row] = n->next;
	else
		s->nodes[n->prev].next = n->next;
	if (n->next == SCHEDULE_NONE)
		s->tail[row] = n->prev;
	else
		s->nodes[n->next].prev = n->prev;
	n->row = SCHEDULE_ROWS;
	if (row < SCHEDULE_READY && s->head[row] == SCHEDULE_NONE)
		s->occupied[row / SCHEDULE_SLOTS] &=
			~(1ULL << row % SCHEDULE_SLOTS);
}

bool schedule_pop(struct schedule *s, uint64_t now_ns, uint32_t *ret)
{
	advance(s, now_ns);
	uint32_t id = s->head[SCHEDULE_READY_AGAIN];
	if (id == SCHEDULE_NONE)
		id = s->head[SCHEDULE_READY];
	if (id == SCHEDULE_NONE)
		return false;
	schedule_remove(s, id);
	*ret = id;
	return true;
}

uint64_t schedule_next_ns(const struct schedule *s)
{
	uint32_t row, id = s->head[SCHEDULE_READY_AGAIN];
	uint64_t tick;
	if (id == SCHEDULE_NONE)
		id = s->head[SCHEDULE_READY];
	if (id != SCHEDULE_NONE)
		return s->nodes[id].due_ns;
	if (!next_row(s, &row, &tick))
		return UINT64_MAX;
	return tick << SCHEDULE_GRAIN_SHIFT;
}
