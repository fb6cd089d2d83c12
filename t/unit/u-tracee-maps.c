/*
 * The mappings of a program are read once while all of its threads stand, and
 * anew when it has run.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES (3 * TPAGE_SIZE)

static long map(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	return (long)mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
}

static bool has(struct tproc *p, taddr_t addr)
{
	const struct tmaps *maps;
	struct smco_err err = {0};
	check_int(tproc_get_maps(p, &maps, &err), 0);
	return tmaps_find(maps, addr);
}

/* By a call of ours. */
static taddr_t lend_and_map(struct tproc *p)
{
	struct smco_err err = {0};
	const uint64_t args[6] = {0, BYTES, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1};
	int64_t ret = 0;
	check_int(tproc_syscall(p, SYS_mmap, args, &ret, &err), 0);
	return (taddr_t)ret;
}

/* As all mappings are, but that those of files have no names. */
static void check_occupied(struct tproc *p)
{
	struct smco_err err = {0};
	const struct tmaps *places, *all;
	size_t nr_same = 0, nr_files = 0;
	check_int(tproc_occupied(p, &places, &err), 0);
	check_int(tproc_get_maps(p, &all, &err), 0);
	/* [vsyscall] is nobody's memory. */
	check(places->nr == all->nr || places->nr + 1 == all->nr);
	for (size_t i = 0; i < places->nr && i < all->nr; i++) {
		const struct tmap *a = &places->maps[i], *b = &all->maps[i];
		const char *want = b->inode ? "" : b->path;
		nr_files += b->inode != 0;
		nr_same += a->start == b->start && a->end == b->end &&
			   !strcmp(a->path, want);
	}
	check_int(nr_same, places->nr);
	check(nr_files > 4);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();
	taddr_t first = (taddr_t)puppet_do(&pup, map, 0, 0);

	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	check(has(p, first));
	taddr_t ours = lend_and_map(p);
	check(!has(p, ours));
	tproc_resume_new(p);
	check(has(p, ours));

	/* Nobody stands: what it maps is there at once. */
	taddr_t second = (taddr_t)traced_do(tr, &pup, map, 0, 0);
	check(has(p, second));

	check_int(traced_stop(p, NULL), 0);
	check(has(p, second));
	check_occupied(p);
	ours = lend_and_map(p);
	check(!has(p, ours));
	tproc_cont(p);
	check_int(traced_stop(p, NULL), 0);
	check(has(p, ours));
	tproc_cont(p);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
