/* See leftover.h. */
#include "reports/procfs.h"
#include "supervisor/probe/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/agent_abi.h"
#include "supervisor/probe/code.h"
#include "supervisor/probe/guard.h"
#include "supervisor/probe/near.h"
#include "supervisor/probe/sigframe.h"

#define REACH	    (1ULL << 31) /* of a jump */
#define AREA_MAX    (1ULL << 30)
#define CHUNK_PAGES 512
#define PM_PRESENT  (3ULL << 62) /* or swapped out */
#define PM_FILE	    (1ULL << 61)
#define JUMP	    0xe9
#define SHORT_JUMP  0xeb

extern const uint8_t agent_image_start[], agent_image_end[];

struct area {
	taddr_t start, end;
	bool is_agent;	 /* the allocation sensors' */
	bool is_foreign; /* of another version: where what is, is not known */
};

struct leftover {
	struct tproc *p;
	struct tmaps maps;
	struct area *areas;
	size_t nr;
	bool only_short; /* of the jumps those of two bytes */
	bool text_stays; /* jumps may be left */
};

static bool is_of_ours(const char *path)
{
	static const char prefix[] = "/memfd:smco-";
	return !strncmp(path, prefix, sizeof(prefix) - 1);
}

/* Descriptors of ours, of one who was killed before it had closed them again:
 * the next one from @fd on, -1 if there is none. */
static int next_descriptor(pid_t pid, int fd)
{
	char path[PROCFS_PATH], to[64];
	int found = -1;
	procfs_path(path, sizeof(path), procfs_holder(pid), "fd");
	DIR *dir = opendir(path);
	struct dirent *e;
	while (dir && (e = readdir(dir))) {
		int nr = atoi(e->d_name);
		if (e->d_name[0] == '.' || nr < fd ||
		    (found >= 0 && nr > found))
			continue;
		ssize_t n =
			readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (is_of_ours(to))
			found = nr;
	}
	if (dir)
		closedir(dir);
	return found;
}

bool leftover_is_there(struct tproc *p)
{
	struct tmaps maps;
	pid_t pid = tproc_pid(p);
	bool found = tproc_has_left_call(p);
	if (found || tmaps_read(pid, &maps, NULL))
		return found;
	for (size_t i = 0; i < maps.nr && !found; i++)
		found = is_of_ours(maps.maps[i].path);
	tmaps_deinit(&maps);
	return found || next_descriptor(pid, 0) >= 0;
}

/* --- what is there --- */

/*
 * [base, start of @i) is private and anonymous throughout, and mapped on its
 * own: an area's own part, that @i is the end of. (A supervisor, which may be
 * what we have attached to, has the same file mapped, but not that before it.)
 */
static bool is_whole(const struct tmaps *maps, size_t i, taddr_t base)
{
	const struct tmap *first = tmaps_find(maps, base);
	taddr_t at = maps->maps[i].start;
	if (!first || first->start != base)
		return false;
	while (at > base && i-- > 0) {
		const struct tmap *m = &maps->maps[i];
		if (m->end != at || m->shared || m->inode || m->path[0])
			return false;
		at = m->start;
	}
	return at <= base;
}

static void look_at_agent(struct leftover *l, struct area *a)
{
	size_t len = agent_image_end - agent_image_start;
	uint8_t image[AGENT_IMAGE_BYTES];
	uint64_t magic = 0;

	if (a->end - a->start != AGENT_AREA_BYTES ||
	    tmem_read(l->p, a->start, &magic, sizeof(magic)) ||
	    magic != AGENT_MAGIC)
		return;
	a->is_agent = true;
	a->is_foreign = len > sizeof(image) ||
			tmem_read(l->p, a->start, image, len) ||
			memcmp(image, agent_image_start, len) != 0;
}

static int find_areas(struct leftover *l, struct smco_err *err)
{
	l->areas = calloc(l->maps.nr + 1, sizeof(*l->areas));
	if (!l->areas)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < l->maps.nr; i++) {
		const struct tmap *m = &l->maps.maps[i];
		taddr_t base = near_base_of(m);
		if (!base || m->end - base > AREA_MAX ||
		    !is_whole(&l->maps, i, base))
			continue;
		struct area *a = &l->areas[l->nr++];
		*a = (struct area){.start = base, .end = m->end};
		look_at_agent(l, a);
	}
	return 0;
}

static bool is_in_area(const struct leftover *l, taddr_t addr)
{
	for (size_t i = 0; i < l->nr; i++)
		if (addr >= l->areas[i].start && addr < l->areas[i].end)
			return true;
	return false;
}

/* --- the text --- */

/* The very file that is mapped, -1 if it is not to be had. */
static int open_file(const struct leftover *l, const struct tmap *m)
{
	char name[4096 + 64];
	struct stat st;
	procfs_path(name, sizeof(name), procfs_holder(tproc_pid(l->p)),
		    "map_files/%llx-%llx", (unsigned long long)m->start,
		    (unsigned long long)m->end);
	int fd = open(name, O_RDONLY | O_CLOEXEC); /* needs privilege */
	if (fd >= 0 || m->deleted)
		return fd;
	procfs_path(name, sizeof(name), procfs_holder(tproc_pid(l->p)),
		    "root%s", m->path);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || (fstat(fd, &st) == 0 && st.st_ino == m->inode))
		return fd;
	close(fd);
	return -1;
}

static size_t pread_all(int fd, uint8_t *buf, size_t len, uint64_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n =
			pread(fd, buf + done, len - done, (off_t)(at + done));
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	memset(buf + done, 0, len - done); /* the last page is filled up */
	return done;
}

/* Does a jump at @bytes, which are at @addr, lead to an area? */
static bool leads_to_area(const struct leftover *l, const uint8_t *bytes,
			  taddr_t addr)
{
	int32_t distance;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == JUMP &&
	       is_in_area(l,
			  addr + CODE_JUMP_BYTES + (taddr_t)(int64_t)distance);
}

struct move {
	struct leftover *l;
	taddr_t to;
};

static void move_frame(void *ctx, taddr_t slot, taddr_t pc)
{
	struct move *m = ctx;
	(void)pc;
	tmem_write(m->l->p, slot, &m->to, sizeof(m->to));
}

/* Threads that are in [@from, @end), or will be after a handler, to @to. */
static bool move_back(struct leftover *l, taddr_t from, taddr_t end, taddr_t to)
{
	struct move m = {l, to};
	for (struct task *t = tproc_first_task(l->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		taddr_t pc, sp;
		if (task_get_place(t, &pc, &sp))
			continue;
		if (task_in_handler(t))
			sigframes_find(l->p, sp, from, end, move_frame, &m);
		if (pc < from || pc >= end)
			continue;
		bool moved = task_get_regs(t, &regs) == 0;
		regs.rip = to;
		if (!moved || task_set_regs(t, &regs))
			return false;
	}
	return true;
}

/* The jump of two bytes to padding that has the other (range-relay.h); first,
 * as long as that is there. */
static bool restore_short(struct leftover *l, const uint8_t *is,
			  const uint8_t *was, taddr_t addr)
{
	uint8_t there[CODE_JUMP_BYTES];
	taddr_t to = addr + CODE_SHORT_BYTES + (taddr_t)(int64_t)(int8_t)is[1];
	if (is[0] != SHORT_JUMP || !memcmp(is, was, CODE_SHORT_BYTES) ||
	    tmem_read(l->p, to, there, sizeof(there)) ||
	    !leads_to_area(l, there, to))
		return true;
	return !tmem_write(l->p, addr, was, CODE_SHORT_BYTES) &&
	       /* Who has jumped there, and no further yet. */
	       move_back(l, to, to + 1, addr);
}

/* [from, to) of @m, pages that are no longer the file's. */
static bool restore_pages(struct leftover *l, const struct tmap *m, int fd,
			  taddr_t from, taddr_t to)
{
	size_t len = to - from;
	_cleanup_free_ uint8_t *is = malloc(len), *was = malloc(len);
	if (!is || !was || tmem_read(l->p, from, is, len) ||
	    !pread_all(fd, was, len, m->offset + (from - m->start)))
		return false;
	for (size_t i = 0; i + CODE_SHORT_BYTES <= len; i++) {
		if (i + CODE_JUMP_BYTES > len ||
		    !memcmp(is + i, was + i, CODE_JUMP_BYTES) ||
		    !leads_to_area(l, is + i, from + i)) {
			if (l->only_short &&
			    !restore_short(l, is + i, was + i, from + i))
				return false;
			continue;
		}
		if (!l->only_short &&
		    tmem_write(l->p, from + i, was + i, CODE_JUMP_BYTES))
			return false;
		/* Its distance may look like a short one to itself. */
		i += CODE_JUMP_BYTES - 1;
	}
	return true;
}

/* Only pages that were written to are compared: the kernel knows which. */
static bool restore_mapping(struct leftover *l, const struct tmap *m,
			    int pagemap_fd)
{
	uint64_t state[CHUNK_PAGES];
	taddr_t from = 0; /* of a row of such pages, 0 = none */
	bool ok = true;
	_cleanup_close_ int fd = open_file(l, m);

	for (taddr_t at = m->start; at < m->end;) {
		size_t nr = (m->end - at) / TPAGE_SIZE, n;
		if (nr > CHUNK_PAGES)
			nr = CHUNK_PAGES;
		n = pread_all(pagemap_fd, (uint8_t *)state, nr * 8,
			      at / TPAGE_SIZE * 8);
		if (n != nr * 8)
			return false;
		for (size_t i = 0; i < nr; i++, at += TPAGE_SIZE) {
			bool written =
				state[i] & PM_PRESENT && !(state[i] & PM_FILE);
			if (written && !from)
				from = at;
			if (written || !from)
				continue;
			ok &= fd >= 0 && restore_pages(l, m, fd, from, at);
			from = 0;
		}
	}
	if (from)
		ok &= fd >= 0 && restore_pages(l, m, fd, from, m->end);
	return ok;
}

static bool is_near(const struct leftover *l, const struct tmap *m)
{
	for (size_t i = 0; i < l->nr; i++)
		if (m->start < l->areas[i].end + REACH &&
		    l->areas[i].start < m->end + REACH)
			return true;
	return false;
}

/* But for mappings that have @failed. */
static void restore_all(struct leftover *l, int fd, bool *failed)
{
	for (size_t i = 0; i < l->maps.nr; i++) {
		const struct tmap *m = &l->maps.maps[i];
		if (!failed[i] && (m->prot & PROT_EXEC) && m->inode &&
		    !m->shared && is_near(l, m) && !restore_mapping(l, m, fd))
			l->text_stays = failed[i] = true;
	}
}

static void restore_text(struct leftover *l)
{
	char name[PROCFS_PATH];
	procfs_path(name, sizeof(name), procfs_holder(tproc_pid(l->p)),
		    "pagemap");
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ bool *failed = calloc(l->maps.nr + 1, sizeof(*failed));
	l->text_stays = !failed;
	if (!failed)
		return;
	/* Short jumps before what they lead to. */
	l->only_short = true;
	restore_all(l, fd, failed);
	l->only_short = false;
	restore_all(l, fd, failed);
}

/* --- the memory --- */

static bool nobody_inside(void *ctx)
{
	struct leftover *l = ctx;
	struct tproc *p = l->p;
	for (size_t i = 0; i < l->nr; i++) {
		const struct area *a = &l->areas[i];
		uint32_t inside = 0;
		if (a->is_agent && !a->is_foreign &&
		    (tmem_read(p,
			       a->start + AGENT_PRIV_OFF +
				       offsetof(struct agent_private, inside),
			       &inside, sizeof(inside)) ||
		     inside))
			return false;
		for (struct task *t = tproc_first_task(p); t; t = task_next(t))
			if (sigframes_leads_to(t, a->start, a->end))
				return false;
	}
	return true;
}

/* The agent's table of blocks: anonymous memory that it mapped itself. */
static void free_tables(struct leftover *l, const struct area *a)
{
	uint64_t seg[AGENT_MAX_SEGMENTS];
	if (tmem_read(l->p,
		      a->start + AGENT_PRIV_OFF +
			      offsetof(struct agent_private, segments),
		      seg, sizeof(seg)))
		return;
	for (unsigned i = 0; i < AGENT_MAX_SEGMENTS && seg[i]; i++) {
		const struct tmap *m = tmaps_find(&l->maps, seg[i]);
		if (m && !m->inode && !m->path[0] && !m->shared &&
		    seg[i] % TPAGE_SIZE == 0 &&
		    m->end - seg[i] >= AGENT_SEGMENT_BYTES(i))
			near_unmap(l->p, seg[i], AGENT_SEGMENT_BYTES(i), NULL);
	}
}

static int free_areas(struct leftover *l, struct smco_err *err)
{
	int nr = 0;
	for (size_t i = 0; i < l->nr; i++) {
		const struct area *a = &l->areas[i];
		if (a->is_foreign)
			continue;
		if (a->is_agent)
			free_tables(l, a);
		int r = near_unmap(l->p, a->start, a->end - a->start, err);
		if (r)
			return r;
		nr++;
	}
	/* Pools of call stacks, which belong to no area. */
	for (size_t i = 0; i < l->maps.nr; i++) {
		const struct tmap *m = &l->maps.maps[i];
		if (!strcmp(m->path, "/memfd:" NEAR_NAME) &&
		    !(m->prot & PROT_WRITE))
			near_unmap(l->p, m->start, m->end - m->start, NULL);
	}
	return nr;
}

static int remove_areas(struct leftover *l, struct smco_err *err)
{
	restore_text(l);
	if (l->text_stays)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "process %d: what a killed smco-trace has "
				 "left stays, for the files of its text cannot "
				 "be read",
				 tproc_pid(l->p));
	if (!tproc_vacate(l->p, nobody_inside, l))
		return smco_fail(err, SMCO_BUSY, 0,
				 "process %d: memory of a killed smco-trace "
				 "stays, for a thread is in it",
				 tproc_pid(l->p));
	return free_areas(l, err);
}

static void close_descriptors(struct tproc *p)
{
	int64_t ret;
	int fd = -1;
	while ((fd = next_descriptor(tproc_pid(p), fd + 1)) >= 0)
		near_call(p, SYS_close, (uint64_t[6]){(uint64_t)fd}, "close",
			  &ret, NULL);
}

int leftover_remove(struct tproc *p, struct smco_err *err)
{
	struct leftover l = {.p = p};
	int nr = tproc_read_maps(p, &l.maps, err);
	int call = nr == 0 ? tproc_drop_left_call(p) : 0;
	if (call)
		smco_fail(err, SMCO_BUSY, 0,
			  "process %d: a few instructions of a killed "
			  "smco-trace stay, for a thread is in them",
			  tproc_pid(p));
	if (nr == 0)
		nr = near_calls_allowed(p, err);
	bool is_allowed = nr == 0;
	if (nr == 0)
		nr = find_areas(&l, err);
	if (nr == 0)
		close_descriptors(p);
	if (nr == 0 && l.nr)
		nr = remove_areas(&l, err);
	if (is_allowed)
		guard_older_remove(p, &l.maps);
	free(l.areas);
	tmaps_deinit(&l.maps);
	return nr >= 0 && call ? call : nr;
}
