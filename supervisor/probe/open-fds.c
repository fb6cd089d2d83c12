/* Descriptors of a process, see open-fds.h. */
#include "supervisor/probe/open-fds.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/procfs.h"

size_t open_fds(pid_t pid, const char *link, int *fd, size_t cap)
{
	char path[PROCFS_PATH], to[64];
	size_t nr = 0;
	procfs_path(path, sizeof(path), procfs_holder(pid), "fd");
	DIR *dir = opendir(path);
	struct dirent *e;
	while (dir && nr < cap && (e = readdir(dir))) {
		ssize_t n =
			readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);
		if (n <= 0)
			continue;
		to[n] = '\0';
		if (!strcmp(to, link))
			fd[nr++] = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return nr;
}

int own_uffd_look(pid_t pid, struct smco_err *err)
{
	int fd;
	if (!open_fds(pid, "anon_inode:[userfaultfd]", &fd, 1) &&
	    !open_fds(pid, "/dev/userfaultfd", &fd, 1))
		return 0;
	return smco_fail(err, SMCO_BUSY, 0, "%s", OWN_UFFD_WHY);
}
