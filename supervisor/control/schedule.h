/*
 * schedule.h - who is due when, for up to 2^32 - 1 plants. Private to control/.
 *
 * A hierarchical timer wheel: 8 levels of 64 slots, each level 64 times as
 * coarse as the one below; the finest slot ("grain") is 2^16 ns. Adding and
 * removing are O(1); each plant moves down at most 7 times. The due time is
 * rounded up to a grain: a plant is never early and at most 66 us late.
 *
 * Plants whose time has come wait in a row and are handed out in the order
 * of their due times (to a grain; first come, first served within one). Those
 * that were handed out before and put off go before all others: they have
 * waited longest. So whatever the room, every plant gets its turn.
 */
#ifndef SMCO_CONTROL_SCHEDULE_H
#define SMCO_CONTROL_SCHEDULE_H

#include "reports/base.h"

#define SCHEDULE_LEVELS	     8
#define SCHEDULE_SLOTS	     64
#define SCHEDULE_GRAIN_SHIFT 16
#define SCHEDULE_READY	     (SCHEDULE_LEVELS * SCHEDULE_SLOTS)
#define SCHEDULE_READY_AGAIN (SCHEDULE_READY + 1)
#define SCHEDULE_ROWS	     (SCHEDULE_READY + 2)
#define SCHEDULE_NONE	     UINT32_MAX

struct schedule_node {
	uint64_t due_ns;
	uint32_t next, prev; /* in its row; SCHEDULE_NONE at the ends */
	uint16_t row;	     /* SCHEDULE_ROWS: in none */
	bool was_put_off;
};

struct schedule {
	struct schedule_node *nodes; /* owned; index = plant */
	uint32_t nr_nodes;
	uint64_t clock;			    /* grains, all before are done */
	uint64_t occupied[SCHEDULE_LEVELS]; /* bit per slot */
	uint32_t head[SCHEDULE_ROWS], tail[SCHEDULE_ROWS];
};

void schedule_init(struct schedule *s, uint64_t now_ns);
void schedule_deinit(struct schedule *s);
/* Room for plants 0 ... @nr - 1. SMCO_NOMEM leaves everything as it was. */
int schedule_grow(struct schedule *s, uint32_t nr);

/* @id must not be scheduled. Due now or before: next in the row. */
void schedule_add(struct schedule *s, uint32_t id, uint64_t now_ns,
		  uint64_t due_ns);
/* Like add, but keeps its place before those that were not handed out yet.
 * Comes back a grain later at the earliest. */
void schedule_put_off(struct schedule *s, uint32_t id, uint64_t until_ns);
/* Fine if it is not scheduled. */
void schedule_remove(struct schedule *s, uint32_t id);
/* Takes out the first that is due. */
bool schedule_pop(struct schedule *s, uint64_t now_ns, uint32_t *ret);
/* When pop can next succeed, UINT64_MAX if never. Exact to a grain within 4 ms
 * of the clock; beyond, it may be too early by a 64th of the distance, never
 * too late. In the past if one is due. */
uint64_t schedule_next_ns(const struct schedule *s);

#endif
