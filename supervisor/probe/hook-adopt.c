/*
 * Blocks that were there before the sensors: found by heapwalk, put into the
 * agent's table from here, so that their frees are seen.
 */
#include "reports/procfs.h"
#include "supervisor/probe/heapwalk.h"
#include "supervisor/probe/hook-private.h"
#include "supervisor/probe/pagestate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The program stands still meanwhile. */
#define WALK_NS (6 * NSEC_PER_MSEC)

struct found {
	struct heap_block *blocks;
	size_t nr, cap;
	bool no_memory;
	int pagemap_fd; /* only what is the process's own; -1 = all */
};

/* In the middle, for its ends may be in pages of other blocks; of a mapping
 * that is hardly used the first page. */
static bool is_own(int pagemap_fd, const struct heap_block *b)
{
	enum page_owner o = pagestate_owner(pagemap_fd, b->addr + b->size / 2);
	if (o == PAGE_ABSENT)
		o = pagestate_owner(pagemap_fd, b->addr);
	return o == PAGE_OWN;
}

static void keep(void *ctx, const struct heap_block *b)
{
	struct found *f = ctx;
	if (f->pagemap_fd >= 0 && !is_own(f->pagemap_fd, b))
		return;
	if (f->nr == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 1024;
		struct heap_block *p =
			realloc(f->blocks, cap * sizeof(*f->blocks));
		if (!p) {
			f->no_memory = true;
			return;
		}
		f->blocks = p;
		f->cap = cap;
	}
	f->blocks[f->nr++] = *b;
}

/* The agent's own insert, on a copy of a segment. */
static bool insert(char *segment_copy, unsigned segment,
		   const struct heap_block *b)
{
	struct agent_bucket *buckets = (void *)segment_copy;
	uint8_t *count =
		(void *)(segment_copy + agent_segment_count(segment, b->addr));
	uint64_t mask = (1ULL << AGENT_SEGMENT_LOG2(segment)) - 1;
	uint64_t hash[2] = {agent_hash1(b->addr), agent_hash2(b->addr)};
	for (int k = 0; k < 2; k++) {
		struct agent_bucket *bk = &buckets[hash[k] & mask];
		for (int i = 0; i < AGENT_BUCKET_SLOTS; i++) {
			if (bk->key[i])
				continue;
			bk->key[i] = b->addr;
			bk->val[i] = b->size & AGENT_SIZE_MASK;
			*count += *count != 255;
			return true;
		}
	}
	return false;
}

static void count_in_filter(struct hooks *h, taddr_t addr)
{
	uint8_t *n = &h->shm.filter[AGENT_FILTER_INDEX(addr)];
	if (*n != 255)
		++*n;
	if (addr & 0xfef)
		h->shm.ctl->use_filter = 1;
}

static taddr_t segment_addr(struct hooks *h, unsigned nr)
{
	return h->base + AGENT_PRIV_OFF +
	       offsetof(struct agent_private, segments) + nr * 8;
}

static int map_segment(struct hooks *h, unsigned nr, uint64_t *addr_ret,
		       struct smco_err *err)
{
	int64_t ret;
	uint64_t args[6] = {0,
			    AGENT_SEGMENT_BYTES(nr),
			    PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    (uint64_t)-1,
			    0};
	int r = tproc_syscall(h->p, SYS_mmap, args, &ret, err);
	if (r)
		return r;
	if (ret < 0)
		return smco_fail(err, SMCO_SYS, (int)-ret,
				 "mmap in the monitored process");
	*addr_ret = ret;
	return 0;
}

/*
 * Inserts blocks[*next...] into segment @nr as far as they fit, those that do
 * not are moved to the front and left for the next segment.
 */
static int fill_segment(struct hooks *h, unsigned nr, struct found *f,
			struct smco_err *err)
{
	size_t bytes = AGENT_SEGMENT_BYTES(nr), left = 0;
	uint64_t base = 0;
	_cleanup_free_ char *copy = calloc(1, bytes);
	if (!copy)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int r = tmem_read(h->p, segment_addr(h, nr), &base, sizeof(base));
	if (r)
		return smco_fail(err, r, 0, "cannot read the agent's memory");
	bool fresh = base == 0;
	if (fresh)
		r = map_segment(h, nr, &base, err);
	else if ((r = tmem_read(h->p, base, copy, bytes)))
		smco_fail(err, r, 0, "cannot read the agent's table");
	if (r)
		return r;
	for (size_t i = 0; i < f->nr; i++) {
		if (insert(copy, nr, &f->blocks[i]))
			count_in_filter(h, f->blocks[i].addr);
		else
			f->blocks[left++] = f->blocks[i];
	}
	f->nr = left;
	r = tmem_write(h->p, base, copy, bytes);
	if (r == 0 && fresh)
		r = tmem_write(h->p, segment_addr(h, nr), &base, sizeof(base));
	return r ? smco_fail(err, r, 0, "cannot write the agent's table") : 0;
}

static int pagemap_of(struct hooks *h)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), procfs_holder(tproc_pid(h->p)),
		    "pagemap");
	return open(path, O_RDONLY | O_CLOEXEC);
}

int hooks_adopt(struct hooks *h, uint64_t min_bytes, bool only_own,
		void (*fn)(void *ctx, const struct heap_event *ev), void *ctx,
		struct smco_err *err)
{
	_cleanup_close_ int pagemap_fd = only_own ? pagemap_of(h) : -1;
	struct found f = {.pagemap_fd = pagemap_fd};
	bool complete = false;
	uint64_t now = smco_now_ns();

	if (!h->plan.priv.is_glibc)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "blocks that exist already can be found in "
				 "glibc's heap only");
	if (only_own && pagemap_fd < 0)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot read what process %d shares",
				 (int)tproc_pid(h->p));
	int r = heapwalk(h->p, min_bytes, h->base, h->base + AGENT_AREA_BYTES,
			 WALK_NS, keep, &f, &complete, err);
	size_t nr = f.nr;
	_cleanup_free_ struct heap_block *all = malloc(nr * sizeof(*all) + 1);
	if (r == 0 && !all)
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r == 0 && nr)
		memcpy(all, f.blocks, nr * sizeof(*all));
	for (unsigned s = 0; r == 0 && f.nr && s < AGENT_MAX_SEGMENTS; s++)
		r = fill_segment(h, s, &f, err);
	free(f.blocks);
	for (size_t i = 0; r == 0 && i < nr; i++) {
		struct heap_event ev = {
			.kind = HEAP_ALLOC,
			.time_ns = now,
			.tid = tproc_pid(h->p),
			.addr = all[i].addr,
			.size = all[i].size,
			.own_pages =
				all[i].mmapped || all[i].addr % TPAGE_SIZE == 0,
		};
		fn(ctx, &ev);
	}
	if (r == 0 && (!complete || f.no_memory))
		hook_say(h, "; older blocks found only in part");
	return r;
}
