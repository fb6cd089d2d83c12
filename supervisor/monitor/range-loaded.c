/*
 * Libraries that may be unloaded: what tells at each hit of a watchpoint that
 * the bytes there are still the library's. The linker's list says that
 * something is loaded there, the build-id in its first page that it is the same
 * file, not another one that came into the same place of memory and list.
 */
#include <string.h>

#include "supervisor/monitor/range-private.h"

#define MOST_ID_BYTES 64

_Static_assert(WATCH_GUARDS >= LINKMAP_WORDS + 2 + POINTEE_MAX_DEREFS,
	       "the list, the build-id, the slot, pointers behind it");

static void add(struct watch_what *what, taddr_t addr, uint64_t value)
{
	what->pointer[what->nr_pointers++] =
		(struct watch_pointer){.addr = addr, .value = value};
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* The file's build-id as bytes; returns how many. */
static size_t build_id(const struct range_unit *u, uint8_t ret[MOST_ID_BYTES])
{
	const char *text = u->build_id ? u->build_id : "";
	size_t nr = 0;
	for (; nr < MOST_ID_BYTES && text[2 * nr]; nr++) {
		int high = digit(text[2 * nr]), low = digit(text[2 * nr + 1]);
		if (high < 0 || low < 0)
			return 0;
		ret[nr] = (uint8_t)(16 * high + low);
	}
	return nr;
}

void range_loaded_at(struct range_part *rp)
{
	uint8_t id[MOST_ID_BYTES], page[TPAGE_SIZE];
	size_t nr = build_id(rp->unit, id);
	rp->build_id = (struct linkmap_word){.addr = 0};
	if (!rp->can_go || nr < sizeof(rp->build_id.value) ||
	    tmem_read(rp->proc, rp->bias, page, sizeof(page)))
		return;
	const uint8_t *at = memmem(page, sizeof(page), id, nr);
	if (!at)
		return;
	rp->build_id.addr = rp->bias + (uint64_t)(at - page);
	memcpy(&rp->build_id.value, id, sizeof(rp->build_id.value));
}

/* What the linker has put into the slot by which the library itself finds the
 * variable. */
static bool guard_slot(struct range_part *rp, uint64_t addr,
		       struct watch_what *what)
{
	const struct data_slots *slots = &rp->unit->slots;
	const struct data_export *x = data_export_find(slots, addr);
	if (!x)
		return true;
	taddr_t *known = &rp->export[x - slots->export];
	if (!x->slot ||
	    tmem_read(rp->proc, x->slot + rp->bias, known, sizeof(*known)))
		*known = 0;
	add(what, x->slot + rp->bias, *known);
	return *known;
}

static bool is_at(const struct range_part *rp, const struct linkmap_word *w)
{
	uint64_t now;
	return w->addr && !tmem_read(rp->proc, w->addr, &now, sizeof(now)) &&
	       now == w->value;
}

bool range_loaded_still(const struct range_part *rp)
{
	if (!rp->can_go)
		return true;
	for (size_t i = 0; i < LINKMAP_WORDS; i++)
		if (!is_at(rp, &rp->place[i]))
			return false;
	return !rp->build_id.addr || is_at(rp, &rp->build_id);
}

bool range_loaded(struct range_part *rp)
{
	/* It may have been elsewhere when that was asked. */
	if (!rp->can_go || (rp->place[LINKMAP_WORDS - 1].value == rp->bias &&
			    range_loaded_still(rp)))
		return true;
	return rp->owner &&
	       linkmap_words(&rp->owner->linkmap, rp->proc, rp->bias,
			     rp->place) &&
	       range_loaded_still(rp);
}

bool range_loaded_guard(struct range_part *rp, uint64_t addr,
			struct watch_what *what)
{
	if (!rp->can_go)
		return true;
	if (!rp->build_id.addr || !range_loaded(rp))
		return false;
	for (size_t i = 0; i < LINKMAP_WORDS; i++)
		add(what, rp->place[i].addr, rp->place[i].value);
	add(what, rp->build_id.addr, rp->build_id.value);
	return guard_slot(rp, addr, what);
}
