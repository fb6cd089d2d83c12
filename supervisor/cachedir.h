/*
 * cachedir.h - a directory of files that may be lost at any time: results that
 * took long, for the next time.
 *
 * It is $SMCO_CACHE_DIR, or smco in $XDG_CACHE_HOME, or ~/.cache/smco. Used is
 * only what belongs to the effective user and nobody else may write to, so not
 * the directory of the user who called sudo, nor any of root's by a program
 * with more rights than its caller; no symbolic link is followed for its
 * name's last part, nor for files in it. Files are written whole or not at all,
 * whoever writes the same at the same time. Files whose names are none of ours
 * are left alone.
 */
#ifndef SMCO_CACHEDIR_H
#define SMCO_CACHEDIR_H

#include "reports/outfile.h"

/* All files together; those not used for the longest time go first. */
#define CACHEDIR_MOST_BYTES (1ULL << 30)

/* A descriptor of the directory, made if there is none; -1: there is none that
 * may be used (or SMCO_CACHE_DIR is empty). */
int cachedir_open(void);

/* A descriptor of file @name, which is used from now on; -1 if there is none,
 * or it is empty or larger than all may be. */
int cachedir_find(int dir, const char *name, size_t *len_ret);

/* A new file that has no name yet. */
struct cachefile {
	struct outfile out; /* append to this */
	int dir;	    /* the caller's */
	char temporary[64];
};
bool cachefile_create(struct cachefile *f, int dir);
/* It takes the place of @name, if @good; it goes, if not. Others go until there
 * are at most @most bytes. */
void cachefile_close(struct cachefile *f, const char *name, bool good,
		     uint64_t most);

#endif
