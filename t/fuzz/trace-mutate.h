/*
 * trace-mutate.h - what the fuzzer's bytes make of a trace. It cannot guess
 * checksums, so they are put on here; the first byte says on what:
 *   0  a file of arbitrary bytes behind a good header
 *   1  the sample session with bytes changed: position (2 bytes), value
 *   2  one plain chunk, the second byte being its type, the third the number
 *      of its items
 */
#ifndef TRACE_MUTATE_H
#define TRACE_MUTATE_H

#include "t/unit/scratch.h"
#include "t/unit/trace-show.h"

static uint8_t *sample;
static size_t sample_size;

static void prepare(void)
{
	const char *path = scratch_path("x.trace");
	if (sample_write(path, NULL))
		abort();
	sample = show_load(path, &sample_size);
	scratch_remove(); /* a fuzzer seldom exits */
	if (!sample)
		abort();
}

static size_t patched(uint8_t *to, const uint8_t *data, size_t size)
{
	memcpy(to, sample, sample_size);
	for (; size >= 3; data += 3, size -= 3) {
		size_t at = (size_t)(data[0] << 8 | data[1]) % sample_size;
		if (at >= sizeof(struct disk_header))
			to[at] = data[2];
	}
	return sample_size;
}

static size_t one_chunk(uint8_t *to, const uint8_t *data, size_t size)
{
	size_t rest = size > 2 ? size - 2 : 0;
	struct disk_chunk h = {.magic = CHUNK_MAGIC,
			       .type = data[0],
			       .nr_items = size > 1 ? data[1] : 0,
			       .stored_size = (uint32_t)rest,
			       .raw_size = (uint32_t)rest};
	memcpy(to, sample, sizeof(struct disk_header));
	memcpy(to + sizeof(struct disk_header), &h, sizeof(h));
	if (rest)
		memcpy(to + sizeof(struct disk_header) + sizeof(h), data + 2,
		       rest);
	return sizeof(struct disk_header) + sizeof(h) + rest;
}

/* The file that @data stands for, in memory of its own size, so that a byte too
 * far is seen. The caller frees; NULL if there is too little of it. */
static uint8_t *mutate(const uint8_t *data, size_t size, size_t *len_ret)
{
	if (!sample)
		prepare();
	if (size < 2)
		return NULL;
	size_t cap = sizeof(struct disk_header) + sizeof(struct disk_chunk) +
		     size + sample_size;
	uint8_t *file = malloc(cap);
	size_t len;
	switch (data[0] % 3) {
	case 0:
		len = sizeof(struct disk_header) + size - 1;
		memcpy(file, sample, sizeof(struct disk_header));
		memcpy(file + sizeof(struct disk_header), data + 1, size - 1);
		break;
	case 1:
		len = patched(file, data + 1, size - 1);
		break;
	default:
		len = one_chunk(file, data + 1, size - 1);
		break;
	}
	show_sign(file, len);
	uint8_t *exact = malloc(len);
	memcpy(exact, file, len);
	free(file);
	*len_ret = len;
	return exact;
}

#endif
