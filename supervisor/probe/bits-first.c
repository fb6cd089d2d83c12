#include "supervisor/probe/bits-first.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "reports/base.h"
#include "reports/median.h"
#include "supervisor/memory-room.h"
#include "supervisor/tracee/tracee.h"

/* One page of each cache line of page table. */
#define STRIDE	   (8 * TPAGE_SIZE)
#define NR_PAGES   4096ul
#define PAGES_SIZE (NR_PAGES * STRIDE)
/* More than the caches have that a CPU has for itself. */
#define OTHER_SIZE (32ul << 20)
#define LINE_SIZE  64
/* Pages of NR_PAGES that are touched again, when the others have taken their
 * places in the TLB. */
#define NR_AGAIN 1024ul
#define ROUNDS	 5
/* Ten times what it takes. */
#define ROOM_BYTES (10 * (NR_PAGES * TPAGE_SIZE + OTHER_SIZE))

/* The @i-th in an order that no prefetcher follows: the odd multiplier makes it
 * a permutation. Each has another part of the cache. */
static size_t nth(size_t i)
{
	return i * 2654435761u % NR_PAGES * STRIDE + i * LINE_SIZE % TPAGE_SIZE;
}

static int64_t touch_ns(const volatile char *mem, size_t first, size_t end)
{
	/* Without what others had of the CPU meanwhile. */
	uint64_t start = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = first; i < end; i++)
		(void)mem[nth(i)];
	return (int64_t)(smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
}

static void use_other(volatile char *other)
{
	for (size_t at = 0; at < OTHER_SIZE; at += LINE_SIZE)
		other[at]++;
}

static int64_t round_ns(char *mem, char *other)
{
	madvise(mem, PAGES_SIZE, MADV_COLD);
	use_other(other);
	touch_ns(mem, 0, NR_AGAIN);
	int64_t first = touch_ns(mem, NR_AGAIN, NR_PAGES);
	int64_t again = touch_ns(mem, 0, NR_AGAIN);
	return first / (int64_t)(NR_PAGES - NR_AGAIN) -
	       again / (int64_t)NR_AGAIN;
}

static uint64_t measure(char *mem)
{
	int64_t cost[ROUNDS];
	char *other = mem + PAGES_SIZE;
	madvise(mem, PAGES_SIZE, MADV_NOHUGEPAGE); /* EINVAL: there are none */
	for (size_t i = 0; i < NR_PAGES; i++)
		mem[i * STRIDE] = 1;
	use_other(other);
	for (size_t i = 0; i < ROUNDS; i++)
		cost[i] = round_ns(mem, other);
	int64_t ns = median_i64(cost, ROUNDS);
	return ns > 0 ? (uint64_t)ns : 0;
}

bool bits_first_has_room(const struct memory_room *group,
			 const struct memory_room *machine)
{
	return group->left_bytes >= ROOM_BYTES &&
	       machine->left_bytes >= ROOM_BYTES;
}

static bool has_room(void)
{
	struct memory_room group, machine;
	struct memory_rooms *rooms = memory_rooms_create();
	if (!rooms)
		return false;
	memory_rooms_look(rooms, memory_rooms_find(rooms, getpid()),
			  smco_now_ns(), &group);
	memory_rooms_destroy(rooms);
	memory_machine_room(&machine);
	return bits_first_has_room(&group, &machine);
}

uint64_t bits_first_touch_ns(void)
{
	size_t size = PAGES_SIZE + OTHER_SIZE;
	if (!has_room())
		return 0;
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return 0;
	uint64_t ns = measure(mem);
	munmap(mem, size);
	return ns;
}
