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

int outfile_open(struct outfile *f, const char *path, struct smco_err *err)
{
	/* A symbolic link is followed once, here, so that the old file is
	 * kept beside the file and not beside the link. One that leads nowhere
	 * is written through. */
	*f = (struct outfile){
		.fd = -1, .name = realpath(path, NULL), .owner = getpid()};
	struct stat st;
	bool is_file = f->name ? !stat(f->name, &st) && S_ISREG(st.st_mode)
			       : lstat(path, &st) < 0;
	if (!f->name)
		f->name = strdup(path);
	if (f->name && is_file &&
	    asprintf(&f->aside, "%s.%d.new", f->name, (int)f->owner) < 0)
		f->aside = NULL;
	if (!f->name || (is_file && !f->aside)) {
		outfile_close(f);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (f->aside)
		unlink(f->aside); /* a dead one's with our number */
	f->fd = open(f->aside ? f->aside : f->name,
		     O_WRONLY | O_CREAT | O_CLOEXEC |
			     (f->aside ? O_EXCL : O_TRUNC),
		     0600);
	if (f->fd >= 0)
		return SMCO_OK;
	int error = errno;
	outfile_close(f);
	return smco_fail(
		err, error == EACCES || error == EPERM ? SMCO_PERM : SMCO_SYS,
		error, "cannot write trace %s", path);
}

static void put_back(const char *from, const char *to)
{
	if (rename(from, to) < 0)
		smco_debug("trace", "cannot put %s back: %s", to,
			   strerror(errno));
}

/*
 * Where a name is taken from another file, some file systems (ext4) write the
 * renamed one to the disk at once, and its interrupt is the program's if that
 * has the CPU: so the oldest has to go out of the way first. Its place on the
 * disk is given up when the run is over.
 */
static bool move_oldest(struct outfile *f, const char *old, const char *oldest)
{
	struct stat st;
	if (lstat(f->name, &st) < 0 || lstat(old, &st) < 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	unlink(oldest); /* a dead one's with our number */
	return !rename(old, oldest);
}

static int publish(struct outfile *f, const char *old, struct smco_err *err)
{
	bool is_kept = !rename(f->name, old);
	if (!is_kept && errno != ENOENT)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot keep the old trace as %s", old);
	if (!rename(f->aside, f->name))
		return SMCO_OK;
	int rc = smco_fail(err, SMCO_SYS, errno, "cannot write trace %s",
			   f->name);
	if (is_kept)
		put_back(old, f->name);
	return rc;
}

int outfile_publish(struct outfile *f, struct smco_err *err)
{
	_cleanup_free_ char *old = NULL, *oldest = NULL;
	if (!f->aside)
		return SMCO_OK;
	if (asprintf(&old, "%s.old", f->name) < 0)
		old = NULL;
	if (asprintf(&oldest, "%s.%d.old", f->name, (int)f->owner) < 0)
		oldest = NULL;
	if (!old || !oldest)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	bool is_moved = move_oldest(f, old, oldest);
	int rc = publish(f, old, err);
	if (rc) {
		if (is_moved)
			put_back(oldest, old);
		return rc;
	}
	if (is_moved) {
		f->oldest_fd = open(oldest, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		unlink(oldest);
	}
	free(f->aside);
	f->aside = NULL;
	return SMCO_OK;
}

static int open_unnamed(const char *dir)
{
	return dir ? open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600)
		   : -1;
}

bool outfile_open_unnamed(struct outfile *f)
{
	/* Rather than where memory may serve as a disk. */
	*f = (struct outfile){.fd = open_unnamed(secure_getenv("TMPDIR"))};
	if (f->fd < 0)
		f->fd = open_unnamed("/var/tmp");
	if (f->fd < 0)
		f->fd = open_unnamed("/tmp");
	return f->fd >= 0;
}

bool outfile_read(const struct outfile *f, uint64_t at, void *data, size_t len)
{
	uint8_t *to = data;
	while (len) {
		ssize_t n = pread(f->fd, to, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
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

int outfile_close(struct outfile *f)
{
	if (f->fd >= 0 && f->aside && f->owner == getpid())
		unlink(f->aside);
	int error = f->fd >= 0 && close(f->fd) < 0 ? errno : 0;
	if (f->oldest_fd > 0)
		close(f->oldest_fd);
	free(f->name);
	free(f->aside);
	*f = (struct outfile){.fd = -1};
	return error;
}
