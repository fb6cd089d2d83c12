#include "supervisor/cachedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What begins so has no name yet; it is of somebody who died when it is that
 * old. */
#define TEMPORARY "new-"
#define OLD_S	  3600
#define MAX_FILES 4096

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory that is ours, made if it is not there. */
static int own_dir(int at, const char *path)
{
	struct stat st;
	if (mkdirat(at, path, 0700) && errno != EEXIST)
		return -1;
	int fd = openat(at, path,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && is_ours(&st))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* @name in a directory that is there, or made too, and ours, too. */
static int in_own_dir(const char *base, const char *name)
{
	struct stat st;
	if (!base || *base != '/')
		return -1;
	int parent _cleanup_close_ =
		open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || fstat(parent, &st) || !is_ours(&st))
		return -1;
	return own_dir(parent, name);
}

int cachedir_open(void)
{
	const char *own = secure_getenv("SMCO_CACHE_DIR");
	if (own)
		return *own ? own_dir(AT_FDCWD, own) : -1;
	const char *base = secure_getenv("XDG_CACHE_HOME");
	if (base && *base == '/')
		mkdir(base, 0700); /* as its specification asks for */
	if (base && *base)
		return in_own_dir(base, "smco");
	int cache _cleanup_close_ = in_own_dir(secure_getenv("HOME"), ".cache");
	return cache < 0 ? -1 : own_dir(cache, "smco");
}

int cachedir_find(int dir, const char *name, size_t *len_ret)
{
	struct stat st;
	int fd = openat(dir, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(&st) ||
	    st.st_size <= 0 || (uint64_t)st.st_size > CACHEDIR_MOST_BYTES) {
		close(fd);
		return -1;
	}
	futimens(fd, NULL);
	*len_ret = (size_t)st.st_size;
	return fd;
}

bool cachefile_create(struct cachefile *f, int dir)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = smco_now_ns();
	*f = (struct cachefile){.dir = dir, .out = {.fd = -1}};
	snprintf(f->temporary, sizeof(f->temporary), TEMPORARY "%d-%016llx",
		 (int)getpid(), (unsigned long long)random);
	f->out.fd = openat(dir, f->temporary,
			   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			   0600);
	return f->out.fd >= 0;
}

struct entry {
	char name[NAME_MAX + 1];
	uint64_t bytes;
	struct timespec used;
};

static int by_use(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

#define HEX "0123456789abcdef"

/* BUILD-SELECTION.range: in a directory that somebody has chosen there may be
 * files that are none of ours. */
static bool is_kept(const char *name)
{
	size_t build = strspn(name, HEX);
	return build && name[build] == '-' &&
	       strspn(name + build + 1, HEX) == 16 &&
	       !strcmp(name + build + 17, ".range");
}

static bool is_temporary(const char *name)
{
	size_t head = strlen(TEMPORARY);
	if (strncmp(name, TEMPORARY, head))
		return false;
	size_t pid = strspn(name + head, "0123456789");
	name += head + pid;
	return pid && *name == '-' && strspn(name + 1, HEX) == 16 && !name[17];
}

/* The files there are, their bytes together; what was left by the dead goes. */
static size_t list(DIR *d, struct entry *all, uint64_t *sum_ret)
{
	size_t nr = 0;
	struct dirent *e;
	struct stat st;
	*sum_ret = 0;
	while (nr < MAX_FILES && (e = readdir(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!is_kept(e->d_name)) {
			if (is_temporary(e->d_name) &&
			    st.st_mtime < time(NULL) - OLD_S)
				unlinkat(dirfd(d), e->d_name, 0);
			continue;
		}
		snprintf(all[nr].name, sizeof(all[nr].name), "%s", e->d_name);
		all[nr].bytes = (uint64_t)st.st_size;
		all[nr].used = st.st_mtim;
		*sum_ret += all[nr++].bytes;
	}
	return nr;
}

static void trim(int dir, uint64_t most)
{
	uint64_t sum = 0;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct entry *all _cleanup_free_ =
		d ? malloc(MAX_FILES * sizeof(*all)) : NULL;
	if (!d && fd >= 0)
		close(fd);
	size_t nr = all ? list(d, all, &sum) : 0;
	if (nr)
		qsort(all, nr, sizeof(*all), by_use);
	for (size_t i = 0; i < nr && sum > most; i++)
		if (!unlinkat(dir, all[i].name, 0))
			sum -= all[i].bytes;
	if (d)
		closedir(d);
}

void cachefile_close(struct cachefile *f, const char *name, bool good,
		     uint64_t most)
{
	good = good && f->out.size <= most;
	/* Some file systems report a full disk only here. */
	good = !close(f->out.fd) && good;
	f->out.fd = -1;
	if (!good || renameat(f->dir, f->temporary, f->dir, name))
		unlinkat(f->dir, f->temporary, 0);
	else
		trim(f->dir, most);
}
