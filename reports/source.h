/*
 * source.h - the bytes of a trace, from a file or from memory, read by
 * position. Nothing outside [0, size) is ever touched.
 */
#ifndef SMCO_SOURCE_H
#define SMCO_SOURCE_H

#include "reports/bytes.h"

struct source {
	int fd;		    /* close if >= 0 */
	const uint8_t *mem; /* when fd is -1 */
	struct bbuf owned;  /* what mem points to, if it was read in here */
	uint64_t size;
};

/* A path as messages have it: the end of one so long that there would be no
 * room for what they say. */
const char *source_name(const char *path);

/* What is no regular file is read to its end, what does not begin like a trace
 * no further than that: some MiB are kept in memory, of more all is put into an
 * unnamed temporary file, where there is room. */
int source_open(struct source *s, const char *path, struct smco_err *err);
void source_open_mem(struct source *s, const void *buf, size_t len);
void source_close(struct source *s);

/* Exactly @len bytes at @pos; false if there are not so many. A file that
 * was cut meanwhile, or a read error, is the same. */
bool source_read(const struct source *s, uint64_t pos, void *buf, size_t len);
/* Position of the next @marker (2 bytes) at or after @pos; size if none. */
uint64_t source_find(const struct source *s, uint64_t pos, const char *marker);

#endif
