/*
 * outfile.h - the file a trace is written to: takes the place of an older one,
 * which is kept as PATH.old, and grows by whole pieces or not at all.
 */
#ifndef SMCO_OUTFILE_H
#define SMCO_OUTFILE_H

#include "reports/base.h"

struct outfile {
	int fd;	       /* close if >= 0 */
	char *name;    /* owned; symbolic links resolved */
	char *old;     /* owned; where the older file went, or NULL */
	bool is_ours;  /* a regular file that did not exist before */
	uint64_t size; /* up to the last whole piece */
};

/* On failure nothing has changed on disk. A device or pipe is opened as it
 * is. The file is readable by its owner only. */
int outfile_open(struct outfile *f, const char *path, struct smco_err *err);
/* Append @len bytes: 0, or an errno value and the file is as before, as far as
 * it can be cut. No SIGXFSZ or SIGPIPE comes of it. */
int outfile_append(struct outfile *f, const void *data, size_t len);
/* Take the file away again and put the older one back. */
void outfile_undo(struct outfile *f);
/* 0 or an errno value: some file systems report a full disk only here. */
int outfile_close(struct outfile *f);

#endif
