#include "supervisor/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define PPB_PER_PERCENT 1e7

struct status {
	int fd;		   /* a description of our own; -1 = no terminal */
	uint64_t due_ns;   /* not before */
	bool is_on_screen; /* a line is there to be erased */
};

#define START_NS NSEC_PER_SEC

static void format_time(uint64_t ns, char *buf, size_t size)
{
	unsigned long long s = ns / NSEC_PER_SEC;
	if (s < 60)
		snprintf(buf, size, "%llu.%llu s", s,
			 (unsigned long long)(ns / (NSEC_PER_SEC / 10) % 10));
	else if (s < 3600)
		snprintf(buf, size, "%llu:%02llu", s / 60, s % 60);
	else
		snprintf(buf, size, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60,
			 s % 60);
}

static void format_count(uint64_t n, char *buf, size_t size)
{
	if (n < 100000)
		snprintf(buf, size, "%" PRIu64, n);
	else if (n < 10000000)
		snprintf(buf, size, "%" PRIu64 "k", n / 1000);
	else
		snprintf(buf, size, "%" PRIu64 "M", n / 1000000);
}

size_t status_format(const struct status_facts *f, unsigned width, char *buf,
		     size_t size)
{
	char elapsed[32], target[24] = "", target_of[32] = "", armed[24];
	char known[24], naps[24];
	double now = (double)f->overhead_ppb / PPB_PER_PERCENT;

	format_time(f->elapsed_ns, elapsed, sizeof(elapsed));
	format_count(f->nr_armed, armed, sizeof(armed));
	format_count(f->nr_known, known, sizeof(known));
	format_count(f->nr_naps, naps, sizeof(naps));
	if (f->target_ppb != INT64_MAX) {
		double t = (double)f->target_ppb / PPB_PER_PERCENT;
		snprintf(target, sizeof(target), "/%g", t);
		snprintf(target_of, sizeof(target_of), " of %g %%", t);
	}

	/* What starting took is no share of the moments since. */
	char line[4][160], cost[64] = "starting", brief[48] = "starting";
	if (f->elapsed_ns >= START_NS) {
		snprintf(cost, sizeof(cost), "overhead %.1f %%%s", now,
			 target_of);
		snprintf(brief, sizeof(brief), "%.1f%s %%", now, target);
	}
	snprintf(line[0], sizeof(line[0]),
		 "smco: %s, %s, %s of %s blocks armed, %s %s", elapsed, cost,
		 armed, known, naps, f->nr_naps == 1 ? "nap" : "naps");
	snprintf(line[1], sizeof(line[1]), "%s  %s  %s/%s armed  %s %s",
		 elapsed, brief, armed, known, naps,
		 f->nr_naps == 1 ? "nap" : "naps");
	snprintf(line[2], sizeof(line[2]), "%s %s", elapsed, brief);
	snprintf(line[3], sizeof(line[3]), "%.1f%%", now);

	if (size && width >= size)
		width = (unsigned)size - 1;
	for (size_t i = 0; size && i < ARRAY_SIZE(line); i++) {
		size_t len = strlen(line[i]);
		if (len > width)
			continue;
		memcpy(buf, line[i], len + 1);
		return len;
	}
	if (size)
		*buf = '\0';
	return 0;
}

/*
 * A description of our own for the terminal behind @fd: that of @fd is shared
 * with the monitored program, and O_NONBLOCK on it would change how the
 * program's own writes behave.
 */
static int open_terminal(int fd)
{
	char path[64];
	if (!isatty(fd))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

int status_create(int fd, bool quiet, struct status **ret, struct smco_err *err)
{
	struct status *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, errno, "status line");
	s->fd = quiet ? -1 : open_terminal(fd);
	*ret = s;
	return 0;
}

void status_destroy(struct status *s)
{
	if (!s)
		return;
	status_erase(s);
	smco_close_fd(&s->fd);
	free(s);
}

/* A background job that writes may be stopped by SIGTTOU, and disturbs. */
static bool is_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);
	return group < 0 || group == getpgrp();
}

/*
 * An editor, a pager, a shell's prompt or a question for a password: what is on
 * the screen then, and where the cursor stands, is somebody's who would not
 * draw it anew.
 */
static bool is_taken(int fd)
{
	struct termios t;
	return !tcgetattr(fd, &t) &&
	       (t.c_lflag & (ICANON | ECHO)) != (ICANON | ECHO);
}

uint64_t status_due_ns(const struct status *s)
{
	return s->fd < 0 ? UINT64_MAX : s->due_ns;
}

void status_show(struct status *s, uint64_t now_ns,
		 const struct status_facts *f)
{
	if (s->fd < 0 || now_ns < s->due_ns)
		return;
	s->due_ns = now_ns + STATUS_INTERVAL_NS;
	if (!is_foreground(s->fd) || is_taken(s->fd))
		return;
	struct winsize ws = {.ws_col = 0};
	if (ioctl(s->fd, TIOCGWINSZ, &ws) || !ws.ws_col)
		ws.ws_col = 80;

	/* Cursor back to the left, so that the program's next line of output
	 * begins where it should. One write, or nothing. */
	char text[256], out[300];
	if (!status_format(f, ws.ws_col - 1U, text, sizeof(text)))
		return;
	int n = snprintf(out, sizeof(out), "\r%s\033[K\r", text);
	if (write(s->fd, out, (size_t)n) > 0)
		s->is_on_screen = true;
}

void status_erase(struct status *s)
{
	static const char erase[] = "\r\033[K";
	if (s->fd < 0 || !s->is_on_screen)
		return;
	s->is_on_screen = false;
	if (is_foreground(s->fd) && !is_taken(s->fd) &&
	    write(s->fd, erase, sizeof(erase) - 1) < 0)
		smco_debug("status", "erase: %s", strerror(errno));
}
