/*
 * A program that gives pages back (MADV_DONTNEED, MADV_FREE) takes their
 * protection with them: the guards of what they belong to are gone, that is
 * told as a gap, and none is set before the pages are away. What is written
 * then is seen again.
 */
#include <string.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "supervisor/probe/uffd-private.h"
#include "tap.h"
#include "traced.h"
#include "uffd.h"

#define NR	   4
#define LEN	   (NR * TPAGE_SIZE)
#define PATIENCE_S 20

static char *memory;

static long fill(long a, long b)
{
	memset(memory, (int)a, LEN);
	return b;
}

static long give_back(long page, long advice)
{
	return madvise(memory + page * (long)TPAGE_SIZE, TPAGE_SIZE,
		       (int)advice);
}

static long poke(long at, long value)
{
	memory[at] = (char)value;
	return memory[at];
}

static taddr_t page(unsigned k)
{
	return (taddr_t)(uintptr_t)memory + k * TPAGE_SIZE;
}

/* A guard over pages [from, to); how many of them. */
static uint32_t arm(struct access *a, unsigned from, unsigned to)
{
	struct page_range r = {
		.start = page(from), .end = page(to), .user = memory + from};
	return access_uffd.arm(a, &r, 1) ? UINT32_MAX : r.nr_reset;
}

/* Within what takes at most some milliseconds. */
static bool arm_soon(struct access *a, unsigned from, unsigned to)
{
	uint64_t end_ns = smco_now_ns() + PATIENCE_S * NSEC_PER_SEC;
	while (arm(a, from, to) != to - from)
		if (smco_now_ns() > end_ns)
			return false;
	return true;
}

static bool next(struct access *a, struct access_hit *hit)
{
	uint64_t end_ns = smco_now_ns() + PATIENCE_S * NSEC_PER_SEC;
	while (smco_now_ns() < end_ns)
		if (access_uffd.next_hit(a, hit))
			return true;
	return false;
}

static void test_give_back(struct tracer *tr, struct access *a,
			   struct puppet *pup, int advice)
{
	struct access_hit hit;
	check(arm_soon(a, 0, 3));
	check(arm_soon(a, 3, NR));
	check_int(traced_do(tr, pup, give_back, 1, advice), 0);
	check(next(a, &hit));
	check(hit.is_gap);
	check(hit.range.start == page(0) && hit.range.end == page(3));
	check(hit.range.user == memory);
	check(!hit.stopped);
	check(hit.cost_ns > 0);
	check(!access_uffd.next_hit(a, &hit)); /* of the other one nothing */
	check_int(arm(a, 3, NR), UINT32_MAX);  /* for it stands */
	/* The other pages of what was guarded are not, either. */
	check_int(traced_do(tr, pup, poke, 3, 4), 4);
	check(!access_uffd.next_hit(a, &hit));
	/* What is written now is seen once it is guarded again. */
	check(arm_soon(a, 0, 3));
	puppet_begin(pup, poke, TPAGE_SIZE + 7, 9);
	check(next(a, &hit));
	check(!hit.is_gap && hit.is_write);
	check_int(hit.addr - page(0), TPAGE_SIZE + 7);
	if (hit.stopped)
		access_uffd.resume(a, &hit);
	check_int(traced_wait(tr, pup), 9);
	access_uffd.drop(a, page(3), page(NR));
}

/* Given back just now: the pages may not be away yet. So may any others, where
 * more are given back than can be kept. */
static void test_too_soon(void)
{
	const uint64_t now = 100 * UFFD_REMOVED_NS, later = 2 * now;
	struct uffd u = {.fd = -1};
	check(!uffd_is_removed(&u, page(0), page(NR), now));
	u.removed[0] = (struct uffd_removed){page(1), page(2), now};
	u.next_removed = 1;
	check(uffd_is_removed(&u, page(0), page(NR), now + 1));
	check(uffd_is_removed(&u, page(1), page(2), now + 1));
	check(!uffd_is_removed(&u, page(0), page(1), now + 1));
	check(!uffd_is_removed(&u, page(2), page(3), now + 1));
	check(!uffd_is_removed(&u, page(0), page(NR), later));
	for (unsigned i = 1; i < UFFD_REMOVED; i++)
		u.removed[i] = (struct uffd_removed){page(0), page(1), now};
	check(uffd_is_removed(&u, page(3), page(NR), now + 1));
	check(!uffd_is_removed(&u, page(3), page(NR), later));
}

/* That is asked for by whoever arms. In some of many tries the time is not over
 * before it is. */
static void test_not_armed(struct access *a)
{
	struct uffd *u = (struct uffd *)a;
	bool refused = false;
	for (unsigned i = 0; i < 100 && !refused; i++) {
		u->removed[0] =
			(struct uffd_removed){page(1), page(2), smco_now_ns()};
		refused = arm(a, 0, 3) == UINT32_MAX;
		access_uffd.drop(a, page(0), page(NR));
	}
	check(refused);
	check(arm_soon(a, 0, 3));
	access_uffd.drop(a, page(0), page(NR));
}

int main(void)
{
	struct tracer *tr;
	struct access *a;
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct puppet pup = puppet_start();
	puppet_do(&pup, fill, 1, 0);
	struct tproc *p = uffd_attach(&pup, &tr, &a);
	tproc_resume_new(p);
	test_too_soon();
	test_not_armed(a);
	test_give_back(tr, a, &pup, MADV_DONTNEED);
	test_give_back(tr, a, &pup, MADV_FREE);
	access_uffd.close(a);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
