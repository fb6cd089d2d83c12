#include "supervisor/probe/uffd.h"

#include <string.h>
#include <sys/mman.h>

const char *uffd_place(const struct tmaps *maps, taddr_t start, taddr_t end)
{
	if (start >= end || (start | end) % TPAGE_SIZE)
		return "not whole pages";
	const struct tmap *m = tmaps_find(maps, start);
	if (!m)
		return "not mapped";
	for (taddr_t at = start; at < end; at = m->end, m++) {
		if (m == maps->maps + maps->nr || m->start > at)
			return "not mapped to its end";
		if (m->shared || m->inode)
			return "shared or a file";
		if (!(m->prot & PROT_WRITE))
			return "not writable";
		if (m->path[0] == '[' && strcmp(m->path, "[heap]") &&
		    strncmp(m->path, "[anon:", 6))
			return "a stack or the kernel's";
	}
	return NULL;
}
