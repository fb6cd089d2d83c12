/* What the kernel tells of a counted thread without being asked: when it begins
 * on a CPU, in a page that it shares. With a count of context switches beside
 * it that also tells whether the thread had left its CPU when it was read. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmu/counter-private.h"

/* Who may not lock memory has room for so many pages, beside rings. */
#define UNPRIVILEGED_PAGES 64

static size_t nr_pages;

bool counter_counts_switches(const struct pmu_event *ev)
{
	return ev->role == PMU_SWITCHES && !ev->attr.exclude_kernel;
}

int counter_find_switches(const struct counter_plan *plan,
			  const struct counter_group *g)
{
	int found = -1;
	for (size_t i = 0; i < g->nr; i++) {
		const struct pmu_event *ev = &plan->event[g->first + i];
		if (!ev->is_software)
			return -1;
		if (found < 0 && counter_counts_switches(ev))
			found = (int)i;
	}
	return found;
}

/*
 * One of the group's that the kernel says of when it begins on a CPU: the
 * software events' code does, that of tracepoints does not. -1: none. Hardware
 * groups may have to wait for their turn, and those that inherit have no page.
 */
static int telling_fd(const struct counter_plan *plan,
		      const struct open_group *o, bool switches,
		      size_t *place_ret)
{
	const struct counter_group *g = &plan->group[o->group];
	if (g->inherits)
		return -1;
	for (size_t i = 0; i < g->nr; i++)
		if (!plan->event[g->first + i].is_software)
			return -1;
	for (size_t i = 0; i < o->nr; i++) {
		size_t place = o->place[i];
		const struct pmu_event *ev = &plan->event[g->first + place];
		if (ev->attr.type == PERF_TYPE_SOFTWARE &&
		    (!switches || counter_counts_switches(ev))) {
			*place_ret = place;
			return o->fd[i];
		}
	}
	return -1;
}

/* The page of one that counts context switches, if there is such a one. */
static int find_page(struct counter_thread *t)
{
	for (int any = 0; any < 2; any++)
		for (size_t i = 0; i < t->nr; i++) {
			int fd = telling_fd(t->plan, &t->open[i], !any,
					    &t->page_place);
			if (fd < 0)
				continue;
			t->page_group = t->open[i].group;
			t->tells_off = !any;
			return fd;
		}
	return -1;
}

void counter_map_page(struct counter_thread *t)
{
	if (!t->tid || (nr_pages >= UNPRIVILEGED_PAGES && geteuid()))
		return;
	int fd = find_page(t);
	if (fd < 0)
		return;
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ,
			  MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return;
	t->page = page;
	t->has_moved = true;
	nr_pages++;
}

void counter_unmap_page(struct counter_thread *t)
{
	if (!t->page)
		return;
	munmap((void *)(uintptr_t)t->page, (size_t)sysconf(_SC_PAGESIZE));
	t->page = NULL;
	nr_pages--;
}

static uint32_t page_lock(const struct counter_thread *t)
{
	return __atomic_load_n(&t->page->lock, __ATOMIC_ACQUIRE);
}

/* What the page's event had counted when the thread came to its CPU. */
static uint64_t told(const struct counter_thread *t)
{
	uint32_t lock;
	uint64_t ret;
	do { /* the kernel's rule for such a page */
		lock = page_lock(t);
		ret = (uint64_t)__atomic_load_n(&t->page->offset,
						__ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (lock != __atomic_load_n(&t->page->lock, __ATOMIC_RELAXED));
	return ret;
}

bool counter_thread_told(const struct counter_thread *t, size_t group,
			 size_t index, uint64_t *ret)
{
	if (!t->page || group != t->page_group || index != t->page_place)
		return false;
	*ret = told(t);
	return true;
}

bool counter_thread_has_run(struct counter_thread *t)
{
	if (!t->page || t->level == COUNTER_NONE)
		return true;
	uint32_t lock = page_lock(t);
	/* One that was found to be where it had been, or off its CPU, was on
	 * none then. */
	if (lock == t->seen_lock && !t->has_moved)
		return false;
	t->seen_lock = lock;
	t->has_moved = false;
	t->is_off = false;
	t->is_first = true;
	return true;
}

size_t counter_thread_first(const struct counter_thread *t)
{
	return t->page && t->tells_off ? t->page_group : 0;
}

/* ------------------------------------------------------------- off a CPU ---
 */

static bool can_tell(const struct counter_thread *t, const struct open_group *o)
{
	return t->page && t->tells_off && o->switches >= 0;
}

bool counter_read_ahead(const struct counter_thread *t,
			const struct open_group *o, uint64_t *ret)
{
	struct counter_reading now;
	if (!can_tell(t, o) || o->has_lead || o->group == t->page_group)
		return false;
	for (size_t i = 0; i < t->nr; i++)
		if (t->open[i].group == t->page_group &&
		    counter_read_group(&t->open[i], &now) > 0) {
			*ret = now.value[t->page_place];
			return true;
		}
	return false;
}

/* A switch is counted at its end on a CPU, the page has what there was at its
 * beginning on one. */
void counter_note_off(struct counter_thread *t, struct open_group *o,
		      const struct counter_reading *now, const uint64_t *ahead)
{
	bool is_off = false;
	if (ahead) {
		o->lead = (int64_t)(*ahead - now->value[o->switches]);
		o->has_lead = true;
	}
	if (can_tell(t, o) && (o->has_lead || o->group == t->page_group))
		is_off =
			(int64_t)(now->value[o->switches] - told(t)) + o->lead >
			0;
	if (t->is_first)
		t->is_off = is_off;
	t->is_first = false;
}
