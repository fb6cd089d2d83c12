/*
 * The trace reader: everything that it gives away is looked at, twice, and a
 * second time only what the index leaves of it.
 */
#include "t/fuzz/trace-mutate.h"

static volatile uint64_t sum; /* nothing that is looked at is optimised out */

static void look_at_tables(struct trace_reader *r)
{
	const char *key, *value;
	uint32_t id;
	size_t nr;
	for (size_t i = 0; trace_meta_at(r, i, &key, &value); i++) {
		sum += strlen(key) + strlen(value);
		if (!trace_meta(r, key))
			abort();
	}
	for (size_t i = 0; trace_stack_at(r, i, &id); i++) {
		const struct trace_frame *f = trace_stack(r, id, &nr);
		for (size_t k = 0; k < nr; k++)
			sum += strlen(f[k].function) + strlen(f[k].file) +
			       strlen(f[k].module) + strlen(f[k].build_id) +
			       f[k].line + f[k].offset;
	}
}

/* Returns the number of records. */
static uint64_t look_at_records(struct trace_reader *r)
{
	struct record record;
	uint64_t nr = 0;
	int rc;
	while ((rc = trace_next(r, &record, NULL)) != 0) {
		if (rc < 0)
			continue;
		const uint8_t *payload = record.payload;
		if ((uintptr_t)payload % 8)
			abort();
		for (size_t i = 0; i < record.payload_len; i++)
			sum += payload[i];
		sum += record.time_ns + record.param;
		nr++;
	}
	sum += trace_nr_damaged(r) + trace_nr_dropped(r);
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t tid = 4712;
	struct trace_reader *r;
	size_t len;
	uint8_t *file = mutate(data, size, &len);
	if (file && !trace_reader_open_mem(file, len, &r, NULL)) {
		look_at_tables(r);
		uint64_t nr = look_at_records(r), lost = trace_nr_lost(r);
		trace_rewind(r);
		if (look_at_records(r) != nr || trace_nr_lost(r) != lost)
			abort();
		trace_narrow(r, 300 * NSEC_PER_MSEC, 0, &tid);
		trace_rewind(r);
		if (look_at_records(r) > nr)
			abort();
		trace_reader_close(r);
	}
	free(file);
	return 0;
}
