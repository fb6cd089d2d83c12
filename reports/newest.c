#include "reports/newest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec
				      : a->tv_nsec > b->tv_nsec;
}

static bool is_trace_name(const char *name)
{
	static const char suffix[] = ".trace";
	size_t len = strlen(name), n = strlen(suffix);
	return *name != '.' && len > n && !strcmp(name + len - n, suffix);
}

int newest_trace(const char *dir, char *ret, size_t size, struct smco_err *err)
{
	struct timespec best = {0};
	bool found = false;
	DIR *d = opendir(dir);
	if (!d)
		return smco_fail(err, SMCO_SYS, errno, "cannot read %s", dir);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		struct stat st;
		if (!is_trace_name(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (found && !is_later(&st.st_mtim, &best))
			continue;
		int n = strcmp(dir, ".")
				? snprintf(ret, size, "%s/%s", dir, e->d_name)
				: snprintf(ret, size, "%s", e->d_name);
		if (n < 0 || (size_t)n >= size)
			continue;
		best = st.st_mtim;
		found = true;
	}
	closedir(d);
	if (!found)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no *.trace here; name one");
	return SMCO_OK;
}
