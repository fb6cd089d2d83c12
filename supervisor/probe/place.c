#include "supervisor/probe/place.h"

#include <string.h>

const char *place_check(const struct tmaps *maps, taddr_t start, taddr_t end,
			uint32_t *any_prot_ret, uint32_t *all_prot_ret)
{
	if (start >= end || (start | end) % TPAGE_SIZE)
		return "not whole pages";
	const struct tmap *m = tmaps_find(maps, start);
	if (!m)
		return "not mapped";
	*any_prot_ret = *all_prot_ret = m->prot;
	for (taddr_t at = start; at < end; at = m->end, m++) {
		if (m == maps->maps + maps->nr || m->start > at)
			return "not mapped to its end";
		if (m->shared || m->inode)
			return "shared or a file";
		if (m->path[0] && strcmp(m->path, "[heap]") &&
		    strncmp(m->path, "[anon:", 6))
			return "a stack or the kernel's";
		*any_prot_ret |= m->prot;
		*all_prot_ret &= m->prot;
	}
	return NULL;
}
