/*
 * cache-sign.h - right sums on wrong content of a cache file, as somebody would
 * put them there who wants it to be believed.
 */
#ifndef CACHE_SIGN_H
#define CACHE_SIGN_H

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/monitor/range-cache.h"
#include "symbols/store.h"

static inline uint64_t cache_sum(const void *bytes, size_t len)
{
	struct store_sum sum;
	store_sum_init(&sum);
	store_sum_add(&sum, bytes, len);
	return store_sum_end(&sum);
}

/* All of file @name, in memory of its own (munmap). */
static inline bool cache_read(int dir, const char *name, uint8_t **ret,
			      size_t *len_ret)
{
	int fd = cachedir_find(dir, name, len_ret);
	if (fd < 0)
		return false;
	*ret = mmap(NULL, *len_ret, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool fine = *ret != MAP_FAILED &&
		    pread(fd, *ret, *len_ret, 0) == (ssize_t)*len_ret;
	close(fd);
	return fine;
}

/* Length and sums in the head, if there are bytes for one. */
static inline void cache_sign(uint8_t *bytes, size_t len)
{
	struct range_cache_head h;
	if (len < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	h.len = len;
	h.sum = store_blocks_sum(bytes + sizeof(h), len - sizeof(h));
	h.head_sum = cache_sum(&h, offsetof(struct range_cache_head, head_sum));
	memcpy(bytes, &h, sizeof(h));
}

#endif
