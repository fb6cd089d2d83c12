/*
 * A recorded ring from arbitrary bytes: the first say how its records were
 * asked for, where it begins and how large it is. Whatever a record points to
 * must lie in the ring.
 */
#include <stdlib.h>
#include <string.h>

#include "pmu/ring.h"

static uint64_t sum;

static void look(struct ring_array a, size_t item)
{
	for (size_t i = 0; i < a.nr * item; i++)
		sum += a.data[i];
}

static void look_at(const struct ring_record *r)
{
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		look(r->sample.read.entry, r->sample.read.stride * 8);
		look(r->sample.callchain, 8);
		look(r->sample.raw, 1);
		look(r->sample.branch, 24);
		look(r->sample.user.value, 8);
		look(r->sample.intr.value, 8);
		look(r->sample.stack, 1);
		look(r->sample.aux, 1);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		look(r->mmap.build_id, 1);
		sum += strlen(r->mmap.name);
		break;
	case PERF_RECORD_COMM:
		sum += strlen(r->comm.name);
		break;
	case PERF_RECORD_NAMESPACES:
		look(r->namespaces.link, 16);
		break;
	case PERF_RECORD_TEXT_POKE:
		look(r->poke.before, 1);
		look(r->poke.after, 1);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_format f;
	struct ring_record rec;
	struct ring r;
	uint64_t bytes = 64, start;

	if (size < sizeof(f) + sizeof(start) + bytes)
		return 0;
	memset(&f, 0, sizeof(f));
	memcpy(&f.sample_type, data, 8);
	memcpy(&f.read_format, data + 8, 8);
	memcpy(&f.regs_user, data + 16, 8);
	memcpy(&f.branch_sample_type, data + 24, 8);
	f.sample_id_all = data[32] & 1;
	memcpy(&start, data + 40, 8);
	data += sizeof(f) + sizeof(start);
	size -= sizeof(f) + sizeof(start);
	while (bytes * 2 <= size)
		bytes *= 2;
	/* Of its own size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(bytes);
	if (!copy)
		return 0;
	memcpy(copy, data, bytes);
	start &= (1ull << 40) - 8;
	if (!ring_open_recorded(&r, &f, copy, bytes, start + bytes, start,
				NULL)) {
		while (ring_next(&r, &rec, NULL) > 0)
			look_at(&rec);
		ring_close(&r);
	}
	free(copy);
	return 0;
}
