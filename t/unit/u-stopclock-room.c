/*
 * A stop clock with room for few tasks: of those it tells all, of more than it
 * has room for only that they stopped; who has ended leaves its room to others,
 * and those that are not traced leave half of it to those that are.
 */
#include <sys/ptrace.h>

#include "t/unit/clock.h"
#include "t/unit/puppet.h"

enum { ROOM = 8, STOPS = 5, ROUNDS = 40 };

/* @nr tracees at the same time, of STOPS stops each: each has made one before
 * any goes on to the next. */
static struct stopclock_reading stop_abreast(int nr)
{
	pid_t pids[2 * ROOM];
	int status, nr_stops = 0;
	struct stopclock_reading before = now();
	for (int i = 0; i < nr; i++)
		pids[i] = start_tracee(STOPS);
	for (int k = 0; k <= STOPS; k++) {
		for (int i = 0; i < nr; i++) {
			check_int(waitpid(pids[i], &status, 0), pids[i]);
			nr_stops += WIFSTOPPED(status);
		}
		for (int i = 0; i < nr; i++)
			ptrace(PTRACE_CONT, pids[i], 0, 0);
	}
	check_int(nr_stops, nr * STOPS);
	struct stopclock_reading after = now();
	after.nr_stops -= before.nr_stops;
	after.nr_unseen -= before.nr_unseen;
	check_int(after.nr_stops + after.nr_unseen, nr_stops);
	return after;
}

/* In how many of @rounds is of half as many as there is room for each one
 * seen? Who has just ended may still be on its CPU, or wait for it where others
 * want it, too: it has longer when not all were seen. */
static int nr_seen_all(int rounds)
{
	int nr = 0;
	unsigned wait_us = 2000;
	for (int i = 0; i < rounds; i++) {
		usleep(wait_us);
		bool all = stop_abreast(ROOM / 2).nr_stops == ROOM / 2 * STOPS;
		nr += all;
		wait_us = all ? 2000 : wait_us < 64000 ? wait_us * 2 : wait_us;
	}
	return nr;
}

static void test_too_many(void)
{
	struct stopclock_reading r = stop_abreast(2 * ROOM);
	printf("# %d stops seen, %d not\n", (int)r.nr_stops, (int)r.nr_unseen);
	check_range((long)r.nr_stops, (ROOM / 2 - 1) * STOPS, ROOM * STOPS);
}

static long act_read(long fd, long unused)
{
	char byte;
	(void)unused;
	return read((int)fd, &byte, 1);
}

/* Wakes a traced reader, and lives on. */
static pid_t start_waker(int fd)
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(10000);
		_exit(write(fd, "x", 1) != 1 || pause());
	}
	return pid;
}

static void test_others(void)
{
	int fds[2], status;
	pid_t wakers[2 * ROOM];
	check_int(pipe(fds), 0);
	struct puppet p = puppet_start();
	check_int(ptrace(PTRACE_SEIZE, p.pid, 0, 0), 0);
	for (int i = 0; i < 2 * ROOM; i++) {
		wakers[i] = start_waker(fds[1]);
		check_int(puppet_do(&p, act_read, fds[0], 0), 1);
	}
	check_range(nr_seen_all(ROUNDS), ROUNDS / 4, ROUNDS);
	ptrace(PTRACE_INTERRUPT, p.pid, 0, 0);
	check_int(waitpid(p.pid, &status, 0), p.pid);
	ptrace(PTRACE_DETACH, p.pid, 0, 0);
	puppet_end(&p);
	for (int i = 0; i < 2 * ROOM; i++) {
		kill(wakers[i], SIGKILL);
		check_int(waitpid(wakers[i], &status, 0), wakers[i]);
	}
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	clock_open_sized(ROOM);
	test_too_many();
	check_range(nr_seen_all(ROUNDS), ROUNDS / 2, ROUNDS);
	test_others();
	stopclock_close(c);
	return tap_done();
}
