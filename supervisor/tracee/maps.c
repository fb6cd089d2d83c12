/* /proc/PID/maps. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/tracee/internal.h"

static const char deleted_mark[] = " (deleted)";

/* Paths are printed with octal escapes for newline only. */
static void unescape(char *s)
{
	char *out = s;
	for (; *s; s++) {
		if (!strncmp(s, "\\012", 4)) {
			*out++ = '\n';
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* A number that ends with @end; *@at is moved past that. */
static bool number(char **at, int base, char end, uint64_t *ret)
{
	char *stop;
	*ret = strtoull(*at, &stop, base);
	if (stop == *at || *stop != end)
		return false;
	*at = stop + 1;
	return true;
}

/*
 * start-end perms offset major:minor inode, and perhaps a path. By hand: with a
 * thousand threads there are two thousand lines, while all of those stand.
 */
static bool parse_line(char *line, struct tmap *m)
{
	uint64_t ignored;
	char *at = line;

	memset(m, 0, sizeof(*m));
	if (!number(&at, 16, '-', &m->start) || !number(&at, 16, ' ', &m->end))
		return false;
	const char *perms = at;
	at += strcspn(at, " ");
	if (at - perms != 4 || !*at++ || !number(&at, 16, ' ', &m->offset) ||
	    !number(&at, 16, ':', &ignored) ||
	    !number(&at, 16, ' ', &ignored) || !number(&at, 10, ' ', &m->inode))
		return false;
	m->prot = (perms[0] == 'r' ? PROT_READ : 0) |
		  (perms[1] == 'w' ? PROT_WRITE : 0) |
		  (perms[2] == 'x' ? PROT_EXEC : 0);
	m->shared = perms[3] == 's';

	char *path = at + strspn(at, " ");
	size_t len = strcspn(path, "\n");
	size_t mark = sizeof(deleted_mark) - 1;
	if (len > mark && !memcmp(path + len - mark, deleted_mark, mark)) {
		m->deleted = true;
		len -= mark;
	}
	path[len] = '\0';
	unescape(path);
	m->path = strdup(path);
	return m->path != NULL;
}

static int read_file(const char *name, struct tmaps *ret, struct smco_err *err)
{
	FILE *f = fopen(name, "re");
	if (!f)
		return smco_fail(err, errno == ENOENT ? SMCO_GONE : SMCO_SYS,
				 errno, "cannot open %s", name);
	/* Ours would be of 1 KB: each call looks for its place anew. */
	setvbuf(f, NULL, _IOFBF, 65536);
	struct tmaps m = {0};
	size_t size = 0;
	_cleanup_free_ char *line = NULL;
	size_t line_size = 0;
	int r = 0;
	while (getline(&line, &line_size, f) > 0) {
		if (m.nr == size) {
			size_t bigger = size ? 2 * size : 64;
			struct tmap *maps =
				reallocarray(m.maps, bigger, sizeof(*maps));
			if (!maps) {
				r = SMCO_NOMEM;
				break;
			}
			m.maps = maps;
			size = bigger;
		}
		if (parse_line(line, &m.maps[m.nr]))
			m.nr++;
	}
	if (ferror(f) && !r)
		r = SMCO_GONE;
	fclose(f);
	if (r < 0) {
		tmaps_deinit(&m);
		return smco_fail(err, (enum smco_code)r, 0, "cannot read %s",
				 name);
	}
	*ret = m;
	return 0;
}

int tmaps_read(pid_t pid, struct tmaps *ret, struct smco_err *err)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	int r = read_file(name, ret, err);
	if (r < 0 || ret->nr)
		return r;

	/* The leader has ended; its threads still show the memory. */
	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	DIR *dir = opendir(name);
	struct dirent *de;
	while (dir && !ret->nr && (de = readdir(dir))) {
		pid_t tid = (pid_t)atoi(de->d_name);
		if (tid <= 0 || tid == pid)
			continue;
		tmaps_deinit(ret);
		snprintf(name, sizeof(name), "/proc/%d/maps", tid);
		read_file(name, ret, NULL);
	}
	if (dir)
		closedir(dir);
	return 0;
}

void tmaps_deinit(struct tmaps *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->maps[i].path);
	free(m->maps);
	m->maps = NULL;
	m->nr = 0;
}

void tproc_forget_maps(struct tproc *p)
{
	tmaps_deinit(&p->maps);
}

int tproc_get_maps(struct tproc *p, const struct tmaps **ret,
		   struct smco_err *err)
{
	bool stands = p->stop_depth || p->is_new;
	*ret = &p->maps;
	if (stands && p->maps.nr)
		return 0;
	tproc_forget_maps(p);
	return tmaps_read(p->pid, &p->maps, err);
}

const struct tmap *tmaps_find(const struct tmaps *m, taddr_t addr)
{
	size_t lo = 0, hi = m->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (addr < m->maps[mid].start)
			hi = mid;
		else if (addr >= m->maps[mid].end)
			lo = mid + 1;
		else
			return &m->maps[mid];
	}
	return NULL;
}
