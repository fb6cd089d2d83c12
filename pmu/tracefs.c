/*
 * Tracepoints' numbers. tracefs is read where it is mounted; where it is not,
 * a mount of our own that no directory shows, which the kernel drops with the
 * descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "pmu/event-private.h"

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_own_mount(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	_cleanup_close_ int root = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	if (root < 0)
		return -1;
	return openat(root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The directory "events": a descriptor of the caller's, or -1. */
static int open_events(struct smco_err *err)
{
	static const char *const mounts[] = {"/sys/kernel/tracing",
					     "/sys/kernel/debug/tracing"};
	char path[512];
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		snprintf(path, sizeof(path), "%s%s/events", pmu_root(),
			 mounts[i]);
		int fd = open_dir(path);
		if (fd >= 0)
			return fd;
		if (errno == EACCES) {
			smco_fail(err, SMCO_PERM, 0,
				  "tracepoints are known only to those who may "
				  "read %s: run as root, or remount it with "
				  "mode=755",
				  mounts[i]);
			return -1;
		}
	}
	int fd = *pmu_root() ? -1 : open_own_mount();
	if (fd < 0)
		smco_fail(err, SMCO_UNSUPPORTED, 0,
			  "tracepoints cannot be looked up: no tracefs (mount "
			  "-t tracefs nodev /sys/kernel/tracing)");
	return fd;
}

static bool is_word(const char *s)
{
	return *s &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(s);
}

bool tracefs_has(const char *sys)
{
	_cleanup_close_ int events = is_word(sys) ? open_events(NULL) : -1;
	return events >= 0 && !faccessat(events, sys, F_OK, 0);
}

int tracefs_id(const char *sys, const char *name, uint64_t *id_ret,
	       struct smco_err *err)
{
	char path[512], text[32];
	if (!is_word(sys) || !is_word(name))
		return smco_fail(err, SMCO_NOTFOUND, 0, "no such tracepoint");
	_cleanup_close_ int events = open_events(err);
	if (events < 0)
		return err && err->code ? err->code : SMCO_UNSUPPORTED;
	snprintf(path, sizeof(path), "%s/%s/id", sys, name);
	_cleanup_close_ int fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0 && (errno == EACCES || errno == EPERM))
		return smco_fail(err, SMCO_PERM, errno,
				 "the number of tracepoint %s:%s", sys, name);
	if (n <= 0)
		return smco_fail(err, SMCO_NOTFOUND, 0, "no such tracepoint");
	text[n] = '\0';
	char *end;
	*id_ret = strtoull(text, &end, 10);
	if (end == text)
		return smco_fail(err, SMCO_NOTFOUND, 0, "no such tracepoint");
	return 0;
}

/* Tracepoints of one system; false when @each has had enough. */
static bool each_of_system(int events, const char *sys, tracefs_each_fn *each,
			   void *ctx)
{
	int fd = openat(events, sys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool go_on = true;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return true;
	}
	while (go_on && (e = readdir(dir))) {
		char name[600];
		snprintf(name, sizeof(name), "%s/%s/id", sys, e->d_name);
		if (e->d_name[0] == '.' || faccessat(events, name, F_OK, 0))
			continue;
		snprintf(name, sizeof(name), "%s:%s", sys, e->d_name);
		go_on = each(ctx, name);
	}
	closedir(dir);
	return go_on;
}

int tracefs_for_each(tracefs_each_fn *each, void *ctx, struct smco_err *err)
{
	int fd = open_events(err);
	if (fd < 0)
		return err && err->code ? err->code : SMCO_UNSUPPORTED;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return smco_fail(err, SMCO_SYS, errno, "tracefs");
	}
	struct dirent *e;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' &&
		    !each_of_system(fd, e->d_name, each, ctx))
			break;
	closedir(dir);
	return 0;
}

const char *tracefs_fields(const char *name, char *buf, size_t size)
{
	char path[600], text[4096];
	size_t len = 0, sys = strcspn(name, ":");
	buf[0] = '\0';
	_cleanup_close_ int events = name[sys] ? open_events(NULL) : -1;
	snprintf(path, sizeof(path), "%.*s/%s/format", (int)sys, name,
		 name[sys] ? name + sys + 1 : "");
	_cleanup_close_ int fd =
		events < 0 ? -1 : openat(events, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	/* Those behind the blank line are its own. */
	const char *p = strstr(text, "\n\n");
	while (p && (p = strstr(p, "field:")) && len < size) {
		size_t end = strcspn(p, ";"), at = end;
		if (!p[end])
			break;
		/* "char comm[16]", but "__data_loc char[] name" */
		if (p[end - 1] == ']')
			at = strcspn(p, "[");
		size_t first = at;
		while (p[first - 1] != ' ' && p[first - 1] != '*' &&
		       p[first - 1] != ':')
			first--;
		len += (size_t)snprintf(buf + len, size - len, "%s%.*s",
					len ? ", " : "", (int)(at - first),
					p + first);
		p += end;
	}
	return buf;
}
