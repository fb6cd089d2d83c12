/*
 * Single mappings, asked for by PROCMAP_QUERY (Linux 6.11) instead of reading
 * /proc/PID/maps: of thousands of lines, while all threads stand, a few matter.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "supervisor/tracee/internal.h"

/* As in linux/fs.h, which may be older. */
struct ask {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start;
	uint64_t end;
	uint64_t perms;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t name_size;
	uint32_t build_id_size;
	uint64_t name;
	uint64_t build_id;
};
static_assert(sizeof(struct ask) == 104, "the kernel's");

#define ASK	   _IOWR('f', 17, struct ask)
#define NAME_BYTES 4096

enum {
	READABLE = 1,
	WRITABLE = 2,
	EXECUTABLE = 4,
	SHARED = 8,
	OR_NEXT = 16,
	OF_FILE = 32,
	FOR_KERNEL = 63,
	/* Ours: no names of files, which take as long as the rest. */
	NO_FILE_NAMES = 64
};

/* One question. The name, or "", to @name, which has NAME_BYTES. */
static int query(int fd, taddr_t addr, uint64_t flags, char *name,
		 struct ask *ret)
{
	bool is_named = !(flags & NO_FILE_NAMES);
	*ret = (struct ask){.size = sizeof(*ret),
			    .flags = flags & FOR_KERNEL,
			    .addr = addr,
			    .name_size = is_named ? NAME_BYTES : 0,
			    .name = is_named ? (uintptr_t)name : 0};
	if (ioctl(fd, ASK, ret) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!is_named && !ret->inode) /* [heap], [stack] */
		return query(fd, ret->start, 0, name, ret);
	if (!ret->name_size)
		name[0] = '\0';
	return 1;
}

/* The one at @addr, or with OR_NEXT the first one from there on that is as the
 * @flags say; .path is to be freed. 1, 0: there is none, or negative errno. */
static int ask(int fd, taddr_t addr, uint64_t flags, struct tmap *ret)
{
	char name[NAME_BYTES];
	struct ask a;
	int r = query(fd, addr, flags, name, &a);
	if (r <= 0)
		return r;
	*ret = (struct tmap){
		.start = a.start,
		.end = a.end,
		.offset = a.offset,
		.inode = a.inode,
		.prot = (a.perms & READABLE ? PROT_READ : 0) |
			(a.perms & WRITABLE ? PROT_WRITE : 0) |
			(a.perms & EXECUTABLE ? PROT_EXEC : 0),
		.shared = a.perms & SHARED,
	};
	ret->deleted = tmap_strip_deleted(name);
	ret->path = strdup(name);
	return ret->path ? 1 : -ENOMEM;
}

static bool may_ask(struct tproc *p)
{
	struct tmap m;
	if (tproc_open_maps(p) < 0)
		return false;
	int r = ask(p->maps_fd, 0, OR_NEXT, &m);
	if (r > 0)
		free(m.path);
	return r > 0;
}

static int append_all(int fd, uint64_t flags, size_t *cap, struct tmaps *ret)
{
	struct tmap m;
	taddr_t at = 0;
	int r;
	while ((r = ask(fd, at, flags | OR_NEXT, &m)) > 0) {
		at = m.end;
		if (ret->nr == *cap) {
			size_t more = *cap ? 2 * *cap : 64;
			struct tmap *maps =
				realloc(ret->maps, more * sizeof(*maps));
			if (!maps) {
				free(m.path);
				return -ENOMEM;
			}
			ret->maps = maps;
			*cap = more;
		}
		ret->maps[ret->nr++] = m;
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct tmap *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Those of files that are executable were told of twice. */
static void sort(struct tmaps *m)
{
	size_t nr = 0;
	if (m->nr)
		qsort(m->maps, m->nr, sizeof(*m->maps), compare);
	for (size_t i = 0; i < m->nr; i++) {
		if (nr && m->maps[i].start == m->maps[nr - 1].start)
			free(m->maps[i].path);
		else
			m->maps[nr++] = m->maps[i];
	}
	m->nr = nr;
}

static bool has_recent(const struct tproc *p)
{
	return (p->stop_depth || p->is_new) && p->recent.nr;
}

static bool may_have_code(const struct tmap *m)
{
	return m->inode || m->prot & PROT_EXEC;
}

/* Not all that came since: as if it came a little later. */
static int recent_code(struct tproc *p, struct tmaps *ret)
{
	*ret = (struct tmaps){.maps = calloc(p->recent.nr, sizeof(*ret->maps))};
	if (!ret->maps)
		return SMCO_NOMEM;
	for (size_t i = 0; i < p->recent.nr; i++) {
		const struct tmap *m = &p->recent.maps[i];
		if (!may_have_code(m) || !strcmp(m->path, "[vsyscall]"))
			continue;
		if (!tproc_has_map(p, m))
			return SMCO_GONE;
		ret->maps[ret->nr] = *m;
		ret->maps[ret->nr].path = strdup(m->path);
		if (!ret->maps[ret->nr].path)
			return SMCO_NOMEM;
		ret->nr++;
	}
	return 0;
}

int tproc_code_maps(struct tproc *p, struct tmaps *ret, struct smco_err *err)
{
	size_t cap = 0;
	*ret = (struct tmaps){0};
	if (has_recent(p)) {
		if (recent_code(p, ret) == 0)
			return 0;
		tmaps_deinit(ret);
	}
	if (tproc_open_maps(p) == 0 &&
	    append_all(p->maps_fd, OF_FILE, &cap, ret) == 0 &&
	    append_all(p->maps_fd, EXECUTABLE, &cap, ret) == 0 && ret->nr) {
		sort(ret);
		return 0;
	}
	tmaps_deinit(ret);
	return tproc_read_maps(p, ret, err);
}

void tproc_look_ahead(struct tproc *p)
{
	tmaps_deinit(&p->recent);
	if (may_ask(p))
		tproc_read_maps(p, &p->recent, NULL);
}

int tproc_recent_maps(struct tproc *p, const struct tmaps **ret,
		      struct smco_err *err)
{
	*ret = &p->recent;
	return has_recent(p) ? 0 : tproc_get_maps(p, ret, err);
}

int tproc_occupied(struct tproc *p, const struct tmaps **ret,
		   struct smco_err *err)
{
	size_t cap = 0;
	*ret = &p->recent;
	if (has_recent(p))
		return 0;
	*ret = &p->occupied;
	tmaps_deinit(&p->occupied);
	if (tproc_open_maps(p) == 0 &&
	    append_all(p->maps_fd, NO_FILE_NAMES, &cap, &p->occupied) == 0 &&
	    p->occupied.nr)
		return 0;
	tmaps_deinit(&p->occupied);
	return tproc_get_maps(p, ret, err);
}

bool tproc_has_map(struct tproc *p, const struct tmap *m)
{
	struct tmap now;
	bool is_recent = p->recent.nr && m >= p->recent.maps &&
			 m < p->recent.maps + p->recent.nr;
	if (!is_recent)
		return true;
	if (tproc_open_maps(p) < 0 || ask(p->maps_fd, m->start, 0, &now) <= 0)
		return false;
	/* It may be part of a larger one now, with what calls of ours mapped
	 * beside it. */
	uint64_t skipped = m->inode ? m->start - now.start : 0;
	bool same = now.start <= m->start && now.end >= m->end &&
		    now.offset + skipped == m->offset &&
		    now.inode == m->inode && now.prot == m->prot &&
		    now.shared == m->shared && !strcmp(now.path, m->path);
	free(now.path);
	return same;
}
