/*
 * begun.h - how far the program of a supervisor, a child of ours, has come.
 */
#ifndef BEGUN_H
#define BEGUN_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/base.h"

/* A child of ours that has not ended. */
static inline bool begun_is_alive(pid_t pid)
{
	siginfo_t si = {0};
	return !waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) &&
	       !si.si_pid;
}

/* The first child of any thread of @pid; 0: there is none. */
static inline pid_t begun_child(pid_t pid)
{
	char path[320], buf[64];
	pid_t child = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	struct dirent *e;
	while (!child && dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children",
			 (int)pid, e->d_name);
		if (e->d_name[0] != '.' &&
		    smco_slurp(path, buf, sizeof(buf)) > 0)
			child = atoi(buf);
	}
	if (dir)
		closedir(dir);
	return child;
}

/* The program of @supervisor, 0: there is none, or it is not @name yet, as the
 * kernel calls it. */
static inline pid_t begun_program(pid_t supervisor, const char *name)
{
	char at[64], buf[64];
	pid_t pid = begun_child(supervisor);
	if (!pid)
		return 0;
	snprintf(at, sizeof(at), "/proc/%d/comm", (int)pid);
	if (smco_slurp(at, buf, sizeof(buf)) <= 0)
		return 0;
	buf[strcspn(buf, "\n")] = '\0';
	return strcmp(buf, name) ? 0 : pid;
}

static inline unsigned begun_nr_threads(pid_t pid)
{
	char path[64];
	unsigned nr = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	struct dirent *e;
	while (dir && (e = readdir(dir)))
		nr += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

/* Until the program is @name and has @threads at least, however long a busy
 * machine takes for that; or the supervisor has ended. */
static inline void begun_wait(pid_t supervisor, const char *name,
			      unsigned threads)
{
	pid_t pid;
	while (begun_is_alive(supervisor) &&
	       (!(pid = begun_program(supervisor, name)) ||
		begun_nr_threads(pid) < threads))
		usleep(1000);
}

#endif
