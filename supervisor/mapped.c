#include "supervisor/mapped.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_MAPPED 1024

/* The kernel's name of memory without a file, and its mark of one without a
 * name. */
static const char anonymous[] = "//anon", deleted_mark[] = " (deleted)";

static void forget_oldest(struct mapped *m, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free((char *)m->map[i].path);
	m->nr -= nr;
	if (m->nr)
		memmove(m->map, m->map + nr, m->nr * sizeof(*m->map));
}

void mapped_forget(struct mapped *m)
{
	forget_oldest(m, m->nr);
}

void mapped_deinit(struct mapped *m)
{
	mapped_forget(m);
	free(m->map);
	*m = (struct mapped){0};
}

static bool has_room(struct mapped *m)
{
	if (m->nr == MAX_MAPPED)
		forget_oldest(m, MAX_MAPPED / 2);
	if (m->nr < m->cap)
		return true;
	size_t cap = m->cap ? m->cap * 2 : 16;
	struct sym_mapping *map = reallocarray(m->map, cap, sizeof(*map));
	if (!map)
		return false;
	m->map = map;
	m->cap = cap;
	return true;
}

void mapped_note(struct mapped *m, const struct ring_record *r)
{
	const size_t mark = sizeof(deleted_mark) - 1;
	uint64_t end = r->mmap.addr + r->mmap.len;
	if (!(r->mmap.prot & PROT_EXEC) || end < r->mmap.addr || !has_room(m))
		return;
	char *path =
		strdup(strcmp(r->mmap.name, anonymous) ? r->mmap.name : "");
	if (!path)
		return;
	size_t len = strlen(path);
	bool deleted = len > mark && !strcmp(path + len - mark, deleted_mark);
	if (deleted)
		path[len - mark] = '\0';
	m->map[m->nr++] = (struct sym_mapping){
		.start = r->mmap.addr,
		.end = end,
		.offset = r->mmap.pgoff,
		.inode = r->mmap.inode,
		.exec = true,
		.deleted = deleted,
		.path = path,
	};
}

bool mapped_tell(struct mapped *m, struct sym_space *space)
{
	size_t nr = m->nr;
	for (size_t i = 0; i < nr; i++)
		if (sym_space_add(space, &m->map[i], NULL))
			break; /* memory is out: the rest stays unknown */
	mapped_forget(m);
	return nr > 0;
}
