/*
 * outfile.h - the file a trace is written to: takes the place of an older one,
 * which is kept as PATH.old, and grows by whole pieces or not at all. Until it
 * is published it has another name, PATH.PID.new, and the older one its own.
 */
#ifndef SMCO_OUTFILE_H
#define SMCO_OUTFILE_H

#include "reports/base.h"

struct outfile {
	int fd;	       /* close if >= 0 */
	char *name;    /* owned; symbolic links resolved */
	char *aside;   /* owned; the name until it is published, or NULL */
	int oldest_fd; /* the file that was PATH.old; close if > 0 */
	pid_t owner;   /* who opened it, not a fork of it, takes it away */
	uint64_t size; /* up to the last whole piece */
};

/* On failure nothing has changed on disk. A device or pipe is opened as it
 * is. The file is readable by its owner only. */
int outfile_open(struct outfile *f, const char *path, struct smco_err *err);
/* Give the file its name, and the one that has it PATH.old; the one that had
 * that is gone once the file is closed. Nothing is written to the disk for it.
 * On failure both are where they were. Nothing for a device or pipe, or if it
 * has been published. */
int outfile_publish(struct outfile *f, struct smco_err *err);
/* A file without a name, which is gone once it is closed, where large files may
 * be: $TMPDIR, /var/tmp or /tmp. False if there is none to be had. */
bool outfile_open_unnamed(struct outfile *f);
/* Read @len bytes at @at of such a file. False: it cannot be read, or is not
 * that long. */
bool outfile_read(const struct outfile *f, uint64_t at, void *data, size_t len);
/* Append @len bytes: 0, or an errno value and the file is as before, as far as
 * it can be cut. No SIGXFSZ or SIGPIPE comes of it. */
int outfile_append(struct outfile *f, const void *data, size_t len);
/* Closed, and taken away if it was not published. 0 or an errno value: some
 * file systems report a full disk only here. */
int outfile_close(struct outfile *f);

#endif
