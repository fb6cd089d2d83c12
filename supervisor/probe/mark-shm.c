/* What sensors at marks share with us: counts, records, who counts where. */
#include <stdlib.h>
#include <sys/mman.h>

#include "supervisor/probe/mark-private.h"

#define STUCK_NS NSEC_PER_SEC

void mark_shm_ref(struct mark_shm *shm)
{
	shm->nr_refs++;
}

void mark_shm_unref(struct mark_shm *shm)
{
	if (!shm || --shm->nr_refs)
		return;
	munmap(shm->data, MARK_DATA_BYTES);
	free(shm);
}

uint32_t mark_shm_tid_offset(const struct mark_shm *shm)
{
	return shm->tid_offset;
}

static uint64_t own_count(const struct mark_shm *shm, uint32_t counter)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < shm->nr_used; i++)
		nr += __atomic_load_n(&shm->data->own[shm->used[i]][counter],
				      __ATOMIC_RELAXED);
	return nr;
}

uint64_t mark_shm_count(const struct mark_shm *shm, uint32_t counter)
{
	return own_count(shm, counter) +
	       __atomic_load_n(&shm->data->count[counter], __ATOMIC_RELAXED);
}

struct mark_passings mark_shm_passings(const struct mark_shm *shm,
				       uint32_t nr_counters)
{
	struct mark_passings all = {0, 0};
	for (uint32_t i = 0; i < nr_counters; i++) {
		all.by_owners += own_count(shm, i);
		all.by_others +=
			__atomic_load_n(&shm->data->count[i], __ATOMIC_RELAXED);
	}
	return all;
}

/* --- owners --- */

static void publish(struct mark_shm *shm, size_t i, uint32_t number)
{
	__atomic_store_n(&shm->data->owner[i], number, __ATOMIC_RELEASE);
}

void mark_shm_share(struct mark_shm *shm)
{
	shm->is_shared = true;
	for (uint32_t i = 0; i < MARK_OWNERS; i++)
		publish(shm, i, mark_owner_none(i));
}

void mark_shm_own(struct mark_shm *shm, uint32_t number, uint32_t pid)
{
	uint32_t i = number % MARK_OWNERS;
	struct mark_owner *o = &shm->owner[i];
	if (shm->is_shared || !shm->tid_offset)
		return;
	if (o->number == number)
		mark_shm_share(shm);
	if (o->number)
		return;
	if (!o->was_used)
		shm->used[shm->nr_used++] = (uint8_t)i;
	*o = (struct mark_owner){number, pid, true};
	publish(shm, i, number);
}

void mark_shm_pause(struct mark_shm *shm, uint32_t number)
{
	publish(shm, number % MARK_OWNERS,
		mark_owner_none(number % MARK_OWNERS));
}

void mark_shm_resume(struct mark_shm *shm, uint32_t number)
{
	if (!shm->is_shared &&
	    shm->owner[number % MARK_OWNERS].number == number)
		publish(shm, number % MARK_OWNERS, number);
}

void mark_shm_disown(struct mark_shm *shm, uint32_t number, uint32_t pid)
{
	for (uint32_t i = 0; i < MARK_OWNERS; i++) {
		struct mark_owner *o = &shm->owner[i];
		if (!o->number || o->pid != pid ||
		    (number && o->number != number))
			continue;
		o->number = 0;
		publish(shm, i, mark_owner_none(i));
	}
}

bool mark_shm_owns(const struct mark_shm *shm, uint32_t number)
{
	uint32_t i = number % MARK_OWNERS;
	return number && !shm->is_shared && shm->owner[i].number == number;
}

size_t mark_shm_nr_places(const struct mark_shm *shm)
{
	return shm->nr_used + 1;
}

struct mark_pair mark_shm_pair(const struct mark_shm *shm, size_t place,
			       uint32_t channel)
{
	size_t owner = place ? shm->used[place - 1] : 0;
	const uint64_t *count =
		place ? shm->data->own[owner] : shm->data->count;
	struct mark_pair p = {.number = place ? shm->owner[owner].number : 0};
	p.ended = __atomic_load_n(&count[channel * 2 + 1], __ATOMIC_ACQUIRE);
	p.begun = __atomic_load_n(&count[channel * 2], __ATOMIC_ACQUIRE);
	return p;
}

size_t mark_shm_place(const struct mark_shm *shm, uint32_t number)
{
	for (size_t i = 0; i < shm->nr_used; i++)
		if (shm->owner[shm->used[i]].number == number && number)
			return i + 1;
	return 0;
}

/* --- records --- */

uint32_t mark_shm_room(const struct mark_shm *shm)
{
	uint32_t head = __atomic_load_n(&shm->data->head, __ATOMIC_ACQUIRE);
	uint64_t used = head - shm->tail;
	for (size_t i = 0; i < MARK_MAX_CHANNELS; i++) {
		const struct mark_channel *c = &shm->data->channel[i];
		int32_t left = __atomic_load_n(&c->tokens, __ATOMIC_RELAXED),
			from = __atomic_load_n(&c->from, __ATOMIC_RELAXED);
		if (left > from)
			left = from;
		if (left > 0)
			used += (uint32_t)left;
	}
	return used < MARK_RING ? (uint32_t)(MARK_RING - used) : 0;
}

enum mark_run mark_shm_run(const struct mark_shm *shm, uint32_t channel)
{
	const struct mark_channel *c = &shm->data->channel[channel];
	uint32_t run = __atomic_load_n(&c->run, __ATOMIC_ACQUIRE);
	int32_t left = __atomic_load_n(&c->tokens, __ATOMIC_RELAXED);
	if (!run || left < 0)
		return left || run ? MARK_RUN_ENDED : MARK_RUN_NONE;
	return left > __atomic_load_n(&c->from, __ATOMIC_RELAXED)
		       ? MARK_RUN_AWAITED
		       : MARK_RUN_ON;
}

void mark_shm_begin(struct mark_shm *shm, uint32_t channel, uint32_t skip,
		    uint32_t tokens)
{
	struct mark_channel *c = &shm->data->channel[channel];
	if (tokens > MARK_RING)
		tokens = MARK_RING;
	if (skip > MARK_MAX_SKIP)
		skip = MARK_MAX_SKIP;
	__atomic_store_n(&c->run, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->from, (int32_t)tokens, __ATOMIC_RELAXED);
	__atomic_store_n(&c->tokens, (int32_t)(tokens + skip),
			 __ATOMIC_RELAXED);
	if (!++shm->last_run)
		shm->last_run = 1;
	__atomic_store_n(&c->run, shm->last_run, __ATOMIC_RELEASE);
}

void mark_shm_extend(struct mark_shm *shm, uint32_t channel, uint32_t tokens)
{
	struct mark_channel *c = &shm->data->channel[channel];
	if (tokens > MARK_RING)
		tokens = MARK_RING;
	int32_t left = __atomic_load_n(&c->tokens, __ATOMIC_RELAXED);
	if (left < 0 || left >= (int32_t)tokens)
		return;
	/* First: more than it began with may be left. */
	__atomic_store_n(&c->from, MARK_RING, __ATOMIC_RELEASE);
	__atomic_fetch_add(&c->tokens, (int32_t)tokens - left,
			   __ATOMIC_RELEASE);
}

/* A thread that took a slot and never filled it: it was killed in there. */
static bool is_stuck(struct mark_shm *shm)
{
	uint64_t now_ns = smco_now_ns();
	if (!shm->stuck_ns)
		shm->stuck_ns = now_ns;
	return now_ns - shm->stuck_ns > STUCK_NS;
}

bool mark_shm_next(struct mark_shm *shm, struct mark_record *ret)
{
	for (;;) {
		uint32_t head =
			__atomic_load_n(&shm->data->head, __ATOMIC_ACQUIRE);
		if (head - shm->tail > MARK_RING) /* never, or it is hostile */
			shm->tail = head;
		if (head == shm->tail)
			return false;
		const struct mark_slot *slot =
			&shm->data->ring[shm->tail % MARK_RING];
		uint32_t seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);
		if (seq != shm->tail + 1 && !is_stuck(shm))
			return false;
		shm->stuck_ns = 0;
		shm->tail++;
		if (seq != shm->tail)
			continue;
		*ret = (struct mark_record){
			.time_ns = tsc_map_ns(&shm->clock, slot->tsc),
			.left_ns =
				tsc_map_ns(&shm->clock, slot->tsc + slot->took),
			.tid = slot->tid,
			.what = slot->what,
			.run = slot->run,
			.level = slot->level,
			.sp = slot->sp,
		};
		return true;
	}
}

struct mark_shm *mark_shm_create(int fd, struct smco_err *err)
{
	struct mark_shm *shm = calloc(1, sizeof(*shm));
	void *map = mmap(NULL, MARK_DATA_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);
	if (!shm || map == MAP_FAILED) {
		free(shm);
		if (map != MAP_FAILED)
			munmap(map, MARK_DATA_BYTES);
		smco_fail(err, SMCO_NOMEM, 0, "no memory to share");
		return NULL;
	}
	shm->nr_refs = 1;
	shm->data = map;
	for (uint32_t i = 0; i < MARK_OWNERS; i++)
		shm->data->owner[i] = mark_owner_none(i);
	tsc_map_init(&shm->clock);
	return shm;
}
