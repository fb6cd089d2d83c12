/*
 * Memory near a module is found where calls of ours have mapped something
 * since the process came to stand, in the only place there seemed to be.
 */
#include <sys/mman.h>
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
	tproc_resume_new(p);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
