#include "pmu/overflow.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMES	48
#define MOST_NS (30 * NSEC_PER_MSEC)
#define LAST_NS (300 * NSEC_PER_MSEC) /* others have the CPU, mostly */
/* As much as the core's own caches hold. What is kept of a sample goes through
 * them, and what it drives out the program has to get again. */
#define WORDS (1u << 18)
#define STEPS 512

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

/* All over it, each place told by what was at the last one, as programs have
 * it: nothing is there before it is asked for. */
static void touch_memory(uint32_t *word, uint32_t *at)
{
	uint32_t x = *at;
	for (int i = 0; i < STEPS; i++) {
		x = x * 1664525 + 1013904223;
		x += word[(x >> 8) % WORDS]++;
	}
	*at = x;
}

/* Is there time for more? */
static bool may_go_on(uint64_t began_ns, size_t nr)
{
	return nr < TIMES &&
	       smco_now_ns() < began_ns + (nr ? MOST_NS : LAST_NS);
}

uint64_t overflow_cost_of(uint64_t *gap_ns, size_t nr, uint64_t *round_ns,
			  size_t nr_rounds)
{
	if (!nr || !nr_rounds)
		return 0;
	uint64_t with_ns = median(gap_ns, nr);
	uint64_t none_ns = OVERFLOW_ROUNDS * median(round_ns, nr_rounds);
	uint64_t more_ns = with_ns > none_ns ? with_ns - none_ns : 1;
	return more_ns + more_ns / OVERFLOW_LATER;
}

/*
 * Run, and see how much longer it takes when an overflow falls into it: into a
 * round or the end of that before, hence from the beginning of that until the
 * end of the next one, less what three rounds take without.
 */
uint64_t overflow_cost_ns(struct perf_event_mmap_page *page)
{
	_cleanup_free_ uint32_t *memory = calloc(WORDS, sizeof(*memory));
	uint32_t place = 1;
	uint64_t gap[TIMES], round[TIMES], head = 0;
	uint64_t at_ns[OVERFLOW_ROUNDS + 1] = {0}, began_ns = smco_now_ns();
	size_t nr = 0, nr_rounds = 0;
	bool is_hit = false;
	if (memory)
		memset(memory, 1, WORDS * sizeof(*memory));
	while (memory && may_go_on(began_ns, nr)) {
		touch_memory(memory, &place);
		memmove(at_ns + 1, at_ns, OVERFLOW_ROUNDS * sizeof(*at_ns));
		/* Not the time that others have the CPU. */
		at_ns[0] = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (is_hit && at_ns[OVERFLOW_ROUNDS])
			gap[nr++] = at_ns[0] - at_ns[OVERFLOW_ROUNDS];
		uint64_t now =
			__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		if (!is_hit && now == head && at_ns[1]) /* the latest ones */
			round[nr_rounds++ % TIMES] = at_ns[0] - at_ns[1];
		is_hit = now != head;
		head = now;
		__atomic_store_n(&page->data_tail, now, __ATOMIC_RELEASE);
	}
	return overflow_cost_of(gap, nr, round,
				nr_rounds < TIMES ? nr_rounds : TIMES);
}
