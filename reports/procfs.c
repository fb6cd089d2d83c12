#include "reports/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "reports/base.h"

static const char everybodys[] = "/proc";
static char own[32];
static const char *where = everybodys;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A descriptor of the instance's root, or -1. */
static int mount_nowhere(void)
{
	_cleanup_close_ int fs = fsopen("proc", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			       MOUNT_ATTR_NOEXEC);
}

static void find_out(void)
{
	char self[PROCFS_PATH];
	int fd = mount_nowhere();
	if (fd < 0)
		return;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	snprintf(self, sizeof(self), "%s/%d/stat", own, (int)getpid());
	if (access(self, R_OK) == 0)
		where = own;
	else /* no /proc to lead there */
		close(fd);
}

const char *procfs_path(char *buf, size_t size, pid_t pid, const char *what,
			...)
{
	pthread_once(&once, find_out);
	int n = snprintf(buf, size, "%s/%d/", where, (int)pid);
	if (n < 0 || (size_t)n >= size)
		return buf;
	va_list ap;
	va_start(ap, what);
	vsnprintf(buf + n, size - (size_t)n, what, ap);
	va_end(ap);
	return buf;
}

/* One that has ended has no program. */
static bool has_ended(pid_t tid)
{
	char path[PROCFS_PATH], name[1];
	procfs_path(path, sizeof(path), tid, "exe");
	return readlink(path, name, sizeof(name)) < 0 && errno == ENOENT;
}

pid_t procfs_holder(pid_t pid)
{
	char path[PROCFS_PATH];
	pid_t holder = pid;
	if (pid <= 0 || !has_ended(pid))
		return pid;
	procfs_path(path, sizeof(path), pid, "task");
	DIR *dir = opendir(path);
	struct dirent *e;
	while (dir && holder == pid && (e = readdir(dir))) {
		pid_t tid = (pid_t)atoi(e->d_name);
		if (tid > 0 && !has_ended(tid))
			holder = tid;
	}
	if (dir)
		closedir(dir);
	return holder;
}

bool procfs_is_own(void)
{
	pthread_once(&once, find_out);
	return where == own;
}

bool procfs_is_strange(void)
{
	char buf[4096];
	if (procfs_is_own() ||
	    smco_slurp("/proc/self/status", buf, sizeof(buf)) <= 0)
		return false;
	/* Our number in each PID namespace, from that of /proc on. */
	char *ours = strstr(buf, "\nNStgid:");
	char *end = ours ? strchr(ours + 1, '\n') : NULL;
	char *first = ours ? strchr(ours, '\t') : NULL;
	return end && first &&
	       memchr(first + 1, '\t', (size_t)(end - first - 1));
}
