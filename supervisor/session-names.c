/*
 * What processes are called in reports: their command lines, which servers
 * rewrite to say what each of their workers is, after the fork. They are read
 * when a process comes, then each time it has become half as old again, and
 * when it is left; of one that has ended there is none to be had.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/session-private.h"

#define SOONEST_NS (20 * NSEC_PER_MSEC)

/* PR_SET_NAME is another way to say it: where that is not the program's own. */
static void add_name(pid_t pid, char line[WATCHED_NAME], size_t len)
{
	char path[PROCFS_PATH], name[32], exe[1024];
	procfs_path(path, sizeof(path), pid, "comm");
	if (smco_slurp(path, name, sizeof(name)) <= 0)
		return;
	name[strcspn(name, "\n")] = '\0';
	procfs_path(path, sizeof(path), procfs_holder(pid), "exe");
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	const char *file = strrchr(exe, '/');
	if (name[0] && !strstr(line, name) &&
	    (!file || strncmp(file + 1, name, strlen(name)) != 0))
		snprintf(line + len, WATCHED_NAME - len, " [%s]", name);
}

static bool read_line(pid_t pid, char line[WATCHED_NAME])
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), procfs_holder(pid), "cmdline");
	ssize_t n = smco_slurp(path, line, WATCHED_NAME);
	if (n <= 0)
		return false;
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!line[i])
			line[i] = ' ';
	/* Who sets its own title leaves blanks at the end. */
	size_t len = strlen(line);
	while (len && line[len - 1] == ' ')
		line[--len] = '\0';
	return true;
}

bool session_read_command(pid_t pid, char line[WATCHED_NAME])
{
	if (!read_line(pid, line))
		return false;
	add_name(pid, line, strlen(line));
	return true;
}

static void set_due(struct watched *w)
{
	uint64_t now_ns = smco_now_ns();
	if (!w->name_due_ns)
		w->came_ns = now_ns;
	uint64_t wait_ns = (now_ns - w->came_ns) / 2;
	w->name_due_ns = now_ns + (wait_ns > SOONEST_NS ? wait_ns : SOONEST_NS);
}

static void set_name(struct session *s, struct watched *w,
		     const char line[WATCHED_NAME])
{
	char key[32];
	memcpy(w->name, line, WATCHED_NAME);
	snprintf(key, sizeof(key), "pid.%d.command", (int)w->pid);
	trace_put_meta(s->trace, key, line);
}

void session_name(struct session *s, struct watched *w)
{
	char line[WATCHED_NAME];
	set_due(w);
	if (session_read_command(w->pid, line) && strcmp(line, w->name) != 0)
		set_name(s, w, line);
}

void session_name_program(struct session *s, struct watched *w)
{
	char line[WATCHED_NAME];
	set_due(w);
	if (read_line(w->pid, line))
		set_name(s, w, line);
}

void session_name_copy(struct session *s, struct watched *w,
		       const struct watched *parent)
{
	if (!parent || !parent->name[0]) {
		session_name(s, w);
		return;
	}
	set_due(w);
	set_name(s, w, parent->name);
}

void session_names_tick(struct session *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->nr_ws; i++)
		if (now_ns >= s->ws[i]->name_due_ns)
			session_name(s, s->ws[i]);
}
