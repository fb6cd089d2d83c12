/*
 * schedule.h - who is due when, for up to 2^31 plants. Private to control/.
 *
 * A hierarchical timer wheel: 8 levels of 64 rows, each level 64 times as
 * coarse as the one below; the finest row ("grain") is 2^16 ns. Adding and
 * removing are O(1); each plant moves down at most 7 times. The due time is
 * rounded up to a grain: a plant is never early and at most 66 us late.
 *
 * Plants whose time has come queue up and are handed out in the order of their
 * due times, in any order within a grain; those added when they were due
 * already, first come, first served. Those that were handed out before and put
 * off go before all others: they have waited longest. So whatever the room,
 * every plant gets its turn.
 *
 * Rows are lists of small arrays of plants, not lists of plants. With 100 000
 * plants every plant looked at is a cache miss; with arrays the next ones can
 * be fetched meanwhile (measured: 200 to 60 ns per decision).
 */
#ifndef SMCO_CONTROL_SCHEDULE_H
#define SMCO_CONTROL_SCHEDULE_H

#include "reports/base.h"

#define SCHEDULE_LEVELS	     8
#define SCHEDULE_LEVEL_ROWS  64
#define SCHEDULE_ROWS	     (SCHEDULE_LEVELS * SCHEDULE_LEVEL_ROWS)
#define SCHEDULE_GRAIN_SHIFT 16
#define SCHEDULE_NONE	     UINT32_MAX
#define SCHEDULE_CHUNK_IDS   14

/* Where a plant is. Row numbers from SCHEDULE_ROWS on are not in the wheel. */
enum {
	SCHEDULE_QUEUE = SCHEDULE_ROWS, /* due */
	SCHEDULE_QUEUE_AGAIN,		/* due and handed out before */
	SCHEDULE_NOWHERE,
};

struct schedule_node {
	uint64_t due_ns;
	uint32_t place; /* its chunk, or its index in the queue */
	uint16_t row;
	uint8_t index; /* in the chunk */
	bool was_put_off;
};

struct schedule_chunk {
	uint32_t next; /* in the row, or in the free list */
	uint32_t nr;
	uint32_t ids[SCHEDULE_CHUNK_IDS];
};

/*
 * A ring; SCHEDULE_NONE where a plant was removed from the middle. There is
 * room for a quarter more than all plants, so that gaps have to be closed only
 * after that many removals.
 */
struct schedule_queue {
	uint32_t *ids; /* owned */
	uint32_t size;
	uint32_t head; /* < size */
	uint32_t len;  /* places in use from the head on, gaps included */
};

struct schedule {
	struct schedule_node *nodes; /* owned; index = plant */
	uint32_t nr_nodes;
	struct schedule_chunk *chunks; /* owned; enough for any distribution */
	uint32_t nr_chunks;
	uint32_t free_chunk;
	uint64_t clock;			    /* grains, all before are done */
	uint64_t occupied[SCHEDULE_LEVELS]; /* bit per row */
	uint32_t rows[SCHEDULE_ROWS];	    /* newest chunk, the others full */
	struct schedule_queue queue, again;
};

void schedule_init(struct schedule *s, uint64_t now_ns);
void schedule_deinit(struct schedule *s);
/* Room for plants 0 ... @nr - 1, after which no call needs memory. SMCO_NOMEM
 * leaves everything as it was. */
int schedule_grow(struct schedule *s, uint32_t nr);

/* @id must not be scheduled. Due now or before: next in the queue. */
void schedule_add(struct schedule *s, uint32_t id, uint64_t now_ns,
		  uint64_t due_ns);
/* Like add, but keeps its place before those that were not handed out yet.
 * Comes back a grain later at the earliest. */
void schedule_put_off(struct schedule *s, uint32_t id, uint64_t until_ns);
/* Fine if it is not scheduled. */
void schedule_remove(struct schedule *s, uint32_t id);
/* Takes out the first that is due. */
bool schedule_pop(struct schedule *s, uint64_t now_ns, uint32_t *ret);
/* The one @ahead places behind the head of the queue, for fetching what it
 * needs early; SCHEDULE_NONE if that is not known. */
uint32_t schedule_peek(const struct schedule *s, uint32_t ahead);
/* When pop can next succeed, UINT64_MAX if never. Exact to a grain within 4 ms
 * of the clock; beyond, it may be too early by a 64th of the distance, never
 * too late. In the past if one is due. */
uint64_t schedule_next_ns(const struct schedule *s);

#endif
