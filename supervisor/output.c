#include "supervisor/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *base_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	return *name ? name : "unknown";
}

int output_expand(const char *pattern, pid_t pid, const char *name, char **ret,
		  struct smco_err *err)
{
	char *buf = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&buf, &size);
	if (!f)
		return smco_fail(err, SMCO_NOMEM, errno, "output name");
	int rc = 0;
	for (const char *p = pattern; *p && !rc; p++) {
		if (*p != '%') {
			fputc(*p, f);
			continue;
		}
		switch (*++p) {
		case 'p':
			fprintf(f, "%d", (int)pid);
			break;
		case 'n':
			fputs(base_name(name), f);
			break;
		case '%':
			fputc('%', f);
			break;
		default:
			rc = smco_fail(err, SMCO_FORMAT, 0,
				       "%% must be followed by p, n or %%");
			p--; /* the end of the string is not to be passed */
		}
	}
	bool failed = ferror(f);
	if ((fclose(f) || failed) && !rc)
		rc = smco_fail(err, SMCO_NOMEM, 0, "output name");
	if (rc) {
		free(buf);
		return rc;
	}
	*ret = buf;
	return 0;
}

static bool has_pid(const char *pattern)
{
	for (const char *p = pattern; (p = strchr(p, '%')); p++)
		if (*++p == 'p' || !*p)
			return *p;
	return false;
}

/* Make a new file beside @path, and remove it; 0 or what errno said. */
static int try_beside(const char *path)
{
	for (unsigned i = 0;; i++) {
		_cleanup_free_ char *probe = NULL;
		if (asprintf(&probe, "%s.%d-%u", path, (int)getpid(), i) < 0) {
			probe = NULL;
			return ENOMEM;
		}
		_cleanup_close_ int fd = open(
			probe, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0) {
			unlink(probe);
			return 0;
		}
		if (errno != EEXIST)
			return errno;
	}
}

/* Can what is at @path be kept? Beside the file, not beside a link to it. */
static int check_old(const char *path, struct smco_err *err)
{
	_cleanup_free_ char *file = realpath(path, NULL);
	_cleanup_free_ char *old = NULL;
	struct stat st;
	if (!file) /* there is nothing to be kept */
		return 0;
	if (asprintf(&old, "%s.old", file) < 0) {
		old = NULL;
		return smco_fail(err, SMCO_NOMEM, 0, "output name");
	}
	if (lstat(old, &st) || !S_ISDIR(st.st_mode))
		return 0;
	return smco_fail(err, SMCO_SYS, 0,
			 "cannot keep the old trace as %.200s: "
			 "that is a directory",
			 old);
}

int output_check(const char *pattern, const char *name, struct smco_err *err)
{
	_cleanup_free_ char *expanded = NULL;
	struct stat st;
	int rc = output_expand(pattern, getpid(), name, &expanded, err);
	if (rc)
		return rc;
	const char *path = expanded;
	/* A file that has our number in its name says nothing. */
	const char *shown = has_pid(pattern) ? pattern : path;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return smco_fail(err, SMCO_SYS, 0,
				 "cannot write the trace to %.200s: it is %s",
				 shown,
				 S_ISDIR(st.st_mode) ? "a directory"
						     : "not a regular file");
	rc = check_old(path, err);
	if (rc)
		return rc;
	int failed = try_beside(path);
	if (failed)
		return smco_fail(err, SMCO_SYS, failed,
				 "cannot write the trace to %.200s", shown);
	return 0;
}
