#include "supervisor/linkmap.h"

#include <string.h>

#define MAX_MODULES 4096

/* struct r_debug: version, map, brk, state, ldbase. */
enum { DEBUG_MAP = 1, DEBUG_STATE = 3, DEBUG_WORDS = 5 };
#define STATE_CONSISTENT 0
/* struct link_map: addr, name, ld, next, prev. */
enum { MAP_ADDR, MAP_NAME, MAP_LD, MAP_NEXT, MAP_PREV, MAP_WORDS };

struct walk {
	taddr_t tail;
	uint64_t last[MAP_WORDS];
	uint64_t nr, sum;
};

static bool walk(struct tproc *p, taddr_t at, struct walk *ret)
{
	*ret = (struct walk){0};
	while (at) {
		if (ret->nr++ == MAX_MODULES ||
		    tmem_read(p, at, ret->last, sizeof(ret->last)))
			return false;
		ret->sum =
			ret->sum * 31 + ret->last[MAP_ADDR] + ret->last[MAP_LD];
		ret->tail = at;
		at = ret->last[MAP_NEXT];
	}
	return ret->nr != 0;
}

static bool is_as_it_was(const struct linkmap *l, struct tproc *p)
{
	uint64_t now[MAP_WORDS];
	return l->is_known && !tmem_read(p, l->tail, now, sizeof(now)) &&
	       !memcmp(now, l->last, sizeof(now));
}

/* The first of the list; 0: there is none, or it is being changed. */
static taddr_t first(struct linkmap *l, struct tproc *p)
{
	uint64_t debug[DEBUG_WORDS];
	if (!l->is_tried)
		l->debug = tproc_r_debug(p);
	l->is_tried = true;
	if (!l->debug || tmem_read(p, l->debug, debug, sizeof(debug)) ||
	    (uint32_t)debug[DEBUG_STATE] != STATE_CONSISTENT)
		return 0;
	return debug[DEBUG_MAP];
}

static struct linkmap_word word_of(taddr_t at, const uint64_t *record, int i)
{
	return (struct linkmap_word){.addr = at + 8u * (unsigned)i,
				     .value = record[i]};
}

/* Both neighbours say that they are so: one that is freed may keep saying it.
 * The first of the list, which has none, is the program. */
bool linkmap_words(struct linkmap *l, struct tproc *p, uint64_t bias,
		   struct linkmap_word ret[LINKMAP_WORDS])
{
	uint64_t map[MAP_WORDS], before[MAP_WORDS], debug[DEBUG_WORDS];
	taddr_t at = first(l, p), prev = 0;
	for (unsigned i = 0; at && i < MAX_MODULES; i++) {
		if (tmem_read(p, at, map, sizeof(map)))
			return false;
		if (prev && map[MAP_ADDR] == bias)
			break;
		memcpy(before, map, sizeof(before));
		prev = at;
		at = map[MAP_NEXT];
	}
	if (!at || !prev || map[MAP_ADDR] != bias || map[MAP_PREV] != prev ||
	    before[MAP_NEXT] != at ||
	    tmem_read(p, l->debug, debug, sizeof(debug)) ||
	    (uint32_t)debug[DEBUG_STATE] != STATE_CONSISTENT)
		return false;
	ret[0] = word_of(l->debug, debug, DEBUG_STATE);
	ret[1] = word_of(prev, before, MAP_NEXT);
	ret[2] = word_of(at, map, MAP_PREV);
	ret[3] = word_of(at, map, MAP_ADDR);
	return true;
}

bool linkmap_changed(struct linkmap *l, struct tproc *p)
{
	struct walk w;
	if (is_as_it_was(l, p))
		return false;
	taddr_t at = first(l, p);
	if (!at || !walk(p, at, &w))
		return false;
	bool is_other = !l->is_known || w.nr != l->nr || w.sum != l->sum;
	l->is_known = true;
	l->tail = w.tail;
	memcpy(l->last, w.last, sizeof(l->last));
	l->nr = w.nr;
	l->sum = w.sum;
	return is_other;
}
