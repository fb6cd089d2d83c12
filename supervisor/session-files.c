/* The files that will be watched, before anything runs or is stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/command.h"
#include "supervisor/session-private.h"

/* All files that are mapped executable. */
static int each_mapped(struct session *s, pid_t pid, session_file_fn fn,
		       struct smco_err *err)
{
	struct tmaps maps;
	char path[PROCFS_PATH], exe[4096] = "";
	procfs_path(path, sizeof(path), procfs_holder(pid), "exe");
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	int rc = n > 0 ? fn(s, exe, path, false, err) : 0;
	if (rc)
		return rc;
	rc = tmaps_read(pid, &maps, err);
	if (rc)
		return rc == SMCO_GONE ? 0 : rc;
	for (size_t i = 0; !rc && i < maps.nr; i++) {
		const struct tmap *m = &maps.maps[i];
		if (!(m->prot & PROT_EXEC) || !m->inode ||
		    !strcmp(m->path, exe))
			continue;
		procfs_path(path, sizeof(path), procfs_holder(pid),
			    "map_files/%llx-%llx", (unsigned long long)m->start,
			    (unsigned long long)m->end);
		rc = fn(s, m->path, access(path, R_OK) ? m->path : path, true,
			err);
	}
	tmaps_deinit(&maps);
	return rc;
}

/* What the linker will load is asked of it: it lists, and runs nothing. */
static int each_library(struct session *s, const char *path, session_file_fn fn,
			struct smco_err *err)
{
	char line[4096], list[8300];
	int rc = 0;
	if (strchr(path, '\'') || strlen(path) > 4096)
		return 0;
	snprintf(list, sizeof(list),
		 "/lib64/ld-linux-x86-64.so.2 --list '%s' "
		 "2>/dev/null </dev/null",
		 path);
	FILE *f = popen(list, "re");
	while (f && !rc && fgets(line, sizeof(line), f)) {
		char *from = strchr(line, '/'), *to = strstr(line, " (0x");
		if (!from || !to || to < from)
			continue;
		*to = '\0';
		rc = fn(s, from, from, true, err);
	}
	if (f)
		pclose(f);
	return rc;
}

/* Those of @name, which the command runs, and what it links with. */
static int each_of_program(struct session *s, const char *name,
			   session_file_fn fn, bool *any_ret,
			   struct smco_err *err)
{
	_cleanup_free_ char *found = command_find(name);
	_cleanup_free_ char *path = found ? command_program(found) : NULL;
	if (!path)
		return 0;
	*any_ret = true;
	int rc = fn(s, path, path, false, err);
	return rc ? rc : each_library(s, path, fn, err);
}

int session_each_file(struct session *s, session_file_fn fn, bool *any_ret,
		      struct smco_err *err)
{
	const struct options *o = s->opt;
	int rc = 0;
	*any_ret = o->nr_pids;
	for (char **c = o->command; !rc && c; c = command_behind(c))
		rc = each_of_program(s, *c, fn, any_ret, err);
	for (size_t i = 0; !rc && i < o->nr_pids; i++)
		rc = each_mapped(s, o->pids[i], fn, err);
	return rc;
}
