#include "reports/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/source.h"

static int fail(const struct output *o, struct smco_err *err, int error)
{
	return smco_fail(
		err, error == EACCES || error == EPERM ? SMCO_PERM : SMCO_SYS,
		error, "cannot write %s", source_name(o->path));
}

/* A name beside the file's own, so that a rename puts it in place. */
static int open_beside(struct output *o)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (asprintf(&o->temp, "%s.%d.%u", o->path, (int)getpid(), i) <
		    0) {
			o->temp = NULL;
			return -ENOMEM;
		}
		int fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			      0666);
		if (fd >= 0)
			return fd;
		int error = errno;
		free(o->temp);
		o->temp = NULL;
		if (error != EEXIST)
			return -error;
	}
	return -EEXIST;
}

static int open_fd(struct output *o)
{
	struct stat st;
	if (stat(o->path, &st)) {
		if (errno != ENOENT)
			return -errno;
		return open_beside(o);
	}
	/* What may not be written must not be replaced either. */
	int fd = open(o->path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return fd;
	close(fd);
	char *real = realpath(o->path, NULL);
	if (!real)
		return -errno;
	free(o->path);
	o->path = real;
	fd = open_beside(o);
	if (fd >= 0)
		fchmod(fd, st.st_mode & 07777);
	return fd;
}

int output_open(struct output *o, const char *path, struct smco_err *err)
{
	*o = (struct output){.path = strdup(path)};
	int fd = o->path ? open_fd(o) : -ENOMEM;
	if (fd >= 0)
		o->file = fdopen(fd, "w");
	if (o->file)
		return SMCO_OK;
	int rc = fd < 0 ? fail(o, err, -fd) : fail(o, err, errno);
	if (fd >= 0)
		close(fd);
	output_abandon(o);
	return rc;
}

int output_commit(struct output *o, struct smco_err *err)
{
	int error = 0;
	if (fflush(o->file) || ferror(o->file))
		error = errno ? errno : EIO;
	if (fclose(o->file) && !error)
		error = errno;
	o->file = NULL;
	if (!error && o->temp && rename(o->temp, o->path))
		error = errno;
	if (!error) {
		free(o->temp);
		o->temp = NULL;
	}
	int rc = error ? fail(o, err, error) : SMCO_OK;
	output_abandon(o);
	return rc;
}

void output_abandon(struct output *o)
{
	if (o->file)
		fclose(o->file);
	if (o->temp)
		unlink(o->temp);
	free(o->temp);
	free(o->path);
	*o = (struct output){0};
}
