/*
 * lap - how long a program lives, seen from outside: from its exec until its
 * exit, without what a supervisor does before and after.
 *
 *	lap OUT COMMAND [ARG...]
 *
 * Appends one line to OUT: LIFE_S TOTAL_S PROGRAM_VMPEAK_KB SUPERVISOR_RSS_KB
 * PROGRAM_CPU_S. The last three are sampled every 20 ms.
 * If COMMAND is smco-trace, the program is the last child it has that runs
 * another executable, and TOTAL is until smco-trace's own end; otherwise the
 * program is COMMAND and there is no supervisor (0). Ends with
 * COMMAND's status.
 */
#include "t/bench/program.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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
	char buf[1024];
	unsigned long user = 0, sys = 0;
	const char *p = read_stat(pid, buf, sizeof(buf));
	if (!p ||
	    sscanf(p, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		   &user, &sys) != 2)
		return 0;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* What is known of a program's life. */
struct life {
	double start, end; /* seconds, now()'s */
	long peak_kb, supervisor_kb;
	double cpu_s;
};

/* Until @program ends; @supervisor is 0 if it has none. */
static struct life watch(pid_t program, pid_t supervisor, double start)
{
	struct life l = {.start = start, .end = start};
	int fd = (int)syscall(SYS_pidfd_open, program, 0);
	if (fd < 0)
		return l;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (poll(&p, 1, 20) == 0) {
		long kb = status_kb(program, "VmPeak:");
		l.peak_kb = kb > l.peak_kb ? kb : l.peak_kb;
		kb = supervisor ? status_kb(supervisor, "VmHWM:") : 0;
		l.supervisor_kb = kb > l.supervisor_kb ? kb : l.supervisor_kb;
		double used = cpu_seconds(program);
		l.cpu_s = used > l.cpu_s ? used : l.cpu_s;
	}
	l.end = now();
	close(fd);
	return l;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 125;
	bool is_watched = is_supervisor(argv[2]);
	double begin = now();
	pid_t child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	struct life life = {.start = 0};
	int status;
	if (!is_watched)
		life = watch(child, 0, begin);
	/* The last one: smco-trace may run others before, to measure. */
	while (is_watched && !waitpid(child, &status, WNOHANG)) {
		pid_t program = find_program(child);
		if (program)
			life = watch(program, child, now());
		else
			usleep(500);
	}
	if (!is_watched)
		waitpid(child, &status, 0);
	FILE *out = fopen(argv[1], "a");
	if (!out) {
		perror(argv[1]);
		return 125;
	}
	fprintf(out, "%.6f %.6f %ld %ld %.2f\n", life.end - life.start,
		now() - begin, life.peak_kb, life.supervisor_kb, life.cpu_s);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
