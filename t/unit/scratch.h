/*
 * scratch.h - files of a test's own: one directory below TMPDIR (/tmp without
 * it) for the process, made when it is first asked for, removed with all that
 * is in it when that process exits. Children of a fork use it, too, and leave
 * it standing. Nothing is removed after abort(), _exit() or a signal.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch_name {
	struct scratch_name *next;
	char text[];
};

static char *scratch_made; /* absolute, for tests change their directory */
static pid_t scratch_owner;
static struct scratch_name *scratch_names;

static inline int scratch_remove_one(const char *path, const struct stat *st,
				     int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

/* Remove all of it now; a later call of the functions below makes it anew, and
 * names that were returned until now are no longer valid. */
static inline void scratch_remove(void)
{
	if (scratch_made && getpid() == scratch_owner)
		nftw(scratch_made, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(scratch_made);
	scratch_made = NULL;
	for (struct scratch_name *n; (n = scratch_names);) {
		scratch_names = n->next;
		free(n);
	}
}

/* It stays after the end, for somebody to look at; returns its path, which is
 * valid as long as scratch_dir()'s. */
static inline const char *scratch_keep(void)
{
	scratch_owner = 0;
	return scratch_made ? scratch_made : "nothing";
}

static inline void scratch_give_up(const char *what)
{
	printf("Bail out! scratch directory: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The absolute path of the directory, mode 0700. Ends the process, and says
 * why, if there can be none. */
static inline const char *scratch_dir(void)
{
	static bool is_registered;
	if (scratch_made)
		return scratch_made;
	const char *tmp = getenv("TMPDIR");
	char *below = realpath(tmp && *tmp ? tmp : "/tmp", NULL);
	if (!below)
		scratch_give_up(tmp);
	scratch_owner = getpid();
	/* Names of those that died before they could clean up are taken. */
	for (unsigned i = 0;; i++) {
		if (asprintf(&scratch_made, "%s/scratch-%d-%u", below,
			     (int)scratch_owner, i) < 0)
			scratch_give_up(below);
		if (!mkdir(scratch_made, 0700))
			break;
		if (errno != EEXIST)
			scratch_give_up(scratch_made);
		free(scratch_made);
	}
	free(below);
	if (!is_registered)
		is_registered = !atexit(scratch_remove);
	return scratch_made;
}

/* The path of @name in it, nothing is made there. It is valid to the end, or
 * to scratch_remove(). */
static inline const char *scratch_path(const char *name)
{
	const char *dir = scratch_dir();
	size_t size = strlen(dir) + 1 + strlen(name) + 1;
	struct scratch_name *n = malloc(sizeof(*n) + size);
	if (!n)
		scratch_give_up(name);
	snprintf(n->text, size, "%s/%s", dir, name);
	n->next = scratch_names;
	scratch_names = n;
	return n->text;
}

#endif
