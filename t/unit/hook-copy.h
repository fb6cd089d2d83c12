/*
 * hook-copy.h - sensors of allocations in a process that is a forked copy of
 * the test, whose functions so lie where its own do.
 */
#ifndef HOOK_COPY_H
#define HOOK_COPY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/probe/hook.h"

/* For struct hook_symbols: ours. */
static inline taddr_t copy_find(void *ctx, const char *name, taddr_t *start,
				taddr_t *end)
{
	struct tmaps maps;
	taddr_t at = (taddr_t)(uintptr_t)dlsym(RTLD_DEFAULT, name);
	(void)ctx;
	if (!at || tmaps_read(getpid(), &maps, NULL))
		return 0;
	const struct tmap *m = tmaps_find(&maps, at);
	*start = m->start;
	*end = m->end;
	tmaps_deinit(&maps);
	return at;
}

/* Is memory of the sensors' mapped there? Also if that cannot be told. */
static inline bool copy_has_area(pid_t pid)
{
	struct tmaps maps;
	bool found = false;
	if (tmaps_read(pid, &maps, NULL))
		return true;
	for (size_t i = 0; i < maps.nr; i++)
		found |= strstr(maps.maps[i].path, "memfd:smco") != NULL;
	tmaps_deinit(&maps);
	return found;
}

/* Writes to and frees a block that it was given; @bytes if all is well. */
static inline long copy_uses(char *p, size_t bytes)
{
	if (!p)
		return -1;
	memset(p, 'x', bytes);
	bool whole = p[0] == 'x' && p[bytes - 1] == 'x';
	free(p);
	return whole ? (long)bytes : -2;
}

#endif
