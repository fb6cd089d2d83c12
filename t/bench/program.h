/*
 * program.h - the program that a command runs, seen from outside; for lap and
 * abreast.
 */
#ifndef T_BENCH_PROGRAM_H
#define T_BENCH_PROGRAM_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Seconds of the monotonic clock. */
static inline double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Whether @command is smco-trace, by its name. */
static inline bool is_supervisor(const char *command)
{
	const char *slash = strrchr(command, '/');
	return !strcmp(slash ? slash + 1 : command, "smco-trace");
}

/* What @pid runs; false, and an empty string, if it has ended. */
static inline bool read_exe(pid_t pid, char *buf, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* What stands in /proc/@pid/stat from the letter of its state on, in @buf; NULL
 * if it is gone. */
static inline const char *read_stat(pid_t pid, char *buf, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;
	buf[n] = '\0';
	if (f)
		fclose(f);
	const char *p = strrchr(buf, ')');
	return p && p[1] ? p + 2 : NULL;
}

/* The child of any thread of @pid that runs something else than @pid does; 0 if
 * it has none. */
static inline pid_t find_program(pid_t pid)
{
	char path[512], own[512], exe[512];
	if (!read_exe(pid, own, sizeof(own)))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	pid_t found = 0;
	for (struct dirent *d; dir && !found && (d = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.32s/children",
			 (int)pid, d->d_name);
		FILE *f = fopen(path, "r");
		int child;
		while (f && !found && fscanf(f, "%d", &child) == 1)
			if (read_exe(child, exe, sizeof(exe)) &&
			    strcmp(exe, own))
				found = child;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

#endif
