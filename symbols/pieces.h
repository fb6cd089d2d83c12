/*
 * pieces.h - a part of a file of which most is never looked at: its bytes lie
 * one behind the other in memory, but are read a block at a time where
 * somebody needs them. Files are read, never mapped. Internal to symbols/; one
 * thread at a time.
 */
#ifndef SYMBOLS_PIECES_H
#define SYMBOLS_PIECES_H

#include <libelf.h>

#include "reports/base.h"

#define PIECES_BLOCK 4096

struct pieces {
	uint8_t *data; /* ours; whatever, where nothing was read yet */
	size_t len;
	/* private: */
	int fd; /* the caller's; -1: all is there */
	uint64_t offset;
	uint64_t *have; /* a bit for each block; NULL: all is there */
};

/* @len bytes from @offset of @fd, which stays open until the end; false if the
 * file does not have them, or memory is out. Nothing is read, but the kernel is
 * told that it will be. */
bool pieces_open(struct pieces *p, int fd, uint64_t offset, size_t len);
/* The same of bytes that are there: a copy. */
bool pieces_of(struct pieces *p, const void *data, size_t len);
/* One or the other: @fd is the file of @elf, or -1, and it is copied. */
bool pieces_of_elf(struct pieces *p, Elf *elf, int fd, uint64_t offset,
		   size_t len);
void pieces_close(struct pieces *p);

/* Have [at, at + len) in data; false where the file does not have it. */
bool pieces_need(struct pieces *p, uint64_t at, uint64_t len);

#endif
