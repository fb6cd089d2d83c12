/* Memory in the tracee, see near.h. */
#include "supervisor/probe/near.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REACH	    0x7ff00000ULL
#define LOWEST	    0x10000ULL /* mmap_min_addr as everybody has it */
#define HEAP_ROOM   (1ULL << 30)
#define NR_ATTEMPTS 8
/* Away from what is there, and from the two pages for calls, which may have
 * been mapped just below that since mappings were read. */
#define GUARD (3 * TPAGE_SIZE)

int near_calls_allowed(struct tproc *p, struct smco_err *err)
{
	/* A container's filter is ours too; a sandbox of its own may kill the
	 * program for what the sensors do. */
	if (tproc_diverts_calls(p))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "process %d: " DIVERTS_CALLS, tproc_pid(p));
	if (!tproc_is_sandboxed(p))
		return 0;
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "process %d has a seccomp filter of its own, "
			 "which might kill it for the sensors' calls",
			 tproc_pid(p));
}

int near_call(struct tproc *p, long nr, const uint64_t args[6],
	      const char *what, int64_t *ret, struct smco_err *err)
{
	int r = tproc_syscall(p, nr, args, ret, err);
	if (r)
		return r;
	if (*ret < 0 && *ret > -4096)
		return smco_fail(err, SMCO_SYS, (int)-*ret,
				 "%s in the monitored process", what);
	return 0;
}

static bool in_reach(taddr_t base, uint64_t bytes, taddr_t start, taddr_t end)
{
	taddr_t lo = base < start ? base : start;
	taddr_t hi = base + bytes > end ? base + bytes : end;
	return hi - lo < REACH;
}

/*
 * What must stay free below the stack, for it grows: a good deal more than it
 * may. Where it has no limit nothing of ours goes there.
 */
static uint64_t stack_room(const struct tproc *p)
{
	struct rlimit lim;
	if (prlimit(tproc_pid(p), RLIMIT_STACK, NULL, &lim) ||
	    lim.rlim_cur > UINT64_MAX / 2)
		return UINT64_MAX;
	return lim.rlim_cur + HEAP_ROOM;
}

/*
 * Places to try, nearest below the module first: above an executable grows
 * its heap. Above only when there is nothing below.
 */
static size_t candidates(const struct tmaps *m, taddr_t start, taddr_t end,
			 uint64_t bytes, uint64_t below_stack,
			 taddr_t ret[NR_ATTEMPTS])
{
	const uint64_t need = bytes + 2 * GUARD;
	size_t nr = 0;

	for (size_t i = m->nr; i-- > 0 && nr < NR_ATTEMPTS;) {
		taddr_t gap_end = m->maps[i].start;
		taddr_t gap = i ? m->maps[i - 1].end : LOWEST;
		if (gap_end > start || gap_end < gap + need)
			continue;
		taddr_t base = gap_end - bytes - GUARD;
		if (in_reach(base, bytes, start, end))
			ret[nr++] = base;
	}
	for (size_t i = 0; i + 1 < m->nr && nr < NR_ATTEMPTS; i++) {
		taddr_t gap = m->maps[i].end;
		if (gap < end || m->maps[i + 1].start < gap + need ||
		    !strcmp(m->maps[i].path, "[heap]"))
			continue;
		taddr_t base = gap + GUARD;
		if (!strcmp(m->maps[i + 1].path, "[stack]")) {
			/* Libraries are at the top, and where there are many
			 * threads their stacks are all that is below. */
			uint64_t room = m->maps[i + 1].start - gap - need;
			if (room >= below_stack &&
			    in_reach(base, bytes, start, end))
				ret[nr++] = base;
			continue;
		}
		/* Its heap may begin there, and be mapped later. */
		if (m->maps[i + 1].start - base > HEAP_ROOM + need)
			base += HEAP_ROOM;
		if (in_reach(base, bytes, start, end))
			ret[nr++] = base;
	}
	return nr;
}

bool near_likely(uint64_t start, uint64_t end, uint64_t bytes,
		 taddr_t *base_ret)
{
	*base_ret = start - bytes - GUARD;
	/* Where it begins at 0 it goes to where there is room below. */
	if (!start || start >= LOWEST + bytes + 2 * GUARD)
		return true;
	/* It has just begun: its heap is not mapped, nor is anything else
	 * there. */
	end = (end + TPAGE_SIZE - 1) & ~(uint64_t)(TPAGE_SIZE - 1);
	*base_ret = end + GUARD + HEAP_ROOM;
	return in_reach(*base_ret, bytes, start, end);
}

taddr_t near_base_of(const struct tmap *m)
{
	static const char prefix[] = "/memfd:" NEAR_NAME "@";
	char *end;
	if (strncmp(m->path, prefix, sizeof(prefix) - 1) != 0 || m->offset)
		return 0;
	taddr_t base = strtoull(m->path + sizeof(prefix) - 1, &end, 16);
	return *end || base % TPAGE_SIZE || base >= m->start ? 0 : base;
}

int near_share(struct tproc *p, taddr_t base, taddr_t name_at, taddr_t at,
	       uint64_t bytes, int prot, taddr_t *addr_ret, int *fd_ret,
	       struct smco_err *err)
{
	char name[NEAR_NAME_BYTES] = NEAR_NAME;
	int64_t fd;
	if (at)
		snprintf(name, sizeof(name), NEAR_NAME "@%llx",
			 (unsigned long long)base);
	int r = tmem_write(p, name_at, name, sizeof(name));
	if (r)
		return smco_fail(err, r, 0,
				 "cannot write our memory in the tracee");
	r = near_call(p, SYS_memfd_create, (uint64_t[6]){name_at, MFD_CLOEXEC},
		      "memfd_create", &fd, err);
	if (r)
		return r;
	_cleanup_close_ int mine = tproc_take_fd(p, (int)fd);
	bool taken = mine >= 0 && ftruncate(mine, (off_t)bytes) == 0;
	int why = errno;
	/* Together: each time that a thread is borrowed it needs a CPU. */
	struct tsyscall calls[] = {
		{.nr = SYS_mmap,
		 .args = {at, bytes, (uint64_t)prot,
			  MAP_SHARED | (at ? MAP_FIXED : 0), (uint64_t)fd}},
		{.nr = SYS_close, .args = {(uint64_t)fd}},
	};
	r = taken ? tproc_syscalls(p, calls, 2, err)
		  : tproc_syscalls(p, calls + 1, 1, err);
	if (r)
		return r;
	if (!taken)
		return smco_fail(err, SMCO_SYS, why,
				 "cannot take a descriptor of process %d",
				 tproc_pid(p));
	if (calls[0].ret < 0 && calls[0].ret > -4096)
		return smco_fail(err, SMCO_SYS, (int)-calls[0].ret,
				 "mmap of a memfd in the monitored process");
	*addr_ret = (taddr_t)calls[0].ret;
	*fd_ret = mine;
	mine = -1;
	return 0;
}

int near_unmap(struct tproc *p, taddr_t base, uint64_t bytes,
	       struct smco_err *err)
{
	int64_t ret;
	return near_call(p, SYS_munmap, (uint64_t[6]){base, bytes}, "munmap",
			 &ret, err);
}

static int try_map(struct tproc *p, const struct tmaps *maps, taddr_t start,
		   taddr_t end, uint64_t bytes, taddr_t *base_ret,
		   struct smco_err *err)
{
	taddr_t places[NR_ATTEMPTS];
	int r;
	size_t nr = candidates(maps, start, end, bytes, stack_room(p), places);

	r = smco_fail(err, SMCO_UNSUPPORTED, 0,
		      "no free memory within 2 GiB of 0x%llx",
		      (unsigned long long)start);
	for (size_t i = 0; i < nr; i++) {
		int64_t got;
		r = near_call(p, SYS_mmap,
			      (uint64_t[6]){places[i], bytes,
					    PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS |
						    MAP_FIXED_NOREPLACE,
					    (uint64_t)-1, 0},
			      "mmap", &got, err);
		if (r == SMCO_GONE)
			return r;
		if (r)
			continue;
		if ((taddr_t)got != places[i]) { /* a kernel before 4.17 */
			near_unmap(p, got, bytes, NULL);
			r = smco_fail(err, SMCO_UNSUPPORTED, 0,
				      "the kernel does not place mappings");
			continue;
		}
		*base_ret = places[i];
		return 0;
	}
	return r;
}

/*
 * The first call in a process may map a page for calls, just where we want to
 * be, so that is made before we look where there is room. What the process had
 * mapped when it came to stand may be too little all the same: calls of ours
 * since then are not in it.
 */
int near_map(struct tproc *p, taddr_t start, taddr_t end, uint64_t bytes,
	     taddr_t *base_ret, struct smco_err *err)
{
	struct smco_err first = {0};
	const struct tmaps *maps;
	int r = tproc_syscalls(p, NULL, 0, err);
	if (r)
		return r;
	r = tproc_occupied(p, &maps, err);
	if (r)
		return r;
	r = try_map(p, maps, start, end, bytes, base_ret, &first);
	if (r == SMCO_SYS && first.sys_errno == EEXIST) {
		tproc_forget_maps(p);
		r = tproc_get_maps(p, &maps, err);
		if (r)
			return r;
		r = try_map(p, maps, start, end, bytes, base_ret, &first);
	}
	if (r && err)
		*err = first;
	return r;
}
