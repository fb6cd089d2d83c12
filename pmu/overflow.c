#include "pmu/overflow.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMES	24
#define MOST_NS (30 * NSEC_PER_MSEC)
#define LAST_NS (300 * NSEC_PER_MSEC) /* others have the CPU, mostly */
#define BYTES	32768

static int compare(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;
	return (*a > *b) - (*a < *b);
}

static uint64_t median(uint64_t *value, size_t nr)
{
	qsort(value, nr, sizeof(*value), compare);
	return value[nr / 2];
}

/* As much as is in the nearest cache: what an overflow drives out of it, the
 * program has to get again. */
static void touch_memory(volatile char *memory)
{
	for (size_t i = 0; i < BYTES; i += 64)
		memory[i]++;
}

/* Is there time for more? */
static bool may_go_on(uint64_t began_ns, size_t nr)
{
	return nr < TIMES &&
	       smco_now_ns() < began_ns + (nr ? MOST_NS : LAST_NS);
}

/*
 * Run, and see how much longer it takes when an overflow falls into it: into a
 * round or the end of that before, hence from the beginning of that until the
 * end of the next one, less what three rounds take without.
 */
uint64_t overflow_cost_ns(struct perf_event_mmap_page *page)
{
	_cleanup_free_ char *memory = calloc(1, BYTES);
	uint64_t gap[TIMES], round[TIMES], head = 0;
	uint64_t at_ns[4] = {0}, began_ns = smco_now_ns();
	size_t nr = 0, nr_rounds = 0;
	bool is_hit = false;
	while (memory && may_go_on(began_ns, nr)) {
		touch_memory(memory);
		memmove(at_ns + 1, at_ns, 3 * sizeof(*at_ns));
		/* Not the time that others have the CPU. */
		at_ns[0] = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (is_hit && at_ns[3])
			gap[nr++] = at_ns[0] - at_ns[3];
		uint64_t now =
			__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		if (!is_hit && now == head && at_ns[1] && nr_rounds < TIMES)
			round[nr_rounds++] = at_ns[0] - at_ns[1];
		is_hit = now != head;
		head = now;
		__atomic_store_n(&page->data_tail, now, __ATOMIC_RELEASE);
	}
	if (!nr || !nr_rounds)
		return 0;
	uint64_t with_ns = median(gap, nr), none_ns = median(round, nr_rounds);
	return with_ns > 3 * none_ns ? with_ns - 3 * none_ns : 1;
}
