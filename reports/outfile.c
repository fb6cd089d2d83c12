#include "reports/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Move an existing regular file out of the way. */
static int keep_old(struct outfile *f, struct smco_err *err)
{
	struct stat st;
	if (stat(f->name, &st) < 0) {
		f->is_ours = errno == ENOENT;
		return SMCO_OK;
	}
	if (!S_ISREG(st.st_mode))
		return SMCO_OK;
	if (asprintf(&f->old, "%s.old", f->name) < 0) {
		f->old = NULL;
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (rename(f->name, f->old) < 0) {
		int rc = smco_fail(err, SMCO_SYS, errno,
				   "cannot keep the old trace as %s", f->old);
		free(f->old);
		f->old = NULL;
		return rc;
	}
	f->is_ours = true;
	return SMCO_OK;
}

int outfile_open(struct outfile *f, const char *path, struct smco_err *err)
{
	/* A symbolic link is followed once, here, so that the old file is
	 * kept beside the file and not beside the link. */
	*f = (struct outfile){.fd = -1, .name = realpath(path, NULL)};
	if (!f->name)
		f->name = strdup(path);
	if (!f->name)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int rc = keep_old(f, err);
	if (!rc) {
		f->fd = open(f->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			     0600);
		if (f->fd >= 0)
			return SMCO_OK;
		rc = smco_fail(err,
			       errno == EACCES || errno == EPERM ? SMCO_PERM
								 : SMCO_SYS,
			       errno, "cannot write trace %s", path);
	}
	outfile_undo(f);
	return rc;
}

static void write_all(struct outfile *f, const uint8_t *data, size_t len,
		      int *error)
{
	while (len && !*error) {
		ssize_t n = write(f->fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*error = errno;
		} else if (n == 0) {
			*error = ENOSPC;
		} else {
			data += n;
			len -= (size_t)n;
		}
	}
}

int outfile_append(struct outfile *f, const void *data, size_t len)
{
	/* A full disk or a limit must not kill the supervisor: the signals
	 * are held back meanwhile, and ours are eaten. */
	static const struct timespec now;
	sigset_t quiet, before, pending;
	int error = 0;
	sigemptyset(&quiet);
	sigaddset(&quiet, SIGXFSZ);
	sigaddset(&quiet, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &quiet, &before);
	write_all(f, data, len, &error);
	if (sigismember(&pending, SIGXFSZ))
		sigdelset(&quiet, SIGXFSZ); /* another's, leave it pending */
	if (sigismember(&pending, SIGPIPE))
		sigdelset(&quiet, SIGPIPE);
	if (error == EFBIG || error == EPIPE)
		while (sigtimedwait(&quiet, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error) {
		f->size += len;
		return 0;
	}
	/* Where it cannot be cut (a pipe) the reader steps over the rest. */
	if (ftruncate(f->fd, (off_t)f->size) < 0)
		smco_debug("trace", "cannot cut off a partial chunk: %s",
			   strerror(errno));
	return error;
}

void outfile_undo(struct outfile *f)
{
	if (f->fd >= 0 && f->is_ours)
		unlink(f->name);
	if (f->old && rename(f->old, f->name) < 0)
		smco_debug("trace", "cannot put %s back: %s", f->name,
			   strerror(errno));
	outfile_close(f);
}

int outfile_close(struct outfile *f)
{
	int error = f->fd >= 0 && close(f->fd) < 0 ? errno : 0;
	free(f->name);
	free(f->old);
	*f = (struct outfile){.fd = -1};
	return error;
}
