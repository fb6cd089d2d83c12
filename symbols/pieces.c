#include "symbols/pieces.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t nr_blocks(const struct pieces *p)
{
	return (p->len + PIECES_BLOCK - 1) / PIECES_BLOCK;
}

bool pieces_open(struct pieces *p, int fd, uint64_t offset, size_t len)
{
	struct stat st;
	*p = (struct pieces){.fd = -1};
	if (fstat(fd, &st) || len > (uint64_t)st.st_size ||
	    offset > (uint64_t)st.st_size - len)
		return false;
	*p = (struct pieces){.fd = fd, .offset = offset, .len = len};
	p->data = len ? malloc(len) : NULL;
	p->have = calloc(nr_blocks(p) / 64 + 1, sizeof(*p->have));
	if (!p->data || !p->have) {
		pieces_close(p);
		return false;
	}
	posix_fadvise(fd, (off_t)offset, (off_t)len, POSIX_FADV_WILLNEED);
	return true;
}

bool pieces_of(struct pieces *p, const void *data, size_t len)
{
	*p = (struct pieces){.fd = -1, .len = len};
	p->data = len ? malloc(len) : NULL;
	if (!p->data)
		return false;
	memcpy(p->data, data, len);
	return true;
}

bool pieces_of_elf(struct pieces *p, Elf *elf, int fd, uint64_t offset,
		   size_t len)
{
	if (fd >= 0)
		return pieces_open(p, fd, offset, len);
	Elf_Data *d =
		elf_getdata_rawchunk(elf, (int64_t)offset, len, ELF_T_BYTE);
	return d && d->d_buf && pieces_of(p, d->d_buf, d->d_size);
}

void pieces_close(struct pieces *p)
{
	free(p->data);
	free(p->have);
	*p = (struct pieces){.fd = -1};
}

static bool has(const struct pieces *p, size_t block)
{
	return p->have[block / 64] >> block % 64 & 1;
}

/* Blocks [from, to). */
static bool read_blocks(struct pieces *p, size_t from, size_t to)
{
	size_t at = from * PIECES_BLOCK, end = to * PIECES_BLOCK;
	if (end > p->len)
		end = p->len;
	while (at < end) {
		ssize_t n = pread(p->fd, p->data + at, end - at,
				  (off_t)(p->offset + at));
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	for (size_t b = from; b < to; b++)
		p->have[b / 64] |= UINT64_C(1) << b % 64;
	return true;
}

bool pieces_need(struct pieces *p, uint64_t at, uint64_t len)
{
	if (at > p->len || len > p->len - at)
		return false;
	if (!len || !p->have)
		return true;
	size_t b = at / PIECES_BLOCK, end = (at + len - 1) / PIECES_BLOCK + 1;
	while (b < end) {
		size_t from = b;
		while (b < end && !has(p, b))
			b++;
		if (b > from && !read_blocks(p, from, b))
			return false;
		while (b < end && has(p, b))
			b++;
	}
	return true;
}
