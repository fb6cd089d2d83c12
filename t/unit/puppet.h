/*
 * puppet.h - a child process that runs one function of the test at a time on
 * request, so that a test says exactly what the watched program touches.
 */
#ifndef PUPPET_H
#define PUPPET_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef long (*puppet_fn)(long a, long b);
struct puppet_order {
	puppet_fn fn;
	long a, b;
};
struct puppet {
	pid_t pid;
	int ask, answer;
};

static inline struct puppet puppet_start(void)
{
	int ask[2], answer[2];
	if (pipe(ask) || pipe(answer))
		exit(2);
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		struct puppet_order o;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(ask[0], &o, sizeof(o)) == sizeof(o)) {
			long r = o.fn(o.a, o.b);
			if (write(answer[1], &r, sizeof(r)) != sizeof(r))
				break;
		}
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	return (struct puppet){pid, ask[1], answer[0]};
}

/* Start @fn, which may go on; puppet_wait() gets what it returns. */
static inline void puppet_begin(struct puppet *p, puppet_fn fn, long a, long b)
{
	struct puppet_order o = {fn, a, b};
	if (write(p->ask, &o, sizeof(o)) != sizeof(o))
		exit(2);
}

static inline long puppet_wait(struct puppet *p)
{
	long r;
	if (read(p->answer, &r, sizeof(r)) != sizeof(r))
		exit(2);
	return r;
}

static inline long puppet_do(struct puppet *p, puppet_fn fn, long a, long b)
{
	puppet_begin(p, fn, a, b);
	return puppet_wait(p);
}

static inline void puppet_end(struct puppet *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->ask);
	close(p->answer);
}

/* The letter of its state in /proc, 0 when it is gone. */
static inline char puppet_state(pid_t pid)
{
	char path[64], buf[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return 0;
	char *at = strrchr(buf, ')');
	return at && at[1] ? at[2] : 0;
}

#endif
