/*
 * Where processes are asked about: by numbers of our own PID namespace,
 * whatever is mounted on /proc, in an instance of our own where that is
 * permitted, and that has nothing to do with everybody's.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "t/unit/tap.h"

#define NOBODY 65534

/* What @in does as a process of its own; what it returns. */
static int in_child(int (*in)(void))
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(in());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static bool is_ours(const char *path)
{
	char stat[512] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	close(fd);
	return n > 0 && strstr(stat, "(u-procfs) ") &&
	       (pid_t)atoi(stat) == getpid();
}

static bool finds_itself(void)
{
	char path[PROCFS_PATH], exe[PROCFS_PATH], to[4096] = "";
	procfs_path(path, sizeof(path), getpid(), "task/%d/%s", (int)getpid(),
		    "stat");
	procfs_path(exe, sizeof(exe), getpid(), "exe");
	return is_ours(path) && readlink(exe, to, sizeof(to) - 1) > 0 &&
	       strstr(to, "/u-procfs") && chdir("/") == 0 && is_ours(path);
}

/* Not everybody who is called root, in a container. */
static bool may_mount(void)
{
	int fs = fsopen("proc", FSOPEN_CLOEXEC);
	bool may = fs >= 0 && !fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	close(fs);
	return may;
}

static int as_root(void)
{
	struct stat own, all;
	char path[PROCFS_PATH];
	if (!may_mount())
		return finds_itself() && !procfs_is_own();
	procfs_path(path, sizeof(path), getpid(), "stat");
	return finds_itself() && procfs_is_own() && !stat(path, &own) &&
	       !stat("/proc/self/stat", &all) && own.st_dev != all.st_dev;
}

static int as_nobody(void)
{
	char path[PROCFS_PATH];
	if (setgid(NOBODY) || setuid(NOBODY))
		return 2;
	procfs_path(path, sizeof(path), getpid(), "stat");
	return is_ours(path) && !procfs_is_own() &&
	       !strncmp(path, "/proc/", 6) && atoi(path + 6) == getpid();
}

/* /proc stays that of the namespace outside, where number 1 is another. */
static int inside(void)
{
	return getpid() == 1 && finds_itself();
}

static int in_namespace(void)
{
	return unshare(CLONE_NEWPID) ? 2 : in_child(inside);
}

/* Nothing of it is inherited by what we start. */
static int is_closed_by_exec(void)
{
	char path[PROCFS_PATH];
	int fd;
	procfs_path(path, sizeof(path), 1, "stat");
	if (!procfs_is_own())
		return !may_mount();
	return sscanf(path, "/proc/self/fd/%d/1/stat", &fd) == 1 &&
	       fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

int main(void)
{
	/* Each asks for the first time in a process of its own. */
	if (geteuid()) {
		check(finds_itself());
		return tap_done();
	}
	check_int(in_child(as_root), 1);
	check_int(in_child(as_nobody), 1);
	check_int(in_child(in_namespace), 1);
	check_int(in_child(is_closed_by_exec), 1);
	return tap_done();
}
