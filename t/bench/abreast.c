/*
 * abreast - how long a program lives with a supervisor and without, both at the
 * same time and in turns, so that both have the same machine.
 *
 *	abreast OUT TURN_MS WORDS SUPERVISOR... PROGRAM [ARG...]
 *
 * SUPERVISOR is WORDS words, beginning with smco-trace, or none: then both are
 * without. While one of the two goes on the other one stands (SIGSTOP); who has
 * ended leaves the rest to the other one. If abreast may use one CPU only, both
 * are on that, and itself on the others. Appends one line to OUT:
 *
 *	PLAIN_S WATCHED_S PLAIN_CPU_S WATCHED_CPU_S TURNS PLAIN_FAULTS
 *		WATCHED_FAULTS
 *
 * from exec to exit what of its life each went on, and its CPU time of that;
 * the minor faults of each until its last turn: where these differ much the two
 * did not do the same. A turn ends when the program is seen to stand. Ends with
 * the programs' status, with 125 if theirs differ.
 */
#include "t/bench/program.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* One of the two. */
struct side {
	pid_t child;   /* of ours: the program, or its supervisor */
	pid_t program; /* 0: not begun yet */
	int pidfd;
	bool watched;
	bool ended;
	double went_on; /* seconds */
	double cpu;	/* seconds, as of cpu_of */
	double cpu_of;	/* went_on when the CPU time was read */
	unsigned turns;
	unsigned long faults; /* minor ones, when they were read */
};

/* CPU time of @pid's first thread, seconds; @old if it has ended. */
static double cpu_seconds(pid_t pid, double old)
{
	char path[64];
	unsigned long long ns = 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	FILE *f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &ns) != 1 || ns == 0)
		ns = 0;
	if (f)
		fclose(f);
	return ns ? (double)ns / 1e9 : old;
}

/* Minor faults of @pid so far; @old if it has ended. */
static unsigned long minor_faults(pid_t pid, unsigned long old)
{
	char buf[1024];
	const char *p = read_stat(pid, buf, sizeof(buf));
	unsigned long nr;
	return p && sscanf(p, "%*c %*d %*d %*d %*d %*d %*u %lu", &nr) == 1
		       ? nr
		       : old;
}

/* Whether @pid stands at a stop signal, by the letter of its state. */
static bool stands(pid_t pid)
{
	char buf[1024];
	const char *p = read_stat(pid, buf, sizeof(buf));
	return !p || strchr("TtZX", *p);
}

/* The CPU that we may use if it is one only, else -1. */
static int only_cpu(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) != 1)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return -1;
}

/* Lets @pid (0: us) use every CPU, or every one but @cpu, or that one only. */
static void use_all(pid_t pid, int but)
{
	cpu_set_t set;
	memset(&set, 0xff, sizeof(set));
	if (but >= 0)
		CPU_CLR(but, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}
static void use_one(pid_t pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/* Starts @command; a program without a supervisor stays on @cpu, if that is
 * one. */
static void start(struct side *s, char **command, int cpu)
{
	s->watched = is_supervisor(command[0]);
	s->child = fork();
	if (s->child == 0) {
		use_all(0, -1);
		if (!s->watched && cpu >= 0)
			use_one(0, cpu);
		execvp(command[0], command);
		_exit(127);
	}
}

/* Waits for the program's exec; @s->ended if it will not come. */
static void find(struct side *s, int cpu)
{
	char exe[512], own[512];
	siginfo_t end = {.si_pid = 0};
	read_exe(getpid(), own, sizeof(own));
	s->program = 0;
	while (!s->program && !end.si_pid) {
		if (s->watched)
			s->program = find_program(s->child);
		else if (read_exe(s->child, exe, sizeof(exe)) &&
			 strcmp(exe, own))
			s->program = s->child;
		waitid(P_PID, (id_t)s->child, &end,
		       WEXITED | WNOHANG | WNOWAIT);
	}
	if (s->program && s->watched && cpu >= 0)
		use_one(s->program, cpu);
	s->pidfd =
		s->program ? (int)syscall(SYS_pidfd_open, s->program, 0) : -1;
	s->ended = s->pidfd < 0;
}

/* It goes on for @ms, or until it ends. */
static void turn(struct side *s, int ms, bool first)
{
	double from = now();
	if (!first)
		kill(s->program, SIGCONT);
	struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
	s->ended = poll(&p, 1, ms) > 0;
	if (!s->ended) {
		kill(s->program, SIGSTOP);
		while (!stands(s->program))
			;
		s->ended = poll(&p, 1, 0) > 0;
	}
	s->went_on += now() - from;
	s->turns++;
	if (!s->ended) {
		s->cpu = cpu_seconds(s->program, s->cpu);
		s->cpu_of = s->went_on;
		s->faults = minor_faults(s->program, s->faults);
	}
}

/* Starts @command and lets it have its first turn. smco-trace may run others
 * before, to measure, which end at once. */
static void begin(struct side *s, char **command, int cpu, int ms)
{
	start(s, command, cpu);
	do {
		s->went_on = 0;
		find(s, cpu);
		if (s->program)
			turn(s, ms, true);
	} while (s->watched && s->program && s->ended);
}

int main(int argc, char **argv)
{
	int words = argc > 4 ? atoi(argv[3]) : argc;
	if (4 + words >= argc || words < 0) {
		fputs("usage: abreast OUT TURN_MS WORDS SUPERVISOR... "
		      "PROGRAM [ARG...]\n",
		      stderr);
		return 125;
	}
	int ms = atoi(argv[2]), cpu = only_cpu();
	struct side plain = {.pidfd = -1}, watched = {.pidfd = -1};
	use_all(0, cpu);
	begin(&plain, argv + 4 + words, cpu, ms);
	begin(&watched, argv + 4, cpu, ms);
	while (!plain.ended || !watched.ended) {
		if (!plain.ended)
			turn(&plain, ms, false);
		if (!watched.ended)
			turn(&watched, ms, false);
	}
	int status[2] = {0, 0};
	waitpid(plain.child, &status[0], 0);
	waitpid(watched.child, &status[1], 0);
	FILE *out = fopen(argv[1], "a");
	if (!out) {
		perror(argv[1]);
		return 125;
	}
	fprintf(out, "%.6f %.6f %.6f %.6f %u %lu %lu\n", plain.went_on,
		watched.went_on,
		plain.cpu_of > 0 ? plain.cpu * plain.went_on / plain.cpu_of : 0,
		watched.cpu_of > 0
			? watched.cpu * watched.went_on / watched.cpu_of
			: 0,
		plain.turns + watched.turns, plain.faults, watched.faults);
	fclose(out);
	if (status[0] != status[1] || !WIFEXITED(status[0]))
		return 125;
	return WEXITSTATUS(status[0]);
}
