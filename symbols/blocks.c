#include "symbols/blocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/pair.h"
#include "symbols/store.h"

uint64_t blocks_two_from_bytes = 4 << 20;

#define PAGE ((uintptr_t)4096)

/* All blocks of all files, numbered; whoever has time takes the next. */
struct blocks {
	struct block_file *files;
	uint64_t *sum; /* of each block */
	size_t nr;
	atomic_size_t next;
	atomic_bool failed;
};

static size_t nr_blocks(const struct block_file *f)
{
	return f->len / STORE_BUF_BYTES + (f->len % STORE_BUF_BYTES != 0);
}

/* All pages at once take less than one after the other, as they are met. */
static void populate(uint8_t *at, size_t len)
{
	uintptr_t start = (uintptr_t)at & ~(PAGE - 1);
	uintptr_t end = ((uintptr_t)at + len + PAGE - 1) & ~(PAGE - 1);
	/* Where the kernel does not know how, they come as they are met. */
	madvise((void *)start, end - start, MADV_POPULATE_WRITE);
}

static bool read_all(int fd, uint8_t *at, size_t len, uint64_t from)
{
	while (len) {
		ssize_t n = pread(fd, at, len, (off_t)from);
		if (n <= 0)
			return false;
		at += n;
		from += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

/* Block @i of all; @room for one that nobody keeps. */
static bool read_block(struct blocks *b, size_t i, uint8_t *room)
{
	struct block_file *f = b->files;
	struct store_sum sum;
	size_t k = i;
	while (k >= nr_blocks(f))
		k -= nr_blocks(f++);
	size_t at = k * STORE_BUF_BYTES, len = f->len - at;
	len = len < STORE_BUF_BYTES ? len : STORE_BUF_BYTES;
	uint8_t *to = f->into ? f->into + at : room;
	if (f->into)
		populate(to, len);
	if (!read_all(f->fd, to, len, f->from + at))
		return false;
	/* While the processor has it in its caches. */
	store_sum_init(&sum);
	store_sum_add(&sum, to, len);
	b->sum[i] = store_sum_end(&sum);
	return true;
}

static void *read_blocks(void *arg)
{
	struct blocks *b = arg;
	uint8_t *room _cleanup_free_ = malloc(STORE_BUF_BYTES);
	size_t i;
	bool fine = room;
	while (fine && (i = atomic_fetch_add(&b->next, 1)) < b->nr)
		fine = !atomic_load(&b->failed) && read_block(b, i, room);
	if (!fine)
		atomic_store(&b->failed, true);
	return NULL;
}

bool blocks_read(struct block_file *files, size_t nr)
{
	struct blocks b = {.files = files};
	uint64_t bytes = 0;
	for (size_t i = 0; i < nr; i++) {
		b.nr += nr_blocks(&files[i]);
		bytes += files[i].len;
	}
	uint64_t *sums _cleanup_free_ = calloc(b.nr + 1, sizeof(*sums));
	if (!sums)
		return false;
	b.sum = sums;
	pair_run(bytes >= blocks_two_from_bytes, read_blocks, &b, read_blocks,
		 &b);
	for (size_t i = 0, k = 0; i < nr; i++) {
		struct store_sum all;
		store_sum_init(&all);
		for (size_t at = 0; at < files[i].len; at += STORE_BUF_BYTES)
			store_sum_block(&all, sums[k++],
					files[i].len - at < STORE_BUF_BYTES
						? files[i].len - at
						: STORE_BUF_BYTES);
		files[i].sum = store_sum_end(&all);
	}
	return !b.failed;
}
