/* The status line: its text at every width, and how it treats a terminal. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "supervisor/status.h"
#include "t/unit/tap.h"

static const struct status_facts facts = {
	.elapsed_ns = 12340000000,
	.overhead_ppb = 98000000,
	.target_ppb = 100000000,
	.nr_armed = 120,
	.nr_known = 4711,
	.nr_naps = 3,
};

static void test_format(void)
{
	static const struct {
		unsigned width;
		const char *want;
	} rows[] = {
		{200, "smco: 12.3 s, overhead 9.8 % of 10 %, 120 of 4711 "
		      "blocks armed, 3 naps"},
		{70, "smco: 12.3 s, overhead 9.8 % of 10 %, 120 of 4711 "
		     "blocks armed, 3 naps"},
		{69, "12.3 s  9.8/10 %  120/4711 armed  3 naps"},
		{40, "12.3 s  9.8/10 %  120/4711 armed  3 naps"},
		{39, "12.3 s 9.8/10 %"},
		{15, "12.3 s 9.8/10 %"},
		{14, "9.8%"},
		{4, "9.8%"},
		{3, ""},
		{0, ""},
	};
	char buf[256];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n =
			status_format(&facts, rows[i].width, buf, sizeof(buf));
		check_str(buf, rows[i].want);
		check_int(n, strlen(rows[i].want));
	}
	char small[10];
	status_format(&facts, 200, small, sizeof(small));
	check_str(small, "9.8%");
	check_int(status_format(&facts, 200, NULL, 0), 0);
}

static void test_start(void)
{
	char buf[256];
	struct status_facts f = facts;
	f.overhead_ppb = 4882000000;
	f.elapsed_ns = NSEC_PER_SEC - 1;
	status_format(&f, 200, buf, sizeof(buf));
	check_str(buf, "smco: 0.9 s, starting, 120 of 4711 blocks armed, "
		       "3 naps");
	status_format(&f, 40, buf, sizeof(buf));
	check_str(buf, "0.9 s  starting  120/4711 armed  3 naps");
	status_format(&f, 20, buf, sizeof(buf));
	check_str(buf, "0.9 s starting");
	f.elapsed_ns = NSEC_PER_SEC;
	status_format(&f, 20, buf, sizeof(buf));
	check_str(buf, "1.0 s 488.2/10 %");
}

static void test_values(void)
{
	char buf[256];
	struct status_facts f = facts;
	f.target_ppb = INT64_MAX;
	f.nr_naps = 1;
	f.nr_known = 1234567;
	f.nr_armed = 99999;
	f.elapsed_ns = 3725ULL * NSEC_PER_SEC;
	status_format(&f, 200, buf, sizeof(buf));
	check_str(buf, "smco: 1:02:05, overhead 9.8 %, 99999 of 1234k blocks "
		       "armed, 1 nap");
	f.elapsed_ns = 125ULL * NSEC_PER_SEC;
	f.target_ppb = 2500000;
	status_format(&f, 20, buf, sizeof(buf));
	check_str(buf, "2:05 9.8/0.25 %");
	/* The extremes must fit whatever they are. */
	struct status_facts max = {UINT64_MAX, INT64_MAX,  INT64_MAX - 1,
				   UINT64_MAX, UINT64_MAX, UINT64_MAX};
	size_t n = status_format(&max, 1000, buf, sizeof(buf));
	check(n > 0 && n < sizeof(buf) && n == strlen(buf));
	struct status_facts min = {0, INT64_MIN, 0, 0, 0, 0};
	check(status_format(&min, 1000, buf, sizeof(buf)) > 0);
}

/* What has come out at the pty's other end so far. */
static size_t read_all(int master, char *buf, size_t size)
{
	fcntl(master, F_SETFL, O_NONBLOCK);
	ssize_t n = read(master, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void test_terminal(void)
{
	int master, slave;
	char buf[4096];
	struct winsize ws = {.ws_row = 24, .ws_col = 61};
	struct status *s;
	if (openpty(&master, &slave, NULL, NULL, &ws)) {
		tap_skip("no pseudo terminal");
		return;
	}
	check_int(status_create(slave, false, &s, NULL), 0);
	check_msg(!(fcntl(slave, F_GETFL) & O_NONBLOCK),
		  "the program's descriptor stays blocking");
	status_erase(s);
	check_int(read_all(master, buf, sizeof(buf)), 0);
	check_int(status_due_ns(s), 0);
	status_show(s, NSEC_PER_SEC, &facts);
	read_all(master, buf, sizeof(buf));
	check_str(buf, "\r12.3 s  9.8/10 %  120/4711 armed  3 naps\033[K\r");
	status_show(s, NSEC_PER_SEC + STATUS_INTERVAL_NS - 1, &facts);
	check_msg(!read_all(master, buf, sizeof(buf)), "not so often");
	check_int(status_due_ns(s), NSEC_PER_SEC + STATUS_INTERVAL_NS);
	status_show(s, NSEC_PER_SEC + STATUS_INTERVAL_NS, &facts);
	check(read_all(master, buf, sizeof(buf)) > 0);

	ws.ws_col = 16;
	ioctl(master, TIOCSWINSZ, &ws);
	status_show(s, 2 * NSEC_PER_SEC, &facts);
	read_all(master, buf, sizeof(buf));
	check_str(buf, "\r12.3 s 9.8/10 %\033[K\r");
	status_erase(s);
	read_all(master, buf, sizeof(buf));
	check_str(buf, "\r\033[K");
	status_erase(s);
	check_msg(!read_all(master, buf, sizeof(buf)), "erased once only");
	status_show(s, 3 * NSEC_PER_SEC, &facts);
	read_all(master, buf, sizeof(buf));
	status_destroy(s);
	read_all(master, buf, sizeof(buf));
	check_str(buf, "\r\033[K");

	/* Quiet, and not a terminal. */
	check_int(status_create(slave, true, &s, NULL), 0);
	check_int(status_due_ns(s), UINT64_MAX);
	status_show(s, NSEC_PER_SEC, &facts);
	status_destroy(s);
	check_int(read_all(master, buf, sizeof(buf)), 0);
	int pipe_fds[2];
	check_int(pipe(pipe_fds), 0);
	check_int(status_create(pipe_fds[1], false, &s, NULL), 0);
	status_show(s, NSEC_PER_SEC, &facts);
	status_destroy(s);
	check_int(read_all(pipe_fds[0], buf, sizeof(buf)), 0);
	status_destroy(NULL);
	close(master);
	close(slave);
}

/* A terminal that takes no output (Ctrl-S) must not hold us up. */
static void test_stopped_terminal(void)
{
	int master, slave;
	if (openpty(&master, &slave, NULL, NULL, NULL)) {
		tap_skip("no pseudo terminal");
		return;
	}
	struct status *s;
	check_int(status_create(slave, false, &s, NULL), 0);
	check_int(tcflow(slave, TCOOFF), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20); /* blocked: death by SIGALRM */
		for (uint64_t i = 1; i < 20000; i++)
			status_show(s, i * STATUS_INTERVAL_NS, &facts);
		_exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	check_int(status, 0);
	tcflow(slave, TCOON);
	status_destroy(s);
	close(master);
	close(slave);
}

int main(void)
{
	test_format();
	test_start();
	test_values();
	test_terminal();
	test_stopped_terminal();
	return tap_done();
}
