/*
 * The thread that reads a file while the program runs: it computes like
 * everybody while the budget has room, and else when nobody else wants to.
 */
#include <dirent.h>
#include <sched.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/control/control.h"
#include "supervisor/monitor/range-private.h"
#include "t/unit/tap.h"

#define TARGET_PPB 100000000
#define TAG	   1

static int pipe_fd[2];

/* The C library's, with which reading begins. It takes as long as the pipe is
 * open, and then there is no such file. */
int stat(const char *path, struct stat *ret)
{
	char c;
	(void)path;
	*ret = (struct stat){0};
	check_int(read(pipe_fd[0], &c, 1), 0);
	errno = ENOENT;
	return -1;
}

/* Of the only thread beside us; -1: there is none. */
static int policy_of_other(void)
{
	int policy = -1;
	DIR *d = opendir("/proc/self/task");
	for (const struct dirent *e; d && (e = readdir(d));) {
		pid_t tid = atoi(e->d_name);
		if (tid && tid != getpid())
			policy = sched_getscheduler(tid);
	}
	if (d)
		closedir(d);
	return policy;
}

int main(void)
{
	struct range_monitor m = {.ledger = ledger_create(TARGET_PPB),
				  .cache_dir = -1};
	sched_getaffinity(0, sizeof(m.cpus), &m.cpus);
	struct range_unit *u = range_unit_new(&m, "program", false);
	if (!m.ledger || !u || pipe(pipe_fd) ||
	    !check(range_reader_start(&m, u, u->path)))
		return 1;
	ledger_advance(m.ledger, 0, 0);
	ledger_advance(m.ledger, NSEC_PER_SEC, NSEC_PER_SEC);
	check(ledger_room_ns(m.ledger) > 0);
	check(range_reader_busy(&m, 0));
	check_int(policy_of_other(), SCHED_OTHER);
	ledger_charge(m.ledger, LEDGER_OTHER, TAG, NSEC_PER_SEC);
	check(ledger_room_ns(m.ledger) < 0);
	check(range_reader_busy(&m, 0));
	check_int(policy_of_other(), SCHED_IDLE);
	/* Waited for, not long enough. */
	check(range_reader_busy(&m, smco_now_ns() + NSEC_PER_MSEC));
	check_int(policy_of_other(), SCHED_IDLE);
	for (uint64_t ns = 1; ledger_room_ns(m.ledger) <= 0; ns++)
		ledger_advance(m.ledger, (1 + ns) * NSEC_PER_SEC,
			       (1 + ns) * NSEC_PER_SEC);
	check(range_reader_busy(&m, 0));
	check_int(policy_of_other(), SCHED_OTHER);

	close(pipe_fd[1]);
	check(!range_reader_busy(&m, UINT64_MAX));
	check(!u->is_being_read && !u->vars);
	check_int(policy_of_other(), -1);
	ledger_destroy(m.ledger);
	range_unit_destroy(u);
	return tap_done();
}
