#include "supervisor/control/schedule.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS     6
#define TICK_MAX       (UINT64_MAX >> SCHEDULE_GRAIN_SHIFT)
#define QUEUE_SIZE_MIN 64
#define PREFETCH_AHEAD 6

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
	memset(s->rows, 0xff, sizeof(s->rows));
	s->free_chunk = SCHEDULE_NONE;
	s->clock = now_ns >> SCHEDULE_GRAIN_SHIFT;
}

void schedule_deinit(struct schedule *s)
{
	free(s->nodes);
	free(s->chunks);
	free(s->queue.ids);
	free(s->again.ids);
	schedule_init(s, 0);
}

/* --------------------------------------------------------------- queues --- */

/* Place @nth of @q, counted from its head. */
static inline uint32_t queue_at(const struct schedule_queue *q, uint32_t nth)
{
	uint32_t at = q->head + nth;
	return at < q->size ? at : at - q->size;
}

/* Closes the gaps. @ids has room for @size; may be the queue's own array. */
static void queue_compact(struct schedule *s, struct schedule_queue *q,
			  uint32_t *ids, uint32_t size)
{
	uint32_t nr = 0;
	bool is_same = ids == q->ids;
	for (uint32_t i = 0; i < q->len; i++) {
		uint32_t id = q->ids[queue_at(q, i)];
		if (id == SCHEDULE_NONE)
			continue;
		/* In place the order is kept by going on from the head. */
		uint32_t at = is_same ? queue_at(q, nr) : nr;
		ids[at] = id;
		s->nodes[id].place = at;
		nr++;
	}
	if (!is_same)
		q->head = 0;
	q->ids = ids;
	q->size = size;
	q->len = nr;
}

static int queue_grow(struct schedule *s, struct schedule_queue *q,
		      uint32_t nr_nodes)
{
	uint32_t size = nr_nodes + nr_nodes / 4 + QUEUE_SIZE_MIN;
	if (q->size >= size)
		return SMCO_OK;
	uint32_t *ids = malloc(size * sizeof(*ids));
	uint32_t *old = q->ids;
	if (!ids)
		return SMCO_NOMEM;
	queue_compact(s, q, ids, size);
	free(old);
	return SMCO_OK;
}

static struct schedule_queue *queue_of(struct schedule *s, uint32_t row)
{
	return row == SCHEDULE_QUEUE ? &s->queue : &s->again;
}

static void enqueue(struct schedule *s, uint32_t id, uint32_t row)
{
	struct schedule_queue *q = queue_of(s, row);
	/*
	 * At least a fifth of a full ring are gaps, so closing them costs no
	 * more than a few steps for each of the removals that made them.
	 */
	if (q->len == q->size)
		queue_compact(s, q, q->ids, q->size);
	uint32_t at = queue_at(q, q->len++);
	q->ids[at] = id;
	s->nodes[id].row = (uint16_t)row;
	s->nodes[id].place = at;
}

/* First in the queue, SCHEDULE_NONE if it is empty: there are no gaps at the
 * head. */
static uint32_t queue_first(const struct schedule_queue *q)
{
	return q->len ? q->ids[q->head] : SCHEDULE_NONE;
}

static void queue_remove(struct schedule_queue *q, uint32_t place)
{
	q->ids[place] = SCHEDULE_NONE;
	/* Gaps at the head go at once, so that the first is quickly found. */
	while (q->len && q->ids[q->head] == SCHEDULE_NONE) {
		q->head = queue_at(q, 1);
		q->len--;
	}
}

/* ---------------------------------------------------------------- wheel --- */

/*
 * Invariant: a plant of tick t is on the level of the highest 6-bit digit in
 * which t and the clock differ, in the row of that digit of t. As t > clock,
 * that digit is above the clock's, so the rows of a level need no wrapping,
 * everything on a level comes before everything on the next, and the first set
 * bit of the lowest level in use is what comes next. The clock may move
 * forward to any time before that without moving a plant.
 */

/* Each row has one chunk at most that is not full. */
static uint32_t chunks_for(uint32_t nr_nodes)
{
	return nr_nodes / SCHEDULE_CHUNK_IDS + SCHEDULE_ROWS + 1;
}

static void free_chunk(struct schedule *s, uint32_t chunk)
{
	s->chunks[chunk].next = s->free_chunk;
	s->free_chunk = chunk;
}

static void row_add(struct schedule *s, uint32_t id, uint32_t row)
{
	uint32_t chunk = s->rows[row];
	if (chunk == SCHEDULE_NONE ||
	    s->chunks[chunk].nr == SCHEDULE_CHUNK_IDS) {
		uint32_t older = chunk;
		chunk = s->free_chunk;
		s->free_chunk = s->chunks[chunk].next;
		s->chunks[chunk].next = older;
		s->chunks[chunk].nr = 0;
		s->rows[row] = chunk;
		s->occupied[row / SCHEDULE_LEVEL_ROWS] |=
			1ULL << row % SCHEDULE_LEVEL_ROWS;
	}
	struct schedule_chunk *c = &s->chunks[chunk];
	struct schedule_node *n = &s->nodes[id];
	n->row = (uint16_t)row;
	n->place = chunk;
	n->index = (uint8_t)c->nr;
	c->ids[c->nr++] = id;
}

/* The last plant of the row's newest chunk takes the place of @n. */
static void row_remove(struct schedule *s, const struct schedule_node *n)
{
	uint32_t row = n->row, newest = s->rows[row];
	struct schedule_chunk *c = &s->chunks[newest];
	uint32_t last = c->ids[--c->nr];
	s->chunks[n->place].ids[n->index] = last;
	s->nodes[last].place = n->place;
	s->nodes[last].index = n->index;
	if (c->nr)
		return;
	s->rows[row] = c->next;
	free_chunk(s, newest);
	if (s->rows[row] == SCHEDULE_NONE)
		s->occupied[row / SCHEDULE_LEVEL_ROWS] &=
			~(1ULL << row % SCHEDULE_LEVEL_ROWS);
}

/* Where its tick belongs, by the clock as it stands. */
static void place(struct schedule *s, uint32_t id, uint64_t tick)
{
	if (tick <= s->clock) {
		enqueue(s, id,
			s->nodes[id].was_put_off ? SCHEDULE_QUEUE_AGAIN
						 : SCHEDULE_QUEUE);
		return;
	}
	unsigned level = (63 - __builtin_clzll(tick ^ s->clock)) / DIGIT_BITS;
	unsigned digit =
		tick >> (level * DIGIT_BITS) & (SCHEDULE_LEVEL_ROWS - 1);
	row_add(s, id, level * SCHEDULE_LEVEL_ROWS + digit);
}

/* First tick at which a row of the wheel has to be looked at. */
static bool next_row(const struct schedule *s, uint32_t *row, uint64_t *tick)
{
	for (unsigned level = 0; level < SCHEDULE_LEVELS; level++) {
		if (!s->occupied[level])
			continue;
		unsigned digit = __builtin_ctzll(s->occupied[level]);
		unsigned shift = level * DIGIT_BITS;
		uint64_t above = s->clock >> (shift + DIGIT_BITS);
		*row = level * SCHEDULE_LEVEL_ROWS + digit;
		*tick = (above << DIGIT_BITS | digit) << shift;
		return true;
	}
	return false;
}

/* The clock has reached @row: its plants move down or become due. */
static void open_row(struct schedule *s, uint32_t row)
{
	uint32_t chunk = s->rows[row];
	s->rows[row] = SCHEDULE_NONE;
	s->occupied[row / SCHEDULE_LEVEL_ROWS] &=
		~(1ULL << row % SCHEDULE_LEVEL_ROWS);
	while (chunk != SCHEDULE_NONE) {
		struct schedule_chunk c = s->chunks[chunk];
		for (uint32_t i = 0; i < c.nr; i++)
			__builtin_prefetch(&s->nodes[c.ids[i]], 1);
		if (c.next != SCHEDULE_NONE)
			__builtin_prefetch(&s->chunks[c.next]);
		/* Freed first: placing may need it. */
		free_chunk(s, chunk);
		for (uint32_t i = 0; i < c.nr; i++)
			place(s, c.ids[i], tick_of(s->nodes[c.ids[i]].due_ns));
		chunk = c.next;
	}
}

static void advance(struct schedule *s, uint64_t now_ns)
{
	uint64_t now = now_ns >> SCHEDULE_GRAIN_SHIFT;
	uint32_t row;
	uint64_t tick;
	if (now <= s->clock)
		return;
	while (next_row(s, &row, &tick) && tick <= now) {
		s->clock = tick;
		open_row(s, row);
	}
	s->clock = now;
}

/* ----------------------------------------------------------------- both --- */

int schedule_grow(struct schedule *s, uint32_t nr)
{
	uint32_t nr_chunks = chunks_for(nr);
	if (nr <= s->nr_nodes)
		return SMCO_OK;
	if (nr > UINT32_MAX / 4)
		return SMCO_NOMEM;
	if (queue_grow(s, &s->queue, nr) || queue_grow(s, &s->again, nr))
		return SMCO_NOMEM;
	struct schedule_chunk *chunks =
		reallocarray(s->chunks, nr_chunks, sizeof(*chunks));
	if (!chunks)
		return SMCO_NOMEM;
	s->chunks = chunks;
	for (; s->nr_chunks < nr_chunks; s->nr_chunks++)
		free_chunk(s, s->nr_chunks);
	struct schedule_node *nodes =
		reallocarray(s->nodes, nr, sizeof(*nodes));
	if (!nodes)
		return SMCO_NOMEM;
	s->nodes = nodes;
	for (; s->nr_nodes < nr; s->nr_nodes++)
		nodes[s->nr_nodes] =
			(struct schedule_node){.row = SCHEDULE_NOWHERE};
	return SMCO_OK;
}

void schedule_add(struct schedule *s, uint32_t id, uint64_t now_ns,
		  uint64_t due_ns)
{
	struct schedule_node *n = &s->nodes[id];
	n->due_ns = due_ns;
	n->was_put_off = false;
	if (due_ns > now_ns) {
		place(s, id, tick_of(due_ns));
		return;
	}
	/* Whoever became due before stands before it in the queue. */
	advance(s, now_ns);
	enqueue(s, id, SCHEDULE_QUEUE);
}

void schedule_put_off(struct schedule *s, uint32_t id, uint64_t until_ns)
{
	struct schedule_node *n = &s->nodes[id];
	uint64_t tick = tick_of(until_ns);
	if (tick <= s->clock && s->clock < TICK_MAX) {
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
	if (n->row == SCHEDULE_NOWHERE)
		return;
	if (n->row < SCHEDULE_ROWS)
		row_remove(s, n);
	else
		queue_remove(queue_of(s, n->row), n->place);
	n->row = SCHEDULE_NOWHERE;
}

bool schedule_pop(struct schedule *s, uint64_t now_ns, uint32_t *ret)
{
	advance(s, now_ns);
	uint32_t id = queue_first(&s->again);
	if (id == SCHEDULE_NONE)
		id = queue_first(&s->queue);
	if (id == SCHEDULE_NONE)
		return false;
	uint32_t soon = schedule_peek(s, PREFETCH_AHEAD);
	if (soon != SCHEDULE_NONE)
		__builtin_prefetch(&s->nodes[soon], 1);
	schedule_remove(s, id);
	*ret = id;
	return true;
}

uint32_t schedule_peek(const struct schedule *s, uint32_t ahead)
{
	const struct schedule_queue *q = &s->queue;
	if (q->len <= ahead)
		return SCHEDULE_NONE;
	return q->ids[queue_at(q, ahead)];
}

uint64_t schedule_next_ns(const struct schedule *s)
{
	uint32_t row, id = queue_first(&s->again);
	uint64_t tick;
	if (id == SCHEDULE_NONE)
		id = queue_first(&s->queue);
	if (id != SCHEDULE_NONE)
		return s->nodes[id].due_ns;
	if (!next_row(s, &row, &tick))
		return UINT64_MAX;
	return tick << SCHEDULE_GRAIN_SHIFT;
}
