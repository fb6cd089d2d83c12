#include "reports/procfs.h"
#include "symbols/space.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The root directory of @pid, held open, because its name in /proc goes with
 * the process. Most processes have our own; those need no descriptor each.
 */
static int open_root(pid_t pid, const char *root)
{
	char name[PROCFS_PATH];
	struct stat mine, its;
	procfs_path(name, sizeof(name), procfs_holder(pid), "ns/mnt");
	if (pid > 0 && !stat("/proc/self/ns/mnt", &mine) && !stat(name, &its) &&
	    mine.st_ino == its.st_ino && !stat("/", &mine) &&
	    !stat(root, &its) && mine.st_ino == its.st_ino &&
	    mine.st_dev == its.st_dev)
		return ROOT_OURS;
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? ROOT_UNKNOWN : fd;
}

struct sym_space *sym_space_create(pid_t pid, const char *root,
				   sym_read_fn read, void *read_ctx)
{
	struct sym_space *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->pid = pid;
	s->root_fd = ROOT_OURS;
	s->root = root && *root ? strdup(root) : NULL;
	if (root && *root && !s->root)
		s->root_fd = ROOT_UNKNOWN;
	s->read = read;
	s->read_ctx = read_ctx;
	s->patience_ns = UINT64_MAX;
	return s;
}

struct sym_space *sym_space_of_file(const char *path)
{
	struct stat st;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	/* As the mappings of a process would have it. */
	const struct sym_mapping map = {
		.start = TPAGE_SIZE,
		.end = 2 * TPAGE_SIZE,
		.inode = st.st_ino,
		.exec = true,
		.path = path,
	};
	struct sym_space *s = sym_space_create(0, "", NULL, NULL);
	if (s && !sym_space_update(s, &map, 1, NULL))
		return s;
	sym_space_destroy(s);
	return NULL;
}

void sym_space_destroy(struct sym_space *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_modules; i++)
		module_put(s->modules[i]);
	unwind_state_destroy(s->unwind);
	reference_destroy(s->reference);
	name_state_destroy(s->names);
	smco_close_fd(&s->root_fd);
	free(s->root);
	pthread_mutex_destroy(&s->lock);
	free(s->modules);
	free(s->ranges);
	free(s->link_order);
	free(s);
}

struct module *space_module(const struct sym_space *s, uint32_t index)
{
	struct sym_space *locked = (struct sym_space *)s;
	pthread_mutex_lock(&locked->lock);
	struct module *m =
		index && index <= s->nr_modules ? s->modules[index - 1] : NULL;
	pthread_mutex_unlock(&locked->lock);
	return m;
}

Elf *sym_module_elf(struct sym_space *s, uint32_t module)
{
	struct module *m = space_module(s, module);
	return m && m->is_elf ? module_elf(m) : NULL;
}

int sym_module_fd(struct sym_space *s, uint32_t module)
{
	struct module *m = space_module(s, module);
	return m && !m->image_len ? m->fd : -1;
}

uint32_t sym_nr_modules(const struct sym_space *s)
{
	struct sym_space *locked = (struct sym_space *)s;
	pthread_mutex_lock(&locked->lock);
	uint32_t nr = (uint32_t)s->nr_modules;
	pthread_mutex_unlock(&locked->lock);
	return nr;
}

bool space_read(const struct sym_space *s, taddr_t addr, void *buf, size_t len)
{
	return s->read && s->read(s->read_ctx, addr, buf, len) == (ssize_t)len;
}

/* 1-based index of a new module; 0 if memory is out. */
static uint32_t add_module(struct sym_space *s, const struct sym_mapping *map,
			   taddr_t header)
{
	if (s->root) /* most processes end before a module is asked for */
		s->root_fd = open_root(s->pid, s->root);
	free(s->root);
	s->root = NULL;
	struct module *m = module_get(map, header, s->pid, s->root_fd, s->read,
				      s->read_ctx);
	if (!m)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (s->nr_modules == s->cap_modules) {
		size_t cap = s->cap_modules * 2 + 16;
		void *mem = realloc(s->modules, cap * sizeof(*s->modules));
		if (!mem) {
			pthread_mutex_unlock(&s->lock);
			module_put(m);
			return 0;
		}
		s->modules = mem;
		s->cap_modules = cap;
	}
	s->modules[s->nr_modules++] = m;
	uint32_t index = (uint32_t)s->nr_modules;
	pthread_mutex_unlock(&s->lock);
	return index;
}

/* Was @map there, in whole or part, with the same file at the last update? */
static bool was_mapped(const struct sym_space *s, const struct sym_mapping *map,
		       const struct module *m)
{
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		if (r->mod == m && r->start < map->end && map->start < r->end)
			return true;
	}
	return false;
}

/*
 * The module of @map, known or new. The open descriptor keeps a deleted
 * file's inode number from being given to another file meanwhile.
 */
static uint32_t module_of(struct sym_space *s, const struct sym_mapping *map,
			  taddr_t header)
{
	for (size_t i = s->nr_modules; i-- > 0;) {
		struct module *m = s->modules[i];
		if (m->inode != map->inode || strcmp(m->path, map->path))
			continue;
		/* Overwritten in place since: not what we have read. */
		if (!was_mapped(s, map, m) && module_changed(m))
			break;
		return (uint32_t)i + 1;
	}
	return add_module(s, map, header);
}

/* Where the first page of the file in maps[i] is: the nearest below. */
static taddr_t find_header(const struct sym_mapping *maps, size_t i)
{
	for (size_t j = i + 1; j-- > 0;) {
		if (maps[j].inode != maps[i].inode || !maps[j].path ||
		    strcmp(maps[j].path, maps[i].path))
			continue;
		if (!maps[j].offset)
			return maps[j].start;
	}
	return 0;
}

static int compare_range(const void *pa, const void *pb)
{
	const struct space_range *a = pa, *b = pb;
	return a->start < b->start ? -1 : a->start > b->start;
}

static bool is_code(const struct sym_mapping *map)
{
	return map->exec && map->end > map->start &&
	       (!map->path || strcmp(map->path, "[vsyscall]"));
}

/* Where @map is, and the module behind it; its @header as for module_of. */
static int range_of(struct sym_space *s, const struct sym_mapping *map,
		    taddr_t header, struct space_range *ret,
		    struct smco_err *err)
{
	const char *path = map->path ? map->path : "";
	*ret = (struct space_range){.start = map->start, .end = map->end};
	if (*path != '/' && strcmp(path, "[vdso]"))
		return SMCO_OK; /* generated code: no file to look into */
	ret->module = module_of(s, map, header);
	if (!ret->module)
		return smco_fail(err, SMCO_NOMEM, 0, "no memory for module %s",
				 path);
	ret->mod = s->modules[ret->module - 1];
	ret->bias = module_bias(ret->mod, map);
	return SMCO_OK;
}

/* ranges[0..n) are those of the space from now on. */
static void take_ranges(struct sym_space *s, struct space_range *ranges,
			size_t n)
{
	qsort(ranges, n, sizeof(*ranges), compare_range);
	/* Maps come from the kernel, but nothing here relies on it. */
	for (size_t i = 1; i < n; i++)
		if (ranges[i].start < ranges[i - 1].end)
			ranges[i - 1].end = ranges[i].start;
	free(s->ranges);
	s->ranges = ranges;
	s->nr_ranges = n;
	s->link_order_known = false;
	unwind_state_flush(s->unwind);
	reference_destroy(s->reference);
	s->reference = NULL;
}

int sym_space_update(struct sym_space *s, const struct sym_mapping *maps,
		     size_t nr, struct smco_err *err)
{
	struct space_range *ranges = calloc(nr ? nr : 1, sizeof(*ranges));
	if (!ranges)
		return smco_fail(err, SMCO_NOMEM, 0, "no memory for modules");
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!is_code(&maps[i]))
			continue;
		int rc = range_of(s, &maps[i], find_header(maps, i),
				  &ranges[n++], err);
		if (rc) {
			free(ranges);
			return rc;
		}
	}
	take_ranges(s, ranges, n);
	return SMCO_OK;
}

int sym_space_add(struct sym_space *s, const struct sym_mapping *map,
		  struct smco_err *err)
{
	if (!is_code(map))
		return SMCO_OK;
	struct space_range *ranges = calloc(s->nr_ranges + 2, sizeof(*ranges));
	if (!ranges)
		return smco_fail(err, SMCO_NOMEM, 0, "no memory for modules");
	int rc = range_of(s, map, 0, &ranges[0], err);
	if (rc) {
		free(ranges);
		return rc;
	}
	size_t n = 1;
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		if (r->start < map->start) { /* what is left below */
			ranges[n] = *r;
			if (r->end > map->start)
				ranges[n].end = map->start;
			n++;
		}
		if (r->end > map->end) { /* and above: of one range both */
			ranges[n] = *r;
			if (r->start < map->end)
				ranges[n].start = map->end;
			n++;
		}
	}
	take_ranges(s, ranges, n);
	return SMCO_OK;
}

const struct space_range *space_range_at(const struct sym_space *s, taddr_t pc)
{
	size_t lo = 0, hi = s->nr_ranges;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->ranges[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->nr_ranges && s->ranges[lo].start <= pc ? &s->ranges[lo]
							      : NULL;
}

struct sym_place sym_pin(struct sym_space *s, taddr_t pc)
{
	const struct space_range *r = space_range_at(s, pc);
	if (!r || !r->module)
		return (struct sym_place){.offset = pc};
	return (struct sym_place){.module = r->module, .offset = pc - r->bias};
}

void sym_space_retire(struct sym_space *s)
{
	unwind_state_destroy(s->unwind);
	reference_destroy(s->reference);
	s->unwind = NULL;
	s->reference = NULL;
	free(s->ranges);
	free(s->link_order);
	s->ranges = NULL;
	s->link_order = NULL;
	s->nr_ranges = 0;
	s->nr_link_order = 0;
	s->read = NULL;
	s->pid = 0;
}
