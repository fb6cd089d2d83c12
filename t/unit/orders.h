/* A child that does exactly what it is told, for counters. */
#ifndef ORDERS_H
#define ORDERS_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/counter.h"
#include "t/unit/tap.h"

struct child {
	pid_t pid;
	int order, answer;
};

static inline void touch(size_t pages, bool by_kernel)
{
	size_t len = pages * TPAGE_SIZE;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(3);
	madvise(p, len, MADV_NOHUGEPAGE);
	int zero = by_kernel ? open("/dev/zero", O_RDONLY) : -1;
	if (by_kernel && (read(zero, p, len) != (ssize_t)len || close(zero)))
		_exit(7);
	for (size_t i = 0; i < pages; i++)
		p[i * TPAGE_SIZE] = 1;
}

/* For a child's child: where it reads orders and writes answers, and the other
 * ends: where answers are read and orders written. */
static int of_grandchild[2], grandchild_end[2];

static inline bool make_ways_for_grandchild(void)
{
	int order[2], answer[2];
	if (pipe(order) || pipe(answer))
		return false;
	of_grandchild[0] = order[0];
	of_grandchild[1] = answer[1];
	grandchild_end[0] = answer[0];
	grandchild_end[1] = order[1];
	return true;
}

/* 'q' end, 'x' exec, 'f' fork one that obeys, n: touch n pages, -n: have the
 * kernel do it, answer. */
static inline void obey(int order, int answer)
{
	int n;
	while (read(order, &n, sizeof(n)) == sizeof(n)) {
		if (n == 'q')
			_exit(0);
		if (n == 'f') {
			if (!fork()) {
				order = of_grandchild[0];
				answer = of_grandchild[1];
				continue;
			}
		} else {
			touch((size_t)abs(n), n < 0);
		}
		if (n == 'x') {
			execl("/bin/true", "true", NULL);
			_exit(4);
		}
		if (write(answer, &n, sizeof(n)) != sizeof(n))
			_exit(5);
	}
	_exit(6);
}

static inline struct child make_child(void)
{
	int order[2], answer[2];
	struct child c = {.pid = -1};
	if (pipe(order) || pipe(answer))
		return c;
	c.pid = fork();
	if (!c.pid) {
		close(order[1]);
		obey(order[0], answer[1]);
	}
	close(order[0]);
	close(answer[1]);
	c.order = order[1];
	c.answer = answer[0];
	return c;
}

static inline void tell(const struct child *c, int n)
{
	int echo = 0;
	if (write(c->order, &n, sizeof(n)) != sizeof(n))
		return;
	if (n != 'q' && n != 'x')
		check(read(c->answer, &echo, sizeof(echo)) == sizeof(echo) &&
		      echo == n);
}

/* @c has a child then, *ret; its pid is not told. */
static inline void tell_to_fork(const struct child *c, struct child *ret)
{
	const int fork = 'f';
	int echo = -1;
	ret->order = grandchild_end[1];
	ret->answer = grandchild_end[0];
	check(write(c->order, &fork, sizeof(fork)) == sizeof(fork));
	check(read(c->answer, &echo, sizeof(echo)) == sizeof(echo) &&
	      echo == fork);
}

static inline void end_child(struct child *c)
{
	int status = -1;
	waitpid(c->pid, &status, 0);
	check_int(status, 0);
	close(c->order);
	close(c->answer);
}

static inline bool plan_of(const char *list, struct counter_plan *p)
{
	struct pmu_event *events = NULL;
	struct smco_err err = {0};
	size_t nr = 0;
	int rc = pmu_event_parse_list(list, &events, &nr, &err);
	if (!rc)
		rc = counter_plan_make(events, nr, false, NULL, p, &err);
	free(events);
	if (!check_int(rc, 0))
		printf("# %s\n", err.msg);
	return !rc;
}

#endif
