/* /proc/PID/maps. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/procfs.h"
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

bool tmap_strip_deleted(char *path)
{
	size_t len = strlen(path), mark = sizeof(deleted_mark) - 1;
	if (len <= mark || memcmp(path + len - mark, deleted_mark, mark) != 0)
		return false;
	path[len - mark] = '\0';
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
	path[strcspn(path, "\n")] = '\0';
	m->deleted = tmap_strip_deleted(path);
	unescape(path);
	m->path = strdup(path);
	return m->path != NULL;
}

/* All there is in @fd, from its beginning, which leaves its place in the file
 * to others that read it. The text ends with a NUL; NULL: errno. */
static char *read_text(int fd)
{
	size_t size = 1 << 16, done = 0;
	char *text = malloc(size);
	while (text) {
		ssize_t n =
			pread(fd, text + done, size - done - 1, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			text[done] = '\0';
			if (n == 0)
				return text;
			break;
		}
		done += (size_t)n;
		if (size - done > 4096)
			continue;
		char *more = realloc(text, size *= 2);
		if (!more)
			break;
		text = more;
	}
	free(text);
	return NULL;
}

static int parse(char *text, struct tmaps *ret)
{
	size_t nr_lines = 0;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		nr_lines++;
	*ret = (struct tmaps){0};
	if (nr_lines == 0)
		return 0;
	ret->maps = calloc(nr_lines, sizeof(*ret->maps));
	if (!ret->maps)
		return SMCO_NOMEM;
	for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		if (parse_line(at, &ret->maps[ret->nr]))
			ret->nr++;
	}
	return 0;
}

static int read_fd(int fd, struct tmaps *ret, struct smco_err *err)
{
	_cleanup_free_ char *text = read_text(fd);
	if (!text)
		return smco_fail(err, errno == ENOMEM ? SMCO_NOMEM : SMCO_GONE,
				 errno, "cannot read /proc/PID/maps");
	int r = parse(text, ret);
	return r ? smco_fail(err, SMCO_NOMEM, ENOMEM, "memory map") : 0;
}

static int read_file(const char *name, struct tmaps *ret, struct smco_err *err)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return smco_fail(err, errno == ENOENT ? SMCO_GONE : SMCO_SYS,
				 errno, "cannot open %s", name);
	int r = read_fd(fd, ret, err);
	smco_close_fd(&fd);
	return r;
}

int tmaps_read(pid_t pid, struct tmaps *ret, struct smco_err *err)
{
	char name[PROCFS_PATH];
	procfs_path(name, sizeof(name), procfs_holder(pid), "maps");
	return read_file(name, ret, err);
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

int tproc_open_maps(struct tproc *p)
{
	for (struct task *t = tproc_first_task(p);
	     t && p->maps_fd < 0 && !p->execed; t = task_next(t)) {
		char name[PROCFS_PATH];
		procfs_path(name, sizeof(name), t->tid, "maps");
		p->maps_fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	return p->maps_fd >= 0 && !p->execed ? 0 : SMCO_GONE;
}

int tproc_read_maps(struct tproc *p, struct tmaps *ret, struct smco_err *err)
{
	if (p->stop_depth || (p->is_new && p->stop_began_ns))
		smco_debug("stop", "all of %d stand, mappings are read",
			   p->pid);
	if (tproc_open_maps(p) == 0 && !read_fd(p->maps_fd, ret, NULL)) {
		if (ret->nr)
			return 0;
		tmaps_deinit(ret);
	}
	return tmaps_read(p->pid, ret, err);
}

int tproc_get_maps(struct tproc *p, const struct tmaps **ret,
		   struct smco_err *err)
{
	bool stands = p->stop_depth || p->is_new;
	*ret = &p->maps;
	if (stands && p->maps.nr)
		return 0;
	tproc_forget_maps(p);
	return tproc_read_maps(p, &p->maps, err);
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
