/*
 * Memory near a module is found where calls of ours have mapped something
 * since the process came to stand, in the only place there seemed to be; and
 * above libraries where all within reach below them is taken, as by the stacks
 * of hundreds of threads, but for what the first thread's stack may need.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "supervisor/probe/near.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES (64 * TPAGE_SIZE)

/* The first mapping that the kernel placed: below it is where it puts the
 * next, and where we look first. */
static struct tmap lowest_placed(struct tproc *p)
{
	const struct tmaps *maps;
	struct smco_err err = {0};
	size_t i = 0;
	check_int(tproc_get_maps(p, &maps, &err), 0);
	while (i + 1 < maps->nr && (maps->maps[i].start >> 40) != 0x7f &&
	       (maps->maps[i].start >> 40) != 0x7e)
		i++;
	return maps->maps[i];
}

static void map_below(struct tproc *p, taddr_t start)
{
	struct smco_err err = {0};
	const uint64_t args[6] = {
		start - 4 * TPAGE_SIZE,
		2 * TPAGE_SIZE,
		PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		(uint64_t)-1,
	};
	int64_t ret = 0;
	check_int(tproc_syscall(p, SYS_mmap, args, &ret, &err), 0);
	check((uint64_t)ret == args[0]);
}

/* The last mapping below the stack, and the stack. */
static struct tmap highest_placed(struct tproc *p, struct tmap *stack_ret)
{
	const struct tmaps *maps;
	struct smco_err err = {0};
	size_t i = 1;
	check_int(tproc_get_maps(p, &maps, &err), 0);
	while (i + 1 < maps->nr && strcmp(maps->maps[i].path, "[stack]") != 0)
		i++;
	*stack_ret = maps->maps[i];
	return maps->maps[i - 1];
}

/* Whatever is free in the three GiB below @m. */
static void take_all_below(struct tproc *p, const struct tmap *m)
{
	const uint64_t step = 4UL << 20;
	struct smco_err err = {0};
	for (uint64_t size = 1UL << 30; size >= step; size /= 2)
		for (taddr_t at = m->end - (3UL << 30); at + size <= m->end;
		     at += size) {
			const uint64_t args[6] = {
				at,
				size,
				PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				(uint64_t)-1,
			};
			int64_t ret;
			tproc_syscall(p, SYS_mmap, args, &ret, &err);
		}
}

static void test_above(struct tproc *p)
{
	struct tmap stack, m = highest_placed(p, &stack);
	struct rlimit lim;
	struct smco_err err = {0};
	taddr_t base = 0;
	const uint64_t bytes = 8UL << 20; /* in no hole that was left */
	take_all_below(p, &m);
	tproc_forget_maps(p);
	m = highest_placed(p, &stack);
	check_msg(near_map(p, m.start, m.end, bytes, &base, &err) == 0,
		  "mapped: %s", err.msg);
	check(base >= m.end && base + bytes - m.start < 1ULL << 31);
	check_int(getrlimit(RLIMIT_STACK, &lim), 0);
	check(stack.start - (base + bytes) > lim.rlim_cur + (1UL << 30));
	check_int(near_unmap(p, base, bytes, &err), 0);
	/* It might need all there is. */
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	check_int(prlimit(tproc_pid(p), RLIMIT_STACK, &none, NULL), 0);
	check_int(near_map(p, m.start, m.end, bytes, &base, &err),
		  SMCO_UNSUPPORTED);
	const struct rlimit much = {stack.start - m.end - (1UL << 30),
				    RLIM_INFINITY};
	check_int(prlimit(tproc_pid(p), RLIMIT_STACK, &much, NULL), 0);
	check_int(near_map(p, m.start, m.end, bytes, &base, &err),
		  SMCO_UNSUPPORTED);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();

	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	struct tmap m = lowest_placed(p);
	map_below(p, m.start);
	taddr_t base = 0;
	check_msg(near_map(p, m.start, m.end, BYTES, &base, &err) == 0,
		  "mapped: %s", err.msg);
	check_str(err.msg, "");
	check(base && (base < m.start ? m.end - base : base + BYTES - m.start) <
			      1ULL << 31);
	check_int(near_unmap(p, base, BYTES, &err), 0);
	test_above(p);
	tproc_resume_new(p);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
