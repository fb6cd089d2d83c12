/*
 * lap - how long a program lives, seen from outside: from its exec until its
 * exit, without what a supervisor does before and after.
 *
 *	lap OUT COMMAND [ARG...]
 *
 * Appends one line to OUT: LIFE_S TOTAL_S PROGRAM_VMPEAK_KB SUPERVISOR_RSS_KB
 * PROGRAM_CPU_S. The last three are sampled every 20 ms.
 * If COMMAND is smco-trace, the program is the child it has that runs another
 * executable, and TOTAL is until smco-trace's own end; otherwise the program
 * is COMMAND and there is no supervisor (0). Ends with COMMAND's status.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool read_exe(pid_t pid, char *buf, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The child of any thread of @pid that runs something else than @pid does. */
static pid_t find_program(pid_t pid)
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

static long status_kb(pid_t pid, const char *key)
{
	char path[64], line[256];
	long kb = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kb = atol(line + strlen(key));
	if (f)
		fclose(f);
	return kb;
}

/* User and system time of @pid, all its threads, seconds. */
static double cpu_seconds(pid_t pid)
{
	char path[64], buf[1024];
	unsigned long user = 0, sys = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;
	buf[n] = '\0';
	if (f)
		fclose(f);
	const char *p = strrchr(buf, ')');
	if (!p || sscanf(p + 1,
			 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			 &user, &sys) != 2)
		return 0;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 125;
	const char *slash = strrchr(argv[2], '/');
	bool is_watched = !strcmp(slash ? slash + 1 : argv[2], "smco-trace");
	double begin = now();
	pid_t child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	pid_t program = is_watched ? 0 : child;
	int status, reaped = 0;
	while (!program) {
		reaped = waitpid(child, &status, WNOHANG);
		if (reaped)
			break;
		program = find_program(child);
		usleep(500);
	}
	double start = is_watched ? now() : begin, end = start;
	long peak = 0, rss = 0;
	double cpu = 0;
	int fd = program ? (int)syscall(SYS_pidfd_open, program, 0) : -1;
	if (fd >= 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		while (poll(&p, 1, 20) == 0) {
			long kb = status_kb(program, "VmPeak:");
			peak = kb > peak ? kb : peak;
			kb = is_watched ? status_kb(child, "VmHWM:") : 0;
			rss = kb > rss ? kb : rss;
			double used = cpu_seconds(program);
			cpu = used > cpu ? used : cpu;
		}
		end = now();
	}
	if (!reaped)
		waitpid(child, &status, 0);
	FILE *out = fopen(argv[1], "a");
	if (!out) {
		perror(argv[1]);
		return 125;
	}
	fprintf(out, "%.6f %.6f %ld %ld %.2f\n", end - start, now() - begin,
		peak, rss, cpu);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
